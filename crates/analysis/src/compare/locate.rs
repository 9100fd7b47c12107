//! Measuring where the slots differ at which the sides part, and what the difference is.
//!
//! Only these, since it takes another pass over the elements.

use opscope_tensor::difference;

use super::differing::DifferingElements;
use super::evidence::Evidence;
use super::explained::explain_slots;
use super::matching::MatchedDumps;
use super::measure::load;
use super::result::{Comparison, SlotRanks, SlotResult};
use super::verdict::{Thresholds, element_tolerance};
use super::whole::differing_parts;

/// Looks for the differing elements of the operators with the first warning and the first failure,
/// and for what their differences and those of weights are. Verdicts, summary and contract have to
/// be there.
pub(super) fn locate(
    comparison: &mut Comparison,
    sides: MatchedDumps<'_>,
    thresholds: &Thresholds,
) {
    let summary = &comparison.summary;
    let firsts = [&summary.first_divergence, &summary.first_failure];
    let mut indices: Vec<usize> = firsts.into_iter().flatten().map(|at| at.operator).collect();
    indices.dedup();
    for index in indices {
        let n_slots = comparison.operators[index].slots.len();
        for k in 0..n_slots {
            let operator = &comparison.operators[index];
            let slot = &operator.slots[k];
            if is_located(slot) {
                let tolerance = element_tolerance(operator, slot, thresholds);
                let slot = &mut comparison.operators[index].slots[k];
                slot.change_rare(|rare| {
                    let found = match rare.ranks.as_deref_mut() {
                        Some(ranks) => in_parts(sides, (index, k), tolerance, ranks),
                        None => differing(sides, (index, k), tolerance),
                    };
                    rare.differing = found.map(Box::new);
                });
            }
        }
    }
    explain_slots(comparison, sides, thresholds);
}

/// Whether it differs, and has elements.
fn is_located(slot: &SlotResult) -> bool {
    slot.evidence == Evidence::Tensor && slot.is_apart()
}

/// The same for assembled tensors, with the parts that contain the elements.
fn in_parts(
    sides: MatchedDumps<'_>,
    (operator, slot): (usize, usize),
    tolerance: f64,
    ranks: &mut SlotRanks,
) -> Option<DifferingElements> {
    let pair = sides.matching.pairs.get(operator)?.slots.get(slot)?;
    let slots = (
        sides.target.slot(pair.target),
        sides.golden.slot(pair.golden),
    );
    differing_parts(slots, pair.layout, tolerance, ranks)
}

fn differing(
    sides: MatchedDumps<'_>,
    (operator, slot): (usize, usize),
    tolerance: f64,
) -> Option<DifferingElements> {
    // Operators and slots of the result are in the order of the pairs that they were measured from.
    let pair = sides.matching.pairs.get(operator)?.slots.get(slot)?;
    let slots = (
        sides.target.slot(pair.target),
        sides.golden.slot(pair.golden),
    );
    // They were read before; a later change is not a reason to drop the result.
    let [a, b] = load(slots, pair.layout).ok()?;
    let found = difference::extent(a.view(), b.view(), tolerance).ok()??;
    Some(DifferingElements {
        tolerance,
        n: found.n,
        shape: a.shape().dims().iter().map(|&dim| dim as u64).collect(),
        ranges: found.ranges,
    })
}
