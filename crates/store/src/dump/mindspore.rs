//! A directory that MindSpore dumped, as executions of operators.
//!
//! Every file except the tensors' may be missing. Graph files, lists of operators and statistics
//! complete the names and determine the order of execution, if present. An operator that ran
//! several times in one iteration has several records, distinguished by the times in their file
//! names.

mod beside;
mod names;
mod records;
mod sources;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use self::sources::SourceLines;
use super::{DumpEntry, DumpListing, KeptTimes, PassReason, PassedOver, read_mapping};
use crate::StoreError;
use crate::file_format::statistic_csv::StatisticRows;
use crate::file_format::{npy_zst, op_debug};
use crate::record::SlotSide;
use crate::record::graph::GraphDescription;
use crate::tree::acl::DumpFileName;
use crate::tree::mindspore::{
    self as tree, MindSporePlace, STATISTIC_FILE_NAME, TensorFileName, is_acl_configuration,
};

pub use beside::open_named;

/// A dump and the files that accompany its tensors.
#[derive(Debug, Default)]
pub struct MindSporeListing {
    /// Files with tensors.
    pub files: Vec<MindSporeFile>,
    /// Executions of operators, and parameters and constants; by rank, step and iteration, in
    /// execution order as far as that is known.
    pub records: Vec<OperatorRun>,
    /// Graphs from `.ir` files, and from `.pb` files without an `.ir` file.
    pub graphs: Vec<RankGraph>,
    /// Lists of operators.
    pub orders: Vec<GraphOrder<String>>,
    /// Lists of iterations.
    pub iterations: Vec<GraphOrder<u64>>,
    /// Statistics.
    pub tables: Vec<StatisticTable>,
    /// Files of statistics that the runtime wrote, as in [`DumpListing::tables`].
    pub runtime_tables: Vec<DumpEntry>,
    /// Tables of whole steps.
    pub step_tables: Vec<DumpEntry>,
    /// Files and directories that are not read as a part of the dump.
    pub passed_over: Vec<PassedOver>,
    /// Errors of files and directories that could not be read.
    pub errors: Vec<StoreError>,
    /// The times of the run that is read.
    kept_times: Vec<KeptTimes>,
    /// Lines of the program that made operators.
    sources: SourceLines,
}

/// A file with tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its real name if `mapping.csv` has one, else its own.
    pub real_name: String,
    /// Facts from its path.
    pub place: MindSporePlace,
    /// Size in bytes.
    pub n_bytes: u64,
    /// Facts from its name.
    pub name: FileName,
}

/// Facts from the name of a file with tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileName {
    /// An array of one tensor.
    Array(TensorFileName),
    /// A dump file of the runtime, with all tensors of an operator, or an overflow record.
    Dump(DumpFileName),
    /// Nothing: an array whose real name is lost.
    Unknown,
    /// Nothing: a file of unknown content, which may not even be part of the dump.
    Foreign,
}

/// The role of a file in a tree, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Statistics of tensors.
    Statistics,
    /// A graph, or a list of its operators or iterations.
    Graph,
    /// A file that may hold tensors, or an overflow record.
    Tensors(FileName),
    /// Nothing that is read.
    PassedOver(PassReason),
}

impl FileRole {
    /// The role of a file in a dump of MindSpore's.
    pub fn of_entry(entry: &DumpEntry) -> FileRole {
        let name = entry.real_name.as_str();
        if name == STATISTIC_FILE_NAME {
            FileRole::Statistics
        } else if tree::graph_id_of(name).is_some() {
            FileRole::Graph
        } else if let Some(array) = TensorFileName::parse(name) {
            FileRole::Tensors(FileName::Array(array))
        } else if let Some(name) = entry.name.clone() {
            FileRole::Tensors(FileName::Dump(name))
        } else if npy_zst::split_name(name).is_some() {
            FileRole::Tensors(FileName::Unknown)
        } else if is_acl_configuration(name) {
            FileRole::PassedOver(PassReason::Configuration)
        } else if tree::is_kernel_args(name) && !op_debug::is_record_name(name) {
            FileRole::PassedOver(PassReason::KernelArguments)
        } else {
            FileRole::Tensors(FileName::Foreign)
        }
    }
}

/// A graph of a rank.
#[derive(Clone, Debug)]
pub struct RankGraph {
    /// The rank.
    pub rank: Option<u32>,
    /// The number in the file's name.
    pub graph_id: u32,
    /// The file that it was read from.
    pub path: PathBuf,
    /// The graph.
    pub graph: GraphDescription,
}

/// A list that belongs to a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphOrder<T> {
    /// The rank.
    pub rank: Option<u32>,
    /// The number in the file's name.
    pub graph_id: u32,
    /// Its lines.
    pub lines: Vec<T>,
}

/// Statistics of one directory.
#[derive(Clone, Debug)]
pub struct StatisticTable {
    /// The file.
    pub path: PathBuf,
    /// Facts from its path.
    pub place: MindSporePlace,
    /// Its rows.
    pub table: StatisticRows,
}

/// One execution of an operator, or the value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRun {
    /// Rank, graph and iteration.
    pub place: MindSporePlace,
    /// Kind of the record.
    pub kind: RunKind,
    /// The operator's type.
    pub op_type: String,
    /// Its name with characters replaced, as in file names.
    pub op_name: String,
    /// Its name with its scope, if a file other than the tensor's contains it.
    pub full_name: Option<String>,
    /// Its name in graph files and lists, if they have it. The number at its end can differ from
    /// that of the running operator.
    pub listed_name: Option<String>,
    /// Which execution in this iteration, counted from 0.
    pub run: usize,
    /// Its inputs and outputs; none where the tensors are in dump files of the runtime.
    pub slots: Vec<MindSporeSlot>,
    /// Its dump files of the runtime, as indices into [`MindSporeListing::files`].
    pub dump_files: Vec<usize>,
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunKind {
    /// A constant of a graph.
    Constant,
    /// An operator.
    Operator,
    /// A weight or an input of a graph, at the end of a step.
    Parameter,
}

/// One tensor of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeSlot {
    /// Input or output.
    pub side: SlotSide,
    /// Which one.
    pub index: u32,
    /// When it was written, in microseconds since 1970-01-01 UTC.
    pub timestamp: u64,
    /// Name of the dtype before any conversion.
    pub dtype: Option<String>,
    /// Name of the layout.
    pub layout: Option<String>,
    /// Its file, as an index into [`MindSporeListing::files`].
    pub file: Option<usize>,
    /// Its statistics: which of [`MindSporeListing::tables`], and which row.
    pub row: Option<(usize, usize)>,
}

impl MindSporeListing {
    /// Reads a listing as a dump of MindSpore.
    pub fn from_listing(listing: DumpListing) -> MindSporeListing {
        let mut dump = MindSporeListing {
            errors: listing.errors,
            runtime_tables: listing.tables,
            step_tables: listing.step_tables,
            passed_over: listing.passed_over,
            kept_times: listing.kept_times,
            ..MindSporeListing::default()
        };
        for entry in listing.entries {
            dump.sort_in(entry);
        }
        dump.name_nets();
        dump.drop_second_graphs();
        dump.records = records::records(&dump);
        dump.sources = SourceLines::collect(&dump.graphs);
        dump
    }

    /// Lists and reads the dump below `dir`; `None` if it contains nothing of MindSpore.
    pub fn open(dir: &Path) -> Option<MindSporeListing> {
        let listing = super::list(dir);
        let is_mindspore = listing.entries.iter().any(is_mindspore);
        is_mindspore.then(|| MindSporeListing::from_listing(listing))
    }

    /// Replaces the placeholders of networks by their real names.
    fn name_nets(&mut self) {
        let mut mappings: HashMap<PathBuf, HashMap<String, String>> = HashMap::new();
        let files = self.files.iter_mut().map(|f| (&f.path, &mut f.place));
        let tables = self.tables.iter_mut().map(|t| (&t.path, &mut t.place));
        for (path, place) in files.chain(tables) {
            let name = place
                .net_name
                .as_mut()
                .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
            // Above the file are the iteration, the graph and the network.
            let above = path.ancestors().nth(4);
            if let (Some(name), Some(above)) = (name, above) {
                let mapping = mappings
                    .entry(above.to_owned())
                    .or_insert_with(|| read_mapping(above));
                if let Some(real) = mapping.get(name.as_str()) {
                    name.clone_from(real);
                }
            }
        }
    }

    fn sort_in(&mut self, entry: DumpEntry) {
        match FileRole::of_entry(&entry) {
            FileRole::Statistics => self.read_table(&entry),
            FileRole::Graph => self.read_beside(entry),
            FileRole::Tensors(name) => self.add_file(entry, name),
            FileRole::PassedOver(reason) => {
                let path = entry.path;
                self.passed_over.push(PassedOver { path, reason });
            }
        }
    }

    fn add_file(&mut self, entry: DumpEntry, name: FileName) {
        self.files.push(MindSporeFile {
            place: place_of(&entry.path),
            path: entry.path,
            real_name: entry.real_name,
            n_bytes: entry.n_bytes,
            name,
        });
    }

    /// The graph of a rank.
    pub fn graph(&self, rank: Option<u32>, graph_id: u32) -> Option<&GraphDescription> {
        self.graphs
            .iter()
            .find(|g| (g.rank, g.graph_id) == (rank, graph_id))
            .map(|g| &g.graph)
    }
}

/// Whether a file's name is one that only MindSpore uses.
pub fn is_mindspore(entry: &DumpEntry) -> bool {
    let name = entry.real_name.as_str();
    name == STATISTIC_FILE_NAME
        || tree::graph_id_of(name).is_some()
        || is_acl_configuration(name)
        || TensorFileName::parse(name).is_some()
}

/// Rank, model and step of a file, by the directories above it.
pub(crate) fn place_of(path: &Path) -> MindSporePlace {
    let dir = path.parent().unwrap_or(Path::new("."));
    // A relative path may lack the directories that identify it.
    let absolute = crate::remote::absolute(dir);
    MindSporePlace::from_path(absolute.as_deref().unwrap_or(dir))
}

#[cfg(test)]
mod tests;
