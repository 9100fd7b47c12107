//! Making one value of the contributions of several ranks.

use half::{bf16, f16};
use opscope_store::record::parallel::Reduction;
use opscope_tensor::{DType, ElementKind, RoundingFormat};

use crate::element::float;

/// Contributions to elements that follow each other.
///
/// Floats are added up in double precision, in the order of the ranks, and rounded to their dtype
/// once. Integers are added as integers of 64 bits that wrap around, as the ranks themselves do.
pub(super) struct Accumulator {
    reduction: Reduction,
    dtype: DType,
    n: u32,
    divisor: u32,
    values: AccumulatedValues,
}

enum AccumulatedValues {
    Floats(Vec<f64>),
    Integers(Vec<i64>),
}

impl Accumulator {
    /// Results of floats are divided by `divisor`. None if the dtype has no such reduction.
    pub(super) fn new(reduction: Reduction, dtype: DType, divisor: u32) -> Option<Accumulator> {
        let (part, _) = dtype.parts();
        let is_bitwise = matches!(reduction, Reduction::And | Reduction::Or | Reduction::Xor);
        let is_linear = matches!(reduction, Reduction::Sum | Reduction::Mean);
        let values = match part {
            // The parts of complex numbers are added separately, and have no order.
            DType::F16 | DType::BF16 | DType::F32 | DType::F64
                if !is_bitwise && (is_linear || part == dtype) =>
            {
                AccumulatedValues::Floats(Vec::new())
            }
            _ if is_integer(dtype) && reduction != Reduction::Mean => {
                AccumulatedValues::Integers(Vec::new())
            }
            _ => return None,
        };
        Some(Accumulator {
            reduction,
            dtype: part,
            n: 0,
            divisor,
            values,
        })
    }

    /// Takes the contribution of the next rank.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (reduction, dtype, is_first) = (self.reduction, self.dtype, self.n == 0);
        match &mut self.values {
            AccumulatedValues::Floats(values) => {
                let new = bytes.chunks_exact(dtype.bytes().unwrap_or(1));
                let new = new.map(|bytes| float(dtype, bytes));
                if is_first {
                    values.extend(new);
                } else {
                    for (value, new) in values.iter_mut().zip(new) {
                        *value = reduced_float(reduction, *value, new);
                    }
                }
            }
            AccumulatedValues::Integers(values) => {
                let new = bytes.chunks_exact(dtype.bytes().unwrap_or(1));
                let new = new.map(|bytes| integer(dtype, bytes));
                if is_first {
                    values.extend(new);
                } else {
                    for (value, new) in values.iter_mut().zip(new) {
                        *value = reduced_integer((reduction, dtype), *value, new);
                    }
                }
            }
        }
        self.n += 1;
    }

    /// Appends the values, and starts again.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        let n = f64::from(self.n.max(1));
        // Boxes have their own numbers of contributions.
        self.n = 0;
        match &mut self.values {
            AccumulatedValues::Floats(values) => {
                for mut value in values.drain(..) {
                    if self.reduction == Reduction::Mean {
                        value /= n;
                    }
                    value /= f64::from(self.divisor);
                    match self.dtype {
                        DType::F16 => {
                            let value = rounded(RoundingFormat::Float16, value);
                            out.extend(f16::from_f64(value).to_le_bytes());
                        }
                        DType::BF16 => {
                            let value = rounded(RoundingFormat::Bfloat16, value);
                            out.extend(bf16::from_f64(value).to_le_bytes());
                        }
                        DType::F32 => out.extend((value as f32).to_le_bytes()),
                        _ => out.extend(value.to_le_bytes()),
                    }
                }
            }
            AccumulatedValues::Integers(values) => {
                let width = self.dtype.bytes().unwrap_or(8);
                for value in values.drain(..) {
                    out.extend(&value.to_le_bytes()[..width]);
                }
            }
        }
    }
}

/// Rounded once; casts of `half` go through float32, which rounds twice.
fn rounded(format: RoundingFormat, value: f64) -> f64 {
    let mut bytes = value.to_le_bytes();
    format.round(DType::F64, &mut bytes);
    f64::from_le_bytes(bytes)
}

fn is_integer(dtype: DType) -> bool {
    let is_whole = matches!(
        dtype.kind(),
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Truth
    );
    is_whole && matches!(dtype.bytes(), Some(1 | 2 | 4 | 8))
}

fn integer(dtype: DType, bytes: &[u8]) -> i64 {
    let is_negative =
        dtype.kind() == ElementKind::Signed && bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut all = if is_negative { [0xff; 8] } else { [0; 8] };
    for (to, from) in all.iter_mut().zip(bytes) {
        *to = *from;
    }
    i64::from_le_bytes(all)
}

fn reduced_float(reduction: Reduction, a: f64, b: f64) -> f64 {
    match reduction {
        Reduction::Product => a * b,
        // A NaN of any rank is not lost.
        Reduction::Min | Reduction::Max if a.is_nan() || b.is_nan() => f64::NAN,
        Reduction::Min => a.min(b),
        Reduction::Max => a.max(b),
        _ => a + b,
    }
}

fn reduced_integer((reduction, dtype): (Reduction, DType), a: i64, b: i64) -> i64 {
    let is_unsigned = dtype.kind() != ElementKind::Signed;
    let is_less = if is_unsigned {
        a.cast_unsigned() < b.cast_unsigned()
    } else {
        a < b
    };
    match reduction {
        Reduction::Product => a.wrapping_mul(b),
        Reduction::Min => {
            if is_less {
                a
            } else {
                b
            }
        }
        Reduction::Max => {
            if is_less {
                b
            } else {
                a
            }
        }
        Reduction::And => a & b,
        Reduction::Or => a | b,
        Reduction::Xor => a ^ b,
        Reduction::Sum | Reduction::Mean => {
            let sum = a.wrapping_add(b);
            // A sum of truth values is whether any holds.
            if dtype.kind() == ElementKind::Truth {
                i64::from(sum != 0)
            } else {
                sum
            }
        }
    }
}
