//! Lists the contents of a directory that MindSpore dumped.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump::mindspore::{
    FileName, MindSporeDump, OperatorRun, RankGraph, Slot, TensorFile as TensorFileEntry,
};
use opscope_store::dump::{Listing, PassedOver};
use opscope_store::file_format::op_debug;
use opscope_store::record::graph::GraphNode;

use crate::describe::{self, TensorDescription};
use crate::job;
use crate::statistics::{self, OperatorStatistics};
use crate::tensor_file::TensorFile;

/// A directory that MindSpore dumped.
#[derive(Debug, Default)]
pub struct MindSporeOverview {
    /// Executions of operators, parameters and constants.
    pub records: Vec<RecordOverview>,
    /// Graphs.
    pub graphs: Vec<GraphOverview>,
    /// Number of files with tensors.
    pub n_files: u64,
    /// Bytes of the files with tensors.
    pub n_bytes: u64,
    /// Number of rows with statistics.
    pub n_rows: u64,
    /// Ranks, in order.
    pub ranks: Vec<u32>,
    /// Number of files with overflow records.
    pub n_record_files: u64,
    /// Statistics that the runtime below MindSpore wrote.
    pub tables: Vec<OperatorStatistics>,
    /// Files and directories that are not read as a part of the dump.
    pub passed_over: Vec<PassedOver>,
    /// Errors of files and directories that could not be read.
    pub errors: Vec<StoreError>,
}

/// One execution of an operator, or the value of a parameter.
#[derive(Debug)]
pub struct RecordOverview {
    /// Names, place and number of the execution.
    pub run: OperatorRun,
    /// Its tensors.
    pub tensors: Vec<TensorOverview>,
    /// Where it comes from in the source, outermost call first.
    pub source: Vec<String>,
}

/// One tensor of a record.
#[derive(Debug)]
pub struct TensorOverview {
    /// `input.0`, `output.1`, …
    pub slot: String,
    /// Its file, if there is one.
    pub path: Option<PathBuf>,
    /// When it was written, in microseconds since 1970-01-01 UTC.
    pub timestamp: u64,
    /// Name of the layout, from the file's name.
    pub layout: Option<String>,
    /// Name of the dtype before any conversion, from the file's name or the statistics.
    pub original_dtype: Option<String>,
    /// The contents of the file; none if there is no file, or it is damaged.
    pub tensor: Option<TensorDescription>,
    /// Extents, from the file or the statistics.
    pub shape: Vec<u64>,
    /// Statistics that the dump has, with the titles of their columns.
    pub statistics: Vec<(String, Option<String>)>,
}

/// A graph of the dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphOverview {
    /// The rank.
    pub rank: Option<u32>,
    /// Its number.
    pub graph_id: u32,
    /// Number of its operators, if there is a graph file.
    pub n_nodes: Option<usize>,
    /// Number of its kernels, if they are listed.
    pub n_kernels: Option<usize>,
    /// The iterations in which it ran, if they are listed.
    pub iterations: Option<Vec<u64>>,
}

/// Describes a listing of MindSpore's, reading files on `n_threads` threads: the headers of the arrays,
/// or all of them where values are wanted.
///
/// # Errors
/// The listing itself, if it is not MindSpore's.
pub fn overview(
    listing: Listing,
    n_threads: usize,
    has_values: bool,
) -> Result<MindSporeOverview, Listing> {
    let mut dump = MindSporeDump::from_listing(listing)?;
    let read = job::map(&dump.files, n_threads, |file| {
        let opened = TensorFile::open(&file.path, &file.real_name)?;
        Ok(describe::tensors(&opened, has_values))
    });
    let mut of_runtime = Listing {
        tables: std::mem::take(&mut dump.runtime_tables),
        step_tables: std::mem::take(&mut dump.step_tables),
        ..Listing::default()
    };
    let (tables, mut errors) = statistics::of_listing(&mut of_runtime);
    let is_record = |file: &&TensorFileEntry| op_debug::is_record_name(&file.real_name);
    let mut overview = MindSporeOverview {
        n_record_files: dump.files.iter().filter(is_record).count() as u64,
        tables,
        passed_over: std::mem::take(&mut dump.passed_over),
        graphs: graphs(&dump),
        n_files: dump.files.len() as u64,
        n_bytes: dump.files.iter().map(|file| file.n_bytes).sum(),
        n_rows: dump.tables.iter().map(|t| t.table.rows.len() as u64).sum(),
        ranks: ranks(&dump),
        ..MindSporeOverview::default()
    };
    let mut found: Vec<Vec<TensorDescription>> = Vec::new();
    for result in read {
        found.push(match result {
            Ok(tensors) => tensors,
            Err(error) => {
                errors.push(error);
                Vec::new()
            }
        });
    }
    let nodes = nodes(&dump);
    // A file that may be anything, and cannot be read, is no execution of an operator.
    let is_read = |run: &&OperatorRun| {
        let is_foreign = |&file: &usize| dump.files[file].name == FileName::Foreign;
        !run.dump_files.iter().any(is_foreign)
            || run.dump_files.iter().any(|&file| !found[file].is_empty())
    };
    let runs: Vec<&OperatorRun> = dump.records.iter().filter(is_read).collect();
    for run in runs {
        overview.records.push(RecordOverview {
            tensors: tensors(&dump, run, &mut found),
            source: source(&nodes, run),
            run: run.clone(),
        });
    }
    overview.errors = dump.errors;
    overview.errors.extend(errors);
    Ok(overview)
}

/// [`overview`] of the directory `dir`; none if it is not MindSpore's.
pub fn directory(dir: &Path, n_threads: usize, has_values: bool) -> Option<MindSporeOverview> {
    let listing = opscope_store::dump::list(dir);
    overview(listing, n_threads, has_values).ok()
}

fn tensors(
    dump: &MindSporeDump,
    run: &OperatorRun,
    found: &mut [Vec<TensorDescription>],
) -> Vec<TensorOverview> {
    let of_slots = run.slots.iter().map(|slot| {
        let described = slot.file.and_then(|file| found.get_mut(file)?.pop());
        slot_overview(dump, slot, described)
    });
    let mut tensors: Vec<_> = of_slots.collect();
    for &file in &run.dump_files {
        let path = dump.files.get(file).map(|file| file.path.clone());
        let timestamp = match dump.files.get(file).map(|file| &file.name) {
            Some(FileName::Dump(name)) => name.timestamp.parse().unwrap_or(0),
            _ => 0,
        };
        let described = found.get_mut(file).map(std::mem::take).unwrap_or_default();
        tensors.extend(described.into_iter().map(|tensor| TensorOverview {
            slot: tensor.slot.clone(),
            path: path.clone(),
            timestamp,
            layout: Some(tensor.layout.clone()),
            original_dtype: None,
            shape: tensor.shape.clone(),
            tensor: Some(tensor),
            statistics: Vec::new(),
        }));
    }
    tensors
}

fn slot_overview(
    dump: &MindSporeDump,
    slot: &Slot,
    described: Option<TensorDescription>,
) -> TensorOverview {
    let table = slot.row.and_then(|(table, row)| {
        let table = &dump.tables.get(table)?.table;
        Some((&table.columns, table.rows.get(row)?))
    });
    let of_row = table.map(|(_, (subject, _))| subject);
    let shape = described.as_ref().map(|tensor| &tensor.shape);
    let shape = shape.or(of_row.map(|subject| &subject.shape));
    let statistics = table.map(|(columns, (_, values))| {
        let values = values.iter().cloned();
        columns.iter().cloned().zip(values).collect()
    });
    TensorOverview {
        slot: format!("{}.{}", slot.side.name(), slot.index),
        path: slot
            .file
            .and_then(|file| Some(dump.files.get(file)?.path.clone())),
        timestamp: slot.timestamp,
        layout: slot.layout.clone(),
        original_dtype: slot.dtype.clone(),
        shape: shape.cloned().unwrap_or_default(),
        tensor: described,
        statistics: statistics.unwrap_or_default(),
    }
}

/// Nodes by rank, graph and full name.
type Nodes<'a> = HashMap<(Option<u32>, u32, &'a str), &'a GraphNode>;

fn nodes(dump: &MindSporeDump) -> Nodes<'_> {
    let all = dump.graphs.iter().flat_map(|g: &RankGraph| {
        let (rank, id) = (g.rank, g.graph_id);
        let nodes = g.graph.nodes.iter();
        nodes.map(move |node| ((rank, id, node.full_name.as_str()), node))
    });
    all.collect()
}

/// The source of the node that has the record's name.
fn source(nodes: &Nodes<'_>, run: &OperatorRun) -> Vec<String> {
    let name = run.listed_name.as_deref().or(run.full_name.as_deref());
    let key = run.place.graph_id.zip(name);
    let node = key.and_then(|(id, name)| nodes.get(&(run.place.rank, id, name)));
    let sources = node.map(|node| node.source.iter()).into_iter().flatten();
    sources.flat_map(|source| source.lines.clone()).collect()
}

fn graphs(dump: &MindSporeDump) -> Vec<GraphOverview> {
    let keys = dump.graphs.iter().map(|g| (g.rank, g.graph_id));
    let orders = dump.orders.iter().map(|o| (o.rank, o.graph_id));
    let iterations = dump.iterations.iter().map(|o| (o.rank, o.graph_id));
    let keys: BTreeSet<_> = keys.chain(orders).chain(iterations).collect();
    let overview = |(rank, graph_id)| {
        let order = dump.orders.iter();
        let mut orders = order.filter(|o| (o.rank, o.graph_id) == (rank, graph_id));
        let iteration = dump.iterations.iter();
        let mut iterations = iteration.filter(|o| (o.rank, o.graph_id) == (rank, graph_id));
        GraphOverview {
            rank,
            graph_id,
            n_nodes: dump.graph(rank, graph_id).map(|graph| graph.nodes.len()),
            n_kernels: orders.next().map(|order| order.lines.len()),
            iterations: iterations.next().map(|order| order.lines.clone()),
        }
    };
    keys.into_iter().map(overview).collect()
}

fn ranks(dump: &MindSporeDump) -> Vec<u32> {
    let of_records = dump.records.iter().filter_map(|record| record.place.rank);
    let of_graphs = dump.graphs.iter().filter_map(|graph| graph.rank);
    let ranks: BTreeSet<_> = of_records.chain(of_graphs).collect();
    ranks.into_iter().collect()
}
