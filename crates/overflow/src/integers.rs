//! Tensors of integers, read into arithmetic that is wide enough for every sum and difference.

use std::borrow::Cow;

use opscope_store::record::Record;
use opscope_tensor::convert::dtype::decode;
use opscope_tensor::{DType, ElementKind, Tensor};

/// The range of an integer dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntegerBounds {
    pub(super) min: i128,
    pub(super) max: i128,
}

impl IntegerBounds {
    /// The bounds of `dtype`, if it is an integer type. `bool` is not.
    pub(super) fn for_dtype(dtype: DType) -> Option<IntegerBounds> {
        let is_signed = match dtype.kind() {
            ElementKind::Signed => true,
            ElementKind::Unsigned => false,
            ElementKind::Float(_)
            | ElementKind::FiniteFloat(_)
            | ElementKind::Truth
            | ElementKind::Complex(_)
            | ElementKind::Text
            | ElementKind::Opaque => return None,
        };
        // A byte stores each element of a packed type, but its range is narrower.
        let n_bits = dtype.bits()? - u32::from(is_signed);
        let max = (1_i128 << n_bits) - 1;
        let min = if is_signed { -max - 1 } else { 0 };
        Some(IntegerBounds { min, max })
    }

    /// Whether `value` is in range.
    pub(super) fn contains(self, value: i128) -> bool {
        self.min <= value && value <= self.max
    }

    /// Whether every value of that magnitude is in range, with either sign if the type is signed.
    pub(super) fn hold_magnitude(self, magnitude: u128) -> bool {
        magnitude <= self.max.unsigned_abs()
    }
}

/// An integer in memory.
pub(super) trait StoredInteger: Copy + Ord + Into<i128> {
    /// Its bytes.
    type Bytes: Copy;
    /// The smallest and the largest.
    const ENDS: (Self, Self);
    /// Splits memory into integers.
    fn cut(bytes: &[u8]) -> &[Self::Bytes];
    /// The integer in those bytes, little-endian.
    fn read(bytes: Self::Bytes) -> Self;
}

macro_rules! integers {
    ($($int:ident)*) => {$(
        impl StoredInteger for $int {
            type Bytes = [u8; size_of::<$int>()];
            const ENDS: ($int, $int) = ($int::MIN, $int::MAX);
            fn cut(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }
            fn read(bytes: Self::Bytes) -> $int {
                $int::from_le_bytes(bytes)
            }
        }
    )*};
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64);

/// Evaluates an expression with a type's name bound to the integer that stores a dtype, or returns
/// the default if there is none.
macro_rules! with_integer {
    ($dtype:expr, $int:ident => $body:expr) => {
        match $dtype {
            DType::I8 => {
                type $int = i8;
                $body
            }
            DType::U8 => {
                type $int = u8;
                $body
            }
            DType::I16 => {
                type $int = i16;
                $body
            }
            DType::U16 => {
                type $int = u16;
                $body
            }
            DType::I32 => {
                type $int = i32;
                $body
            }
            DType::U32 => {
                type $int = u32;
                $body
            }
            DType::I64 => {
                type $int = i64;
                $body
            }
            DType::U64 => {
                type $int = u64;
                $body
            }
            _ => Default::default(),
        }
    };
}
pub(super) use with_integer;

/// A tensor of integers.
pub(super) struct IntegerTensor<'a> {
    /// Range of an element.
    pub(super) bounds: IntegerBounds,
    /// The dtype that `bytes` store: a byte for each packed element.
    pub(super) storage: DType,
    /// The shape.
    pub(super) dims: &'a [usize],
    /// The elements.
    pub(super) bytes: Cow<'a, [u8]>,
}

impl<'a> IntegerTensor<'a> {
    /// A view of `tensor`, if it holds integers.
    pub(super) fn read(tensor: &'a Tensor) -> Option<IntegerTensor<'a>> {
        let bounds = IntegerBounds::for_dtype(tensor.dtype())?;
        let decoded = decode(tensor.dtype(), tensor.shape(), tensor.host_bytes().ok()?).ok()?;
        Some(IntegerTensor {
            bounds,
            storage: decoded.dtype,
            dims: tensor.shape().dims(),
            bytes: decoded.bytes,
        })
    }

    /// Like `read`, for a tensor with elements. Then no product of some of its dimensions
    /// overflows.
    pub(super) fn filled(tensor: &'a Tensor) -> Option<IntegerTensor<'a>> {
        IntegerTensor::read(tensor).filter(|integers| !integers.bytes.is_empty())
    }

    /// The input of `record` at `index`, if it was recorded and holds integers.
    pub(super) fn input(record: &'a Record, index: usize) -> Option<IntegerTensor<'a>> {
        IntegerTensor::filled(tensor(record, index)?)
    }

    /// The smallest and the largest element; `None` without elements.
    pub(super) fn extremes(&self) -> Option<(i128, i128)> {
        with_integer!(self.storage, Int => extremes::<Int>(&self.bytes))
    }

    /// The largest magnitude of an element, 0 without elements.
    pub(super) fn magnitude_max(&self) -> u128 {
        self.magnitude_around(None)
    }

    /// The largest magnitude of an element minus its zero point.
    pub(super) fn magnitude_around(&self, zero: Option<&IntegerTensor>) -> u128 {
        let (min, max) = self.extremes().unwrap_or_default();
        let (zero_min, zero_max) = zero.and_then(IntegerTensor::extremes).unwrap_or_default();
        // A bound may assume the worst pair of element and zero point.
        let (min, max) = (min - zero_max, max - zero_min);
        min.unsigned_abs().max(max.unsigned_abs())
    }

    /// Every element.
    pub(super) fn to_wide(&self) -> Vec<i128> {
        with_integer!(self.storage, Int => {
            let elements = Int::cut(&self.bytes).iter();
            elements.map(|bytes| Int::read(*bytes).into()).collect()
        })
    }
}

/// The input of `record` at `index`, if it was recorded.
pub(super) fn tensor(record: &Record, index: usize) -> Option<&Tensor> {
    let mut inputs = record.inputs.iter();
    inputs
        .find(|(position, _)| *position == index)
        .map(|(_, tensor)| tensor)
}

fn extremes<Int: StoredInteger>(bytes: &[u8]) -> Option<(i128, i128)> {
    let elements = Int::cut(bytes);
    // Starting from the opposite ends needs no special case for the first element.
    let (smallest, largest) = Int::ENDS;
    // Without branches and early exit the compiler can vectorise this.
    let (min, max) = elements
        .iter()
        .fold((largest, smallest), |(min, max), bytes| {
            let element = Int::read(*bytes);
            (min.min(element), max.max(element))
        });
    (!elements.is_empty()).then(|| (min.into(), max.into()))
}

#[cfg(test)]
mod tests {
    use opscope_tensor::Shape;

    use super::*;

    #[test]
    fn bounds_of_every_width() {
        let cases = [
            (DType::I8, -128, 127),
            (DType::U8, 0, 255),
            (DType::I16, -32768, 32767),
            (DType::U16, 0, 65535),
            (DType::I32, i32::MIN.into(), i32::MAX.into()),
            (DType::U32, 0, u32::MAX.into()),
            (DType::I64, i64::MIN.into(), i64::MAX.into()),
            (DType::U64, 0, u64::MAX.into()),
            (DType::I4, -8, 7),
            (DType::I2, -2, 1),
            (DType::U2, 0, 3),
            (DType::U1, 0, 1),
        ];
        for (dtype, min, max) in cases {
            assert_eq!(
                IntegerBounds::for_dtype(dtype),
                Some(IntegerBounds { min, max }),
                "{dtype}"
            );
        }
        for dtype in [DType::Bool, DType::F32, DType::String, DType::C64] {
            assert_eq!(IntegerBounds::for_dtype(dtype), None, "{dtype}");
        }
    }

    #[test]
    fn extremes_of_packed_and_empty_tensors() {
        let of = |dtype, dims: &[usize], bytes: &[u8]| {
            let tensor = Tensor::from_vec(dtype, Shape::new(dims).unwrap(), bytes.to_vec());
            IntegerTensor::read(&tensor.unwrap()).unwrap().extremes()
        };
        assert_eq!(of(DType::I4, &[3], &[0x98, 0xf7]), Some((-8, 7)));
        assert_eq!(of(DType::I16, &[2], &[0xff, 0xff, 1, 0]), Some((-1, 1)));
        assert_eq!(of(DType::I16, &[0], &[]), None);
    }
}
