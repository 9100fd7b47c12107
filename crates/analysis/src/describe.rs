//! Describes the contents of one file.

use std::path::{Path, PathBuf};

use opscope_store::dump::real_name_of;
use opscope_store::file_format::op_debug::OverflowRecord;
use opscope_store::reader::{
    DumpTerm, ExtraKind, FileFacts, FileKind, OpenedTensor, StoredTensor, TensorFile,
};
use opscope_store::tree::mindspore::TensorFileName;
use opscope_store::{StoreError, remote};
use opscope_tensor::{DType, NonFinite, Stats, TensorView, non_finite, stats, text};

use crate::ElementValue;
use crate::element::escaped;
use crate::elements::{DumpElements, ElementsError, decode_tensor};
use crate::error_chain::chain;
use crate::overflow::{Finding, findings, records};

/// Number of elements shown per tensor.
pub const N_FIRST_ELEMENTS: usize = 8;
/// Number of bytes shown of a text.
const N_TEXT_BYTES: usize = 32;

/// One dump file, nano dump or array.
#[derive(Debug)]
pub struct FileDescription {
    /// Its path.
    pub path: PathBuf,
    /// Its format.
    pub kind: FileKind,
    /// Its size in bytes.
    pub n_bytes: u64,
    /// Its decompressed size, if it is compressed.
    pub n_decompressed: Option<u64>,
    /// Bytes before the payload: length and header.
    pub n_start: u64,
    /// Version, time, operator, attributes and message.
    pub facts: FileFacts,
    /// The parts of the name of a MindSpore array.
    pub array_name: Option<TensorFileName>,
    /// Its inputs and outputs; empty for a file of overflow records.
    pub tensors: Vec<TensorDescription>,
    /// Its overflow records.
    pub records: Vec<OverflowDescription>,
    /// Sizes of its on-chip buffers.
    pub buffer_sizes: Vec<u64>,
    /// Sizes of its workspaces.
    pub space_sizes: Vec<u64>,
}

/// One overflow record.
#[derive(Debug)]
pub struct OverflowDescription {
    /// `output.0`, …
    pub slot: String,
    /// The record.
    pub record: OverflowRecord,
    /// The units that overflowed, with causes; empty if no status is set.
    pub findings: Vec<Finding>,
}

/// One input or output.
#[derive(Debug)]
pub struct TensorDescription {
    /// `input.0`, `output.1`, …, or its name in an archive.
    pub slot: String,
    /// The file's metadata of the tensor.
    pub stored: StoredTensor,
    /// Statistics of the decoded values, if they are numeric.
    pub stats: Option<Stats>,
    /// Counts of NaN and infinities; for complex numbers, the sum over both parts.
    pub non_finite: NonFinite,
    /// The first elements; empty for text.
    pub first: Vec<ElementValue>,
    /// The beginnings of the first text elements, each on one line ([`escaped`]).
    pub first_texts: Vec<String>,
    /// The reason why statistics and elements are missing.
    pub problem: Option<String>,
}

/// Reads one file and describes it.
///
/// # Errors
/// [`StoreError`] if the file cannot be read or is damaged, or if its name promises overflow
/// records and its content is something else. A tensor that cannot be decoded is described without
/// values, with the reason.
pub fn file(path: &Path) -> Result<FileDescription, StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let real_name = real_name_of(path)?;
    let file = TensorFile::open(path, real_name.as_deref().unwrap_or(&name))?;
    let n_bytes = remote::metadata(path).map_or(0, |metadata| metadata.len());
    let mut description = FileDescription {
        path: path.to_owned(),
        kind: file.kind(),
        n_bytes,
        n_decompressed: file.n_decompressed(),
        n_start: file.n_start(),
        facts: file.facts().clone(),
        array_name: file.array_name(),
        tensors: Vec::new(),
        records: Vec::new(),
        buffer_sizes: extra_sizes(&file, |kind| kind != ExtraKind::Space),
        space_sizes: extra_sizes(&file, |kind| kind == ExtraKind::Space),
    };
    if file.holds_records() {
        let records = records(path, &file)?.into_iter();
        description.records = records
            .map(|(index, record)| OverflowDescription {
                slot: format!("output.{index}"),
                findings: findings(&record),
                record,
            })
            .collect();
    } else {
        description.tensors = tensors(&file, true);
    }
    Ok(description)
}

fn extra_sizes(file: &TensorFile, is_wanted: impl Fn(ExtraKind) -> bool) -> Vec<u64> {
    let extras = file.extras().filter(|piece| is_wanted(piece.kind));
    extras.map(|piece| piece.n_bytes).collect()
}

/// Describes all inputs and outputs; without values, from the header only.
pub(crate) fn tensors(file: &TensorFile, has_values: bool) -> Vec<TensorDescription> {
    let descriptions = file.tensors().map(|stored| {
        let mut description = TensorDescription {
            slot: file.slot_of(stored),
            stored: stored.clone(),
            stats: None,
            non_finite: NonFinite::default(),
            first: Vec::new(),
            first_texts: Vec::new(),
            problem: None,
        };
        if has_values {
            match file.elements(stored) {
                Ok(part) => {
                    let bytes = part.as_ref();
                    add_values(&mut description, OpenedTensor { stored, bytes });
                }
                Err(error) => description.problem = Some(chain(&error)),
            }
        }
        description
    });
    descriptions.collect()
}

impl TensorDescription {
    /// Shape as stored; empty for a single element.
    pub fn dims(&self) -> &[u64] {
        self.stored.shape.as_deref().unwrap_or_default()
    }
}

/// The beginnings of the first texts.
fn first_texts(tensor: OpenedTensor<'_>) -> Result<Vec<String>, ElementsError> {
    let elements = DumpElements::from_tensor(tensor)?;
    let view = TensorView::new(elements.dtype, &elements.shape, &elements.bytes);
    let texts = text::iter(view).map_err(|source| ElementsError::Text {
        slot: tensor.stored.label(),
        source: source.into(),
    })?;
    Ok(texts.take(N_FIRST_ELEMENTS).map(beginning).collect())
}

/// A text on one line, truncated at a character boundary.
fn beginning(text: &[u8]) -> String {
    let Some(cut) = text.get(..N_TEXT_BYTES).filter(|cut| *cut != text) else {
        return escaped(text);
    };
    let n = match str::from_utf8(cut) {
        // Drops only a character that the cut has split; bytes that are not UTF-8 are shown.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => cut.len(),
    };
    format!("{}…", escaped(&cut[..n]))
}

fn add_values(description: &mut TensorDescription, tensor: OpenedTensor<'_>) {
    if tensor.stored.dtype == DumpTerm::Known(DType::String) {
        match first_texts(tensor) {
            Ok(texts) => description.first_texts = texts,
            Err(error) => description.problem = Some(chain(&error)),
        }
        return;
    }
    match decode_tensor(tensor) {
        Ok(decoded) => {
            let view = TensorView::new(decoded.dtype, &decoded.shape, &decoded.bytes);
            description.stats = stats(view).ok();
            description.non_finite = non_finite(view);
            description.first = ElementValue::first(&decoded, N_FIRST_ELEMENTS);
        }
        Err(error) => description.problem = Some(chain(&error)),
    }
}
