//! The facts about one operator, from a comparison or from the survey of a dump.

use opscope_analysis::compare::result::{
    Cause, Comparison, Conclusion, MetricId, OperatorResult, VerdictLevel,
};
use opscope_analysis::compare::side::OperatorExecution;
use opscope_analysis::survey::{self, SpreadRole, SurveyedExecution};

/// The facts in an operator's row.
#[derive(Clone, Debug)]
pub struct OperatorFacts<'a> {
    /// Its number: its position in execution order.
    pub id: usize,
    /// Its type.
    pub op_type: &'a str,
    /// Its name.
    pub op_name: &'a str,
    /// The process.
    pub rank: Option<u32>,
    /// The execution of the model.
    pub step: Option<u64>,
    /// The operator's execution number within its step.
    pub call: usize,
    /// Its verdict level.
    pub level: VerdictLevel,
    /// Whether the operator is at fault.
    pub is_at_fault: bool,
    /// Why its outputs differ, for two dumps.
    pub cause: Option<Cause>,
    /// The comparison's row.
    pub compared: Option<&'a OperatorResult>,
    /// The survey's row.
    pub surveyed: Option<&'a SurveyedExecution>,
    /// Whether it has an overflow record.
    pub has_overflow: bool,
}

impl OperatorFacts<'_> {
    /// Output error, added error, and input error.
    pub fn errors(&self) -> [Option<f64>; 3] {
        let error = self.compared.and_then(|operator| operator.error);
        let inputs = error.filter(|error| error.has_inputs);
        [
            error.map(|error| error.outputs),
            error.map(|error| error.added),
            inputs.map(|error| error.inputs),
        ]
    }

    /// Numbers of NaN and infinite elements in its outputs.
    pub fn non_finite(&self) -> [Option<u64>; 2] {
        match (self.surveyed, self.compared) {
            (Some(found), _) => [found.n_nan, found.n_inf],
            (None, Some(operator)) => {
                let outputs = operator.slots.iter().filter(|slot| slot.is_output());
                let count = |metrics: &[MetricId]| {
                    let counts = outputs.clone().map(|slot| {
                        let counts = metrics.iter().map(|metric| slot.metrics.get(*metric));
                        // Counts are integers.
                        counts.sum::<Option<f64>>().map(|n| n as u64)
                    });
                    counts.sum()
                };
                [
                    count(&[MetricId::TargetNanCount]),
                    count(&[
                        MetricId::TargetPositiveInfCount,
                        MetricId::TargetNegativeInfCount,
                    ]),
                ]
            }
            (None, None) => [None, None],
        }
    }

    /// The largest magnitude of its outputs: of finite elements in a survey. In a comparison an
    /// infinity hides the others.
    pub fn max_abs(&self) -> Option<f64> {
        if let Some(found) = self.surveyed {
            return found.max_abs;
        }
        let slots = &self.compared?.slots;
        let outputs = slots.iter().filter(|slot| slot.is_output());
        let ends = outputs.flat_map(|slot| {
            let metrics = [MetricId::TargetMin, MetricId::TargetMax];
            metrics.map(|metric| slot.metrics.get(metric))
        });
        ends.flatten().map(f64::abs).reduce(f64::max)
    }

    /// The number in the table's bar and the trace: the output error, or the largest magnitude if
    /// there is no comparison.
    pub fn main_value(&self) -> Option<f64> {
        match self.surveyed {
            Some(_) => self.max_abs(),
            None => self.errors()[0],
        }
    }
}

/// Why an operator is faulty, if it is: it introduces a difference, or a differing weight or input
/// enters here. Inherited, gradual and unknown differences do not count.
fn fault_of(comparison: &Comparison, operator: &OperatorResult) -> Option<Cause> {
    // Differences that are inherited or unknown are not blamed on this operator.
    let headline = comparison.summary.headline();
    // Differences that do not reach the outputs are not faults.
    let conclusion = comparison.contract.conclusion;
    let accuses = !conclusion.is_good() && conclusion != Conclusion::Quantised;
    if comparison.contract.is_known() && !accuses {
        return None;
    }
    let named = headline.filter(|first| first.operator == operator.index);
    let mut partings = comparison.partings.iter();
    let parting = partings.find(|parting| parting.operator == operator.index);
    let own = operator.cause.filter(|cause| *cause == Cause::Own);
    named
        .map(|first| first.cause)
        .or(parting.map(|parting| parting.cause))
        .or(own.filter(|_| operator.level == VerdictLevel::Fail))
        .filter(|cause| matches!(cause, Cause::Own | Cause::Outside))
}

pub(super) fn compared_facts(
    comparison: &Comparison,
    id: usize,
    has_overflow: bool,
) -> Option<OperatorFacts<'_>> {
    let operator = comparison.operators.get(id)?;
    let name = operator.target.last().or(operator.golden.last())?;
    let fault = fault_of(comparison, operator);
    Some(OperatorFacts {
        id,
        op_type: &name.op_type,
        op_name: &name.op_name,
        rank: name.rank,
        step: name.step,
        call: name.repeat,
        level: operator.level,
        is_at_fault: fault.is_some(),
        cause: fault.or(operator.cause),
        compared: Some(operator),
        surveyed: None,
        has_overflow,
    })
}

pub(super) fn surveyed_facts<'a>(
    run: &'a OperatorExecution,
    id: usize,
    found: &'a SurveyedExecution,
) -> Option<OperatorFacts<'a>> {
    let is_maker = matches!(
        found.role,
        Some(SpreadRole::MakesNan | SpreadRole::MakesInf)
    );
    // Unknown numbers do not count as a pass.
    let level = match (found.role, found.headroom) {
        (Some(SpreadRole::MayBeMask), _) => VerdictLevel::Warn,
        (Some(_), _) => VerdictLevel::Fail,
        (None, Some(headroom)) if headroom < survey::NEAR_EDGE => VerdictLevel::Warn,
        (None, _) if found.n_nan.is_none() => VerdictLevel::Skip,
        (None, _) => VerdictLevel::Pass,
    };
    Some(OperatorFacts {
        id,
        op_type: &run.op_type,
        op_name: &run.op_name,
        rank: run.place.rank,
        step: run.place.step,
        call: run.repeat,
        level,
        is_at_fault: is_maker,
        cause: None,
        compared: None,
        surveyed: Some(found),
        has_overflow: false,
    })
}
