//! Exact decoding of every dtype to one that numpy can hold.
//!
//! Values never change: each dtype goes to the smallest numpy type that holds every one of its
//! values. Elements of numpy's dtypes are returned without a copy. The rules for each dtype, with
//! their sources, are in `docs/formats/dtypes.md`.

mod codes;
mod minifloat;
mod table;

use std::borrow::Cow;

use half::f16;
use thiserror::Error;

use crate::{DType, Shape, ShapeError};

pub(crate) use codes::{CodeValues, code_values};

/// Elements that numpy can hold, little-endian and dense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedElements<'a> {
    /// Type of the elements now.
    pub dtype: DType,
    /// The requested shape; opaque data become one axis of bytes.
    pub shape: Shape,
    /// The elements; borrowed where decoding changes nothing.
    pub bytes: Cow<'a, [u8]>,
}

/// Bytes that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The elements are text or handles to something else, so they have no numeric value.
    #[error("elements of type `{0}` have no numeric value")]
    NoValue(DType),
    /// The byte count differs from what dtype and shape ask for.
    #[error("{dtype} tensor of shape {shape} takes {expected} bytes, found {found}")]
    Size {
        /// Type of the elements.
        dtype: DType,
        /// Dimensions.
        shape: Shape,
        /// Bytes that dtype and shape ask for, packed elements rounded up to whole bytes.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// The shape describes more data than memory can hold, now or once decoded.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// The smallest dtype of numpy that holds every value of `dtype` exactly.
///
/// `None` for text and handles. Opaque dtypes give [`DType::U8`]: their bytes.
pub fn numpy_dtype(dtype: DType) -> Option<DType> {
    use DType::*;
    Some(match dtype {
        F32 | F16 | F64 | I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64 | Bool | C64 | C128 => dtype,
        QI8 | DualSubI8 | I4 | I2 => I8,
        QU8 | DualSubU8 | U4 | U2 | U1 | Undefined | HiF4Scale => U8,
        QI16 => I16,
        QU16 => U16,
        QI32 => I32,
        Resource => I64,
        BF16 | F8E8M0 => F32,
        HiF8 | F8E5M2 | F8E4M3FN | F8E4M3FNUZ | F8E5M2FNUZ | F6E3M2 | F6E2M3 | F4E2M1 | F4E1M2
        | HiF4 => F16,
        C32 => C64,
        String | StringRef | Dual | Variant => return None,
    })
}

/// Decodes the elements of a tensor to [`numpy_dtype`].
///
/// NaN stays NaN (its payload may change); infinities and the sign of zero are kept. Packed
/// elements start at the least significant bits of a byte, except those of `uint1`, which start at
/// the most significant one. Unused bits of the last byte are ignored. `undefined` and
/// `hifloat4_scale` are opaque: whatever the shape says, all bytes come back along one axis. A
/// tensor without elements takes no bytes.
///
/// # Errors
/// [`DecodeError::NoValue`] for text and handles, [`DecodeError::Size`] if there are more or fewer
/// bytes than dtype and shape ask for, [`DecodeError::Shape`] if the result cannot exist.
pub fn decode<'a>(
    dtype: DType,
    shape: &Shape,
    bytes: &'a [u8],
) -> Result<DecodedElements<'a>, DecodeError> {
    let target = numpy_dtype(dtype).ok_or(DecodeError::NoValue(dtype))?;
    if dtype.bits().is_none() {
        let shape = Shape::new([bytes.len()])?;
        return Ok(DecodedElements {
            dtype: target,
            shape,
            bytes: Cow::Borrowed(bytes),
        });
    }
    let (expected, found) = (shape.n_bytes(dtype)?, bytes.len());
    if expected != found {
        return Err(DecodeError::Size {
            dtype,
            shape: shape.clone(),
            expected,
            found,
        });
    }
    // Decoding widens, so the result may be too large where the source is not.
    let n_bytes = shape.n_bytes(target)?;
    use DType::*;
    let bytes = match dtype {
        BF16 => widen::<2, 4>(bytes, |[low, high]| [0, 0, low, high]),
        C32 => widen::<2, 4>(bytes, |half| {
            f16::from_le_bytes(half).to_f32().to_le_bytes()
        }),
        F6E3M2 => table::expand_six_bits(bytes, &table::E3M2, n_bytes),
        F6E2M3 => table::expand_six_bits(bytes, &table::E2M3, n_bytes),
        F8E5M2 => table::expand(bytes, &table::E5M2, n_bytes),
        F8E4M3FN => table::expand(bytes, &table::E4M3FN, n_bytes),
        F8E4M3FNUZ => table::expand(bytes, &table::E4M3FNUZ, n_bytes),
        F8E5M2FNUZ => table::expand(bytes, &table::E5M2FNUZ, n_bytes),
        HiF8 => table::expand(bytes, &table::HIF8, n_bytes),
        F8E8M0 => table::expand(bytes, &table::E8M0, n_bytes),
        F4E2M1 => table::expand(bytes, &table::E2M1, n_bytes),
        F4E1M2 | HiF4 => table::expand(bytes, &table::E1M2, n_bytes),
        I4 => table::expand(bytes, &table::I4, n_bytes),
        U4 => table::expand(bytes, &table::U4, n_bytes),
        I2 => table::expand(bytes, &table::I2, n_bytes),
        U2 => table::expand(bytes, &table::U2, n_bytes),
        U1 => table::expand(bytes, &table::U1, n_bytes),
        Undefined | F32 | F16 | I8 | U8 | I16 | U16 | I32 | I64 | U32 | U64 | Bool | F64
        | String | DualSubI8 | DualSubU8 | C64 | C128 | QI8 | QI16 | QI32 | QU8 | QU16
        | Resource | StringRef | Dual | Variant | HiF4Scale => {
            return Ok(DecodedElements {
                dtype: target,
                shape: shape.clone(),
                bytes: bytes.into(),
            });
        }
    };
    Ok(DecodedElements {
        dtype: target,
        shape: shape.clone(),
        bytes: Cow::Owned(bytes),
    })
}

/// Elements of `FROM` bytes to elements of `TO` bytes.
fn widen<const FROM: usize, const TO: usize>(
    bytes: &[u8],
    element: fn([u8; FROM]) -> [u8; TO],
) -> Vec<u8> {
    let elements = bytes.as_chunks::<FROM>().0;
    let mut out = vec![0; elements.len() * TO];
    for (to, from) in out.as_chunks_mut::<TO>().0.iter_mut().zip(elements) {
        *to = element(*from);
    }
    out
}

#[cfg(test)]
mod tests;
