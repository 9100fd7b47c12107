//! How much of both sides was compared.

use opscope_store::record::SlotSide;

use super::matching::{MatchedDumps, SlotRef};
use super::result::{Comparison, Evidence, Party};
use super::selection::Selection;
use super::side::ComparedDump;

/// Counts the slots of both sides that were chosen, and those of them that were compared.
pub(super) fn count(comparison: &mut Comparison, sides: MatchedDumps<'_>, selection: &Selection) {
    let pairs = &sides.matching.pairs;
    let mut compared: [Vec<SlotRef>; 2] = Default::default();
    // `measure` returns a result for every pair, skipped or not, so that both lists stay aligned.
    for (pair, operator) in pairs.iter().zip(&comparison.operators) {
        for (slots, result) in pair.slots.iter().zip(&operator.slots) {
            if result.evidence != Evidence::None {
                compared[0].push(slots.target);
                compared[1].push(slots.golden);
            }
        }
    }
    for slots in &mut compared {
        slots.sort_unstable();
        slots.dedup();
    }
    let of_side = |party: Party, side: &ComparedDump| {
        let of_pairs = pairs
            .iter()
            .flat_map(|pair| party.pick(&pair.target, &pair.golden));
        let unmatched = sides.matching.unmatched.iter();
        let unmatched = unmatched
            .filter(|one| one.party == party)
            .map(|one| &one.run);
        let mut runs: Vec<usize> = of_pairs.chain(unmatched).copied().collect();
        runs.sort_unstable();
        runs.dedup();
        let is_wanted = |side: SlotSide| !selection.is_outputs_only || side == SlotSide::Output;
        let runs = runs.iter().filter_map(|&run| side.runs.get(run));
        runs.flat_map(|run| &run.slots)
            .filter(|slot| is_wanted(slot.side))
            .count()
    };
    comparison.summary.target_coverage = [of_side(Party::Target, sides.target), compared[0].len()];
    comparison.summary.golden_coverage = [of_side(Party::Golden, sides.golden), compared[1].len()];
}
