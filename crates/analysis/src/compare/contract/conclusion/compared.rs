//! Whether enough was compared for a verdict.

use super::super::state::{is_all_nan, slot_of};
use super::{list, open_skips, updates_shared};
use crate::compare::result::{
    Comparison, Contract, ContractValue, Evidence, MetricId, OutputSource, SlotResult, ValueState,
};
use crate::compare::verdict::{is_float_slot, value_of};

/// Where the outputs are not known, the share of the bytes of golden's outputs that has to be
/// compared: three in five.
const COMPARED_MIN: [u64; 2] = [3, 5];

/// The outputs that prevent a verdict, in words.
pub(super) fn uncompared(contract: &Contract, comparison: &Comparison) -> Option<String> {
    let is_open = |value: &&ContractValue| value.state == ValueState::NotCompared;
    if contract.known_by == [OutputSource::Unread; 2] {
        // A user who allows every gap has seen them.
        open_skips(comparison).next()?;
        // What no operator reads need not be a result, and some of it is left over in most graphs.
        let last = contract.outputs.last().filter(is_open);
        return last
            .map(|value| format!("the last output, `{}`, was not compared", value.name))
            .or_else(|| {
                too_little(contract, comparison).filter(|_| !updates_shared(contract, comparison))
            });
    }
    let open: Vec<String> = contract
        .outputs
        .iter()
        .filter(is_open)
        .map(|value| format!("`{}`", value.name))
        .collect();
    if !open.is_empty() {
        let noun = if open.len() == 1 { "output" } else { "outputs" };
        let verb = if open.len() == 1 { "was" } else { "were" };
        return Some(format!("the {noun} {} {verb} not compared", list(&open)));
    }
    let has_any = contract.outputs.iter().any(|value| {
        !matches!(
            value.state,
            ValueState::NotCompared | ValueState::NotJudged | ValueState::Extra
        )
    });
    (!has_any).then(|| "two runs need not agree on any output".to_owned())
}

/// That too few bytes of golden's outputs were compared, in words. All that a training step is for
/// are its outputs and the tensors that it updates.
pub(super) fn too_little(contract: &Contract, comparison: &Comparison) -> Option<String> {
    let mut outputs = contract.outputs.iter();
    let is_open = |value: &ContractValue| value.state == ValueState::NotCompared;
    if contract
        .outputs
        .iter()
        .any(|value| value.updated_by.is_some())
        && !outputs.any(is_open)
    {
        return None;
    }
    if ends_alike(contract, comparison) {
        return None;
    }
    let [n_bytes, n_compared] = contract.n_output_bytes.map(u128::from);
    let [part, whole] = COMPARED_MIN.map(u128::from);
    let is_little = n_compared * whole < n_bytes * part;
    is_little.then(|| {
        let percent = n_compared * 100 / n_bytes.max(1);
        format!("{percent} % of the bytes of golden's outputs were compared")
    })
}

/// Whether all values that no operator reads agree, the last one by its elements, which are not all
/// the same: however they were computed, nothing else is left of a run.
fn ends_alike(contract: &Contract, comparison: &Comparison) -> bool {
    let last = contract.outputs.last();
    let last = last.and_then(|value| slot_of(value, comparison));
    let is_telling = last.is_some_and(|slot| {
        slot.evidence == Evidence::Tensor
            && is_float_slot(slot)
            && value_of(slot, MetricId::GoldenStd) > Some(0.0)
    });
    let mut outputs = contract.outputs.iter();
    is_telling && outputs.all(|value| value.state == ValueState::Agree)
}

pub(super) fn is_nothing_but_nan(contract: &Contract, comparison: &Comparison) -> bool {
    let slots: Vec<&SlotResult> = contract
        .outputs
        .iter()
        .filter_map(|value| slot_of(value, comparison))
        .filter(|slot| slot.metrics.get(MetricId::Count) != Some(0.0))
        .collect();
    !slots.is_empty() && slots.into_iter().all(is_all_nan)
}
