//! Infers how ranks share tensors without notes, by comparison with the other side.
//!
//! Data-parallel ranks process parts of a batch, and no dump records it. If the other side has a
//! tensor of the same shape except for one axis, which is longer by the number of ranks, each rank
//! holds its part of that axis. Gradients of a part belong to that part's loss: if the loss is a
//! mean, they are larger by the number of parts. A tensor that ranks reduce next is a contribution
//! of each. An axis may consist of sections that ranks share one by one, as the sequences of a
//! flattened batch do, or queries, keys and values in one weight: values say how many there are.

use std::collections::HashMap;
use std::sync::Arc;

use opscope_store::SharedText;
use opscope_store::record::SlotSide;
use opscope_store::record::parallel::{CollectiveKind, Reduction};

use super::likeness::{TOLERANCE, agree, are_replicas, found_parts, is_float, sums};
use super::note::{FoundPart, contributions_of, in_parts_of};
use super::tensor::{InferredReplicas, WholeTensor};
use super::unlike::{BACKWARD, N_UNLIKE_BYTES_MAX, TensorsByShape, needs_replicas, unlike_ranks};
use crate::compare::attribution::kinds::plain_type;
use crate::compare::matching::is_view;
use crate::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution, SlotRef};
use crate::compare::slot_key::SlotKey;

/// Beginnings of types whose result depends on all elements of an axis.
const ORDERING: [&str; 9] = [
    "sort", "argsort", "topk", "cumsum", "cumprod", "unique", "nonzero", "randperm", "flip",
];
/// Why results of those are not put together.
const ORDERED_ALONE: &str = "each rank orders its own part";
/// Types of operators that take some elements of their input.
const SELECTING: [&str; 9] = [
    "split",
    "split_with_sizes",
    "chunk",
    "tensor_split",
    "unbind",
    "slice",
    "narrow",
    "select",
    "index_select",
];
/// Why results of those that are the same on all ranks are not put together.
const SELECTED_ALIKE: &str = "each rank has the same elements, of more on the other side";
/// Types of operators that compute each element from those in its place.
const ELEMENTWISE: [&str; 33] = [
    "add",
    "sub",
    "rsub",
    "mul",
    "div",
    "neg",
    "abs",
    "exp",
    "log",
    "pow",
    "sqrt",
    "rsqrt",
    "tanh",
    "sigmoid",
    "relu",
    "gelu",
    "silu",
    "elu",
    "softplus",
    "mish",
    "hardtanh",
    "clamp",
    "sin",
    "cos",
    "where",
    "masked_fill",
    "native_dropout",
    "clone",
    "detach",
    "alias",
    "_to_copy",
    "add_",
    "mul_",
];
/// Maximum number of tensors of one shape that are compared to find out how ranks share them.
const N_TRIED_MAX: usize = 8;
/// Maximum number of numbers of sections that are tried for an axis.
const N_SECTIONS_TRIED_MAX: usize = 12;
/// Maximum number of views between an operator and the collective that reduces its result.
const N_VIEWS_MAX: usize = 4;

/// Step, type, name and repetition of an execution.
type ExecutionKey = (Option<u64>, SharedText, SharedText, usize);

/// The slots of a side; none where two have one key.
type KnownSlots<'a> = HashMap<ExecutionKey, HashMap<SlotKey, Option<&'a ExecutionSlot>>>;

/// Puts tensors whose parts differ together along the axis that is longer on the other side.
pub(crate) fn cut_like_others([a, b]: [&mut ComparedDump; 2]) {
    let inferred = [inferred_slots(a, b), inferred_slots(b, a)];
    for (side, slots) in [a, b].into_iter().zip(inferred) {
        let mut cuts: HashMap<SlotRef, AxisShare> = HashMap::new();
        for one in slots {
            let slot = &mut side.runs[one.at.run].slots[one.at.slot];
            *slot = match one.whole {
                Ok(whole) => ExecutionSlot::of_whole(slot, Arc::new(whole)),
                Err(reason) => ExecutionSlot::in_parts(slot, reason.to_owned()),
            };
            cuts.extend(one.share.map(|share| (one.at, share)));
        }
        cut_like_inputs(side, cuts);
    }
}

/// A way in which ranks may share a tensor: the shapes of a part and of the whole.
type SharedShape = (Vec<u64>, Vec<u64>);

/// How ranks share an axis.
#[derive(Clone, PartialEq)]
struct AxisShare {
    axis: usize,
    /// Which part each rank has.
    places: Vec<u64>,
    n_parts: u64,
    /// Equally long sections of the axis, each of which ranks share by itself.
    n_sections: usize,
}

impl AxisShare {
    fn put_together(&self, whole: &WholeTensor) -> Option<WholeTensor> {
        let parts: Vec<FoundPart<'_>> = found_parts(whole).collect();
        let cut = (self.n_parts, self.n_sections);
        let mut found = in_parts_of(&parts, self.axis, &self.places, cut).ok()?;
        found.divisor = whole.divisor;
        Some(found)
    }

    /// The same where several ranks hold each part, and some of them another one than the other
    /// side.
    fn with_wrong_replicas(
        &self,
        whole: &WholeTensor,
        other: &ExecutionSlot,
    ) -> Option<WholeTensor> {
        if whole.n_bytes() > N_UNLIKE_BYTES_MAX {
            return None;
        }
        let mut parts: Vec<FoundPart<'_>> = found_parts(whole).collect();
        let mut places = self.places.clone();
        // Of the ranks that hold a part the first is read.
        for _ in 0..2 {
            let mut found = in_parts_of(&parts, self.axis, &places, (self.n_parts, 1)).ok()?;
            if agree(&found, other) {
                found.inferred = Some(InferredReplicas::Single);
                for (n, part) in (0..).zip(&mut found.parts) {
                    part.noted.push(n);
                }
                return Some(found);
            }
            parts.reverse();
            places.reverse();
        }
        None
    }

    fn with_sections(&self, n_sections: usize) -> AxisShare {
        AxisShare {
            n_sections,
            ..self.clone()
        }
    }
}

/// A slot of a side and its tensor, or why its parts do not make one.
struct InferredWhole {
    at: SlotRef,
    whole: Result<WholeTensor, &'static str>,
    share: Option<AxisShare>,
}

/// Puts together what only one side has, such as the result of an operator too many: the inputs as
/// they are where they are made, and the outputs of elementwise operators like the inputs.
fn cut_like_inputs(side: &mut ComparedDump, mut cuts: HashMap<SlotRef, AxisShare>) {
    if cuts.is_empty() {
        return;
    }
    for run in 0..side.runs.len() {
        let is_elementwise = is_elementwise(&side.runs[run].op_type);
        let mut of_inputs: Vec<(Vec<u64>, AxisShare)> = Vec::new();
        for slot in 0..side.runs[run].slots.len() {
            let at = SlotRef { run, slot };
            let own = &side.runs[run].slots[slot];
            let Some(whole) = own.whole() else {
                continue;
            };
            let local = whole.parts.first().and_then(|part| part.slot.shape.clone());
            let local = local.unwrap_or_default();
            let share = match (cuts.get(&at), own.side) {
                (Some(known), _) => Some(known.clone()),
                (None, SlotSide::Input) => {
                    let made = side.producer_of(at);
                    made.and_then(|made| cuts.get(&made)).cloned()
                }
                (None, SlotSide::Output) if is_elementwise => {
                    let mut alike = of_inputs.iter().filter(|(shape, _)| *shape == local);
                    alike.next().map(|(_, share)| share.clone())
                }
                (None, SlotSide::Output) => None,
            };
            let Some(share) = share else {
                continue;
            };
            if own.side == SlotSide::Input {
                of_inputs.push((local.clone(), share.clone()));
            }
            let is_open = whole.shape == local && whole.reduction.is_none();
            let is_noted = whole.parts.iter().any(|part| !part.noted.is_empty());
            if !is_open || is_noted || cuts.contains_key(&at) {
                continue;
            }
            if let Some(whole) = share.put_together(whole) {
                let slot = &mut side.runs[run].slots[slot];
                *slot = ExecutionSlot::of_whole(slot, Arc::new(whole));
                cuts.insert(at, share);
            }
        }
    }
}

/// A slot of a side with another way to put it together.
struct InferredSlot<'a> {
    run: usize,
    slot: usize,
    whole: WholeTensor,
    other: &'a ExecutionSlot,
    /// None of contributions, which a collective proves.
    shared: Option<(SharedShape, AxisShare)>,
}

/// The slots of a side that are assembled differently, by run and position.
fn inferred_slots(side: &ComparedDump, other: &ComparedDump) -> Vec<InferredWhole> {
    let mut slots = side.runs.iter().flat_map(|run| &run.slots);
    if slots.all(|slot| slot.whole().is_none()) {
        return Vec::new();
    }
    let all = TensorsByShape::index(other);
    let others = known_slots(other);
    let reduced = reduced_values(side);
    let mut found = Vec::new();
    let mut selected = Vec::new();
    for (run, execution) in side.runs.iter().enumerate() {
        let Some(others) = others.get(&key(execution)) else {
            continue;
        };
        let is_backward = side.phase_of(run) == Some(BACKWARD);
        for (slot, own) in execution.slots.iter().enumerate() {
            let (Some(whole), Some(Some(other))) = (own.whole(), others.get(&own.key())) else {
                continue;
            };
            let at = SlotRef { run, slot };
            let made = side.producer_of(at).unwrap_or(at);
            if is_selection(side, at) && is_less_everywhere(whole, other) {
                selected.push(InferredWhole {
                    at,
                    whole: Err(SELECTED_ALIKE),
                    share: None,
                });
                continue;
            }
            // Parts of an axis have other shapes, and contributions the same one.
            let cut = cut_like(whole, other);
            let (mut inferred, n_parts, shared) = match (cut, reduced.get(&made)) {
                (Some((cut, share)), _) => {
                    let shapes = (whole.shape.clone(), cut.shape.clone());
                    let n_parts = u32::try_from(share.n_parts).unwrap_or(1);
                    (cut, n_parts, Some((shapes, share)))
                }
                (None, Some(&(reduction, n_ranks))) => {
                    let Some(sum) = summed(whole, other, reduction, n_ranks) else {
                        continue;
                    };
                    (sum, u32::try_from(n_ranks).unwrap_or(1), None)
                }
                // Each rank takes its elements of its part.
                (None, None) if is_selection(side, made) => continue,
                (None, None) => {
                    let is_read = own.side == SlotSide::Input && needs_replicas(side, run);
                    let Some(unlike) = unlike_ranks(whole, (other, &all), is_read) else {
                        continue;
                    };
                    (unlike, 1, None)
                }
            };
            if is_backward && is_multiple(&inferred, other, n_parts) {
                inferred.divisor = n_parts;
            }
            found.push(InferredSlot {
                run,
                slot,
                whole: inferred,
                other,
                shared,
            });
        }
    }
    // An axis may be made of several, each of which ranks share by itself: parts one behind the
    // other are not the whole then. Elsewhere tensors of these shapes have to agree.
    let borne_out = borne_out(&found);
    let usable = found.into_iter().filter_map(|one| one.cut_as(&borne_out));
    usable
        .map(|one| one.into_whole(side))
        .chain(selected)
        .collect()
}

impl InferredSlot<'_> {
    /// The slot in the sections of those of its shape that agree; of several ways the nearest.
    fn cut_as(mut self, borne_out: &HashMap<SharedShape, Vec<usize>>) -> Option<Self> {
        let Some((shapes, share)) = &self.shared else {
            return Some(self);
        };
        let nearest = match &borne_out.get(shapes)?[..] {
            &[only] => only,
            several => {
                let distances = several.iter().filter_map(|&n_sections| {
                    let whole = share.with_sections(n_sections).put_together(&self.whole)?;
                    Some((n_sections, sums(&whole, self.other)?.distance()))
                });
                distances.min_by(|a, b| a.1.total_cmp(&b.1))?.0
            }
        };
        if nearest != share.n_sections {
            let share = share.with_sections(nearest);
            self.whole = share.put_together(&self.whole)?;
            self.shared = Some((shapes.clone(), share));
        }
        Some(self)
    }

    /// The number of sections of the axis, first those of `known`, with which it agrees.
    fn agreeing_sections(&self, share: &AxisShare, known: &[usize]) -> Option<usize> {
        if known.contains(&1) || known.is_empty() {
            let is_plain = agree(&self.whole, self.other);
            if is_plain || self.whole.n_bytes() > N_UNLIKE_BYTES_MAX {
                return is_plain.then_some(1);
            }
        }
        let length = self.whole.shape[share.axis] / share.n_parts;
        let divisors = (2..=length).filter(|n| length.is_multiple_of(*n));
        let divisors = divisors.filter_map(|n| usize::try_from(n).ok());
        let others = divisors
            .take(N_SECTIONS_TRIED_MAX)
            .filter(|n| !known.contains(n));
        known.iter().copied().chain(others).find(|&n_sections| {
            let whole = share.with_sections(n_sections).put_together(&self.whole);
            whole.is_some_and(|whole| agree(&whole, self.other))
        })
    }
}

impl InferredSlot<'_> {
    fn into_whole(self, side: &ComparedDump) -> InferredWhole {
        let at = SlotRef {
            run: self.run,
            slot: self.slot,
        };
        let is_ordered = self.shared.is_some() && is_ordering(side, at);
        let is_alone = is_ordered && !agree(&self.whole, self.other);
        InferredWhole {
            at,
            whole: if is_alone {
                Err(ORDERED_ALONE)
            } else {
                Ok(self.whole)
            },
            share: self.shared.map(|(_, share)| share).filter(|_| !is_alone),
        }
    }
}

/// Whether a slot is an output that depends on all elements of an axis, such as that of a sort.
fn is_ordering(side: &ComparedDump, at: SlotRef) -> bool {
    let execution = &side.runs[at.run];
    let name = plain_type(&execution.op_type);
    let is_output = execution.slots[at.slot].side == SlotSide::Output;
    is_output && ORDERING.iter().any(|start| name.starts_with(start))
}

/// Whether a slot is an output that has some elements of an input, such as that of a split.
fn is_selection(side: &ComparedDump, at: SlotRef) -> bool {
    let execution = &side.runs[at.run];
    let is_output = execution.slots[at.slot].side == SlotSide::Output;
    is_output && SELECTING.contains(&&*plain_type(&execution.op_type))
}

/// Whether all ranks have the same elements, and the other side more.
fn is_less_everywhere(whole: &WholeTensor, other: &ExecutionSlot) -> bool {
    let is_noted = whole.parts.iter().any(|part| !part.noted.is_empty());
    let is_less = other.n_elements().is_some_and(|n| n > whole.n_elements());
    !is_noted && is_less && are_replicas(whole, &vec![0; whole.parts.len()])
}

fn is_elementwise(op_type: &str) -> bool {
    ELEMENTWISE.contains(&&*plain_type(op_type))
}

/// The shapes for which an assembled tensor agrees with that of the other side, and the numbers of
/// sections with which one does.
fn borne_out(found: &[InferredSlot<'_>]) -> HashMap<SharedShape, Vec<usize>> {
    let mut borne_out: HashMap<SharedShape, Vec<usize>> = HashMap::new();
    let mut n_tried: HashMap<&SharedShape, usize> = HashMap::new();
    for one in found {
        let Some((shared, share)) = &one.shared else {
            continue;
        };
        let n = n_tried.entry(shared).or_insert(0);
        // Equal parts agree in any order.
        if *n == N_TRIED_MAX || are_replicas(&one.whole, &vec![0; one.whole.parts.len()]) {
            continue;
        }
        *n += 1;
        let known = borne_out.get(shared).map_or(&[][..], Vec::as_slice);
        if let Some(n_sections) = one.agreeing_sections(share, known)
            && !known.contains(&n_sections)
        {
            borne_out
                .entry(shared.clone())
                .or_default()
                .push(n_sections);
        }
    }
    borne_out
}

/// Outputs that the next operator but views reduces over ranks: how, and over how many.
fn reduced_values(side: &ComparedDump) -> HashMap<SlotRef, (Reduction, usize)> {
    let mut reduced = HashMap::new();
    for (index, run) in side.runs.iter().enumerate() {
        let Some(collective) = &run.collective else {
            continue;
        };
        let CollectiveKind::AllReduce(reduction) = collective.kind else {
            continue;
        };
        // Programs reduce by the sum unless they say otherwise.
        let reduction = reduction.unwrap_or(Reduction::Sum);
        for input in inputs(side, index) {
            let mut made = side.producer_of(input);
            for _ in 0..=N_VIEWS_MAX {
                let Some(at) = made else {
                    break;
                };
                reduced.insert(at, (reduction, collective.ranks.len()));
                made = Some(at)
                    .filter(|at| is_view(&side.runs[at.run]))
                    .and_then(|at| side.producer_of(inputs(side, at.run).next()?));
            }
        }
    }
    reduced
}

fn inputs(side: &ComparedDump, run: usize) -> impl Iterator<Item = SlotRef> {
    let slots = side.runs[run].slots.iter().enumerate();
    let inputs = slots.filter(|(_, slot)| slot.side == SlotSide::Input);
    inputs.map(move |(slot, _)| SlotRef { run, slot })
}

/// The sum, or another reduction, of what all ranks hold, if that is not the same.
fn summed(
    whole: &WholeTensor,
    other: &ExecutionSlot,
    reduction: Reduction,
    n_ranks: usize,
) -> Option<WholeTensor> {
    let is_noted = whole.parts.iter().any(|part| !part.noted.is_empty());
    let is_same = || are_replicas(whole, &vec![0; whole.parts.len()]);
    let has_all_ranks = whole.parts.len() == n_ranks && whole.shape == other.dims();
    if is_noted || whole.reduction.is_some() || !has_all_ranks || is_same() {
        return None;
    }
    let parts: Vec<FoundPart<'_>> = found_parts(whole).collect();
    let reduced = contributions_of(&parts, reduction).ok()?;
    // Another reduction than the contributions need is a fault of the collective.
    let sum = || contributions_of(&parts, Reduction::Sum).ok();
    let is_other = reduction != Reduction::Sum && !agree(&reduced, other);
    let sum = is_other.then(sum).flatten();
    Some(sum.filter(|sum| agree(sum, other)).unwrap_or(reduced))
}

// Ranks and loads are omitted, because an assembled side has neither.
fn key(run: &OperatorExecution) -> ExecutionKey {
    let (op_type, op_name) = (run.op_type.clone(), run.op_name.clone());
    (run.place.step, op_type, op_name, run.repeat)
}

fn known_slots(side: &ComparedDump) -> KnownSlots<'_> {
    let mut known = KnownSlots::new();
    for run in &side.runs {
        let slots = known.entry(key(run)).or_default();
        for slot in &run.slots {
            let entry = slots.entry(slot.key());
            entry
                .and_modify(|known| *known = None)
                .or_insert(Some(slot));
        }
    }
    known
}

/// The tensor along the axis that `other` has longer, and how many parts that axis has; none unless
/// that is the only difference, and the parts of the ranks fill it.
fn cut_like(whole: &WholeTensor, other: &ExecutionSlot) -> Option<(WholeTensor, AxisShare)> {
    let others = other.dims();
    let is_noted = whole.parts.iter().any(|part| !part.noted.is_empty());
    if is_noted || whole.reduction.is_some() || whole.shape.len() != others.len() {
        return None;
    }
    let mut longer = (0..others.len()).filter(|&axis| whole.shape[axis] != others[axis]);
    let axis = longer.next()?;
    if longer.next().is_some() {
        return None;
    }
    let n = others[axis].checked_div(whole.shape[axis])?;
    let n_ranks = whole.parts.len();
    let n_parts = usize::try_from(n).ok().filter(|&n| n > 1)?;
    let is_filled = n.checked_mul(whole.shape[axis]) == Some(others[axis]);
    if !is_filled || !n_ranks.is_multiple_of(n_parts) {
        return None;
    }
    // With tensor-parallel ranks as well, several ranks hold the same part of the batch.
    let n_replicas = n_ranks / n_parts;
    // Replicas are adjacent, or as far apart as there are parts: equality decides.
    let neighbours: Vec<u64> = (0..n_ranks).map(|at| (at / n_replicas) as u64).collect();
    let interleaved: Vec<u64> = (0..n_ranks).map(|at| (at % n_parts) as u64).collect();
    let shares = [neighbours, interleaved].map(|places| AxisShare {
        axis,
        places,
        n_parts: n,
        n_sections: 1,
    });
    if let Some(share) = shares
        .iter()
        .find(|share| n_replicas == 1 || are_replicas(whole, &share.places))
    {
        return Some((share.put_together(whole)?, share.clone()));
    }
    let mut shares = shares.into_iter();
    shares.find_map(|share| Some((share.with_wrong_replicas(whole, other)?, share)))
}

/// Whether the elements are `n_parts` times as large as those of the other side.
fn is_multiple(whole: &WholeTensor, other: &ExecutionSlot, n_parts: u32) -> bool {
    if !is_float(whole.dtype) {
        return false;
    }
    let sums = sums(whole, other);
    let ratio = sums.map(|sums| (sums.own / sums.other).sqrt() / f64::from(n_parts));
    ratio.is_some_and(|ratio| (ratio - 1.0).abs() <= TOLERANCE)
}
