//! Several steps of a run: finds the first that differs, and the best one to dump next.
//!
//! A long training run is dumped in part: some steps, or statistics only. Two such dumps bracket
//! the step at which the runs diverge, and a further pair narrows it down.

mod origin;
mod rounds;

use std::collections::BTreeMap;

use super::result::{
    Cause, Comparison, ComparisonSummary, Evidence, FirstStep, NextDump, OperatorResult, RunOrigin,
    StepFault, StepFindings, StepResult, VerdictLevel,
};

pub(super) use origin::{find_origin, in_ranges};

/// Looks at the steps of a comparison of which everything else is known; none if there are no
/// several.
pub(super) fn find(
    operators: &[OperatorResult],
    summary: &ComparisonSummary,
) -> Option<StepFindings> {
    // One step is what any other comparison has, and its report says all of it.
    let compared = compared_steps(operators);
    if compared.len() < 2 {
        return None;
    }
    // The verdict names the first failure, and a step must not contradict it: warnings before it are
    // rounding as often as not.
    let first = compared
        .iter()
        .position(|step| summary.level.is_apart() && step.level == summary.level);
    let first = first.map(|position| {
        let before = position.checked_sub(1).map(|i| compared[i].step);
        let StepResult {
            step, has_elements, ..
        } = compared[position];
        let fault = fault_of(step, operators, summary);
        FirstStep {
            step,
            before,
            fault,
            next: next_dump(before, step, has_elements, fault),
        }
    });
    Some(StepFindings { compared, first })
}

fn compared_steps(operators: &[OperatorResult]) -> Vec<StepResult> {
    let mut steps: BTreeMap<u64, StepResult> = BTreeMap::new();
    let mut farthest: BTreeMap<u64, f64> = BTreeMap::new();
    for operator in operators {
        let Some(step) = operator.place().1 else {
            continue;
        };
        let slots = operator.slots.iter();
        let judged: Vec<_> = slots
            .filter(|slot| slot.level != VerdictLevel::Skip)
            .collect();
        // A step of which nothing was compared neither agrees nor differs.
        let Some(level) = judged.iter().map(|slot| slot.level).max() else {
            continue;
        };
        let found = steps.entry(step).or_insert_with(|| StepResult {
            step,
            ..StepResult::default()
        });
        found.level = found.level.max(level);
        found.has_elements |= judged.iter().any(|slot| slot.evidence == Evidence::Tensor);
        let error = operator.error.map_or(0.0, |error| error.outputs);
        // A NaN distance comes from NaN elements, which is the worst case.
        let error = if error.is_nan() { f64::INFINITY } else { error };
        let known = farthest.entry(step).or_insert(0.0);
        if level > VerdictLevel::Pass && (found.worst.is_none() || error > *known) {
            found.worst = Some(operator.index);
            *known = error;
        }
    }
    steps.into_values().collect()
}

/// Says where the fault of the first step that differs is, by the cause that the verdict names.
fn fault_of(step: u64, operators: &[OperatorResult], summary: &ComparisonSummary) -> StepFault {
    let Some(headline) = summary.headline() else {
        return StepFault::Unknown;
    };
    let of_headline = operators.get(headline.operator);
    match of_headline.and_then(|operator| operator.place().1) {
        // Constants of a graph belong to no step, and every step reads them.
        None => StepFault::Before,
        Some(of_headline) if of_headline == step => match headline.cause {
            Cause::Own => StepFault::Inside,
            Cause::Outside => StepFault::Before,
            Cause::Inherited | Cause::Gradual | Cause::Unknown => StepFault::Unknown,
        },
        Some(_) => StepFault::Unknown,
    }
}

/// The best next dump if `step` is the first that differs, after `before`.
fn next_dump(
    before: Option<u64>,
    step: u64,
    has_elements: bool,
    fault: StepFault,
) -> Option<NextDump> {
    let begin = before.map_or(0, |before| before + 1);
    // An operator at fault that reads what it should shows that nothing before it went wrong.
    if fault != StepFault::Inside && begin < step {
        return Some(rounds::narrowing(begin, step));
    }
    if has_elements {
        return None;
    }
    // The step before is there to compare with: what left it is what came into this one.
    let before = before.filter(|_| fault != StepFault::Inside);
    Some(NextDump {
        steps: before.into_iter().chain([step]).collect(),
        needs_elements: true,
        n_rounds_after: 0,
    })
}

impl StepFindings {
    /// The numbers of the compared steps.
    pub fn numbers(&self) -> Vec<u64> {
        self.compared.iter().map(|step| step.step).collect()
    }
}

impl Comparison {
    /// How the dumps of both sides were made, if known: the target's and the golden side's.
    pub fn origins(&self) -> [Option<&RunOrigin>; 2] {
        [&self.config.target_run, &self.config.golden_run].map(Option::as_ref)
    }
}

#[cfg(test)]
mod tests;
