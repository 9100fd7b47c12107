//! Comparing a part of two dumps.

use std::ops::RangeInclusive;

use opscope_store::record::SlotSide;

use super::matching::Matching;
use super::side::{ComparedDump, OperatorExecution, without_dots};
use super::verdict::is_match;

/// Which part of both sides is compared. The default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Steps; what belongs to no step is always part of it. Empty for all.
    pub steps: Vec<RangeInclusive<u64>>,
    /// Ranks; what belongs to no rank is always part of it. Empty for all.
    pub ranks: Vec<RangeInclusive<u64>>,
    /// Names of operators, with `*` and `?`. Empty for all.
    pub names: Vec<String>,
    /// Types of operators, with `*` and `?`. Empty for all.
    pub op_types: Vec<String>,
    /// Whether inputs are left out.
    pub is_outputs_only: bool,
}

impl Selection {
    /// Leaves out executions of other steps and ranks.
    pub(super) fn narrow_side(&self, side: &mut ComparedDump) {
        side.retain_runs(|_, run| self.has_place(run.place.rank_step()));
    }

    /// Whether a rank and a step are part of it.
    pub(super) fn has_place(&self, (rank, step): (Option<u32>, Option<u64>)) -> bool {
        let numbers = [(&self.steps, step), (&self.ranks, rank.map(u64::from))];
        numbers.into_iter().all(|(ranges, number)| {
            // Constants of a graph have no step, and belong to each.
            let Some(number) = number else { return true };
            ranges.is_empty() || ranges.iter().any(|range| range.contains(&number))
        })
    }

    /// Removes operators without a selected name and type on either side, and inputs unless they
    /// are selected.
    pub(super) fn narrow(
        &self,
        matching: &mut Matching,
        target: &ComparedDump,
        golden: &ComparedDump,
    ) {
        let is_wanted = |side: &ComparedDump, run: &usize| {
            side.runs.get(*run).is_some_and(|run| self.is_wanted(run))
        };
        matching.pairs.retain(|pair| {
            pair.target.iter().any(|run| is_wanted(target, run))
                || pair.golden.iter().any(|run| is_wanted(golden, run))
        });
        matching.unmatched.retain(|unmatched| {
            let side = unmatched.party.pick(target, golden);
            is_wanted(side, &unmatched.run)
        });
        if !self.is_outputs_only {
            return;
        }
        for pair in &mut matching.pairs {
            pair.missing.retain(|slot| slot.side == SlotSide::Output);
            pair.slots.retain(|slot| {
                let run = target.runs.get(slot.target.run);
                let slot = run.and_then(|run| run.slots.get(slot.target.slot));
                slot.is_some_and(|slot| slot.side == SlotSide::Output)
            });
        }
    }

    fn is_wanted(&self, run: &OperatorExecution) -> bool {
        // Types have no dots here, whichever form the dump has.
        let op_types: Vec<String> = self
            .op_types
            .iter()
            .map(|name| without_dots(name))
            .collect();
        let texts = [(&self.names, &run.op_name), (&op_types, &run.op_type)];
        // No pattern means all.
        texts.into_iter().all(|(patterns, text)| {
            patterns.is_empty() || patterns.iter().any(|pattern| is_match(pattern, text))
        })
    }
}
