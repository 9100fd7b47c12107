//! Axes of one element at another place, which a comparison of elements does not show.

use std::collections::HashSet;

use super::with_other_shape;
use crate::compare::matching::{MatchedDumps, RunPair, SlotRef, is_same_type};
use crate::compare::result::{Comparison, SlotResult, TensorSummary};

/// Fails outputs that have as many axes as golden's, and their axes of one element elsewhere, of
/// operators of one type that read the same shapes, and what is computed from them with such
/// shapes: sums broadcast along other axes then.
pub(in crate::compare) fn note_moved_axes(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    let mut moved: HashSet<SlotRef> = HashSet::new();
    let pairs = sides.matching.pairs.iter().zip(&mut comparison.operators);
    for (pair, operator) in pairs {
        let slots = pair.slots.iter().zip(&operator.slots);
        let mut inputs = slots.filter(|(_, slot)| !slot.is_output() && has_moved(slot));
        let is_known = inputs.all(|(slot, _)| {
            let made = sides.target.producer_of(slot.target);
            made.is_some_and(|made| moved.contains(&made))
        });
        if !is_known || !is_of_one_type(sides, pair) {
            continue;
        }
        for (slot, result) in pair.slots.iter().zip(&mut operator.slots) {
            if has_moved(result) {
                if result.is_output() {
                    moved.insert(slot.target);
                }
                *result = with_other_shape(std::mem::take(result));
            }
        }
    }
}

fn is_of_one_type(sides: MatchedDumps<'_>, pair: &RunPair) -> bool {
    let (&[target], &[golden]) = (&pair.target[..], &pair.golden[..]) else {
        return false;
    };
    is_same_type(&sides.target.runs[target], &sides.golden.runs[golden])
}

/// Whether elements were compared, and only the place of axes of one element differs.
fn has_moved(slot: &SlotResult) -> bool {
    let [own, other] = [&slot.target, &slot.golden];
    let is_plain = slot.layout.is_none() && own.layout.is_none() && other.layout.is_none();
    is_plain
        && slot.evidence.is_measured()
        && own.shape.len() == other.shape.len()
        && own.shape != other.shape
        && long_axes(own).eq(long_axes(other))
}

fn long_axes(tensor: &TensorSummary) -> impl Iterator<Item = &u64> {
    tensor.shape.iter().filter(|size| **size != 1)
}
