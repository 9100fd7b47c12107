//! Infers how ranks share tensors without notes, by comparison with the other side.
//!
//! Data-parallel ranks process parts of a batch, and no dump records it. If the other side has a
//! tensor of the same shape except for one axis, which is longer by the number of ranks, each rank
//! holds its part of that axis. Gradients of a part belong to that part's loss: if the loss is a
//! mean, they are larger by the number of parts. A tensor that ranks reduce next is a contribution
//! of each. An axis may consist of sections that ranks share one by one, as the sequences of a
//! flattened batch do, or queries, keys and values in one weight: values say how many there are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opscope_store::SharedText;
use opscope_store::record::SlotSide;
use opscope_store::record::parallel::{CollectiveKind, Reduction};

use super::candidate::{
    BothShares, InferredSlot, OtherTensor, SharedShape, ValueReduction, is_open, reduced_like,
    shared_alike, shared_like,
};
use super::likeness::are_replicas;
use super::movement::{fills, selects};
use super::share::TensorShare;
use super::tensor::WholeTensor;
use super::unlike::{BACKWARD, TensorsByShape, needs_replicas, unlike_ranks};
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
/// Why results that are the same on all ranks, each of which has its own elements, are not put
/// together.
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
/// Maximum number of views between an operator and the collective that reduces its result.
const N_VIEWS_MAX: usize = 4;

/// Step, type, name and repetition of an execution.
type ExecutionKey = (Option<u64>, SharedText, SharedText, usize);

/// The slots of a side; none where two have one key.
type KnownSlots = HashMap<ExecutionKey, HashMap<SlotKey, Option<SlotRef>>>;

/// Puts tensors whose parts differ together along the axis that is longer on the other side.
pub(crate) fn cut_like_others([a, b]: [&mut ComparedDump; 2]) {
    let inferred = [inferred_slots(a, b), inferred_slots(b, a)];
    for (side, slots) in [a, b].into_iter().zip(inferred) {
        let mut cuts: HashMap<SlotRef, TensorShare> = HashMap::new();
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

/// A slot of a side and its tensor, or why its parts do not make one.
struct InferredWhole {
    at: SlotRef,
    whole: Result<WholeTensor, &'static str>,
    share: Option<TensorShare>,
}

/// Puts together what only one side has, such as the result of an operator too many: the inputs as
/// they are where they are made, and the outputs of elementwise operators like the inputs.
fn cut_like_inputs(side: &mut ComparedDump, mut cuts: HashMap<SlotRef, TensorShare>) {
    if cuts.is_empty() {
        return;
    }
    for run in 0..side.runs.len() {
        let is_elementwise = is_elementwise(&side.runs[run].op_type);
        let mut of_inputs: Vec<(Vec<u64>, TensorShare)> = Vec::new();
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
            // What all ranks have is no part, whatever the graph of one of them says.
            let is_same = || are_replicas(whole, &vec![0; whole.parts.len()]);
            if !is_open || is_noted || cuts.contains_key(&at) || is_same() {
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

/// The slots of a side that are assembled differently, by run and position.
fn inferred_slots(side: &ComparedDump, other: &ComparedDump) -> Vec<InferredWhole> {
    let mut slots = side.runs.iter().flat_map(|run| &run.slots);
    if slots.all(|slot| slot.whole().is_none()) {
        return Vec::new();
    }
    let all = TensorsByShape::index(other);
    let others = known_slots(other);
    let reduced = [reduced_values(side), reduced_values(other)];
    let mut found = Vec::new();
    let mut selected = Vec::new();
    // Numbers that each rank counts for its own elements, and results of those alone.
    let mut local: HashSet<SlotRef> = HashSet::new();
    for (run, execution) in side.runs.iter().enumerate() {
        let Some(others) = others.get(&key(execution)) else {
            continue;
        };
        for (slot, own) in execution.slots.iter().enumerate() {
            let (Some(whole), Some(Some(partner))) = (own.whole(), others.get(&own.key())) else {
                continue;
            };
            let at = SlotRef { run, slot };
            let partner_slot = &other.runs[partner.run].slots[partner.slot];
            let tensor = OtherTensor::from_slot(partner_slot);
            let made = side.producer_of(at).unwrap_or(at);
            let is_local = is_selection(side, at)
                || fills(&execution.op_type)
                || local.contains(&made)
                || own.side == SlotSide::Output && reads_local(side, run, &local);
            if is_local && is_less_everywhere(whole, tensor.dims()) {
                if !is_selection(side, made) {
                    local.insert(at);
                }
                selected.push(InferredWhole {
                    at,
                    whole: Err(SELECTED_ALIKE),
                    share: None,
                });
                continue;
            }
            let other_made = other.producer_of(*partner).unwrap_or(*partner);
            let reduced = [reduced[0].get(&made), reduced[1].get(&other_made)];
            let own = (at, whole);
            let inferred = shared_like(own, tensor)
                .or_else(|| reduced_like(own, tensor, reduced))
                .or_else(|| shared_alike(own, tensor, reduced))
                // Each rank takes its elements of its part.
                .or_else(|| {
                    let is_unexplained = reduced[0].is_none() && !is_selection(side, made);
                    is_unexplained.then(|| unlike(side, own, (tensor, &all)))?
                });
            let Some(mut inferred) = inferred else {
                continue;
            };
            let made_in = execution.collective.as_ref().map_or(run, |_| made.run);
            inferred.divide(side.phase_of(made_in) == Some(BACKWARD));
            found.push(inferred);
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

/// The slot of ranks that should all have the other side's tensor, and do not.
fn unlike<'a>(
    side: &ComparedDump,
    (at, whole): (SlotRef, &WholeTensor),
    (other, all): (OtherTensor<'a>, &TensorsByShape<'_>),
) -> Option<InferredSlot<'a>> {
    let OtherTensor::One(one) = other else {
        return None;
    };
    let is_input = side.runs[at.run].slots[at.slot].side == SlotSide::Input;
    let is_read = is_input && needs_replicas(side, at.run);
    let unlike = unlike_ranks(whole, (one, all), is_read)?;
    Some(InferredSlot::new(at, unlike, other))
}

impl InferredSlot<'_> {
    fn into_whole(self, side: &ComparedDump) -> InferredWhole {
        let is_ordered = self.shared.is_some() && is_ordering(side, self.at);
        let is_alone = is_ordered && !self.agrees();
        let share = self.shared.map(|(_, shares)| shares.own);
        InferredWhole {
            at: self.at,
            whole: if is_alone {
                Err(ORDERED_ALONE)
            } else {
                Ok(self.whole)
            },
            share: share.filter(|_| !is_alone),
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
    is_output && selects(&execution.op_type)
}

/// Whether an execution reads something that is in a set of outputs.
fn reads_local(side: &ComparedDump, run: usize, local: &HashSet<SlotRef>) -> bool {
    let mut made = inputs(side, run).filter_map(|slot| side.producer_of(slot));
    made.any(|made| local.contains(&made))
}

/// Whether all ranks have the same elements, and the other side more.
fn is_less_everywhere(whole: &WholeTensor, others: &[u64]) -> bool {
    let is_less = others.iter().product::<u64>() > whole.n_elements();
    is_open(whole) && is_less && are_replicas(whole, &vec![0; whole.parts.len()])
}

fn is_elementwise(op_type: &str) -> bool {
    ELEMENTWISE.contains(&&*plain_type(op_type))
}

/// The shapes for which an assembled tensor agrees with that of the other side, and the ways in
/// which one does.
fn borne_out(found: &[InferredSlot<'_>]) -> HashMap<SharedShape, Vec<BothShares>> {
    let mut borne_out: HashMap<SharedShape, Vec<BothShares>> = HashMap::new();
    let mut n_tried: HashMap<&SharedShape, usize> = HashMap::new();
    for one in found {
        let Some((shapes, shares)) = &one.shared else {
            continue;
        };
        let n = n_tried.entry(shapes).or_insert(0);
        // Equal parts agree in any order.
        if *n == N_TRIED_MAX || are_replicas(&one.whole, &vec![0; one.whole.parts.len()]) {
            continue;
        }
        *n += 1;
        let known = borne_out.get(shapes).map_or(&[][..], Vec::as_slice);
        if let Some(agreeing) = one.agreeing(shares, known)
            && !known.contains(&agreeing)
        {
            borne_out.entry(shapes.clone()).or_default().push(agreeing);
        }
    }
    borne_out
}

/// Outputs that the next operator but views reduces over ranks: how, and over how many.
fn reduced_values(side: &ComparedDump) -> HashMap<SlotRef, ValueReduction> {
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

// Ranks and loads are omitted, because an assembled side has neither.
fn key(run: &OperatorExecution) -> ExecutionKey {
    let (op_type, op_name) = (run.op_type.clone(), run.op_name.clone());
    (run.place.step, op_type, op_name, run.repeat)
}

fn known_slots(side: &ComparedDump) -> KnownSlots {
    let mut known = KnownSlots::new();
    for (index, run) in side.runs.iter().enumerate() {
        let slots = known.entry(key(run)).or_default();
        for (slot, of) in run.slots.iter().enumerate() {
            let at = SlotRef { run: index, slot };
            let entry = slots.entry(of.key());
            entry.and_modify(|known| *known = None).or_insert(Some(at));
        }
    }
    known
}
