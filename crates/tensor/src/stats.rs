//! Statistics of one tensor.
//!
//! [`scalar`] is the specification: plain code, one element after the other, in a fixed order of
//! summation. Faster code must agree with it on every input.

mod non_finite;
mod scalar;

use half::{bf16, f16};
use thiserror::Error;

use crate::{DType, TensorView};

pub use non_finite::{NonFinite, has_non_finite, non_finite};

/// Numbers that describe one tensor's elements.
///
/// For an empty tensor, and for one that holds nothing but NaN, `min` is `+inf`, `max` is `-inf`,
/// `mean` is NaN and `l2` is 0. Integers of 64 bits are rounded to the nearest `f64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Number of elements, NaN and infinite ones included.
    pub n_elements: u64,
    /// Number of NaN elements. They take no part in `min`, `max`, `mean` and `l2`.
    pub n_nan: u64,
    /// Number of elements that are `+inf`. They do take part in the other fields.
    pub n_pos_inf: u64,
    /// Number of elements that are `-inf`. They do take part in the other fields.
    pub n_neg_inf: u64,
    /// The smallest element.
    pub min: f64,
    /// The largest element.
    pub max: f64,
    /// The arithmetic mean of the elements that are not NaN; NaN where infinities of both signs
    /// meet.
    pub mean: f64,
    /// The square root of the sum of squares.
    pub l2: f64,
}

impl Stats {
    /// Whether any element is NaN or infinite.
    pub fn has_non_finite(&self) -> bool {
        self.n_nan + self.n_pos_inf + self.n_neg_inf > 0
    }
}

/// Why a tensor has no statistics.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatsError {
    /// The elements have no order, such as text or complex numbers.
    #[error("elements of type `{0}` have no minimum, maximum or mean")]
    Dtype(DType),
}

/// Computes the statistics of `tensor`.
///
/// Sums are accumulated in `f64`, in the order that [`scalar`] lays down, so that they do not depend
/// on threads or on the CPU.
///
/// # Errors
/// [`StatsError::Dtype`] if the elements are text, complex or of a type without a numeric value.
pub fn stats(tensor: TensorView<'_>) -> Result<Stats, StatsError> {
    let bytes = tensor.bytes;
    Ok(match tensor.dtype {
        DType::F32 => scalar::floats::<4>(bytes, |b| f64::from(f32::from_le_bytes(b))),
        DType::F64 => scalar::floats::<8>(bytes, f64::from_le_bytes),
        DType::F16 => scalar::floats::<2>(bytes, |b| f16::from_le_bytes(b).to_f64()),
        DType::BF16 => scalar::floats::<2>(bytes, |b| bf16::from_le_bytes(b).to_f64()),
        DType::I8 | DType::QI8 => scalar::integers::<1>(bytes, |b| f64::from(i8::from_le_bytes(b))),
        DType::U8 | DType::QU8 | DType::Bool => {
            scalar::integers::<1>(bytes, |b| f64::from(u8::from_le_bytes(b)))
        }
        DType::I16 | DType::QI16 => {
            scalar::integers::<2>(bytes, |b| f64::from(i16::from_le_bytes(b)))
        }
        DType::U16 | DType::QU16 => {
            scalar::integers::<2>(bytes, |b| f64::from(u16::from_le_bytes(b)))
        }
        DType::I32 | DType::QI32 => {
            scalar::integers::<4>(bytes, |b| f64::from(i32::from_le_bytes(b)))
        }
        DType::U32 => scalar::integers::<4>(bytes, |b| f64::from(u32::from_le_bytes(b))),
        DType::I64 => scalar::integers::<8>(bytes, |b| i64::from_le_bytes(b) as f64),
        DType::U64 => scalar::integers::<8>(bytes, |b| u64::from_le_bytes(b) as f64),
        other => return Err(StatsError::Dtype(other)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn of_f32(values: &[f32]) -> Stats {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let shape = Shape::new([values.len()]).unwrap();
        stats(TensorView {
            dtype: DType::F32,
            shape: &shape,
            layout: crate::Layout::Nd,
            bytes: &bytes,
        })
        .unwrap()
    }

    #[test]
    fn plain_values() {
        let s = of_f32(&[1.0, -2.0, 3.0]);
        assert_eq!((s.min, s.max, s.n_elements), (-2.0, 3.0, 3));
        assert!((s.mean - 2.0 / 3.0).abs() < 1e-15);
        assert!((s.l2 - 14f64.sqrt()).abs() < 1e-15);
        assert!(!s.has_non_finite());
    }

    #[test]
    fn nan_takes_no_part() {
        let s = of_f32(&[f32::NAN, 4.0, f32::NAN, 2.0]);
        assert_eq!((s.n_nan, s.min, s.max, s.mean), (2, 2.0, 4.0, 3.0));
    }

    #[test]
    fn infinities_are_counted_by_sign() {
        let s = of_f32(&[f32::INFINITY, 1.0, f32::NEG_INFINITY, f32::INFINITY]);
        assert_eq!((s.n_pos_inf, s.n_neg_inf), (2, 1));
        assert_eq!(
            (s.min, s.max, s.l2),
            (f64::NEG_INFINITY, f64::INFINITY, f64::INFINITY)
        );
        assert!(s.mean.is_nan());
        assert_eq!(of_f32(&[f32::INFINITY, 1.0]).mean, f64::INFINITY);
    }

    #[test]
    fn empty_and_all_nan() {
        for values in [&[][..], &[f32::NAN; 9][..]] {
            let s = of_f32(values);
            assert_eq!(
                (s.min, s.max, s.l2),
                (f64::INFINITY, f64::NEG_INFINITY, 0.0)
            );
            assert!(s.mean.is_nan());
            assert_eq!(s.n_nan, values.len() as u64);
        }
    }

    #[test]
    fn every_length_up_to_two_blocks_agrees_with_a_direct_sum() {
        for n in 0..2 * scalar::BLOCK + 3 {
            let values: Vec<f32> = (0..n).map(|i| (i as f32) - 7.0).collect();
            let s = of_f32(&values);
            let sum: f64 = values.iter().map(|&v| f64::from(v)).sum();
            if n > 0 {
                assert_eq!(s.mean, sum / n as f64, "{n}");
                assert_eq!((s.min, s.max), (-7.0, n as f64 - 8.0), "{n}");
            }
        }
    }

    #[test]
    fn other_dtypes() {
        let shape = Shape::new([2]).unwrap();
        let cases: [(DType, Vec<u8>, f64, f64); 5] = [
            (DType::I8, vec![0x80, 0x7f], -128.0, 127.0),
            (DType::U16, vec![0, 0, 0xff, 0xff], 0.0, 65535.0),
            (DType::F16, vec![0xff, 0x7b, 0, 0x80], -0.0, 65504.0),
            (DType::BF16, vec![0x80, 0x3f, 0, 0xc0], -2.0, 1.0),
            (DType::Bool, vec![1, 0], 0.0, 1.0),
        ];
        for (dtype, bytes, min, max) in cases {
            let layout = crate::Layout::Nd;
            let s = stats(TensorView {
                dtype,
                shape: &shape,
                layout,
                bytes: &bytes,
            })
            .unwrap();
            assert_eq!((s.min, s.max), (min, max), "{dtype}");
        }
        let view = TensorView {
            dtype: DType::C64,
            shape: &shape,
            layout: crate::Layout::Nd,
            bytes: &[0; 16],
        };
        assert_eq!(stats(view), Err(StatsError::Dtype(DType::C64)));
    }
}
