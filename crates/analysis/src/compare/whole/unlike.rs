//! Ranks that should hold one tensor, and do not.

use std::collections::HashMap;

use opscope_store::record::SlotSide;
use opscope_store::record::parallel::Reduction;
use opscope_tensor::DType;

use super::likeness::{SquareSums, agree, are_replicas, found_parts, numbers};
use super::note::{FoundPart, contributions_of};
use super::tensor::{InferredReplicas, RankPart, WholeTensor};
use crate::compare::matching::{has_elements_of_input, is_view};
use crate::compare::side::{ComparedDump, ExecutionSlot};

/// The phase that computes gradients.
pub(super) const BACKWARD: &str = "backward";
/// Maximum number of bytes of a tensor whose ranks are compared with the other side's one by one.
pub(super) const N_UNLIKE_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of tensors among which that of a rank is searched.
const N_CANDIDATES_MAX: usize = 64;
/// Number of elements that are the other side's by no coincidence.
const N_DISTINCTIVE_MIN: u64 = 8;

/// Whether an operator computes something with what it reads, before gradients are reduced or after.
pub(super) fn needs_replicas(side: &ComparedDump, run: usize) -> bool {
    let execution = &side.runs[run];
    let passes_on = is_view(execution) || has_elements_of_input(execution);
    let is_backward = side.phase_of(run) == Some(BACKWARD);
    execution.collective.is_none() && !passes_on && !is_backward
}

/// Puts together the tensors of ranks that should all have the other side's. If one has it, the
/// others are wrong. If their sum or mean is it, they hold contributions that nothing reduces: that
/// is right where they are made, and wrong where they are read as if they were the tensor.
pub(super) fn unlike_ranks(
    whole: &WholeTensor,
    (other, others): (&ExecutionSlot, &TensorsByShape<'_>),
    is_read: bool,
) -> Option<WholeTensor> {
    let is_noted = whole.parts.iter().any(|part| !part.noted.is_empty());
    let is_alike = whole.shape == other.dims() && other.dtype == Some(whole.dtype);
    let is_small = whole.n_bytes() <= N_UNLIKE_BYTES_MAX;
    let is_distinctive = whole.parts.len() > 1 && whole.n_elements() >= N_DISTINCTIVE_MIN;
    let has_reason = is_alike && is_small && is_distinctive && whole.reduction.is_none();
    if is_noted || !has_reason || are_replicas(whole, &vec![0; whole.parts.len()]) {
        return None;
    }
    let replicas = |why: InferredReplicas| {
        let mut replicas = whole.clone();
        replicas.inferred = Some(why);
        for (place, part) in (0..).zip(&mut replicas.parts) {
            part.noted = vec![place];
        }
        replicas
    };
    let (right, wrong): (Vec<&RankPart>, Vec<&RankPart>) =
        (whole.parts.iter()).partition(|part| holds(&part.slot, other));
    // What the other side has as another tensor is no wrong copy of this one: that is how experts
    // are shared.
    if !right.is_empty() {
        let is_fault = !wrong.into_iter().any(|part| others.holds(&part.slot));
        return is_fault.then(|| replicas(InferredReplicas::Single));
    }
    let parts: Vec<FoundPart<'_>> = found_parts(whole).collect();
    let mut reductions = [Reduction::Sum, Reduction::Mean].into_iter();
    let sum = reductions.find_map(|reduction| {
        let sum = contributions_of(&parts, reduction).ok()?;
        agree(&sum, other).then_some(sum)
    })?;
    Some(if is_read {
        replicas(InferredReplicas::Unreduced)
    } else {
        sum
    })
}

/// The tensors of a side that operators read, by shape.
pub(super) struct TensorsByShape<'a>(HashMap<(Option<DType>, &'a [u64]), Vec<&'a ExecutionSlot>>);

impl<'a> TensorsByShape<'a> {
    pub(super) fn index(side: &'a ComparedDump) -> TensorsByShape<'a> {
        let mut by_shape: HashMap<_, Vec<&ExecutionSlot>> = HashMap::new();
        let slots = side.runs.iter().flat_map(|run| &run.slots);
        for slot in slots.filter(|slot| slot.side == SlotSide::Input && slot.whole().is_none()) {
            let of_shape = by_shape.entry((slot.dtype, slot.dims())).or_default();
            of_shape.push(slot);
        }
        TensorsByShape(by_shape)
    }

    /// Whether one of them has exactly the elements of a part.
    fn holds(&self, part: &ExecutionSlot) -> bool {
        let Ok(own) = part.load(None) else {
            return false;
        };
        let candidates = self.0.get(&(part.dtype, part.dims())).into_iter().flatten();
        let mut candidates = candidates.take(N_CANDIDATES_MAX);
        candidates.any(|other| {
            let other = other.load(None);
            other.is_ok_and(|other| other.view().bytes == own.view().bytes)
        })
    }
}

/// Whether a rank's tensor is the other side's but for rounding.
fn holds(part: &ExecutionSlot, other: &ExecutionSlot) -> bool {
    let (Some(dtype), Ok(part), Ok(other)) = (other.dtype, part.load(None), other.load(None))
    else {
        return false;
    };
    let mut sums = SquareSums::default();
    let others = numbers(dtype, other.view().bytes);
    for pair in numbers(dtype, part.view().bytes).zip(others) {
        sums.add(pair);
    }
    sums.agree(dtype)
}
