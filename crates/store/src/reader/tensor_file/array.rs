//! numpy's arrays, and overflow records that look like arrays of their bytes.

use std::path::PathBuf;

use opscope_tensor::{DType, Layout, Shape, TensorView};

use super::{FileFacts, FileKind, StoredTensor, TensorFile, wrong_size};
use crate::FormatError;
use crate::file_format::npy::{self, NpyHeader};
use crate::file_format::op_debug;
use crate::file_parts::FileParts;

/// An array whose elements lie as they are needed stays where it is; others are brought into order.
pub(super) fn array_file(parts: FileParts, file_name: &str) -> Result<TensorFile, FormatError> {
    let (header, n_start) = NpyHeader::read(&parts)?;
    // Elements along a single axis lie in the same order either way.
    let is_reordered = header.is_fortran_order && header.shape.n_axes() > 1;
    let is_text = header.dtype == DType::String;
    if header.is_big_endian || is_reordered || is_text {
        let array = npy::from_bytes(read_whole(&parts)?)?;
        let view = array.host_view();
        let view = view.map_err(|error| FormatError::new(0, "elements", error.to_string()))?;
        let mut file = TensorFile::from_array(view, file_name);
        // The elements are a copy now, but the size of the header is asked of the file as it is.
        file.n_start = n_start as u64;
        return Ok(file);
    }
    let n_bytes = parts.n_bytes();
    let range = n_start.min(n_bytes)..n_bytes;
    let (dtype, shape) = (header.dtype, &header.shape);
    if shape.n_bytes(dtype) != Ok(range.len()) {
        return Err(wrong_size(dtype, shape, &range));
    }
    let offset = Some(range.start as u64);
    let stored = StoredTensor::array(dtype, shape, Layout::Nd, range);
    Ok(TensorFile::from_output(
        StoredTensor { offset, ..stored },
        parts,
        file_name,
    ))
}

/// A copy of the whole file.
fn read_whole(parts: &FileParts) -> Result<Vec<u8>, FormatError> {
    let whole = parts.whole().map_err(FormatError::unreadable)?;
    Ok(whole.as_ref().to_vec())
}

/// [`array_file`] of what a compressed file holds.
pub(super) fn compressed_file(
    content: Vec<u8>,
    file_name: &str,
) -> Result<TensorFile, FormatError> {
    let n_decompressed = Some(content.len() as u64);
    let mut file = array_file(content.into(), file_name)?;
    for tensor in &mut file.tensors {
        // An offset among the decompressed bytes leads nowhere in the file.
        tensor.offset = None;
    }
    Ok(TensorFile {
        n_decompressed,
        ..file
    })
}

/// A record in JSON looks as if its bytes were an output.
pub(super) fn record_file(bytes: &[u8], file_name: &str) -> Result<TensorFile, FormatError> {
    let record = op_debug::from_json(bytes)?.encode();
    let shape = Shape::new([record.len()]).unwrap_or_default();
    let array = TensorView::new(DType::U8, &shape, &record);
    Ok(TensorFile {
        kind: FileKind::RecordJson,
        ..TensorFile::from_array(array, file_name)
    })
}

impl TensorFile {
    /// An array: one output.
    fn from_array(array: TensorView<'_>, file_name: &str) -> TensorFile {
        let bytes = array.bytes.to_vec();
        let range = 0..bytes.len();
        let stored = StoredTensor::array(array.dtype, array.shape, Layout::Nd, range);
        TensorFile::from_output(stored, bytes.into(), file_name)
    }

    fn from_output(stored: StoredTensor, parts: FileParts, file_name: &str) -> TensorFile {
        TensorFile {
            path: PathBuf::new(),
            kind: FileKind::Npy,
            file_name: file_name.to_owned(),
            facts: FileFacts::default(),
            n_start: stored.range.start as u64,
            n_decompressed: None,
            tensors: vec![stored],
            extras: Vec::new(),
            parts,
            gathered: Vec::new(),
        }
    }
}
