//! Decodes a tensor's bytes like the reference.

use std::borrow::Cow;

use opscope_store::file_format::dump_data::dtype_from_code;
use opscope_tensor::convert::dtype::decode as decode_exactly;
use opscope_tensor::convert::reference;
use opscope_tensor::{DType, Shape};

use crate::array::{ElementArray, count};
use crate::failure::{ErrorCode, ToolFailure};
use crate::source::SourceTensor;

/// A tensor's elements in numpy's form, and its shape.
pub(super) struct NumpyTensor<'a> {
    /// The elements along one axis. Their number may differ from that of the shape.
    pub(super) array: ElementArray<'a>,
    /// The shape in the header, or the reference's substitute.
    pub(super) dims: Vec<usize>,
    /// The header's dtype.
    pub(super) dump_dtype: DType,
}

/// Checks what [`decode`] would refuse, without decoding.
pub(super) fn check(tensor: &SourceTensor<'_>) -> Result<(), ToolFailure> {
    DecodePlan::new(tensor).map(|_| ())
}

/// Decodes a tensor.
///
/// Narrow floats become `float64`, `bfloat16` becomes `float32`, bits become bytes. Bytes beyond
/// the shape are dropped, fewer are passed on. A shape without elements yields `float64` for any
/// dtype.
pub(super) fn decode<'a>(tensor: &SourceTensor<'a>) -> Result<NumpyTensor<'a>, ToolFailure> {
    let DecodePlan {
        dump_dtype,
        dims,
        bytes,
    } = DecodePlan::new(tensor)?;
    if count(&dims) == Some(0) {
        let array = ElementArray::flat(DType::F64, Cow::Borrowed(&[]));
        return Ok(NumpyTensor {
            array,
            dims,
            dump_dtype,
        });
    }
    let (dtype, bytes) = match dump_dtype {
        // The reference reads untyped data as bytes.
        DType::Undefined => (DType::I8, Cow::Borrowed(bytes)),
        DType::Resource => (DType::I64, Cow::Borrowed(bytes)),
        DType::BF16 | DType::U1 => {
            let n = if dump_dtype == DType::U1 {
                bytes.len() * 8
            } else {
                bytes.len() / 2
            };
            let exact = Shape::new([n])
                .map_err(|error| ToolFailure::unexpected(error.to_string()))
                .and_then(|shape| {
                    decode_exactly(dump_dtype, &shape, bytes)
                        .map_err(|error| ToolFailure::unexpected(error.to_string()))
                })?;
            (exact.dtype, exact.bytes)
        }
        other => match reference::decode(other, bytes) {
            Some(doubles) => (DType::F64, Cow::Owned(doubles)),
            None => (other, Cow::Borrowed(bytes)),
        },
    };
    let array = ElementArray::flat(dtype, bytes);
    Ok(NumpyTensor {
        array,
        dims,
        dump_dtype,
    })
}

/// numpy's name of the header's dtype, for file names.
///
/// The reference asks numpy for it, and numpy does not know the narrow floats.
pub(super) fn file_name_part(dump_dtype: DType) -> Result<&'static str, ToolFailure> {
    match dump_dtype {
        DType::Undefined => Ok("int8"),
        DType::Resource => Ok("int64"),
        DType::U1 => Ok("uint8"),
        DType::HiF8 | DType::F8E5M2 | DType::F8E4M3FN => Err(ToolFailure::unexpected(format!(
            "data type '{dump_dtype}' not understood"
        ))),
        other => Ok(other.name()),
    }
}

/// The bytes to decode, and their dtype and shape.
struct DecodePlan<'a> {
    dump_dtype: DType,
    dims: Vec<usize>,
    bytes: &'a [u8],
}

impl<'a> DecodePlan<'a> {
    fn new(tensor: &SourceTensor<'a>) -> Result<DecodePlan<'a>, ToolFailure> {
        let code = tensor.entry.data_type;
        let (dump_dtype, width) = dtype_from_code(code)
            .and_then(|dtype| Some((dtype, dump_width(dtype)?)))
            .ok_or_else(|| {
                let message = format!("The output data type ({code}) does not support.");
                ToolFailure::new(ErrorCode::DataType, message)
            })?;
        let dims = match (dump_dtype, &tensor.entry.shape) {
            (DType::Undefined, _) => vec![tensor.bytes.len()],
            (_, Some(dims)) => dims
                .iter()
                .map(|&d| usize::try_from(d).unwrap_or(usize::MAX))
                .collect(),
            (_, None) => Vec::new(),
        };
        // An overflowing count is more than the available bytes.
        let n_wanted = count(&dims).map_or(usize::MAX, |n| n.saturating_mul(width));
        let bytes = &tensor.bytes[..tensor.bytes.len().min(n_wanted)];
        if !bytes.len().is_multiple_of(width) {
            return Err(ToolFailure::unexpected(
                "buffer size must be a multiple of element size",
            ));
        }
        Ok(DecodePlan {
            dump_dtype,
            dims,
            bytes,
        })
    }
}

/// Bytes of one element in the dump, for the dtypes that the reference accepts. A bit counts as a
/// byte.
fn dump_width(dtype: DType) -> Option<usize> {
    use DType::*;
    match dtype {
        Undefined | U1 => Some(1),
        F32 | F16 | F64 | I8 | U8 | I16 | U16 | I32 | I64 | U32 | U64 | Bool | C64 | C128
        | Resource | BF16 | HiF8 | F8E5M2 | F8E4M3FN => dtype.bytes(),
        String | DualSubI8 | DualSubU8 | QI8 | QI16 | QI32 | QU8 | QU16 | StringRef | Dual
        | Variant | I4 | I2 | U2 | C32 | F8E8M0 | F6E3M2 | F6E2M3 | F4E2M1 | F4E1M2 | HiF4
        | HiF4Scale | U4 | F8E4M3FNUZ | F8E5M2FNUZ => None,
    }
}
