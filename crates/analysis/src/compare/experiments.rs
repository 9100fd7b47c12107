//! Experiments: how the outputs change if a part of the target is replaced.
//!
//! Nothing runs here. An engine implements [`Experimenter`]; it is called once outputs are known to
//! differ, and its proof replaces conclusions from values alone.

use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Tensor};

use super::result::{
    Comparison, Conclusion, DivergencePoint, Evidence, ExperimentOutcome, Experiments, HealedCause,
    MetricId, OperatorResult, SlotKey, ValueState, VerdictLevel,
};
use super::verdict::{Thresholds, judge_alone, value_of};
use super::{certainty, replay, weight_effect};

/// Runs the target with parts of it replaced.
pub trait Experimenter {
    /// Looks for what has to be replaced for the outputs to agree. None if nothing can be tried.
    fn examine(&self, comparison: &Comparison, thresholds: &Thresholds) -> Option<Experiments>;
}

/// Has experiments made where an output differs.
pub(super) fn make(
    comparison: &mut Comparison,
    experimenter: Option<&dyn Experimenter>,
    thresholds: &Thresholds,
) {
    let contract = &comparison.contract;
    // A weight that is infinite and that nothing shows leaves nothing to be healed.
    let mut states = contract.outputs.iter().map(|value| value.state);
    let is_off = states.any(|state| state.is_bad() || state == ValueState::Warn);
    let is_wrong = contract.conclusion == Conclusion::Fail && is_off;
    if let Some(experimenter) = experimenter.filter(|_| is_wrong) {
        let made = experimenter.examine(comparison, thresholds);
        comparison.experiments = made.map(Box::new);
    }
    apply(comparison);
}

/// Adds the proof to the summary, also after rejudging.
pub(super) fn apply(comparison: &mut Comparison) {
    name_proven(comparison);
    weight_effect::join_operators(comparison);
    certainty::note(comparison);
}

fn name_proven(comparison: &mut Comparison) {
    let Some(experiments) = comparison.experiments.as_deref() else {
        return;
    };
    let is_proven = experiments.outcome == ExperimentOutcome::Proven;
    let is_wrong = comparison.contract.conclusion == Conclusion::Fail;
    let Some(cause) = experiments.causes.first().filter(|_| is_proven && is_wrong) else {
        return;
    };
    let mut outputs = comparison.contract.outputs.iter();
    if cause.output.is_some() && outputs.any(|value| value.state == ValueState::Exchanged) {
        // The operators are right: the model returns their values in other places.
        comparison.summary.first_divergence = None;
        comparison.summary.first_failure = None;
        return;
    }
    let Some(operator) = cause
        .index
        .and_then(|index| comparison.operators.get(index))
    else {
        return;
    };
    let point = DivergencePoint {
        operator: operator.index,
        slot: slot_of(cause, operator),
        cause: cause.cause,
        name: (!operator.target.contains(&cause.operator)).then(|| cause.operator.clone()),
        ..DivergencePoint::default()
    };
    // What differs before it does not reach the outputs, or they would not agree.
    comparison.summary.first_divergence = Some(point.clone());
    comparison.summary.first_failure = Some(point);
}

/// The slot by which a cause is shown.
fn slot_of(cause: &HealedCause, operator: &OperatorResult) -> SlotKey {
    let inputs = cause.weights.iter().map(|(input, ..)| *input);
    let inputs = inputs.chain(cause.wiring.iter().map(|(input, ..)| *input));
    let input = inputs.filter(|_| cause.change.is_none()).find_map(|input| {
        let key = SlotKey {
            side: SlotSide::Input,
            index: u32::try_from(input).ok()?,
        };
        operator
            .slots
            .iter()
            .any(|slot| slot.slot == key)
            .then_some(key)
    });
    let mut outputs = operator.outputs();
    let first_output = outputs.clone().next();
    let output = outputs
        .find(|slot| slot.level == VerdictLevel::Fail)
        .or(first_output);
    let first = SlotKey {
        side: SlotSide::Output,
        index: 0,
    };
    // Another operator, or one with other attributes, is shown by what it makes.
    let is_of_inputs = cause.attributes.is_empty() && cause.golden_type.is_none();
    let input = input.filter(|_| is_of_inputs);
    input
        .or_else(|| output.map(|slot| slot.slot))
        .unwrap_or(first)
}

/// How far outputs of two runs are apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputDistance {
    /// The worst level of an output; a failure where shapes differ or one is missing.
    pub level: VerdictLevel,
    /// The largest relative distance of an output; infinite where shapes, NaN or texts differ.
    pub distance: f64,
}

/// Judges outputs separately, like the contract: each by the limits of its dtype, or of the one of
/// `judged_as` at its place.
pub fn judge_outputs(
    outputs: [&[Tensor]; 2],
    judged_as: &[Option<DType>],
    thresholds: &Thresholds,
) -> OutputDistance {
    let [target, golden] = outputs;
    let mut found = OutputDistance {
        level: VerdictLevel::Pass,
        distance: 0.0,
    };
    if target.len() != golden.len() {
        found.level = VerdictLevel::Fail;
    }
    for (nth, (own, other)) in target.iter().zip(golden).enumerate() {
        // Nothing of the operators inside excuses an output.
        let mut slot = replay::compare(SlotKey::default(), own, other);
        let dtype = judged_as.get(nth).copied().flatten();
        slot.change_rare(|rare| rare.judged_as = dtype.map(|dtype| dtype.name().into()));
        judge_alone(&mut slot, ("", ""), thresholds);
        // Callers see axes of 1 as well.
        let is_same_shape = own.shape() == other.shape() && slot.evidence != Evidence::Shape;
        // Text that differs has no distance either.
        let n_bad = [MetricId::NonFiniteMismatches, MetricId::DigestMismatch]
            .map(|metric| value_of(&slot, metric).unwrap_or(0.0));
        let distance = if is_same_shape && n_bad == [0.0; 2] {
            slot.metrics.get(MetricId::RelL2).unwrap_or(0.0)
        } else {
            f64::INFINITY
        };
        let level = if is_same_shape {
            slot.level
        } else {
            VerdictLevel::Fail
        };
        found.level = found.level.max(level);
        found.distance = found.distance.max(distance);
    }
    found
}

/// The dtype by whose limits the comparison judged an output, where it is not the output's own.
pub fn judged_as(comparison: &Comparison, output: &str) -> Option<DType> {
    let mut outputs = comparison.contract.outputs.iter();
    let value = outputs.find(|value| value.name == output)?;
    let own = value.result.as_deref();
    let slot = own.or_else(|| {
        let [operator, slot] = value.pair?;
        comparison.operators.get(operator)?.slots.get(slot)
    })?;
    slot.judged_as.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use opscope_tensor::{Shape, text};

    use super::*;

    #[test]
    fn text_is_the_same_or_not() {
        let of = |texts: &[&str]| {
            let shape = Shape::new([texts.len()]).unwrap();
            [Tensor::from_vec(DType::String, shape, text::encode(texts)).unwrap()]
        };
        let level = |own: &[&str], other: &[&str]| {
            judge_outputs([&of(own), &of(other)], &[], &Thresholds::default()).level
        };
        assert_eq!(level(&["a", "b"], &["a", "b"]), VerdictLevel::Pass);
        assert_eq!(level(&["a", "b"], &["a", "c"]), VerdictLevel::Fail);
        assert_eq!(level(&["a"], &["a", "b"]), VerdictLevel::Fail);
    }
}
