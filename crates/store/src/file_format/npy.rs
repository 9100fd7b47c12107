//! numpy's array file.
//!
//! Written: version 1.0 with the header bytes numpy itself writes, padding included, or those that
//! MindSpore writes. Read: versions 1.0, 2.0 and 3.0, either byte order, C and Fortran order, and
//! MindSpore's bfloat16. Source: numpy's format description
//! (NEP 1) and its writer. `docs/formats/npy.md` draws the bytes.

mod header;
mod items;
mod mindspore;
mod narrow;
mod read;
#[cfg(test)]
mod tests;
mod texts;

use std::path::Path;

use opscope_tensor::{DType, NumpyType, Shape, Tensor};

pub use header::{NpyHeader, encode_header};
pub use items::ItemForm;
pub use mindspore::{ArrayRefusal, MindSporeArray, mindspore_array, mindspore_header};
pub use texts::{TEXT_BYTES_MAX, TextArrayError, text_array};

use crate::{FormatError, StoreError};

pub use read::read_header;
pub(crate) use read::{StreamError, StreamLength, header as stream_header, read_array};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "npy";
/// Longest header that is read; numpy's own default limit is 10,000.
pub const HEADER_BYTES_MAX: usize = 1 << 20;

/// Whether a file's first bytes are those of an array file.
pub fn has_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(header::MAGIC)
}

/// The dtype's code in an npy header, or `None` where numpy has no such type.
///
/// `bfloat16` and the narrower types have none: convert them first. That of text depends on the
/// longest one: see [`text_array`].
pub fn descr(dtype: DType) -> Option<&'static str> {
    Some(match dtype.as_numpy()? {
        NumpyType::Bool => "|b1",
        NumpyType::I8 => "|i1",
        NumpyType::U8 => "|u1",
        NumpyType::I16 => "<i2",
        NumpyType::U16 => "<u2",
        NumpyType::I32 => "<i4",
        NumpyType::U32 => "<u4",
        NumpyType::I64 => "<i8",
        NumpyType::U64 => "<u8",
        NumpyType::F16 => "<f2",
        NumpyType::F32 => "<f4",
        NumpyType::F64 => "<f8",
        NumpyType::C64 => "<c8",
        NumpyType::C128 => "<c16",
    })
}

/// Reads an array file: dense, C order, little-endian, whatever the file's own order.
///
/// # Errors
/// [`StoreError::Io`] if it cannot be read, [`StoreError::Corrupt`] if it is not an npy file, holds
/// objects, dates, records or what only another program knows, or has too few or too many bytes.
pub fn read_file(path: &Path) -> Result<Tensor, StoreError> {
    read_file_as(path, None)
}

/// [`read_file`] for an array that may contain elements of `wanted` in a form that does not show
/// it: as void items of their width, one for each element, or integers narrower than a byte as
/// `int8` or `uint8`.
///
/// # Errors
/// As for [`read_file`], and if an item is more than such an element. An array of another dtype is
/// none.
pub fn read_file_as(path: &Path, wanted: Option<DType>) -> Result<Tensor, StoreError> {
    read::read_file(path, wanted)
}

/// Reads an array from a file's bytes.
///
/// # Errors
/// [`FormatError`] as described at [`read_file`].
pub fn from_bytes(bytes: Vec<u8>) -> Result<Tensor, FormatError> {
    from_bytes_as(bytes, None)
}

/// [`read_file_as`] from a file's bytes.
///
/// # Errors
/// [`FormatError`] as described at [`read_file_as`].
pub fn from_bytes_as(mut bytes: Vec<u8>, wanted: Option<DType>) -> Result<Tensor, FormatError> {
    let (header, n_header) = NpyHeader::decode_any(&bytes)?;
    let wanted = wanted.filter(|&d| narrow::is_stored_as(d, header.items, header.dtype));
    // A void item does not contain its dtype, so only a caller who knows it may read the item.
    if wanted.is_none() {
        header.items.check_known()?;
    }
    let expected = header.n_data_bytes().ok_or_else(|| {
        let found = format!("{} {}", header.dtype, header.shape);
        FormatError::new(0, "a shape that fits memory", found)
    })?;
    let found = bytes.len() - n_header;
    // Too many bytes are as suspicious as too few: the header describes something else.
    if found != expected {
        return Err(FormatError::new(
            n_header as u64,
            format!("{expected} bytes of {} {}", header.dtype, header.shape),
            found.to_string(),
        ));
    }
    let is_text = matches!(header.items, ItemForm::Characters(_) | ItemForm::Bytes(_));
    if is_text {
        // Texts without characters take no bytes in the file, but 16 each in a tensor.
        texts::check_number(header.items, &header.shape)?;
    }
    // The elements move to the front of the same buffer; a copy would take twice the memory.
    bytes.drain(..n_header);
    if header.is_big_endian {
        swap_bytes(&mut bytes, header.swap_width());
    }
    // Along a single axis both orders are the same.
    if header.is_fortran_order && header.shape.n_axes() > 1 {
        bytes = to_c_order(&bytes, &header.shape, header.items.n_bytes(header.dtype));
    }
    // Items change their length from here on, so both orders had to be settled before.
    let mut dtype = header.dtype;
    if is_text {
        bytes = texts::from_items(header.items, &header.shape, &bytes, n_header)?;
    }
    if let Some(wanted) = wanted {
        dtype = wanted;
        bytes = narrow::elements(dtype, header.items, bytes, n_header)?;
    }
    Tensor::from_vec(dtype, header.shape, bytes)
        .map_err(|error| FormatError::new(n_header as u64, "the array's bytes", error.to_string()))
}

fn swap_bytes(bytes: &mut [u8], width: usize) {
    bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
}

/// Rewrites column-major elements row by row.
fn to_c_order(bytes: &[u8], shape: &Shape, width: usize) -> Vec<u8> {
    // Distances in an array without elements may be larger than memory.
    if shape.n_elements() == 0 {
        return Vec::new();
    }
    let n_axes = shape.n_axes();
    let mut strides = vec![width; n_axes];
    for axis in 1..n_axes {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0_usize; n_axes];
    // The position follows the index by additions; recomputing it would take a product for each
    // axis.
    let mut pos = 0;
    for _ in 0..shape.n_elements() {
        out.extend_from_slice(&bytes[pos..pos + width]);
        for axis in (0..n_axes).rev() {
            index[axis] += 1;
            pos += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            pos -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    out
}
