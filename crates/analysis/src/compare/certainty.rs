//! How sure a verdict is of the operator that it names.

use super::evidence::Evidence;
use super::result::{
    Cause, Certainty, Comparison, ExperimentOutcome, MetricId, OperatorResult, SlotResult,
    VerdictLevel,
};
use super::verdict::value_of;

/// Notes how sure the summary is of the slot that it names. Causes have to be there.
pub(super) fn note(comparison: &mut Comparison) {
    // Outputs that are exchanged or lost are proven without an operator that is wrong.
    let of_outputs = is_proven_of_outputs(comparison).then_some(Certainty::Proven);
    let of_operator = comparison.summary.headline().map(|point| {
        let operator = comparison.operators.get(point.operator);
        match operator {
            Some(_) if is_proven(comparison) => Certainty::Proven,
            Some(operator) => of_cause(point.cause, operator),
            None => Certainty::FirstDifference,
        }
    });
    comparison.summary.certainty = of_operator.or(of_outputs);
}

fn is_proven_of_outputs(comparison: &Comparison) -> bool {
    let experiments = comparison.experiments.as_deref();
    experiments.is_some_and(|made| {
        let first = made.causes.first();
        made.outcome == ExperimentOutcome::Proven
            && first.is_some_and(|cause| cause.output.is_some())
    })
}

fn is_proven(comparison: &Comparison) -> bool {
    let experiments = comparison.experiments.as_deref();
    experiments.is_some_and(|made| {
        let is_listed = made
            .causes
            .first()
            .is_some_and(|cause| cause.index.is_some());
        made.outcome == ExperimentOutcome::Proven && is_listed
    })
}

fn of_cause(cause: Cause, operator: &OperatorResult) -> Certainty {
    // All others say themselves that something before is not known.
    if !matches!(cause, Cause::Own | Cause::Outside) {
        return Certainty::FirstDifference;
    }
    let mut inputs = operator.slots.iter().filter(|slot| !slot.is_output());
    // A weight that is another one is what differs, and no reason to doubt.
    let is_cause = |slot: &SlotResult| cause == Cause::Outside && slot.level != VerdictLevel::Pass;
    let is_unknown = |slot: &SlotResult| is_cause(slot) && slot.parameter.is_none();
    if inputs.clone().any(is_unknown) {
        // What came in may be what an operator made that nobody compared.
        return Certainty::FirstDifference;
    }
    let has_inputs = operator.slots.iter().any(|slot| !slot.is_output());
    // Of several operators that are one on the other side, not every input is compared.
    let is_single = operator.target.len() == 1 && operator.golden.len() == 1;
    if has_inputs && is_single && inputs.all(|slot| is_identical(slot) || is_cause(slot)) {
        Certainty::Measured
    } else {
        Certainty::Likely
    }
}

/// Whether all elements were compared, and are the same.
fn is_identical(slot: &SlotResult) -> bool {
    let count = |metric| value_of(slot, metric);
    slot.evidence == Evidence::Tensor
        && count(MetricId::Count).is_some()
        && count(MetricId::Count) == count(MetricId::EqualCount)
}
