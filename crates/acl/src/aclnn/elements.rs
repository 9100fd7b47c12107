//! Elements as numbers, and their conversion to another dtype.

use half::{bf16, f16};
use opscope_tensor::{DType, Tensor};

/// Elements as numbers, without rounding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Numbers {
    /// Integers and booleans. `uint64` values beyond `int64` wrap around.
    Ints(Vec<i64>),
    /// Elements of float32, float16 and bfloat16.
    Singles(Vec<f32>),
    /// Elements of float64.
    Doubles(Vec<f64>),
}

/// Splits bytes into arrays; a remainder is dropped.
fn arrays<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// The elements as numbers; `None` for non-numeric dtypes.
pub(crate) fn numbers(dtype: DType, bytes: &[u8]) -> Option<Numbers> {
    use DType::*;
    use Numbers::{Doubles, Ints, Singles};
    Some(match dtype {
        F32 => Singles(arrays(bytes).map(f32::from_le_bytes).collect()),
        F16 => Singles(
            arrays(bytes)
                .map(|b| f16::from_le_bytes(b).to_f32())
                .collect(),
        ),
        BF16 => Singles(
            arrays(bytes)
                .map(|b| bf16::from_le_bytes(b).to_f32())
                .collect(),
        ),
        F64 => Doubles(arrays(bytes).map(f64::from_le_bytes).collect()),
        I8 => Ints(bytes.iter().map(|&b| b.cast_signed().into()).collect()),
        U8 => Ints(bytes.iter().map(|&b| b.into()).collect()),
        Bool => Ints(bytes.iter().map(|&b| (b != 0).into()).collect()),
        I16 => Ints(
            arrays(bytes)
                .map(|b| i16::from_le_bytes(b).into())
                .collect(),
        ),
        U16 => Ints(
            arrays(bytes)
                .map(|b| u16::from_le_bytes(b).into())
                .collect(),
        ),
        I32 => Ints(
            arrays(bytes)
                .map(|b| i32::from_le_bytes(b).into())
                .collect(),
        ),
        U32 => Ints(
            arrays(bytes)
                .map(|b| u32::from_le_bytes(b).into())
                .collect(),
        ),
        I64 | U64 => Ints(arrays(bytes).map(i64::from_le_bytes).collect()),
        _ => return None,
    })
}

impl Numbers {
    /// The bytes of these numbers as elements of `dtype`, converted like in C: integers wrap
    /// around, fractions are truncated, and nonzero numbers become true. Half-precision floats are
    /// rounded from single precision. `None` for non-numeric dtypes.
    pub(crate) fn to_bytes(&self, dtype: DType) -> Option<Vec<u8>> {
        match self {
            Numbers::Ints(list) => encode(list.iter().map(|&n| Number::Int(n)), dtype),
            Numbers::Singles(list) => encode(list.iter().map(|&n| Number::Single(n)), dtype),
            Numbers::Doubles(list) => encode(list.iter().map(|&n| Number::Double(n)), dtype),
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Single(f32),
    Double(f64),
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "conversions of elements lose what the narrower type lacks"
)]
impl Number {
    fn int(self) -> i64 {
        match self {
            Number::Int(n) => n,
            Number::Single(n) => n as i64,
            Number::Double(n) => n as i64,
        }
    }

    fn single(self) -> f32 {
        match self {
            Number::Int(n) => n as f32,
            Number::Single(n) => n,
            Number::Double(n) => n as f32,
        }
    }

    fn double(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Single(n) => n.into(),
            Number::Double(n) => n,
        }
    }

    fn is_true(self) -> bool {
        match self {
            Number::Int(n) => n != 0,
            Number::Single(n) => n != 0.0,
            Number::Double(n) => n != 0.0,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "integers wrap around"
)]
fn encode(list: impl Iterator<Item = Number>, dtype: DType) -> Option<Vec<u8>> {
    use DType::*;
    Some(match dtype {
        F32 => list.flat_map(|n| n.single().to_le_bytes()).collect(),
        F16 => list
            .flat_map(|n| f16::from_f32(n.single()).to_le_bytes())
            .collect(),
        BF16 => list
            .flat_map(|n| bf16::from_f32(n.single()).to_le_bytes())
            .collect(),
        F64 => list.flat_map(|n| n.double().to_le_bytes()).collect(),
        Bool => list.map(|n| u8::from(n.is_true())).collect(),
        I8 | U8 => list.map(|n| n.int() as u8).collect(),
        I16 | U16 => list.flat_map(|n| (n.int() as u16).to_le_bytes()).collect(),
        I32 | U32 => list.flat_map(|n| (n.int() as u32).to_le_bytes()).collect(),
        I64 | U64 => list.flat_map(|n| n.int().to_le_bytes()).collect(),
        _ => return None,
    })
}

/// The tensor in another dtype; `None` if either dtype is non-numeric.
pub(crate) fn convert(tensor: &Tensor, dtype: DType) -> Option<Tensor> {
    // The common case, without a copy.
    if tensor.dtype() == dtype {
        return Some(tensor.clone());
    }
    let bytes = numbers(tensor.dtype(), tensor.host_bytes().ok()?)?.to_bytes(dtype)?;
    Tensor::from_vec(dtype, tensor.shape().clone(), bytes).ok()
}

/// The integer dtype with elements of `width` bytes, for [`raw`].
pub(crate) fn raw_dtype(width: usize) -> Option<DType> {
    match width {
        1 | 2 | 4 => Some(DType::I32),
        8 => Some(DType::I64),
        _ => None,
    }
}

/// The bits of the elements as integers, for engines that lack a dtype and only move elements.
pub(crate) fn raw(tensor: &Tensor) -> Option<Tensor> {
    let unsigned = unsigned_dtype(tensor.dtype())?;
    let to = raw_dtype(unsigned.bytes()?)?;
    let bytes = numbers(unsigned, tensor.host_bytes().ok()?)?.to_bytes(to)?;
    Tensor::from_vec(to, tensor.shape().clone(), bytes).ok()
}

/// The inverse of [`raw`].
pub(crate) fn from_raw(tensor: &Tensor, dtype: DType) -> Option<Tensor> {
    let unsigned = unsigned_dtype(dtype)?;
    let bytes = numbers(tensor.dtype(), tensor.host_bytes().ok()?)?.to_bytes(unsigned)?;
    Tensor::from_vec(dtype, tensor.shape().clone(), bytes).ok()
}

fn unsigned_dtype(dtype: DType) -> Option<DType> {
    match dtype.bytes()? {
        1 => Some(DType::U8),
        2 => Some(DType::U16),
        4 => Some(DType::U32),
        8 => Some(DType::U64),
        _ => None,
    }
}
