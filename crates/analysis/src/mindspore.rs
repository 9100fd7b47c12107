//! Describes the tensors of a MindSpore dump by execution.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use opscope_store::StoreError;
use opscope_store::dump::DumpListing;
use opscope_store::file_format::op_debug;
use opscope_store::reader::{
    self, DumpIndex, FileContent, FileExpectation, FileHead, FileKind, FileRequest,
    IndexedExecution, IndexedTensor, TensorFile,
};
use opscope_store::record::graph::GraphNode;

use crate::describe::{self, TensorDescription};
use crate::job;

/// A dump with descriptions of its tensors.
#[derive(Debug, Default)]
pub struct MindSporeOverview {
    /// The index of the dump.
    pub index: DumpIndex,
    /// Graphs.
    pub graphs: Vec<GraphOverview>,
    /// Ranks, in order.
    pub ranks: Vec<u32>,
    /// The tensors of each file; damaged files are absent.
    described: HashMap<PathBuf, Vec<TensorDescription>>,
}

/// A graph of the dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphOverview {
    /// The rank.
    pub rank: Option<u32>,
    /// Its id.
    pub graph_id: u32,
    /// Number of operators, if there is a graph file.
    pub n_nodes: Option<usize>,
    /// Number of kernels, if they are listed.
    pub n_kernels: Option<usize>,
    /// The iterations that ran it, if they are listed.
    pub iterations: Option<Vec<u64>>,
}

/// Reads a listing on `n_threads` threads and describes the tensors of each file, optionally with
/// values.
pub fn overview(listing: DumpListing, n_threads: usize, has_values: bool) -> MindSporeOverview {
    let mut described = HashMap::new();
    let index = reader::read_listing(listing, &mut |requests| {
        let files = job::map(requests, n_threads, |request| {
            describe_file(request, has_values)
        });
        let files = files.into_iter().zip(requests).map(|(file, request)| {
            let (content, tensors) = file?;
            described.insert(request.path.clone(), tensors);
            Ok(content)
        });
        files.collect()
    });
    MindSporeOverview {
        graphs: graphs(&index),
        ranks: ranks(&index),
        described,
        index,
    }
}

fn describe_file(
    request: &FileRequest,
    has_values: bool,
) -> Result<(FileContent, Vec<TensorDescription>), StoreError> {
    if request.expectation != FileExpectation::Tensors {
        return Ok((request.read_whole()?, Vec::new()));
    }
    let file = TensorFile::open(&request.path, &request.real_name)?;
    // Header and values come from one opening, so no file is read twice.
    let content = FileContent::Tensors(FileHead::from(&file));
    Ok((content, describe::tensors(&file, has_values)))
}

impl MindSporeOverview {
    /// Executions of operators, parameters and constants with their tensors, in order.
    pub fn executions(&self) -> Vec<(&IndexedExecution, Vec<&IndexedTensor>)> {
        let executions = self.index.executions.iter();
        let executions = executions.filter(|execution| is_shown(execution));
        let mut tensors = self.index.tensors.iter().peekable();
        let with_tensors = executions.map(|execution| {
            let mut own = Vec::new();
            // An execution without tensors consumes none, so both lists stay aligned.
            while let Some(tensor) =
                tensors.next_if(|tensor| Arc::ptr_eq(&tensor.execution, execution))
            {
                own.extend(tensor.slot.is_some().then_some(tensor));
            }
            (&**execution, own)
        });
        with_tensors.collect()
    }

    /// The description of a tensor; `None` if it has no elements or its file is damaged.
    pub fn description(&self, tensor: &IndexedTensor) -> Option<&TensorDescription> {
        let (side, index) = tensor.elements.as_ref()?.tensor?;
        let of_file = self.described.get(&*tensor.path)?;
        of_file
            .iter()
            .find(|tensor| (tensor.stored.side, tensor.stored.index) == (side, index))
    }

    /// Number of files with overflow records.
    pub fn n_record_files(&self) -> u64 {
        let files = self.index.files.iter();
        files
            .filter(|file| op_debug::is_record_name(&file.real_name))
            .count() as u64
    }

    /// Nodes of all graphs, by rank, graph and full name.
    pub fn nodes(&self) -> GraphNodes<'_> {
        let all = self.index.graphs.iter().flat_map(|found| {
            let nodes = found.graph.nodes.iter();
            nodes.map(|node| ((found.rank, found.graph_id, node.full_name.as_str()), node))
        });
        GraphNodes(all.collect())
    }
}

/// Whether MindSpore's files contain an execution. If only a table of the runtime does, that table
/// is shown unchanged.
fn is_shown(execution: &IndexedExecution) -> bool {
    execution.other_names.in_files.is_some()
}

/// Whether the file comes from the runtime below MindSpore, with all tensors of an operator.
pub fn is_dump_file(tensor: &IndexedTensor) -> bool {
    let kind = tensor.elements.as_ref().and_then(|place| place.kind);
    kind.is_some_and(|kind| kind != FileKind::Npy)
}

/// A lookup table of graph nodes.
pub struct GraphNodes<'a>(HashMap<(Option<u32>, u32, &'a str), &'a GraphNode>);

impl GraphNodes<'_> {
    /// Source location of an execution, outermost call first.
    pub fn source(&self, execution: &IndexedExecution) -> Vec<String> {
        let names = &execution.other_names;
        let name = names.listed.as_deref().or(names.full.as_deref());
        let key = execution.model_id.zip(name);
        let node = key.and_then(|(id, name)| self.0.get(&(execution.rank, id, name)));
        let sources = node.map(|node| node.source.iter()).into_iter().flatten();
        sources.flat_map(|source| source.lines.clone()).collect()
    }
}

fn graphs(index: &DumpIndex) -> Vec<GraphOverview> {
    // Any of the three files may be missing; one is enough for a graph to count.
    let keys = index.graphs.iter().map(|g| (g.rank, g.graph_id));
    let orders = index.orders.iter().map(|o| (o.rank, o.graph_id));
    let iterations = index.iterations.iter().map(|o| (o.rank, o.graph_id));
    let keys: BTreeSet<_> = keys.chain(orders).chain(iterations).collect();
    keys.into_iter()
        .map(|(rank, graph_id)| {
            let mut graphs = index.graphs.iter();
            let mut orders = index.orders.iter();
            let mut iterations = index.iterations.iter();
            let graph = graphs.find(|g| (g.rank, g.graph_id) == (rank, graph_id));
            let order = orders.find(|o| (o.rank, o.graph_id) == (rank, graph_id));
            let iterations = iterations.find(|o| (o.rank, o.graph_id) == (rank, graph_id));
            GraphOverview {
                rank,
                graph_id,
                n_nodes: graph.map(|found| found.graph.nodes.len()),
                n_kernels: order.map(|order| order.lines.len()),
                iterations: iterations.map(|order| order.lines.clone()),
            }
        })
        .collect()
}

fn ranks(index: &DumpIndex) -> Vec<u32> {
    let executions = index
        .executions
        .iter()
        .filter(|execution| is_shown(execution));
    let of_executions = executions.filter_map(|execution| execution.rank);
    // A rank without selected tensors may still have graphs.
    let of_graphs = index.graphs.iter().filter_map(|graph| graph.rank);
    let ranks: BTreeSet<_> = of_executions.chain(of_graphs).collect();
    ranks.into_iter().collect()
}
