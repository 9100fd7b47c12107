//! Results that each rank computed from its part of the data, and that say nothing about the whole.
//!
//! The number of samples in a rank's batch is the same on all ranks, but it is not that of the
//! whole batch. If no note says how ranks share a tensor, equal values make ranks replicas only if
//! the inputs of the computation are equal as well.

use std::collections::HashSet;

use thin_vec::ThinVec;

use super::flow::{ResultSlot, ValueFlow};
use super::matching::MatchedDumps;
use super::metric::MetricId;
use super::result::{
    Comparison, Evidence, Metrics, OperatorName, Skip, SkipReason, SkipSide, SlotKey, SlotResult,
    VerdictLevel,
};

/// Skips results of ranks that are alike without a note and differ from the other side, although
/// inputs of their operators differ among ranks, and what reads them.
pub(super) fn set_aside(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    // Most comparisons have nothing in parts.
    let mut slots = comparison.operators.iter().flat_map(|of| &of.slots);
    if !slots.any(|slot| slot.ranks.is_some()) {
        return;
    }
    let flow = ValueFlow::trace(comparison);
    let skips = comparison.skips.iter();
    let in_parts: HashSet<(&OperatorName, SlotKey)> = skips
        .filter(|skip| skip.reason == SkipReason::InParts)
        .filter_map(|skip| Some((skip.operator.as_ref()?, skip.slot?)))
        .collect();
    let mut local: HashSet<(usize, usize)> = HashSet::new();
    for (i, operator) in comparison.operators.iter().enumerate() {
        // The purpose of a collective is a result that is the same on all ranks.
        if is_collective(sides, i) {
            continue;
        }
        let is_local =
            |at: Option<ResultSlot>| at.is_some_and(|at| local.contains(&(at.operator, at.slot)));
        let mut found: Vec<(usize, usize)> = Vec::new();
        let mut has_own_inputs = false;
        for (k, slot) in operator.slots.iter().enumerate() {
            if slot.is_output() {
                continue;
            }
            let source = flow.source(i, k);
            let is_unsettled = is_unsettled(slot);
            let comes_from_local = is_local(source.target) || is_local(source.golden);
            if is_unsettled && comes_from_local {
                found.push((i, k));
            }
            let mut names = operator.target.iter().chain(&operator.golden);
            has_own_inputs |= comes_from_local
                || slot.ranks.as_ref().is_some_and(|ranks| ranks.is_varying)
                || names.any(|name| in_parts.contains(&(name, slot.slot)));
        }
        if has_own_inputs {
            let outputs = operator.slots.iter().enumerate();
            let outputs = outputs.filter(|(_, slot)| slot.is_output() && is_unsettled(slot));
            found.extend(outputs.map(|(k, _)| (i, k)));
        }
        local.extend(found);
    }
    let mut local: Vec<(usize, usize)> = local.into_iter().collect();
    local.sort_unstable();
    for (i, k) in local {
        let operator = &mut comparison.operators[i];
        let name = operator.target.last().or(operator.golden.last()).cloned();
        let slot = &mut operator.slots[k];
        comparison.skips.push(Skip {
            side: SkipSide::Both,
            operator: name,
            slot: Some(slot.slot),
            reason: SkipReason::InParts,
            message: "ranks have the same, each computed from a part of its own, and no note says \
                      that it is the whole"
                .to_owned(),
            ..Skip::default()
        });
        *slot = SlotResult {
            evidence: Evidence::None,
            level: VerdictLevel::Skip,
            metrics: Metrics::default(),
            histogram: ThinVec::new(),
            ..std::mem::take(slot)
        };
        slot.change_rare(|rare| (rare.ranks, rare.yardstick) = (None, None));
    }
}

/// Whether ranks hold the same without a note, and the other side something else.
fn is_unsettled(slot: &SlotResult) -> bool {
    let is_alike = slot
        .ranks
        .as_ref()
        .is_some_and(|ranks| ranks.has_unnoted_replicas);
    let is_identical = slot.metrics.get(MetricId::Count) == slot.metrics.get(MetricId::EqualCount);
    is_alike && slot.evidence.is_measured() && !is_identical
}

fn is_collective(sides: MatchedDumps<'_>, operator: usize) -> bool {
    let Some(pair) = sides.matching.pairs.get(operator) else {
        return false;
    };
    let runs = [(sides.target, &pair.target), (sides.golden, &pair.golden)];
    let mut runs = runs
        .into_iter()
        .flat_map(|(side, runs)| runs.iter().map(|&run| &side.runs[run]));
    runs.any(|run| run.collective.is_some())
}
