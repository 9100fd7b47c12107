//! Every tensor of a dump as one list, in order of execution.
//!
//! Listing reads headers and statistics only; the elements of a tensor are read when somebody asks for
//! them. What cannot be read is noted, and everything else is listed all the same. A damaged file whose
//! name says that it is a part of the dump stands in the list too, as one item without a dtype.

mod acl;
mod array;
mod mindspore;
mod order;

use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump::mindspore::{MindSporeDump, RankGraph};
use opscope_store::dump::{self, PassedOver};
use opscope_store::file_format::dump_data::{PayloadKind, TensorEntry};
use opscope_store::record::Side;

pub use array::{Array, ItemError};

/// The tensors of a dump.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The tensors, in order of execution; of one operator inputs first.
    pub items: Vec<Item>,
    /// Graphs that lie beside the tensors of MindSpore.
    pub graphs: Vec<RankGraph>,
    /// Files and directories that are not read as a part of the dump.
    pub passed_over: Vec<PassedOver>,
    /// Errors of files and directories that could not be read.
    pub errors: Vec<StoreError>,
}

/// One tensor of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The kind of thing that it belongs to.
    pub kind: ItemKind,
    /// The operator's type; empty where nothing says it.
    pub op_type: String,
    /// The operator's name, before characters were replaced where the dump has it.
    pub op_name: String,
    /// Name of the model or network.
    pub model: Option<String>,
    /// Which load of the model, or which graph of the network.
    pub model_id: Option<u32>,
    /// The rank, or the device where there are no ranks.
    pub rank: Option<u32>,
    /// Which execution of the model.
    pub step: Option<u64>,
    /// Which execution of the operator in that step, counted from 0.
    pub run: usize,
    /// The task.
    pub task_id: Option<u32>,
    /// The stream.
    pub stream_id: Option<u32>,
    /// When it was written, in microseconds since 1970-01-01 UTC.
    pub timestamp: Option<u64>,
    /// Side and position; none of an array whose name does not say, and of a damaged file.
    pub slot: Option<(Side, u32)>,
    /// Name of the dtype that the tensor had; `#` and a number if that is unknown. None if nothing says
    /// it, as in a damaged file.
    pub dtype: Option<String>,
    /// Name of the dtype that its file has: another one if the writer converted it.
    pub stored_dtype: Option<String>,
    /// Name of the layout.
    pub layout: Option<String>,
    /// Extents as stored.
    pub shape: Option<Vec<u64>>,
    /// Extents before the layout was changed, where the file says.
    pub original_shape: Option<Vec<u64>>,
    /// Name and output of the operator before fusion that made it, where the file says.
    pub original: Option<(String, u32)>,
    /// Bytes of the elements.
    pub n_bytes: Option<u64>,
    /// The file that it is in, or that its statistics are in.
    pub path: PathBuf,
    /// Where its elements are; none if the dump has statistics only.
    pub elements: Option<ElementsPlace>,
    /// Statistics that the dump has, with the titles of their columns; none where a cell is empty.
    pub statistics: Vec<(String, Option<String>)>,
}

/// The kind of thing that a tensor belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemKind {
    /// An operator.
    #[default]
    Operator,
    /// A weight or an input of a graph, at the end of a step.
    Parameter,
    /// A constant of a graph.
    Constant,
    /// An overflow record, which is no tensor.
    OverflowRecord,
}

impl ItemKind {
    /// `operator`, `parameter`, `constant` or `overflow_record`.
    pub fn name(self) -> &'static str {
        match self {
            ItemKind::Operator => "operator",
            ItemKind::Parameter => "parameter",
            ItemKind::Constant => "constant",
            ItemKind::OverflowRecord => "overflow_record",
        }
    }
}

/// A tensor's place in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementsPlace {
    /// The file's real name.
    pub real_name: String,
    /// Which of its tensors; none of a damaged file.
    pub tensor: Option<(PayloadKind, usize)>,
}

/// Lists a directory with everything below it, or a single file, reading headers on `n_threads` threads.
///
/// # Errors
/// [`StoreError::Io`] if there is nothing at `path`; everything else is in the catalogue.
pub fn open(path: &Path, n_threads: usize) -> Result<Catalogue, StoreError> {
    let metadata = std::fs::metadata(path).map_err(|source| StoreError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let listing = if metadata.is_dir() {
        dump::list(path)
    } else {
        dump::list_file(path)
    };
    let mut catalogue = match MindSporeDump::from_listing(listing) {
        Ok(dump) => mindspore::catalogue(dump, n_threads),
        Err(listing) => acl::catalogue(listing, n_threads, !metadata.is_dir()),
    };
    if !metadata.is_dir() {
        catalogue.refuse_what_is_passed_over();
    }
    Ok(catalogue)
}

impl Catalogue {
    /// Whoever names a file wants to read it.
    fn refuse_what_is_passed_over(&mut self) {
        for PassedOver { path, reason } in std::mem::take(&mut self.passed_over) {
            let [noun, _] = reason.nouns();
            let reason = format!("expected tensors or statistics, found a {noun}");
            self.errors.push(StoreError::Io {
                action: "read",
                path,
                source: std::io::Error::new(std::io::ErrorKind::InvalidData, reason),
            });
        }
    }
}

impl Item {
    /// Takes over what a file's header says of the tensor.
    fn describe(&mut self, entry: &TensorEntry) {
        let dtype = entry.dtype();
        let dtype = dtype.map_or_else(|| format!("#{}", entry.data_type), |d| d.to_string());
        let layout = entry.layout();
        let layout = layout.map_or_else(|| format!("#{}", entry.format), |l| l.to_string());
        self.dtype = Some(dtype.clone());
        self.stored_dtype = Some(dtype);
        self.layout = Some(layout);
        // Without extents it is a single element, as in `describe`.
        self.shape = Some(entry.shape.clone().unwrap_or_else(|| vec![1]));
        self.original_shape = entry.original_shape.clone();
        let original = entry.original_op.as_ref().filter(|op| !op.name.is_empty());
        self.original = original.map(|op| (op.name.clone(), op.output_index));
        self.n_bytes = Some(entry.size);
    }
}

fn side_of(kind: PayloadKind) -> Side {
    match kind {
        PayloadKind::Input => Side::Input,
        PayloadKind::Output | PayloadKind::Buffer | PayloadKind::Space => Side::Output,
    }
}
