//! Attribution: which operator caused the difference?
//!
//! Operators are checked in execution order. An operator with matching inputs and a different
//! output is a culprit; an operator whose inputs already differ may only pass the error on. No
//! operator is accused of a difference that may come from uncompared operators. `docs/compare.md`
//! has the rules.

pub(super) mod absorbed;
pub(super) mod cause;
pub(super) mod distance;
mod first;
pub(super) mod kinds;
mod non_finite;
mod suspects;

pub(super) use self::first::{is_doubtful, makes_another_order};

use self::suspects::SuspectSearch;
use super::flow::ValueFlow;
use super::result::{
    Cause, Comparison, ComparisonSummary, NonFiniteRole, OperatorResult, SlotResult, VerdictLevel,
};
use super::steps;

/// Fills in errors, causes, roles and the summary. Levels have to be there.
pub fn attribute(comparison: &mut Comparison, n_ranked: usize) {
    let flow = ValueFlow::trace(comparison);
    attribute_along(comparison, n_ranked, &flow);
}

/// [`attribute`] where it is known already where inputs come from.
pub(super) fn attribute_along(comparison: &mut Comparison, n_ranked: usize, flow: &ValueFlow) {
    distance::fill_in(&mut comparison.operators);
    let is_hidden = cause::has_hidden_inputs(comparison);
    let causes: Vec<Option<Cause>> = comparison
        .operators
        .iter()
        .enumerate()
        .zip(cause::makers_of_unshown(comparison))
        .map(|((i, operator), makers)| {
            cause::find_cause(operator, is_hidden[i], makers, |slot| flow.source(i, slot))
        })
        .collect();
    for (operator, cause) in comparison.operators.iter_mut().zip(causes) {
        operator.cause = cause;
    }
    let suspects = SuspectSearch::new(comparison).of_operators(comparison, flow);
    for (operator, suspects) in comparison.operators.iter_mut().zip(suspects) {
        operator.suspects = suspects.into();
    }
    non_finite::fill_in(&mut comparison.operators, flow, &is_hidden);
    comparison.summary = ComparisonSummary {
        // A result can be rejudged without the dumps from which these were counted.
        n_bytes: comparison.summary.n_bytes,
        target_coverage: comparison.summary.target_coverage,
        golden_coverage: comparison.summary.golden_coverage,
        ..summary(comparison, flow, n_ranked)
    };
}

/// Why the outputs of an operator are as they are; unknown where they are as they should be.
pub fn cause_of(operator: &OperatorResult) -> Cause {
    operator.cause.unwrap_or(Cause::Unknown)
}

/// The inputs or outputs that were judged.
fn slots(operator: &OperatorResult, is_output: bool) -> impl Iterator<Item = &SlotResult> + Clone {
    let slots = operator.slots.iter();
    slots.filter(move |slot| slot.is_output() == is_output && slot.level != VerdictLevel::Skip)
}

fn summary(comparison: &Comparison, flow: &ValueFlow, n_ranked: usize) -> ComparisonSummary {
    let operators = &comparison.operators;
    let mut summary = ComparisonSummary::default();
    for operator in operators {
        summary.operators[operator.level as usize] += 1;
        for slot in &operator.slots {
            summary.slots[slot.level as usize] += 1;
        }
    }
    let levels = operators
        .iter()
        .flat_map(|operator| operator.slots.iter().map(|slot| slot.level));
    // `Skip` sorts after `Fail`, and would hide it.
    let worst = levels.filter(|level| *level != VerdictLevel::Skip).max();
    summary.level = worst.unwrap_or(VerdictLevel::Skip);
    let found = first::find_first(comparison, flow);
    summary.first_divergence = found.divergence;
    summary.first_failure = found.failure;
    summary.first_by_rank = found.by_rank;
    summary.non_finite_chain = non_finite::chain(operators, &found.order);
    summary.first_non_finite = summary.non_finite_chain.first().copied();
    summary.ranking = ranking(operators, n_ranked);
    summary.steps = steps::find(operators, &summary);
    summary
}

/// The class of an operator in the ranking.
fn rank_class(operator: &OperatorResult) -> u8 {
    let error = operator.error.unwrap_or_default();
    match operator.cause {
        Some(Cause::Own) => 0,
        Some(Cause::Inherited) => 2,
        // Of an operator without inputs: something before it is as bad.
        _ if error.has_inputs => 1,
        _ if error.outputs <= cause::AMPLIFICATION_MAX * error.inputs => 2,
        _ => 1,
    }
}

/// Operators by what they added, most first: before all those that are at fault themselves, and
/// last those that pass on what they got, whose own part is a guess.
fn ranking(operators: &[OperatorResult], n_ranked: usize) -> Vec<usize> {
    let added = |operator: &OperatorResult| operator.error.map_or(0.0, |error| error.added);
    let mut ranking: Vec<&OperatorResult> = operators
        .iter()
        .filter(|operator| slots(operator, true).any(SlotResult::is_apart) && added(operator) > 0.0)
        .collect();
    ranking.sort_by(|a, b| {
        let by_class = rank_class(a).cmp(&rank_class(b));
        by_class
            .then(added(b).total_cmp(&added(a)))
            .then(a.index.cmp(&b.index))
    });
    let ranking = ranking.into_iter().take(n_ranked);
    ranking.map(|operator| operator.index).collect()
}
