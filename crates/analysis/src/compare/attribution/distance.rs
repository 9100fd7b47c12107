//! How far slots are apart, in one number each, and what operators add to that.

use std::collections::HashMap;

use super::slots;
use crate::compare::flow::{Place, place_of};
use crate::compare::result::{OperatorResult, OwnError, SlotResult};
use crate::compare::verdict::value_of;

/// How far apart a slot is, relative to its size: the norm of the difference, the share of unequal integers, or
/// the largest distance of a statistic. What cannot be measured, such as a NaN on one side, other extents or
/// another digest, is infinitely far.
pub(super) fn of(slot: &SlotResult) -> f64 {
    let get = |name: &str| value_of(slot, name);
    if slot.evidence == "shape" || get("n_non_finite_mismatches") > Some(0.0) {
        return f64::INFINITY;
    }
    let digest = || match get("digest_mismatch") {
        Some(0.0) => Some(0.0),
        Some(_) => Some(f64::INFINITY),
        None => None,
    };
    let found = match slot.evidence.as_str() {
        "tensor" if !is_float(slot) => get("share_unequal"),
        "tensor" => get("rel_l2").or_else(|| get("share_unequal")),
        _ => get("statistic_rel").or_else(digest),
    };
    found.map_or(
        0.0,
        |found| if found.is_nan() { f64::INFINITY } else { found },
    )
}

/// Whether a slot holds floats on one side at least.
pub(super) fn is_float(slot: &SlotResult) -> bool {
    crate::compare::verdict::is_float_slot(slot)
}

/// The norm of the difference itself, where it is known.
pub(in crate::compare) fn absolute(slot: &SlotResult) -> Option<f64> {
    let distance = slot.metrics.get("rmse")? * slot.metrics.get("n_finite")?.sqrt();
    distance.is_finite().then_some(distance)
}

/// Gives every operator its error of inputs and outputs. Where no input was compared, the worst output before it
/// in the same step stands for them.
pub(super) fn fill_in(operators: &mut [OperatorResult]) {
    let mut before: HashMap<Place, f64> = HashMap::new();
    for operator in operators {
        let largest = |is_output| slots(operator, is_output).map(of).reduce(f64::max);
        let Some(outputs) = largest(true) else {
            operator.error = None;
            continue;
        };
        let place = place_of(operator);
        let of_inputs = largest(false);
        let inputs = of_inputs.or(before.get(&place).copied()).unwrap_or(0.0);
        let worst = before.entry(place).or_insert(0.0);
        *worst = worst.max(outputs);
        let added = match (outputs.is_finite(), inputs.is_finite()) {
            (_, false) => 0.0,
            (false, true) => f64::INFINITY,
            // Errors that know nothing of each other add up as squares.
            (true, true) => (outputs * outputs - inputs * inputs).max(0.0).sqrt(),
        };
        operator.error = Some(OwnError {
            inputs,
            outputs,
            added,
            has_inputs: of_inputs.is_some(),
        });
    }
}
