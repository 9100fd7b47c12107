//! numpy's arrays.

use std::ops::Range;

use opscope_store::FormatError;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::dump_data::{
    DumpHeader, PayloadKind, Piece, TensorEntry, dtype_code, layout_code,
};
use opscope_store::file_format::npy::{self, NpyHeader};
use opscope_tensor::{DType, Layout, Shape, TensorView};

use super::{FileKind, TensorFile};

/// An array whose elements lie as they are needed stays where it is; others are brought into order.
pub(super) fn array_file(bytes: FileBytes, file_name: &str) -> Result<TensorFile, FormatError> {
    let (header, n_start) = NpyHeader::decode(bytes.as_ref())?;
    let is_reordered = header.is_fortran_order && header.shape.n_axes() > 1;
    let is_text = header.dtype == DType::String;
    if header.is_big_endian || is_reordered || is_text {
        let array = npy::from_bytes(bytes.as_ref().to_vec())?;
        let view = array.host_view();
        let view = view.map_err(|error| FormatError::new(0, "elements", error.to_string()))?;
        let mut file = TensorFile::from_array(view, file_name, Layout::Nd);
        file.n_start = n_start as u64;
        return Ok(file);
    }
    let n_bytes = bytes.as_ref().len();
    let range = n_start.min(n_bytes)..n_bytes;
    let expected = header.shape.n_bytes(header.dtype);
    if expected != Ok(range.len()) {
        let (dtype, shape) = (header.dtype, &header.shape);
        let expected = expected.map_or_else(
            |error| error.to_string(),
            |n| format!("{n} bytes of {dtype} {shape}"),
        );
        return Err(FormatError::new(
            n_start as u64,
            expected,
            range.len().to_string(),
        ));
    }
    let description = (header.dtype, &header.shape, Layout::Nd);
    Ok(TensorFile::of_output(bytes, range, description, file_name))
}

/// [`array_file`] of what a compressed file holds.
pub(super) fn compressed_array_file(
    content: Vec<u8>,
    file_name: &str,
) -> Result<TensorFile, FormatError> {
    let n_decompressed = Some(content.len() as u64);
    let file = array_file(content.into(), file_name)?;
    Ok(TensorFile {
        n_decompressed,
        ..file
    })
}

/// A number that no dtype has.
const UNKNOWN: u32 = u32::MAX;

/// Returns the entry that a header would have for an array.
pub(super) fn array_entry(
    dtype: DType,
    shape: &Shape,
    layout: Layout,
    n_bytes: u64,
) -> TensorEntry {
    TensorEntry {
        data_type: dtype_code(dtype).unwrap_or(UNKNOWN),
        format: layout_code(layout),
        shape: Some(shape.iter().map(|&dim| dim as u64).collect()),
        size: n_bytes,
        ..TensorEntry::default()
    }
}

impl TensorFile {
    /// An array: one output of this layout.
    pub fn from_array(array: TensorView<'_>, file_name: &str, layout: Layout) -> TensorFile {
        let bytes = array.bytes.to_vec();
        let range = 0..bytes.len();
        let description = (array.dtype, array.shape, layout);
        TensorFile::of_output(bytes.into(), range, description, file_name)
    }

    /// The same with other bytes in place of the array's, whatever dtype and extents say.
    pub fn from_packed_array(
        array: TensorView<'_>,
        bytes: Vec<u8>,
        file_name: &str,
        layout: Layout,
    ) -> TensorFile {
        let range = 0..bytes.len();
        let description = (array.dtype, array.shape, layout);
        TensorFile::of_output(bytes.into(), range, description, file_name)
    }

    /// One output, described by dtype, extents and layout, at `range` of an array file.
    fn of_output(
        bytes: FileBytes,
        range: Range<usize>,
        (dtype, shape, layout): (DType, &Shape, Layout),
        file_name: &str,
    ) -> TensorFile {
        let entry = array_entry(dtype, shape, layout, range.len() as u64);
        TensorFile {
            kind: FileKind::Npy,
            file_name: file_name.to_owned(),
            header: DumpHeader {
                outputs: vec![entry],
                ..DumpHeader::default()
            },
            n_start: range.start as u64,
            n_decompressed: None,
            pieces: vec![Piece {
                kind: PayloadKind::Output,
                index: 0,
                range,
            }],
            bytes,
        }
    }
}
