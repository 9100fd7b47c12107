//! numpy's array file.
//!
//! Written: version 1.0 with the header bytes numpy itself writes, padding included, or those that
//! MindSpore writes. Read: versions 1.0, 2.0 and 3.0, either byte order, C and Fortran order, and
//! MindSpore's bfloat16. Source: numpy's format description
//! (NEP 1) and its writer. `docs/formats/npy.md` draws the bytes.

mod header;
mod mindspore;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use opscope_tensor::{DType, Shape, Tensor};

pub use header::{NpyHeader, encode_header};
pub use mindspore::{MindSporeArray, Refusal, mindspore_array, mindspore_header};

use crate::{FormatError, StoreError};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "npy";
/// Longest header that is read; numpy's own default limit is 10,000.
pub const HEADER_BYTES_MAX: usize = 1 << 20;
/// Most bytes that are set aside before any of them has been read.
const RESERVE_BYTES_MAX: usize = 16 << 20;

/// The dtype's code in an npy header, or `None` where numpy has no such type.
///
/// `bfloat16` and the narrower types have none: convert them first.
pub fn descr(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        DType::U16 => "<u2",
        DType::I32 => "<i4",
        DType::U32 => "<u4",
        DType::I64 => "<i8",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        _ => return None,
    })
}

/// Reads an array file: dense, C order, little-endian, whatever the file's own order.
///
/// # Errors
/// [`StoreError::Io`] if it cannot be read, [`StoreError::Corrupt`] if it is no npy file, holds
/// objects, text or records, or has too few or too many bytes.
pub fn read_file(path: &Path) -> Result<Tensor, StoreError> {
    let file = File::open(path).map_err(StoreError::io("open", path))?;
    let n_bytes = file.metadata().map_err(StoreError::io("read", path))?.len();
    let bytes = read_at_most(file, n_bytes).map_err(StoreError::io("read", path))?;
    from_bytes(bytes).map_err(StoreError::corrupt(FORMAT_NAME, path))
}

/// Reads an array from a file's bytes.
///
/// # Errors
/// [`FormatError`] as described at [`read_file`].
pub fn from_bytes(mut bytes: Vec<u8>) -> Result<Tensor, FormatError> {
    let (header, n_header) = NpyHeader::decode(&bytes)?;
    let expected = header
        .shape
        .n_bytes(header.dtype)
        .map_err(|error| FormatError::new(0, "a shape that fits memory", error.to_string()))?;
    let found = bytes.len() - n_header;
    if found != expected {
        return Err(FormatError::new(
            n_header as u64,
            format!("{expected} bytes of {} {}", header.dtype, header.shape),
            found.to_string(),
        ));
    }
    bytes.drain(..n_header);
    if header.is_big_endian {
        swap_bytes(&mut bytes, header.swap_width());
    }
    if header.is_fortran_order && header.shape.n_axes() > 1 {
        bytes = to_c_order(&bytes, &header.shape, header.dtype.bytes().unwrap_or(1));
    }
    Tensor::from_vec(header.dtype, header.shape, bytes)
        .map_err(|error| FormatError::new(n_header as u64, "the array's bytes", error.to_string()))
}

/// Reads at most `n_bytes` bytes. No more memory is taken than bytes arrive, whatever `n_bytes` says.
pub(crate) fn read_at_most(reader: impl Read, n_bytes: u64) -> std::io::Result<Vec<u8>> {
    let reserve = usize::try_from(n_bytes)
        .unwrap_or(usize::MAX)
        .min(RESERVE_BYTES_MAX);
    let mut bytes = Vec::with_capacity(reserve);
    reader.take(n_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn swap_bytes(bytes: &mut [u8], width: usize) {
    bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
}

/// Rewrites column-major elements row by row.
fn to_c_order(bytes: &[u8], shape: &Shape, width: usize) -> Vec<u8> {
    let n_axes = shape.n_axes();
    let mut strides = vec![width; n_axes];
    for axis in 1..n_axes {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0_usize; n_axes];
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn what_is_written_comes_back() {
        let cases: &[(DType, &[usize])] = &[
            (DType::F32, &[2, 3]),
            (DType::Bool, &[]),
            (DType::I64, &[0, 4]),
            (DType::C128, &[1]),
        ];
        for (dtype, dims) in cases {
            let shape = Shape::new(*dims).unwrap();
            let data: Vec<u8> = (0..shape.n_bytes(*dtype).unwrap())
                .map(|i| i as u8)
                .collect();
            let mut bytes = encode_header(*dtype, &shape).unwrap();
            bytes.extend_from_slice(&data);
            let tensor = from_bytes(bytes).unwrap();
            assert_eq!(
                (tensor.dtype(), tensor.shape(), tensor.bytes()),
                (*dtype, &shape, &data[..])
            );
        }
    }

    #[test]
    fn foreign_orders_are_brought_into_ours() {
        let big = file(
            "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }\n",
            &[0, 1, 2, 3],
        );
        assert_eq!(from_bytes(big).unwrap().bytes(), [1, 0, 3, 2]);
        let fortran = file(
            "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n",
            &[0, 3, 1, 4, 2, 5],
        );
        assert_eq!(from_bytes(fortran).unwrap().bytes(), [0, 1, 2, 3, 4, 5]);
        let complex = file(
            "{'descr': '>c8', 'fortran_order': False, 'shape': ()}",
            &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0],
        );
        assert_eq!(
            from_bytes(complex).unwrap().bytes(),
            [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]
        );
    }

    #[test]
    fn bytes_must_be_exact() {
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
        for n in [0, 2, 4] {
            let error = from_bytes(file(header, &vec![0; n])).unwrap_err();
            assert!(
                error.to_string().contains("expected 3 bytes of uint8 [3]"),
                "{error}"
            );
        }
    }
}
