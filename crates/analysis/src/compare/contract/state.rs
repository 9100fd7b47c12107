//! The state of one input, output or weight.

use opscope_tensor::DType;

use crate::compare::result::{
    Comparison, Evidence, MetricId, OperatorName, RuleName, SlotAgreement, SlotResult,
    TensorSummary, VerdictLevel,
};
use crate::compare::result::{
    Contract, ContractValue, OutputSource, ValuePairing, ValuePresence, ValueState,
};
use crate::compare::verdict::{Thresholds, is_float_name, judge_alone};

/// Kinds of dtypes that callers distinguish.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DtypeKind {
    Float,
    Complex,
    Whole,
    Text,
}

/// The metrics of a value.
pub(super) fn slot_of<'a>(
    value: &'a ContractValue,
    comparison: &'a Comparison,
) -> Option<&'a SlotResult> {
    let own = value.result.as_deref();
    own.or_else(|| {
        let [operator, slot] = value.pair?;
        comparison.operators.get(operator)?.slots.get(slot)
    })
}

/// The metrics of a value, with its level and the rules behind it.
///
/// Agreement with other values of the graph is not an excuse: a caller receives this value.
fn judged(
    value: &ContractValue,
    comparison: &Comparison,
    thresholds: &Thresholds,
) -> Option<SlotResult> {
    let slot = slot_of(value, comparison)?;
    let mut rules = slot.rules.iter();
    let is_excused =
        slot.agreement.is_some() || rules.any(|rule| rule.metric == RuleName::Agreement);
    // No run makes the value of rounding again.
    let is_rounding = slot.agreement == Some(SlotAgreement::Rounding);
    // The verdict on the same pair already considered cancellation in sums, and replicas.
    if value.result.is_none() && (is_rounding || !is_excused) {
        return Some(slot.clone());
    }
    let name = value.operators.iter().flatten().next();
    let name = name.cloned().unwrap_or_default();
    let OperatorName {
        op_type, op_name, ..
    } = &name;
    let mut slot = slot.clone();
    slot.change_rare(|rare| rare.agreement = None);
    judge_alone(&mut slot, (op_type, op_name), thresholds);
    Some(slot)
}

/// Sets the state of an output, with the limits that it exceeds.
pub(super) fn judge_output(
    value: &mut ContractValue,
    contract: &Contract,
    comparison: &Comparison,
    thresholds: &Thresholds,
) {
    let slot = judged(value, comparison, thresholds);
    value.state = output_state(value, slot.as_ref(), contract);
    value.rules = slot.map(|slot| slot.rules.to_vec()).unwrap_or_default();
}

/// The same for an input or a weight.
pub(super) fn judge_other(
    value: &mut ContractValue,
    comparison: &Comparison,
    thresholds: &Thresholds,
) {
    let slot = judged(value, comparison, thresholds);
    let state = slot.as_ref().map(|slot| state_of(slot, false));
    value.state = state.unwrap_or_default();
    value.rules = slot.map(|slot| slot.rules.to_vec()).unwrap_or_default();
}

fn output_state(
    value: &ContractValue,
    slot: Option<&SlotResult>,
    contract: &Contract,
) -> ValueState {
    match value.presence {
        ValuePresence::Lost => return ValueState::Lost,
        ValuePresence::Extra => return ValueState::Extra,
        ValuePresence::PassedThrough => return ValueState::Agree,
        ValuePresence::NotInTarget | ValuePresence::NotInGolden => return ValueState::NotCompared,
        ValuePresence::Both => {}
    }
    let Some(slot) = slot else {
        return ValueState::NotCompared;
    };
    let is_declared =
        contract.known_by == [OutputSource::Graph; 2] && value.by != ValuePairing::Operator;
    let state = state_of(slot, is_declared && !value.is_by_operands);
    let is_kind_kept = contract.is_quantised || !has_other_kind(slot);
    match state {
        ValueState::Agree | ValueState::Warn if is_declared && !is_kind_kept => {
            ValueState::OtherDtype
        }
        state if state.is_bad() && value.exchanged_with.is_some() => ValueState::Exchanged,
        state => state,
    }
}

/// The state of two tensors.
pub(super) fn state_of(slot: &SlotResult, is_exact: bool) -> ValueState {
    if slot.evidence == Evidence::Shape {
        return ValueState::OtherShape;
    }
    if !slot.evidence.is_measured() {
        return ValueState::NotCompared;
    }
    if is_exact && has_other_shape(slot) {
        return ValueState::OtherShape;
    }
    let is_not_judged = (slot.rules.iter()).any(|rule| rule.metric == RuleName::NotJudged);
    match slot.level {
        VerdictLevel::Pass => ValueState::Agree,
        VerdictLevel::Warn => ValueState::Warn,
        VerdictLevel::Fail => ValueState::Differ,
        VerdictLevel::Skip if is_not_judged => ValueState::NotJudged,
        VerdictLevel::Skip => ValueState::NotCompared,
    }
}

/// Whether the shapes differ, axes of 1 included. Permuted layouts are inconclusive.
fn has_other_shape(slot: &SlotResult) -> bool {
    let is_plain = slot.layout.is_none() && slot.target.layout == slot.golden.layout;
    let [target, golden] = [&slot.target, &slot.golden].map(|side| &side.shape);
    // A table without shapes leaves them empty, as those of scalars are.
    let may_be_unknown =
        |shape: &[u64], other: &[u64]| shape.is_empty() && other.iter().product::<u64>() != 1;
    is_plain
        && target != golden
        && !may_be_unknown(target, golden)
        && !may_be_unknown(golden, target)
}

fn has_other_kind(slot: &SlotResult) -> bool {
    let kinds = [&slot.target, &slot.golden].map(|side| dtype_kind(side));
    matches!(kinds, [Some(target), Some(golden)] if target != golden)
}

fn dtype_kind(side: &TensorSummary) -> Option<DtypeKind> {
    let dtype: DType = side.dtype.parse().ok()?;
    Some(match dtype {
        DType::String => DtypeKind::Text,
        _ if dtype.parts().1 > 1 => DtypeKind::Complex,
        _ if is_float_name(&side.dtype) => DtypeKind::Float,
        _ => DtypeKind::Whole,
    })
}

/// Whether golden's tensor contains only NaN.
pub(super) fn is_all_nan(slot: &SlotResult) -> bool {
    let metrics = &slot.metrics;
    let n = metrics
        .get(MetricId::Count)
        .or(metrics.get(MetricId::GoldenCount));
    n.is_some_and(|n| n > 0.0) && metrics.get(MetricId::GoldenNanCount) == n
}
