//! How exact a value can be.
//!
//! A sum in float32 of values that went through bfloat16 on one side is no more exact than those.
//! So a slot is judged by the coarsest dtype that its value went through, as far as the dumps show
//! it: the inputs of its operator and the outputs that those are. Inputs that are the same on both
//! sides lost nothing.

use opscope_tensor::DType;

use crate::compare::flow::ValueFlow;
use crate::compare::result::{Comparison, Evidence, MetricId, SlotResult};

/// The dtype that the limits of a slot go by: the coarser of both where both are floats, the float
/// where one is, else the target's. None if neither is known.
pub fn dtype_of(slot: &SlotResult) -> Option<DType> {
    let known = |name: &str| name.parse::<DType>().ok().map(|dtype| dtype.parts().0);
    match (known(&slot.target.dtype), known(&slot.golden.dtype)) {
        (Some(a), Some(b)) if is_float(a) && is_float(b) => Some(coarser(a, b)),
        (Some(a), Some(b)) if is_float(b) && !is_float(a) => Some(b),
        (Some(a), Some(_)) => Some(a),
        // A dtype that a table lacks is newer, and coarser, than those it knows.
        (None, Some(b)) if is_float(b) => None,
        (Some(a), None) if is_float(a) => None,
        (a, b) => a.or(b),
    }
}

/// The dtype that each slot is judged by, in the order of operators and their slots.
pub(super) fn judge_exactness(comparison: &Comparison, flow: &ValueFlow) -> Vec<Option<DType>> {
    let mut all: Vec<Option<DType>> = Vec::new();
    let mut firsts: Vec<usize> = Vec::with_capacity(comparison.operators.len());
    for (i, operator) in comparison.operators.iter().enumerate() {
        let mut of_slots: Vec<Option<DType>> = operator.slots.iter().map(dtype_of).collect();
        let mut inherited: Option<DType> = None;
        for (k, slot) in operator.slots.iter().enumerate() {
            if slot.is_output() || has_no_difference(slot) {
                continue;
            }
            let source = flow.source(i, k);
            let made = [source.target, source.golden].into_iter().flatten();
            // A source precedes its readers, so its precision is known already.
            let made = made.filter_map(|at| *all.get(firsts.get(at.operator)? + at.slot)?);
            of_slots[k] = made.fold(of_slots[k], |own, dtype| joined(own, Some(dtype)));
            inherited = match of_slots[k].filter(|&dtype| is_float(dtype)) {
                Some(dtype) => Some(inherited.map_or(dtype, |known| coarser(known, dtype))),
                None => inherited,
            };
        }
        for (dtype, slot) in of_slots.iter_mut().zip(&operator.slots) {
            if slot.is_output() {
                *dtype = joined(*dtype, inherited);
            }
        }
        firsts.push(all.len());
        all.extend(of_slots);
    }
    all
}

/// The coarser of a slot's own dtype and another; other kinds than floats are unchanged.
fn joined(own: Option<DType>, other: Option<DType>) -> Option<DType> {
    match (own, other) {
        (Some(a), Some(b)) if is_float(a) && is_float(b) => Some(coarser(a, b)),
        (own, _) => own,
    }
}

fn has_no_difference(slot: &SlotResult) -> bool {
    match slot.evidence {
        Evidence::Tensor => {
            slot.metrics.get(MetricId::Count).is_some()
                && slot.metrics.get(MetricId::Count) == slot.metrics.get(MetricId::EqualCount)
        }
        Evidence::Statistics | Evidence::Digest => {
            slot.metrics.get(MetricId::DigestMismatch) == Some(0.0)
        }
        // An uncompared slot shows no loss that could be passed on.
        _ => true,
    }
}

/// Whether thresholds of floats apply.
pub(super) fn is_float(dtype: DType) -> bool {
    n_digits(dtype).is_some()
}

pub(crate) fn coarser(a: DType, b: DType) -> DType {
    if n_digits(b) < n_digits(a) { b } else { a }
}

/// Digits after the first one. Complex numbers are as exact as their parts.
fn n_digits(dtype: DType) -> Option<u32> {
    dtype.parts().0.n_digits()
}

/// Half the distance from 1 to the next number: the maximum error of one rounding.
pub(crate) fn unit(dtype: DType) -> Option<f64> {
    let n_digits = i32::try_from(n_digits(dtype)?).ok()?;
    Some(0.5f64.powi(n_digits + 1))
}

/// The smallest positive number with all digits. Of `float16` the smallest of all: its range is so
/// short that numbers below the normal ones are in use.
pub(super) fn smallest_normal(dtype: DType) -> Option<f64> {
    match dtype {
        DType::F64 => Some(f64::MIN_POSITIVE),
        DType::F32 | DType::BF16 => Some(f64::from(f32::MIN_POSITIVE)),
        DType::F16 => Some(half::f16::from_bits(1).to_f64()),
        _ => None,
    }
}
