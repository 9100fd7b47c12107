//! How much of both sides was compared.

use opscope_store::record::SlotSide;

use super::matching::{MatchedDumps, SlotRef};
use super::result::{Comparison, Evidence, Party};
use super::selection::Selection;

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
    let [target, golden] = [Party::Target, Party::Golden].map(|party| {
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
        let runs = runs.iter();
        let runs = runs.filter_map(|&run| party.pick(sides.target, sides.golden).runs.get(run));
        runs.flat_map(|run| &run.slots)
            .filter(|slot| !selection.is_outputs_only || slot.side == SlotSide::Output)
            .count()
    });
    comparison.summary.target_coverage = [target, compared[0].len()];
    comparison.summary.golden_coverage = [golden, compared[1].len()];
}
