//! PyTorch's type promotion: the compute dtype of mixed operands.

use opscope_tensor::DType;

/// The weight of an operand in the promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// A scalar: only its kind counts, and only if it is higher.
    Scalar,
    /// A zero-dimensional tensor: like a scalar, but these are promoted among each other by dtype.
    NoAxes,
    /// A tensor with axes.
    Axes,
}

/// Whether operators compute in this dtype: booleans, signed integers up to 64 bits, bytes, and the
/// four common floats.
pub(crate) fn is_number(dtype: DType) -> bool {
    rank(dtype).is_some()
}

/// Whether the dtype is one of the four supported floats.
pub(crate) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// Whether the dtype is an integer; booleans are not.
pub(crate) fn is_integer(dtype: DType) -> bool {
    use DType::{I8, I16, I32, I64, U8};
    matches!(dtype, U8 | I8 | I16 | I32 | I64)
}

/// An order by value range, approximately.
fn rank(dtype: DType) -> Option<u32> {
    use DType::*;
    Some(match dtype {
        Bool => 0,
        U8 => 1,
        I8 => 2,
        I16 => 3,
        I32 => 4,
        I64 => 5,
        F16 => 6,
        BF16 => 7,
        F32 => 8,
        F64 => 9,
        _ => return None,
    })
}

/// The smallest dtype for the values of both; `None` if either is non-numeric.
pub(crate) fn promoted(a: DType, b: DType) -> Option<DType> {
    use DType::{BF16, F16, F32, I8, I16, U8};
    Some(match (a, b) {
        // Neither of the two contains all values of the other.
        (U8, I8) | (I8, U8) => I16,
        (F16, BF16) | (BF16, F16) => F32,
        _ if rank(a)? >= rank(b)? => a,
        _ => b,
    })
}

/// The result dtype of these operands; `None` without operands or with a non-numeric one.
pub(crate) fn result_type(operands: impl IntoIterator<Item = (DType, Weight)>) -> Option<DType> {
    let mut known: [Option<DType>; 3] = [None; 3];
    for (dtype, weight) in operands {
        // A scalar has the default dtype of its kind.
        let dtype = match weight {
            Weight::Scalar if is_float(dtype) => DType::F32,
            Weight::Scalar if is_integer(dtype) => DType::I64,
            _ => dtype,
        };
        let known = &mut known[weight as usize];
        *known = Some(match *known {
            None => dtype,
            Some(other) => promoted(dtype, other)?,
        });
    }
    let [scalar, no_axes, axes] = known;
    let lower = combined(no_axes, scalar);
    let dtype = combined(axes, lower)?;
    rank(dtype).map(|_| dtype)
}

/// The dtype of operands with more weight, unless those with less are of a higher kind.
fn combined(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    // Without operands of one weight the others decide alone.
    let (Some(high), Some(low)) = (higher, lower) else {
        return higher.or(lower);
    };
    if is_float(high) {
        Some(high)
    } else if high == DType::Bool || is_float(low) {
        promoted(high, low)
    } else {
        Some(high)
    }
}

/// Whether a result of dtype `from` may be stored as `to`: the kind must not decrease.
pub(crate) fn can_cast(from: DType, to: DType) -> bool {
    // Kinds are booleans, integers and floats, in this order.
    let is_known = is_number(from) && is_number(to);
    is_known && (is_float(to) || !is_float(from)) && (to != DType::Bool || from == DType::Bool)
}

/// The dtype in which a graph computes: at least single precision for floats, 64 bits for integers,
/// whose results wrap around into the narrower dtype.
pub(crate) fn compute_type(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::Bool => DType::Bool,
        _ => DType::I64,
    }
}

#[cfg(test)]
mod tests {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8};
    use Weight::{Axes, NoAxes, Scalar};

    use super::*;

    #[test]
    fn types_are_promoted_as_in_pytorch() {
        let cases: &[(&[(DType, Weight)], DType)] = &[
            (&[(F16, Axes), (BF16, Axes)], F32),
            (&[(U8, Axes), (I8, Axes)], I16),
            (&[(U8, Axes), (I32, Axes)], I32),
            (&[(I64, Axes), (F16, Axes)], F16),
            (&[(Bool, Axes), (U8, Axes)], U8),
            (&[(F16, Axes), (F32, NoAxes)], F16),
            (&[(I32, Axes), (F64, NoAxes)], F64),
            (&[(I32, Axes), (F64, Scalar)], F32),
            (&[(I8, Axes), (I64, Scalar)], I8),
            (&[(Bool, Axes), (I8, Scalar)], I64),
            (&[(F16, NoAxes), (F64, Scalar)], F16),
            (&[(I16, NoAxes), (I64, NoAxes)], I64),
            (&[(F64, Axes), (F32, Axes)], F64),
        ];
        for (operands, expected) in cases {
            let found = result_type(operands.iter().copied());
            assert_eq!(found, Some(*expected), "{operands:?}");
        }
        assert_eq!(result_type([(DType::C64, Axes)]), None);
        assert_eq!(result_type([(DType::U64, Axes), (F32, Axes)]), None);
    }

    #[test]
    fn results_are_not_stored_as_a_lower_kind() {
        assert!(can_cast(I64, I8) && can_cast(F64, F16) && can_cast(Bool, F32));
        assert!(!can_cast(F16, I64) && !can_cast(I8, Bool) && !can_cast(F32, DType::C64));
    }
}
