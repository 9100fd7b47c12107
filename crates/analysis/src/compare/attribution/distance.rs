//! How far slots are apart, in one number each, and what operators add to that.

use std::collections::HashMap;

use super::slots;
use crate::compare::metric::MetricId;
use crate::compare::result::{Evidence, OperatorPlace, OperatorResult, OwnError, SlotResult};
use crate::compare::verdict::value_of;

/// The distance of a slot, relative to its size: the norm of the difference, the share of unequal
/// integers, or the largest distance of a statistic. It is infinite if it cannot be measured, as
/// with a NaN on one side, another shape or another digest.
pub(crate) fn slot_distance(slot: &SlotResult) -> f64 {
    // The other side has the value; the numbers are those of another one.
    if slot.agreement.is_some() {
        return 0.0;
    }
    if slot.evidence == Evidence::Shape || value_of(slot, MetricId::NonFiniteMismatches) > Some(0.0)
    {
        return f64::INFINITY;
    }
    let found = match slot.evidence {
        Evidence::Tensor if !is_float(slot) => value_of(slot, MetricId::ShareUnequal),
        Evidence::Tensor => {
            value_of(slot, MetricId::RelL2).or_else(|| value_of(slot, MetricId::ShareUnequal))
        }
        _ => value_of(slot, MetricId::StatisticRel)
            .or_else(|| value_of(slot, MetricId::DigestRel))
            .or_else(|| match value_of(slot, MetricId::DigestMismatch) {
                Some(0.0) => Some(0.0),
                Some(_) => Some(f64::INFINITY),
                None => None,
            }),
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

/// Sets the input and output errors of every operator. If no input was compared, the worst earlier
/// output in the same step replaces it.
pub(super) fn fill_in(operators: &mut [OperatorResult]) {
    let mut before: HashMap<OperatorPlace, f64> = HashMap::new();
    for operator in operators {
        let [of_inputs, of_outputs] = [false, true].map(|is_output| {
            let distances = slots(operator, is_output).map(slot_distance);
            distances.reduce(f64::max)
        });
        let Some(outputs) = of_outputs else {
            operator.error = None;
            continue;
        };
        let place = operator.place();
        let inputs = of_inputs.or(before.get(&place).copied()).unwrap_or(0.0);
        let worst = before.entry(place).or_insert(0.0);
        *worst = worst.max(outputs);
        let added = match (outputs.is_finite(), inputs.is_finite()) {
            // After an infinite distance, an operator's contribution is unknown.
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
