//! How sure a verdict is of the operator that it names.

use opscope_store::record::SlotSide;

use super::attribution::makes_another_order;
use super::evidence::Evidence;
use super::matching::{is_one_type, is_view_type};
use super::result::{
    Cause, Certainty, Comparison, DivergencePoint, ExperimentOutcome, MetricId, OperatorName,
    OperatorResult, SkipReason, SkipSide, SlotResult, VerdictLevel,
};
use super::verdict::value_of;

/// Notes how sure the summary is of the slot that it names. Causes have to be there.
pub(super) fn note(comparison: &mut Comparison) {
    // Outputs that are exchanged or lost are proven without an operator that is wrong.
    let of_outputs = is_proven_of_outputs(comparison).then_some(Certainty::Proven);
    let of_operator = comparison.summary.headline().map(|point| {
        let Some(operator) = comparison.operators.get(point.operator) else {
            return Certainty::FirstDifference;
        };
        let mut name = point.name.iter();
        match name.find(|name| !operator.target.contains(name)) {
            _ if is_proven(comparison) => Certainty::Proven,
            _ if is_guess(point, operator, comparison) => Certainty::FirstDifference,
            Some(_) => of_cause(point.cause, operator, comparison).max(Certainty::Likely),
            None => of_cause(point.cause, operator, comparison),
        }
    });
    if of_operator == Some(Certainty::FirstDifference) {
        let point = comparison.summary.headline();
        let is_joined = point.is_some_and(|point| is_joined(point, comparison));
        let summary = &mut comparison.summary;
        let points = [&mut summary.first_failure, &mut summary.first_divergence];
        if let Some(point) = points.into_iter().flatten().next()
            && (point.cause == Cause::Own || is_joined)
        {
            point.cause = Cause::Unknown;
        }
    }
    comparison.summary.certainty = of_operator.or(of_outputs);
}

/// Whether a point rests only on the shape of a view, or on a value that the golden dump lacks
/// although the dump may be incomplete.
fn is_guess(point: &DivergencePoint, operator: &OperatorResult, comparison: &Comparison) -> bool {
    let mut partings = comparison.partings.iter();
    let parting = partings.find(|parting| parting.operator == point.operator);
    // Of an input of another shape nothing was compared, unless it agrees with another value.
    let mut inputs = operator.inputs();
    let is_reshaped = inputs.any(|slot| slot.evidence == Evidence::Shape && slot.is_apart());
    if parting.is_some_and(|at| at.change.is_some()) {
        return false;
    }
    if parting.is_some_and(|at| !at.rewired.is_empty()) {
        // Statistics are the same in every shape.
        let mut slots = operator.slots.iter();
        return is_reshaped && slots.any(|slot| slot.evidence == Evidence::Statistics);
    }
    if is_joined(point, comparison) || cuts_otherwise(comparison, operator) || is_reshaped {
        return true;
    }
    // Another export exchanges other axes on the way to the same.
    let mut slots = operator.slots.iter();
    let is_of_shape = slots.any(|slot| slot.slot == point.slot && slot.evidence == Evidence::Shape);
    let target = operator.target.last();
    let is_view = target.is_some_and(|target| is_view_type(&target.op_type));
    if is_view && is_of_shape && !operator.is_certain {
        return true;
    }
    let name = point.name.as_ref();
    let is_listed = name.is_none_or(|name| operator.target.contains(name));
    // Where the target computes several values that golden lacks, it may do so in another way.
    let others = comparison.partings.iter().filter(|at| {
        let is_new = at.cause == Cause::Own && at.change.is_none();
        at.operator == point.operator && is_new && !operator.target.contains(&at.name)
    });
    let is_another_way = others.count() > 1 || !comparison.contract.has_golden_graph;
    !is_listed && parting.is_some() && is_another_way
}

/// Whether a point is a weight whose difference other operators of the target may make up for.
fn is_joined(point: &DivergencePoint, comparison: &Comparison) -> bool {
    let mut partings = comparison.partings.iter();
    let parting = partings.find(|parting| parting.operator == point.operator);
    parting.is_some_and(|at| at.cause == Cause::Outside && !at.others.is_empty())
}

/// Whether an operator cuts its input into more parts than golden's, or fewer, as a program does that
/// works in parts and joins the results.
pub(super) fn cuts_otherwise(comparison: &Comparison, operator: &OperatorResult) -> bool {
    let mut outputs = operator.outputs().filter(|slot| slot.is_apart()).peekable();
    let mut skips = comparison.skips.iter().filter(|skip| {
        let is_output = skip.slot.is_some_and(|slot| slot.side == SlotSide::Output);
        is_output && skip.reason == SkipReason::MissingSlot
    });
    is_single(operator)
        && outputs.peek().is_some()
        && outputs.all(|slot| slot.evidence == Evidence::Shape)
        && skips.any(|skip| {
            let mut names = operator.target.iter().chain(&operator.golden);
            names.any(|name| skip.operator.as_ref() == Some(name))
        })
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

fn of_cause(cause: Cause, operator: &OperatorResult, comparison: &Comparison) -> Certainty {
    // All others say themselves that something before is not known.
    if !matches!(cause, Cause::Own | Cause::Outside) {
        return Certainty::FirstDifference;
    }
    let mut inputs = operator.inputs();
    // A weight that is another one is what differs, and no reason to doubt.
    let is_cause = |slot: &SlotResult| cause == Cause::Outside && slot.level != VerdictLevel::Pass;
    let mut causes = inputs.clone().filter(|slot| is_cause(slot));
    if causes.any(|slot| slot.parameter.is_none()) {
        // The input may come from an uncompared operator.
        return Certainty::FirstDifference;
    }
    let has_inputs = operator.inputs().next().is_some();
    // Equal values may bring operators together that do different things. Of several operators that
    // are one on the other side, not every input is compared. Another order may be one of layout.
    let is_measured = has_inputs
        && is_single(operator)
        && inputs.all(|slot| is_identical(slot) || is_cause(slot))
        && !has_uncompared_input(operator, comparison)
        && !makes_another_order(operator);
    if is_measured {
        Certainty::Measured
    } else {
        Certainty::Likely
    }
}

/// Whether both sides read a value that was not compared. What one side reads alone is a difference,
/// unless their types are other words, one of which may take it as an argument.
fn has_uncompared_input(operator: &OperatorResult, comparison: &Comparison) -> bool {
    let is_missing = |side: SkipSide, names: &[OperatorName]| {
        comparison.skips.iter().any(|skip| {
            let is_input = skip.slot.is_some_and(|slot| slot.side == SlotSide::Input);
            let reasons = [SkipReason::InsideFusion, SkipReason::MissingSlot];
            let name = skip.operator.as_ref();
            is_input
                && skip.side == side
                && reasons.contains(&skip.reason)
                && name.is_some_and(|name| names.contains(name))
        })
    };
    let is_one_word = match (&operator.target[..], &operator.golden[..]) {
        ([target], [golden]) => target.op_type == golden.op_type,
        _ => false,
    };
    let sides = [
        (SkipSide::Target, &operator.target),
        (SkipSide::Golden, &operator.golden),
    ];
    let missing = sides
        .iter()
        .filter(|(side, names)| is_missing(*side, names));
    let n_missing = missing.count();
    !operator.hidden_inputs.is_empty() || n_missing == 2 || n_missing == 1 && !is_one_word
}

/// Whether both sides have one operator, of one type.
fn is_single(operator: &OperatorResult) -> bool {
    match (&operator.target[..], &operator.golden[..]) {
        ([target], [golden]) => is_one_type(&target.op_type, &golden.op_type),
        _ => false,
    }
}

/// Whether all elements were compared, and are the same.
fn is_identical(slot: &SlotResult) -> bool {
    slot.evidence == Evidence::Tensor
        && value_of(slot, MetricId::Count).is_some()
        && value_of(slot, MetricId::Count) == value_of(slot, MetricId::EqualCount)
}
