//! Describes the contents of one file.

use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump::real_name_of;
use opscope_store::file_format::dump_data::{DumpTensor, TensorEntry};
use opscope_store::file_format::op_debug::OverflowRecord;
use opscope_store::tree::mindspore::TensorFileName;
use opscope_tensor::{
    DType, Layout, NonFinite, Shape, ShapeError, Stats, TensorView, non_finite, stats, text,
};

use crate::convert::{ConvertError, Elements, decode_tensor};
use crate::element::escaped;
use crate::overflow::{Finding, findings, records};
use crate::tensor_file::TensorFile;
use crate::{Element, FileKind};

/// Elements that are shown of each tensor.
pub const N_FIRST_ELEMENTS: usize = 8;
/// Bytes of a text that are shown.
const N_TEXT_BYTES: usize = 32;

/// One dump file, nano dump or array.
#[derive(Debug)]
pub struct FileDescription {
    /// Where it is.
    pub path: PathBuf,
    /// Its format.
    pub kind: FileKind,
    /// Its size in bytes.
    pub n_bytes: u64,
    /// Its size without its compression, if it has one.
    pub n_decompressed: Option<u64>,
    /// Bytes before the payload: length and header.
    pub n_start: u64,
    /// Format version.
    pub version: String,
    /// When it was made, in microseconds since 1970-01-01 UTC.
    pub dump_time: u64,
    /// The operator's name before characters were replaced.
    pub op_name: String,
    /// The parts of the name of a MindSpore array.
    pub array_name: Option<TensorFileName>,
    /// Its inputs and outputs; none in a file with overflow records.
    pub tensors: Vec<TensorDescription>,
    /// Its overflow records.
    pub records: Vec<RecordDescription>,
    /// Sizes of its on-chip buffers.
    pub buffer_sizes: Vec<u64>,
    /// Sizes of its workspaces.
    pub space_sizes: Vec<u64>,
    /// Names and values of its attributes.
    pub attrs: Vec<(String, String)>,
    /// Text of an exception dump.
    pub dfx_message: String,
}

/// One overflow record.
#[derive(Debug)]
pub struct RecordDescription {
    /// `output.0`, …
    pub slot: String,
    /// The record.
    pub record: OverflowRecord,
    /// Which units overflowed, and why; none if no status is set.
    pub findings: Vec<Finding>,
}

/// One input or output.
#[derive(Debug)]
pub struct TensorDescription {
    /// `input.0`, `output.1`, …
    pub slot: String,
    /// Name of the dtype, or its number if that is unknown.
    pub dtype: String,
    /// Name of the layout, or its number if that is unknown.
    pub layout: String,
    /// Extents as stored.
    pub shape: Vec<u64>,
    /// Extents before the layout was changed, where the file says.
    pub original_shape: Option<Vec<u64>>,
    /// Bytes in the payload.
    pub n_bytes: u64,
    /// Statistics of the decoded values, where they have any.
    pub stats: Option<Stats>,
    /// Counts of NaN and infinities; of complex numbers, those of both parts together.
    pub non_finite: NonFinite,
    /// The first elements; none of text.
    pub first: Vec<Element>,
    /// The first elements of text, the beginning of each, on one line ([`escaped`]).
    pub first_texts: Vec<String>,
    /// Why there are no statistics and elements.
    pub problem: Option<String>,
}

/// Reads one file and describes it.
///
/// # Errors
/// [`StoreError`] if the file cannot be read or is damaged, or its name promises overflow records and
/// it holds something else. A tensor that cannot be decoded is described without values, with the
/// reason.
pub fn file(path: &Path) -> Result<FileDescription, StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let real_name = real_name_of(path)?;
    let file = TensorFile::open(path, real_name.as_deref().unwrap_or(&name))?;
    let header = file.header();
    let n_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut description = FileDescription {
        path: path.to_owned(),
        kind: file.kind(),
        n_bytes,
        n_decompressed: file.n_decompressed(),
        n_start: file.n_start(),
        version: header.version.clone(),
        dump_time: header.dump_time,
        op_name: header.op_name.clone(),
        array_name: file.array_name(),
        tensors: Vec::new(),
        records: Vec::new(),
        buffer_sizes: header.buffers.iter().map(|buffer| buffer.size).collect(),
        space_sizes: header.spaces.iter().map(|space| space.size).collect(),
        attrs: header
            .attrs
            .iter()
            .map(|a| (a.name.clone(), a.value.clone()))
            .collect(),
        dfx_message: header.dfx_message.clone(),
    };
    if file.holds_records() {
        let records = records(path, &file)?.into_iter();
        let describe = |(index, record): (usize, OverflowRecord)| RecordDescription {
            slot: format!("output.{index}"),
            findings: findings(&record),
            record,
        };
        description.records = records.map(describe).collect();
    } else {
        description.tensors = tensors(&file, true);
    }
    Ok(description)
}

/// All inputs and outputs; without values only what the header says.
pub(crate) fn tensors(file: &TensorFile, has_values: bool) -> Vec<TensorDescription> {
    let describe = |tensor| {
        let mut description = header_of(file, &tensor);
        if has_values {
            add_values(&mut description, &tensor);
        }
        description
    };
    file.tensors().map(describe).collect()
}

fn header_of(file: &TensorFile, tensor: &DumpTensor<'_>) -> TensorDescription {
    let entry = tensor.entry;
    TensorDescription {
        slot: file.slot_of(tensor),
        dtype: entry
            .dtype()
            .map_or_else(|| format!("#{}", entry.data_type), |d| d.to_string()),
        layout: entry
            .layout()
            .map_or_else(|| format!("#{}", entry.format), |l| l.to_string()),
        shape: entry.shape.clone().unwrap_or_default(),
        original_shape: entry.original_shape.clone(),
        n_bytes: tensor.bytes.len() as u64,
        stats: None,
        non_finite: NonFinite::default(),
        first: Vec::new(),
        first_texts: Vec::new(),
        problem: None,
    }
}

/// The beginnings of the first texts.
fn first_texts(tensor: &DumpTensor<'_>) -> Result<Vec<String>, ConvertError> {
    let elements = Elements::of(tensor)?;
    let view = TensorView {
        dtype: elements.dtype,
        shape: &elements.shape,
        layout: Layout::Nd,
        bytes: &elements.bytes,
    };
    let texts = text::iter(view).map_err(|source| ConvertError::Text {
        slot: slot_name(tensor),
        source: source.into(),
    })?;
    Ok(texts.take(N_FIRST_ELEMENTS).map(beginning).collect())
}

/// A text on one line, cut between characters if it is long.
fn beginning(text: &[u8]) -> String {
    let Some(cut) = text.get(..N_TEXT_BYTES).filter(|cut| *cut != text) else {
        return escaped(text);
    };
    let n = match str::from_utf8(cut) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => cut.len(),
    };
    format!("{}…", escaped(&cut[..n]))
}

fn add_values(description: &mut TensorDescription, tensor: &DumpTensor<'_>) {
    if tensor.entry.dtype() == Some(DType::String) {
        match first_texts(tensor) {
            Ok(texts) => description.first_texts = texts,
            Err(error) => description.problem = Some(chain(&error)),
        }
        return;
    }
    match decode_tensor(tensor) {
        Ok(decoded) => {
            let view = TensorView {
                dtype: decoded.dtype,
                shape: &decoded.shape,
                layout: Layout::Nd,
                bytes: &decoded.bytes,
            };
            description.stats = stats(view).ok();
            description.non_finite = non_finite(view);
            description.first = Element::first(&decoded, N_FIRST_ELEMENTS);
        }
        Err(error) => description.problem = Some(chain(&error)),
    }
}

/// The shape of a tensor in a dump file; without one it is a single element.
pub(crate) fn shape_of(entry: &TensorEntry) -> Result<Shape, ShapeError> {
    let dims = match &entry.shape {
        Some(dims) => dims
            .iter()
            .map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
            .collect(),
        None => vec![1],
    };
    Shape::new(dims)
}

/// `input.0`, `output.1`, …
pub(crate) fn slot_name(tensor: &DumpTensor<'_>) -> String {
    format!("{}.{}", tensor.kind.name(), tensor.index)
}

/// An error with its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
