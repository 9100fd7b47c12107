//! Element-wise arithmetic of integers.

use opscope_store::file_format::op_debug::StatusCause;
use opscope_store::record::Record;
use opscope_tensor::DType;

use super::OutputOverflow;
use super::integers::{IntegerBounds, IntegerTensor, StoredInteger, tensor, with_integer};
use super::tally::Tally;
use super::walk::OperandWalk;

/// An operator with two integer operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryOperation {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    PRelu,
}

impl BinaryOperation {
    /// The exact result, saturated to the range of `i128`. A division by zero has none: it fails or
    /// returns anything, but it does not overflow.
    fn exact(self, a: i128, b: i128) -> Option<i128> {
        Some(match self {
            BinaryOperation::Add => a + b,
            BinaryOperation::Sub => a - b,
            BinaryOperation::Mul => a.saturating_mul(b),
            BinaryOperation::Div => a.checked_div(b)?,
            BinaryOperation::Pow => power(a, b)?,
            BinaryOperation::PRelu if a < 0 => a.saturating_mul(b),
            BinaryOperation::PRelu => a,
        })
    }

    /// Whether no result for operands in these ranges can leave `bounds`; `false` if each element
    /// has to be checked.
    fn always_fits(self, bounds: IntegerBounds, a: (i128, i128), b: (i128, i128)) -> bool {
        let ends: [i128; 4] = match self {
            BinaryOperation::Add => [a.0 + b.0, a.1 + b.1, 0, 0],
            BinaryOperation::Sub => [a.0 - b.1, a.1 - b.0, 0, 0],
            // The largest magnitude of a product is at a corner of the two ranges.
            BinaryOperation::Mul | BinaryOperation::PRelu => {
                let times = i128::saturating_mul;
                // `PRelu` passes non-negative values on, so these must fit as well.
                let held = if self == BinaryOperation::PRelu {
                    a
                } else {
                    (0, 0)
                };
                let corners = [
                    times(a.0, b.0),
                    times(a.0, b.1),
                    times(a.1, b.0),
                    times(a.1, b.1),
                ];
                return corners
                    .into_iter()
                    .chain([held.0, held.1])
                    .all(|end| bounds.contains(end));
            }
            // Only the smallest integer divided by -1 overflows.
            BinaryOperation::Div => {
                return a.0 > bounds.min || b.0 > -1 || b.1 < -1 || bounds.min == 0;
            }
            BinaryOperation::Pow => {
                let base = a.0.unsigned_abs().max(a.1.unsigned_abs());
                let base = i128::try_from(base).unwrap_or(i128::MAX);
                // Magnitudes grow with base and exponent. Negative exponents yield 0, 1 or -1,
                // which always fit.
                [0, power(base, b.1.max(0)).unwrap_or(0), 0, 0]
            }
        };
        ends.into_iter().all(|end| bounds.contains(end))
    }
}

/// `base` to the power of `exponent`, truncated to an integer and saturated to the range of `i128`.
fn power(base: i128, exponent: i128) -> Option<i128> {
    match (base, exponent) {
        // Zero to a negative power is a division by zero.
        (0, ..0) => None,
        (1, _) => Some(1),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, ..0) => Some(0),
        _ => {
            let exponent = u32::try_from(exponent).unwrap_or(u32::MAX);
            Some(base.saturating_pow(exponent))
        }
    }
}

/// Results of a binary operator that do not fit their dtype.
pub(super) fn binary(record: &Record, operator: BinaryOperation) -> Option<OutputOverflow> {
    let a = IntegerTensor::input(record, 0)?;
    let Some(b) = IntegerTensor::input(record, 1) else {
        return float_power(record, operator, &a);
    };
    let (ends_a, ends_b) = (a.extremes()?, b.extremes()?);
    if operator.always_fits(a.bounds, ends_a, ends_b) {
        return None;
    }
    let walk = OperandWalk::broadcast(&[a.dims, b.dims])?;
    let tally = if operator == BinaryOperation::Pow {
        // The exponent may have another type.
        let (bases, exponents) = (a.to_wide(), b.to_wide());
        tally(&walk, |x, y| {
            power(bases[x], exponents[y]).is_none_or(|value| a.bounds.contains(value))
        })
    // ONNX requires one type for both operands; anything else is unknown arithmetic.
    } else if a.storage == b.storage {
        with_integer!(a.storage, Int => count::<Int>(operator, &walk, &a, &b))
    } else {
        return None;
    };
    tally.place(StatusCause::Integer, 0)
}

/// Counts the pairs of positions that do not fit, in the order of the result.
fn tally(walk: &OperandWalk, fits: impl Fn(usize, usize) -> bool) -> Tally {
    let mut tally = Tally::default();
    let mut start = 0;
    walk.each_run(|len, offsets, strides| {
        let bad =
            (0..len).filter(|i| !fits(offsets[0] + i * strides[0], offsets[1] + i * strides[1]));
        bad.for_each(|i| tally.note(start + i));
        start += len;
    });
    tally
}

/// Picks the operator outside of the loops.
fn count<Int: StoredInteger>(
    operator: BinaryOperation,
    walk: &OperandWalk,
    a: &IntegerTensor,
    b: &IntegerTensor,
) -> Tally {
    // One instance of the loop per operator, so that `exact` is inlined and its `match` folded.
    macro_rules! of {
        ($($name:ident)*) => {
            match operator {
                $(BinaryOperation::$name => count_with::<Int>(walk, a, b, |x, y| BinaryOperation::$name.exact(x, y)),)*
            }
        };
    }
    of!(Add Sub Mul Div Pow PRelu)
}

#[inline(always)]
fn count_with<Int: StoredInteger>(
    walk: &OperandWalk,
    a: &IntegerTensor,
    b: &IntegerTensor,
    exact: impl Fn(i128, i128) -> Option<i128>,
) -> Tally {
    let bounds = a.bounds;
    let (a, b) = (Int::cut(&a.bytes), Int::cut(&b.bytes));
    let fits = |x: Int::Bytes, y: Int::Bytes| {
        let value = exact(Int::read(x).into(), Int::read(y).into());
        value.is_none_or(|value| bounds.contains(value))
    };
    let mut tally = Tally::default();
    let mut start = 0;
    walk.each_run(|len, offsets, strides| {
        let (a, b) = (&a[offsets[0]..], &b[offsets[1]..]);
        let mut note = |i: usize| tally.note(start + i);
        // One loop for each pattern of strides, so that the compiler can vectorise it.
        match (strides[0], strides[1]) {
            (1, 1) => {
                let pairs = a[..len].iter().zip(&b[..len]).enumerate();
                pairs
                    .filter(|(_, (x, y))| !fits(**x, **y))
                    .for_each(|(i, _)| note(i));
            }
            (1, 0) => {
                let rows = a[..len].iter().enumerate();
                rows.filter(|(_, x)| !fits(**x, b[0]))
                    .for_each(|(i, _)| note(i));
            }
            (0, 1) => {
                let rows = b[..len].iter().enumerate();
                rows.filter(|(_, y)| !fits(a[0], **y))
                    .for_each(|(i, _)| note(i));
            }
            (x, y) => (0..len)
                .filter(|i| !fits(a[i * x], b[i * y]))
                .for_each(note),
        }
        start += len;
    });
    tally
}

/// An integer to the power of a floating-point number, computed in `f64`.
fn float_power(
    record: &Record,
    operator: BinaryOperation,
    base: &IntegerTensor,
) -> Option<OutputOverflow> {
    let exponent = tensor(record, 1)?;
    if operator != BinaryOperation::Pow || !exponent.dtype().is_float() {
        return None;
    }
    let exponents = super::floats::to_f64(exponent)?;
    let bases = base.to_wide();
    let walk = OperandWalk::broadcast(&[base.dims, exponent.shape().dims()])?;
    let IntegerBounds { min, max } = base.bounds;
    // 0 to a negative power is a division by zero. The bounds are powers of two or one less, where
    // `f64` is exact enough.
    tally(&walk, |x, y| {
        let (base, exponent) = (bases[x], exponents[y]);
        let value = (base as f64).powf(exponent).trunc();
        let is_division = base == 0 && exponent < 0.0;
        is_division || !exponent.is_finite() || !(value >= (max + 1) as f64 || value < min as f64)
    })
    .place(StatusCause::Integer, 0)
}

/// `Neg` and `Abs`: only the smallest signed integer has no counterpart.
pub(super) fn negate(record: &Record) -> Option<OutputOverflow> {
    let a = IntegerTensor::input(record, 0)?;
    let min = a.bounds.min;
    if min == 0 || a.extremes()?.0 > min {
        return None;
    }
    let elements = a.to_wide().into_iter().enumerate();
    let tally: Tally = elements
        .filter(|(_, value)| *value == min)
        .map(|(i, _)| i)
        .collect();
    tally.place(StatusCause::NegateMin, 0)
}

/// `Sum` of any number of tensors.
pub(super) fn sum(record: &Record) -> Option<OutputOverflow> {
    let inputs: Vec<IntegerTensor> = record
        .inputs
        .iter()
        .map(|(_, tensor)| IntegerTensor::filled(tensor))
        .collect::<Option<_>>()?;
    let bounds = inputs.first()?.bounds;
    let ends: Vec<(i128, i128)> = inputs
        .iter()
        .map(IntegerTensor::extremes)
        .collect::<Option<_>>()?;
    let (low, high) = ends
        .iter()
        .fold((0, 0), |sum, end| (sum.0 + end.0, sum.1 + end.1));
    // The sum of the extremes bounds every element's sum.
    if bounds.contains(low) && bounds.contains(high) {
        return None;
    }
    let shapes: Vec<&[usize]> = inputs.iter().map(|input| input.dims).collect();
    let walk = OperandWalk::broadcast(&shapes)?;
    let values: Vec<Vec<i128>> = inputs.iter().map(IntegerTensor::to_wide).collect();
    let mut tally = Tally::default();
    let mut start = 0;
    walk.each_run(|len, offsets, strides| {
        for i in 0..len {
            let at = offsets
                .iter()
                .zip(strides)
                .map(|(offset, stride)| offset + i * stride);
            let sum: i128 = values.iter().zip(at).map(|(values, at)| values[at]).sum();
            if !bounds.contains(sum) {
                tally.note(start + i);
            }
        }
        start += len;
    });
    tally.place(StatusCause::Integer, 0)
}
