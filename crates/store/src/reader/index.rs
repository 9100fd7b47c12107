//! The contents of a dump, whichever form it has: plain data to keep, search, sort and write
//! elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use opscope_tensor::{DType, Layout};

use super::tensor_file::{FileKind, StoredTensor};
use super::tensor_statistics::TensorStatistics;
use super::term::DumpTerm;
use crate::dump::PassedOver;
use crate::dump::mindspore::{GraphOrder, RankGraph};
use crate::file_format::graph_json::GraphFile;
use crate::file_format::stats_csv::StatsTable;
use crate::record::parallel::{Collective, Placement};
use crate::record::{CallSite, SlotSide};
use crate::{HeldElements, SharedPath, SharedText, StoreError};

/// Everything that reading a dump finds, without the elements of its tensors.
///
/// Every file of the dump is in [`files`](DumpIndex::files), in [`tables`](DumpIndex::tables),
/// among the graphs and lists, in [`passed_over`](DumpIndex::passed_over) or in
/// [`errors`](DumpIndex::errors).
#[derive(Debug, Default)]
pub struct DumpIndex {
    /// The name of the form that the dump has.
    pub form: &'static str,
    /// Executions of operators, parameters and constants, in order of execution as far as that is
    /// known.
    pub executions: Vec<Arc<IndexedExecution>>,
    /// The tensors, in order of execution; of one operator inputs first.
    pub tensors: Vec<IndexedTensor>,
    /// Files that hold tensors or overflow records, damaged ones too, in the order of the listing.
    pub files: Vec<IndexedFile>,
    /// Tables of statistics with a row for each tensor of an operator.
    pub tables: Vec<IndexedTable>,
    /// Number of further rows of statistics, which tables about many operators have.
    pub n_statistics_rows: u64,
    /// Graphs of the models that ran.
    pub graphs: Vec<RankGraph>,
    /// Descriptions of the operators' graphs that are not stored with the dump.
    pub descriptions: Vec<GraphFile>,
    /// Operators of graphs in the order in which they were planned.
    pub orders: Vec<GraphOrder<String>>,
    /// Iterations in which graphs ran.
    pub iterations: Vec<GraphOrder<u64>>,
    /// Files and directories that are not read as a part of the dump.
    pub passed_over: Vec<PassedOver>,
    /// Errors of files and directories that could not be read.
    pub errors: Vec<StoreError>,
}

/// One execution of an operator, or the value of a parameter or constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IndexedExecution {
    /// The kind of thing.
    pub kind: ExecutionKind,
    /// The operator's type; empty if unknown.
    pub op_type: SharedText,
    /// The operator's name, before characters were replaced where the dump has it.
    pub op_name: SharedText,
    /// Other forms of the name, in dumps that have several.
    pub other_names: OtherNames,
    /// Name of the model or network.
    pub model: Option<SharedText>,
    /// Which load of the model, or which graph of the network.
    pub model_id: Option<u32>,
    /// The rank, or the device where there are no ranks.
    pub rank: Option<u32>,
    /// Which execution of the model, or which step of the training where iterations are counted
    /// within steps.
    pub step: Option<u64>,
    /// The iteration, if these are counted separately from steps.
    pub iteration: Option<u64>,
    /// Local time of the run, `YYYYMMDDhhmmss`, if the dump distinguishes several runs by it.
    pub time: Option<String>,
    /// Which execution of the operator in its step, counted from 0.
    pub run: usize,
    /// The call in the program, if the dump itself contains it.
    pub call_site: Option<CallSite>,
    /// Its collective, if the dump contains one.
    pub collective: Option<Arc<Collective>>,
}

/// Names of an operator besides [`IndexedExecution::op_name`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OtherNames {
    /// Characters replaced, as in names of files.
    pub in_files: Option<String>,
    /// With its scope, if a file other than the tensor's contains it.
    pub full: Option<String>,
    /// As graphs and lists have it: the number at its end can differ from that of the running
    /// operator.
    pub listed: Option<String>,
}

impl DumpIndex {
    /// Adds tensors; those of one execution must be consecutive.
    pub(super) fn add_tensors(&mut self, tensors: Vec<IndexedTensor>) {
        for tensor in tensors {
            let last = self.executions.last();
            if last.is_none_or(|last| !Arc::ptr_eq(last, &tensor.execution)) {
                self.executions.push(tensor.execution.clone());
            }
            self.tensors.push(tensor);
        }
    }
}

impl IndexedExecution {
    /// Which execution of the model: the step, or the iteration where there are no steps.
    pub fn model_step(&self) -> Option<u64> {
        self.step.or(self.iteration)
    }
}

/// The kind of thing that a tensor belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExecutionKind {
    /// An operator.
    #[default]
    Operator,
    /// A weight or an input of a graph, at the end of a step.
    Parameter,
    /// A constant of a graph.
    Constant,
    /// An overflow record, which is not a tensor.
    OverflowRecord,
}

impl ExecutionKind {
    /// `operator`, `parameter`, `constant` or `overflow_record`.
    pub fn name(self) -> &'static str {
        match self {
            ExecutionKind::Operator => "operator",
            ExecutionKind::Parameter => "parameter",
            ExecutionKind::Constant => "constant",
            ExecutionKind::OverflowRecord => "overflow_record",
        }
    }
}

/// One tensor of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedTensor {
    /// The execution that it belongs to.
    pub execution: Arc<IndexedExecution>,
    /// The task.
    pub task_id: Option<u32>,
    /// The stream.
    pub stream_id: Option<u32>,
    /// When it was written, in microseconds since 1970-01-01 UTC.
    pub timestamp: Option<u64>,
    /// Side and position; none of an array whose name does not say, and of a damaged file.
    pub slot: Option<(SlotSide, u32)>,
    /// The tensor's dtype; `None` if unknown, as in a damaged file.
    pub dtype: Option<DumpTerm<DType>>,
    /// The dtype that its file has: another one if the writer converted it.
    pub stored_dtype: Option<DumpTerm<DType>>,
    /// The meaning of its axes.
    pub layout: Option<DumpTerm<Layout>>,
    /// The dtype in the words of the file's name or of a row of statistics.
    pub dtype_in_name: Option<String>,
    /// The layout in the words of the file's name.
    pub layout_in_name: Option<String>,
    /// Dimensions as stored.
    pub shape: Option<Vec<u64>>,
    /// Dimensions before the layout was changed, if the file has them.
    pub original_shape: Option<Vec<u64>>,
    /// Name and output of the operator before fusion that produced it, if the file contains them.
    pub original: Option<(String, u32)>,
    /// The name of its parameter, if the dump contains it.
    pub parameter: Option<SharedText>,
    /// The distributed tensor that it is a part of, if the dump contains it.
    pub placement: Option<Arc<Placement>>,
    /// Bytes of the elements.
    pub n_bytes: Option<u64>,
    /// The file that it is in, or that its statistics are in.
    pub path: SharedPath,
    /// Where its elements are; none if the dump has statistics only.
    pub elements: Option<ElementsPlace>,
    /// The elements themselves, of a dump that is nowhere but in this process. Their place is of
    /// the kind [`FileKind::Elements`], and begins at 0.
    pub held: Option<HeldElements>,
    /// Statistics that the dump has, with the titles of their columns; none where a cell is empty.
    pub statistics: TensorStatistics,
}

impl IndexedTensor {
    /// Adopts a file's description of the tensor that it stores.
    pub(super) fn take_stored(&mut self, stored: &StoredTensor) {
        self.dtype = Some(stored.dtype.clone());
        self.stored_dtype = Some(stored.dtype.clone());
        self.layout = Some(stored.layout.clone());
        // Without dimensions it is a single element.
        self.shape = Some(stored.shape.clone().unwrap_or_else(|| vec![1]));
        self.original_shape = stored.original_shape.clone();
        let original = stored.original.as_ref();
        self.original = original.filter(|(name, _)| !name.is_empty()).cloned();
        self.n_bytes = Some(stored.n_bytes);
    }
}

/// A tensor's place in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementsPlace {
    /// The file's real name.
    pub real_name: SharedText,
    /// The file's format; none of a damaged file.
    pub kind: Option<FileKind>,
    /// Side and position within the file, which may differ from the operator's; none of a damaged
    /// file.
    pub tensor: Option<(SlotSide, usize)>,
    /// Where its bytes begin in the file; `None` if they are compressed or in another order.
    pub offset: Option<u64>,
}

impl ElementsPlace {
    /// The place of a tensor in a file of this kind.
    pub(super) fn new(real_name: &str, kind: FileKind, stored: &StoredTensor) -> ElementsPlace {
        ElementsPlace {
            real_name: real_name.into(),
            kind: Some(kind),
            tensor: Some((stored.side, stored.index)),
            offset: stored.offset,
        }
    }

    /// The unknown place of elements in a damaged file.
    pub(super) fn in_damaged_file(real_name: &str) -> ElementsPlace {
        ElementsPlace {
            real_name: real_name.into(),
            kind: None,
            tensor: None,
            offset: None,
        }
    }
}

/// A file with tensors or overflow records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its name, or its real name if the file's name is a number.
    pub real_name: String,
    /// Size in bytes.
    pub n_bytes: u64,
    /// The rank that wrote it, if the dump contains it.
    pub rank: Option<u32>,
    /// The operators whose tensors it holds; none of a damaged file, and where executions take the
    /// tensors of several files together.
    pub operators: Vec<OperatorInFile>,
}

/// The part of an operator in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorInFile {
    /// The operator's type; empty if the name does not contain it.
    pub op_type: SharedText,
    /// The operator's name.
    pub op_name: SharedText,
    /// The task.
    pub task_id: Option<u32>,
    /// Inputs in the file.
    pub n_inputs: u64,
    /// Outputs in the file.
    pub n_outputs: u64,
    /// Bytes of the operator's part.
    pub n_bytes: u64,
}

/// A table with the statistics of one execution of one operator.
#[derive(Clone, Debug)]
pub struct IndexedTable {
    /// The rank that wrote it, if the dump contains it.
    pub rank: Option<u32>,
    /// The execution of the model: the number that the file's directory is called.
    pub step: Option<u64>,
    /// The task, if the file's name contains it.
    pub task_id: Option<u32>,
    /// The operator's type, if the file's name contains it.
    pub op_type: Option<String>,
    /// The operator's name, or that of the file.
    pub op_name: String,
    /// The rows.
    pub table: StatsTable,
}
