//! How many bytes of the outputs of golden's operators were compared.

use std::collections::{BTreeMap, HashSet};

use opscope_store::record::SlotSide;

use super::state::is_all_nan;
use crate::compare::matching::{
    MatchedDumps, SlotRef, UnmatchedReason, has_elements_of_input, is_view,
};
use crate::compare::party::Party;
use crate::compare::result::{Comparison, Evidence, OperatorName};
use crate::compare::side::{ExecutionSlot, RunPlace};

/// Bytes of the outputs of golden's operators, each value once, and how many of them were compared.
/// Values with only NaN count as not compared.
pub(super) fn output_bytes(comparison: &Comparison, sides: MatchedDumps<'_>) -> [u64; 2] {
    // Sorted: a set of all outputs takes several times the memory.
    let mut compared: Vec<SlotRef> = Vec::new();
    let mut runs: Vec<usize> = Vec::new();
    for (pair, operator) in sides.matching.pairs.iter().zip(&comparison.operators) {
        runs.extend(&pair.golden);
        for (slots, result) in pair.slots.iter().zip(&operator.slots) {
            let is_compared = result.evidence != Evidence::None && !is_all_nan(result);
            let SlotRef { run, slot } = slots.golden;
            let side = sides.golden.runs[run].slots[slot].side;
            if is_compared && side == SlotSide::Output {
                compared.push(slots.golden);
            }
        }
    }
    let unmatched = sides.matching.unmatched.iter().filter(|unmatched| {
        unmatched.party == Party::Golden && unmatched.reason != UnmatchedReason::LeftOut
    });
    runs.extend(unmatched.map(|unmatched| unmatched.run));
    runs.sort_unstable();
    runs.dedup();
    compared.sort_unstable();
    let mut bytes = [0; 2];
    for run in runs {
        let execution = &sides.golden.runs[run];
        // A view shows a value that its operator has shown.
        if is_view(execution) {
            continue;
        }
        for (slot, tensor) in execution.slots.iter().enumerate() {
            if tensor.side == SlotSide::Output {
                let n_bytes = n_bytes(tensor);
                bytes[0] = u64::saturating_add(bytes[0], n_bytes);
                if compared.binary_search(&SlotRef { run, slot }).is_ok() {
                    bytes[1] = u64::saturating_add(bytes[1], n_bytes);
                }
            }
        }
    }
    bytes
}

/// The last operators of their place on either side without a match: without a graph they may be
/// outputs of the model. Views and copies show the output of the operator before them. Dumps
/// without inputs are lists of values, without a last operator.
pub(super) fn last_alone(sides: MatchedDumps<'_>) -> Vec<OperatorName> {
    let mut alone = Vec::new();
    for party in [Party::Golden, Party::Target] {
        let dump = party.pick(sides.target, sides.golden);
        let mut last: BTreeMap<&RunPlace, usize> = BTreeMap::new();
        let mut has_inputs = false;
        for (index, run) in dump.runs.iter().enumerate() {
            let mut slots = run.slots.iter();
            if slots.any(|slot| slot.side == SlotSide::Output) && !has_elements_of_input(run) {
                last.insert(&run.place, index);
            }
            let mut slots = run.slots.iter();
            has_inputs |= slots.any(|slot| slot.side == SlotSide::Input);
        }
        let last: HashSet<usize> = last.into_values().filter(|_| has_inputs).collect();
        let unmatched = sides.matching.unmatched.iter().filter(|unmatched| {
            let is_expected = matches!(
                unmatched.reason,
                UnmatchedReason::LeftOut
                    | UnmatchedReason::Collective
                    | UnmatchedReason::NoSuchPlace
                    | UnmatchedReason::InsideFusion(_)
            );
            unmatched.party == party && !is_expected && last.contains(&unmatched.run)
        });
        alone.extend(
            unmatched.map(|unmatched| OperatorName::for_execution(&dump.runs[unmatched.run])),
        );
    }
    alone
}

/// The bytes of a tensor; a table of statistics only has its shape.
fn n_bytes(tensor: &ExecutionSlot) -> u64 {
    let by_shape = || {
        let dtype = tensor.dtype?;
        let bits = tensor.n_elements()?.checked_mul(u64::from(dtype.bits()?))?;
        Some(bits.div_ceil(8))
    };
    match tensor.n_bytes {
        0 => by_shape().unwrap_or(1),
        n_bytes => n_bytes,
    }
}
