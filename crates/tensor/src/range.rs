//! Measures the effect of rounding a tensor's numbers to a narrower floating-point dtype.
//!
//! Numbers are rounded once, from what they are, to the nearest number of the target, ties to the
//! one whose last bit is 0. Nothing is converted: three limits for each target determine the result
//! of rounding.

use half::{bf16, f16};

use crate::convert::dtype::decode;
use crate::{DType, TensorView};

/// The effect of rounding a tensor to a target dtype.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RangeLoss {
    /// Number of elements.
    pub n_elements: u64,
    /// Elements that are NaN or infinite already. They take part in nothing below.
    pub n_non_finite: u64,
    /// Elements that would be larger than the largest finite number, either sign.
    pub n_overflow: u64,
    /// Elements other than 0 that would become 0.
    pub n_underflow: u64,
    /// Elements that would become subnormal numbers, with fewer digits than others.
    pub n_subnormal: u64,
    /// The element with the largest magnitude, the first of them; `None` without finite elements.
    pub largest: Option<LargestElement>,
}

/// An element with its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargestElement {
    /// Its value, with its sign.
    pub value: f64,
    /// Its position in memory order.
    pub index: usize,
}

/// Magnitudes at which rounding to a target changes its result.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RangeLimits {
    /// Half way from the largest finite number to the one that would follow.
    overflow: f64,
    /// Whether that tie is rounded up.
    is_tie_overflow: bool,
    /// Half of the smallest number. The tie goes to 0.
    underflow: f64,
    /// Half way from the largest subnormal number to the smallest normal one. The tie goes up.
    normal: f64,
}

impl RangeLimits {
    /// Limits of a format: its largest finite number, the exponent of its smallest normal number,
    /// the number of its mantissa bits, and whether the mantissa of the largest number ends with 1.
    fn new(
        largest: f64,
        min_exponent: i32,
        n_mantissa_bits: i32,
        is_largest_odd: bool,
    ) -> RangeLimits {
        let smallest = 2_f64.powi(min_exponent - n_mantissa_bits);
        let last_exponent = largest.log2().floor() as i32;
        RangeLimits {
            overflow: largest + 2_f64.powi(last_exponent - n_mantissa_bits - 1),
            is_tie_overflow: is_largest_odd,
            underflow: smallest / 2.0,
            normal: 2_f64.powi(min_exponent) - smallest / 2.0,
        }
    }

    fn for_target(target: DType) -> Option<RangeLimits> {
        Some(match target {
            DType::F16 => RangeLimits::new(65504.0, -14, 10, true),
            DType::BF16 => RangeLimits::new(bf16::MAX.to_f64(), -126, 7, true),
            DType::F8E5M2 => RangeLimits::new(57344.0, -14, 2, true),
            // The code that would follow 448 is NaN, so 448 ends with 0.
            DType::F8E4M3FN => RangeLimits::new(448.0, -6, 3, false),
            _ => return None,
        })
    }
}

/// Whether some numbers of `source` leave the range of `target`. Both are floating-point dtypes,
/// the target one of `float16`, `bfloat16`, `float8_e4m3fn` and `float8_e5m2`.
pub fn is_wider_range(source: DType, target: DType) -> bool {
    match target {
        DType::F16 => matches!(source, DType::F32 | DType::F64 | DType::BF16),
        DType::BF16 => matches!(source, DType::F32 | DType::F64),
        DType::F8E5M2 | DType::F8E4M3FN => {
            matches!(source, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
        }
        _ => false,
    }
}

/// The largest finite number of a floating-point dtype of which overflow is a matter.
pub fn largest_finite(dtype: DType) -> Option<f64> {
    Some(match dtype {
        DType::F16 => 65504.0,
        // The exponents of `float32`, and 8 bits of it.
        DType::BF16 => 2_f64.powi(127) * (2.0 - 2_f64.powi(-7)),
        DType::F32 => f32::MAX.into(),
        DType::F64 => f64::MAX,
        DType::F8E4M3FN => 448.0,
        DType::F8E5M2 => 57344.0,
        _ => return None,
    })
}

/// Measures the effect of rounding `tensor` to `target`; `None` unless [`is_wider_range`].
pub fn range_loss(tensor: TensorView<'_>, target: DType) -> Option<RangeLoss> {
    let limits = RangeLimits::for_target(target)?;
    if !is_wider_range(tensor.dtype, target) {
        return None;
    }
    // `bfloat16` becomes `float32` here, everything else stays as it is.
    let decoded = decode(tensor.dtype, tensor.shape, tensor.bytes).ok()?;
    Some(match decoded.dtype {
        DType::F16 => count(&decoded.bytes, limits, |b| f16::from_le_bytes(b).to_f64()),
        DType::F32 => count(&decoded.bytes, limits, |b| f32::from_le_bytes(b).into()),
        DType::F64 => count(&decoded.bytes, limits, f64::from_le_bytes),
        _ => return None,
    })
}

fn count<const N: usize>(
    bytes: &[u8],
    limits: RangeLimits,
    read: impl Fn([u8; N]) -> f64,
) -> RangeLoss {
    let elements = bytes.as_chunks::<N>().0;
    let mut loss = RangeLoss {
        n_elements: elements.len() as u64,
        ..RangeLoss::default()
    };
    // Below any magnitude, so that a tensor of zeros has a largest element too.
    let mut largest = -1.0;
    for (index, &element) in elements.iter().enumerate() {
        let value = read(element);
        let magnitude = value.abs();
        let is_finite = magnitude < f64::INFINITY;
        let is_over =
            magnitude > limits.overflow || (limits.is_tie_overflow && magnitude == limits.overflow);
        let is_zero = magnitude <= limits.underflow;
        loss.n_non_finite += u64::from(!is_finite);
        loss.n_overflow += u64::from(is_over && is_finite);
        loss.n_underflow += u64::from(is_zero && magnitude > 0.0);
        loss.n_subnormal += u64::from(!is_zero && magnitude < limits.normal);
        if is_finite && magnitude > largest {
            largest = magnitude;
            loss.largest = Some(LargestElement { value, index });
        }
    }
    loss
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn for_target(dtype: DType, bytes: &[u8], target: DType) -> Option<RangeLoss> {
        let shape = Shape::new([bytes.len() / dtype.bytes().unwrap()]).unwrap();
        let view = TensorView::new(dtype, &shape, bytes);
        range_loss(view, target)
    }

    /// Overflow, underflow and subnormal counts of one number.
    fn one(value: f64, target: DType) -> [u64; 3] {
        let loss = for_target(DType::F64, &value.to_le_bytes(), target).unwrap();
        [loss.n_overflow, loss.n_underflow, loss.n_subnormal]
    }

    #[test]
    fn the_limits_of_each_target() {
        let power = |exponent: i32| 2_f64.powi(exponent);
        // Largest finite, first that overflows, last that becomes 0, first normal.
        for (target, largest, over, zero, normal) in [
            (
                DType::F16,
                65504.0,
                65520.0,
                power(-25),
                power(-14) - power(-25),
            ),
            (
                DType::BF16,
                bf16::MAX.to_f64(),
                power(128) - power(119),
                power(-134),
                power(-126) - power(-134),
            ),
            (
                DType::F8E5M2,
                57344.0,
                61440.0,
                power(-17),
                power(-14) - power(-17),
            ),
            (
                DType::F8E4M3FN,
                448.0,
                464.0_f64.next_up(),
                power(-10),
                power(-6) - power(-10),
            ),
        ] {
            for sign in [1.0, -1.0] {
                let check = |value: f64, expected: [u64; 3]| {
                    assert_eq!(one(sign * value, target), expected, "{value:e} as {target}");
                };
                check(0.0, [0, 0, 0]);
                check(1.0, [0, 0, 0]);
                check(largest, [0, 0, 0]);
                check(over.next_down(), [0, 0, 0]);
                check(over, [1, 0, 0]);
                check(f64::MAX, [1, 0, 0]);
                check(5e-324, [0, 1, 0]);
                check(zero, [0, 1, 0]);
                check(zero.next_up(), [0, 0, 1]);
                check(normal.next_down(), [0, 0, 1]);
                check(normal, [0, 0, 0]);
            }
        }
    }

    /// The conversions of the `half` library are the reference, near every 16-bit number. Those
    /// from `f64` pass over the lower bits, so the numbers are ones that `f32` holds.
    #[test]
    fn rounding_agrees_with_the_library() {
        type Round = fn(f32) -> (f32, bool);
        type Number = fn(u16) -> f32;
        let targets: [(DType, Round, Number); 2] = [
            (
                DType::F16,
                |v| (f16::from_f32(v).to_f32(), f16::from_f32(v).is_normal()),
                |bits| f16::from_bits(bits).to_f32(),
            ),
            (
                DType::BF16,
                |v| (bf16::from_f32(v).to_f32(), bf16::from_f32(v).is_normal()),
                |bits| bf16::from_bits(bits).to_f32(),
            ),
        ];
        for (target, round, number) in targets {
            for bits in (0..=u16::MAX).step_by(7).chain(0..20).chain(0x7be0..0x7c00) {
                let (low, high) = (number(bits), number(bits.wrapping_add(1)));
                let middle = f32::midpoint(low, high);
                for value in [low, middle, middle.next_up(), middle.next_down()] {
                    if !value.is_finite() {
                        continue;
                    }
                    let (rounded, is_normal) = round(value);
                    let expected = [
                        rounded.is_infinite(),
                        rounded == 0.0 && value != 0.0,
                        rounded.is_finite() && rounded != 0.0 && !is_normal,
                    ];
                    let found = one(value.into(), target);
                    assert_eq!(found, expected.map(u64::from), "{value:e} as {target}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_stays_apart() {
        let values = [f32::NAN, 3.0, f32::INFINITY, -7e4, 7e4, f32::NEG_INFINITY];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let loss = for_target(DType::F32, &bytes, DType::F16).unwrap();
        assert_eq!(
            (loss.n_elements, loss.n_non_finite, loss.n_overflow),
            (6, 3, 2)
        );
        let value = f64::from(-7e4_f32);
        assert_eq!(loss.largest, Some(LargestElement { value, index: 3 }));
        let none = for_target(DType::F32, &bytes[..4], DType::F16).unwrap();
        assert_eq!((none.n_overflow, none.largest), (0, None));
        assert_eq!(
            for_target(DType::F32, &[], DType::F16).unwrap(),
            RangeLoss::default()
        );
    }

    #[test]
    fn only_wider_dtypes_are_looked_at() {
        let half = f16::MAX.to_le_bytes();
        assert_eq!(
            for_target(DType::F16, &half, DType::F8E4M3FN)
                .unwrap()
                .n_overflow,
            1
        );
        assert_eq!(for_target(DType::F16, &half, DType::BF16), None);
        assert_eq!(for_target(DType::F16, &half, DType::F16), None);
        assert_eq!(for_target(DType::I64, &[0xff; 8], DType::F16), None);
        assert_eq!(for_target(DType::F64, &[0; 8], DType::F32), None);
        let brain = bf16::MAX.to_le_bytes();
        assert_eq!(
            for_target(DType::BF16, &brain, DType::F16)
                .unwrap()
                .n_overflow,
            1
        );
    }
}
