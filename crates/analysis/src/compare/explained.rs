//! Saying what the difference is of the slots that the verdict names, and of weights that differ.
//!
//! Only these, since it takes several passes over the elements.

use std::collections::HashSet;

use opscope_store::record::SlotSide;
use opscope_tensor::Numbers;
use opscope_tensor::convert::dtype::{DecodedElements, decode};

use super::change::{ComparedElements, N_ELEMENTS_MAX, explain};
use super::evidence::Evidence;
use super::matching::{MatchedDumps, SlotPair};
use super::result::{Comparison, TensorChange};
use super::side::{ComparedDump, ExecutionSlot, LoadedSlot, SlotRef};
use super::verdict::{Thresholds, element_tolerance};

/// Maximum number of examined weights.
const N_WEIGHTS_MAX: usize = 64;
/// Maximum number of weights of golden's that are read to find the one that the target has.
const N_CANDIDATES_MAX: usize = 64;

/// Looks for the operation between the sides of the operators with the first warning and the first
/// failure, and of weights that differ. Verdicts, summary and contract have to be there.
pub(super) fn explain_slots(
    comparison: &mut Comparison,
    sides: MatchedDumps<'_>,
    thresholds: &Thresholds,
) {
    let summary = &comparison.summary;
    let firsts = [
        &summary.first_divergence,
        &summary.first_failure,
        &comparison.contract.inside,
    ];
    let firsts = firsts.into_iter().flatten().map(|at| at.operator);
    // An overflow may have no effect on the outputs, so that the verdict names something else.
    let firsts = firsts.chain(summary.first_non_finite);
    let mut slots: Vec<(usize, usize)> = firsts
        .flat_map(|i| (0..comparison.operators[i].slots.len()).map(move |k| (i, k)))
        .collect();
    let weights = comparison.contract.weights.iter();
    let weights = weights.filter_map(|weight| weight.pair.map(|[i, k]| (i, k)));
    slots.extend(weights.take(N_WEIGHTS_MAX));
    // A weight of the operator that is named is in both lists.
    let mut seen: HashSet<(usize, usize)> = HashSet::new();
    slots.retain(|&place| seen.insert(place));
    for (i, k) in slots {
        let change = change(comparison, sides, (i, k), thresholds);
        let slot = &mut comparison.operators[i].slots[k];
        slot.change_rare(|rare| rare.change = change.map(Box::new));
    }
}

fn change(
    comparison: &Comparison,
    sides: MatchedDumps<'_>,
    (i, k): (usize, usize),
    thresholds: &Thresholds,
) -> Option<TensorChange> {
    let operator = comparison.operators.get(i)?;
    let slot = operator.slots.get(k)?;
    if !slot.is_apart() || !matches!(slot.evidence, Evidence::Tensor | Evidence::Shape) {
        return None;
    }
    // Operators and slots of the result are in the order of the pairs that they were measured from.
    let pair = *sides.matching.pairs.get(i)?.slots.get(k)?;
    let [target, golden] = loaded(sides, pair)?;
    let tolerance = element_tolerance(operator, slot, thresholds);
    let [target, golden] = [target.decoded()?, golden.decoded()?];
    let [target, golden] = [target.elements()?, golden.elements()?];
    let found = explain(&target, &golden, tolerance);
    found.or_else(|| other_weight(sides.golden, pair, &target))
}

/// The side whose tensor is explained by the other one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExplainedOrder {
    /// The target's, as an operation on golden's.
    TargetOfGolden,
    /// Golden's, as an operation on the target's.
    GoldenOfTarget,
}

/// The exact operation between two tensors.
pub(super) fn change_between(
    sides: MatchedDumps<'_>,
    pair: SlotPair,
    order: ExplainedOrder,
) -> Option<TensorChange> {
    let [target, golden] = loaded(sides, pair)?;
    let [target, golden] = [target.decoded()?, golden.decoded()?];
    let [target, golden] = [target.elements()?, golden.elements()?];
    match order {
        ExplainedOrder::TargetOfGolden => explain(&target, &golden, 0.0),
        ExplainedOrder::GoldenOfTarget => explain(&golden, &target, 0.0),
    }
}

fn loaded(sides: MatchedDumps<'_>, pair: SlotPair) -> Option<[ExplainedSlot; 2]> {
    Some([
        ExplainedSlot::load(sides.target.slot(pair.target), pair)?,
        ExplainedSlot::load(sides.golden.slot(pair.golden), pair)?,
    ])
}

/// A tensor in the layout of its pair.
struct ExplainedSlot(LoadedSlot);

/// The same in a dtype that is read as numbers.
struct ExplainedNumbers<'a> {
    loaded: &'a LoadedSlot,
    decoded: DecodedElements<'a>,
}

impl ExplainedSlot {
    /// `None` if it cannot be read any more, or is too large.
    fn load(slot: &ExecutionSlot, pair: SlotPair) -> Option<ExplainedSlot> {
        if n_elements(slot.shape.as_ref()?)? > N_ELEMENTS_MAX as u64 {
            return None;
        }
        let layout = pair.layout.filter(|&wanted| slot.layout != Some(wanted));
        slot.load(layout).ok().map(ExplainedSlot)
    }

    fn decoded(&self) -> Option<ExplainedNumbers<'_>> {
        let view = self.0.view();
        Some(ExplainedNumbers {
            loaded: &self.0,
            decoded: decode(view.dtype, view.shape, view.bytes).ok()?,
        })
    }
}

impl ExplainedNumbers<'_> {
    /// `None` of complex numbers.
    fn elements(&self) -> Option<ComparedElements<'_>> {
        let numbers = Numbers::new(self.decoded.dtype, &self.decoded.bytes)?;
        ComparedElements::stored(numbers, self.decoded.shape.dims(), self.loaded.dtype())
    }
}

/// `None` if the shape exceeds any memory, as in damaged files.
fn n_elements(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim))
}

/// The golden weight that the target uses instead, if there is exactly one.
fn other_weight(
    golden: &ComparedDump,
    pair: SlotPair,
    target: &ComparedElements<'_>,
) -> Option<TensorChange> {
    // The same numbers in several weights, such as zeros, identify none.
    if !target.is_distinctive() {
        return None;
    }
    let own = golden.parameter_of(pair.golden)?;
    let shape = golden.slot(pair.golden).shape.as_ref()?;
    let n = n_elements(shape)?;
    let runs = golden.runs.iter().enumerate();
    let places = runs.flat_map(|(run, execution)| {
        let slots = execution.slots.iter().enumerate();
        let like = slots.filter(|(_, slot)| {
            let n_own = slot.shape.as_deref().and_then(n_elements);
            slot.side == SlotSide::Input && slot.has_elements && n_own == Some(n)
        });
        like.map(move |(slot, _)| SlotRef { run, slot })
    });
    let mut names: HashSet<String> = HashSet::from([own]);
    let named = places.filter_map(|place| {
        let name = golden.parameter_of(place)?;
        names.insert(name.clone()).then_some((place, name))
    });
    // Each candidate is read whole, so that their number has a bound.
    let mut equal = named.take(N_CANDIDATES_MAX).filter(|&(place, _)| {
        let loaded = ExplainedSlot::load(golden.slot(place), pair);
        let is_equal =
            |loaded: &ExplainedSlot| Some(target.has_elements_of(&loaded.decoded()?.elements()?));
        loaded.as_ref().and_then(is_equal) == Some(true)
    });
    // Tied weights have two names for one value, and neither is the one.
    let (_, name) = equal.next()?;
    equal
        .next()
        .is_none()
        .then_some(TensorChange::OtherWeight { name })
}
