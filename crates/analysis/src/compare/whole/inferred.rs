//! Infers how ranks share tensors without notes, by comparison with the other side.
//!
//! Data-parallel ranks process parts of a batch, and no dump records it. If the other side has a
//! tensor of the same shape except for one axis, which is longer by the number of ranks, each rank
//! holds its part of that axis. Gradients of a part belong to that part's loss: if the loss is a
//! mean, they are larger by the number of parts. A tensor that ranks reduce next is a contribution
//! of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opscope_store::SharedText;
use opscope_store::record::SlotSide;
use opscope_store::record::parallel::{CollectiveKind, Reduction};
use opscope_tensor::DType;

use super::note::{FoundPart, contributions_of, in_parts_of};
use super::read::WholeReader;
use super::tensor::WholeTensor;
use crate::compare::matching::is_view;
use crate::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution, SlotRef};
use crate::compare::slot_key::SlotKey;
use crate::element::{ElementValue, float};

/// The phase that computes gradients.
const BACKWARD: &str = "backward";
/// How far norms may be from each other, as a share of the other side's.
const TOLERANCE: f64 = 1e-3;
/// Maximum number of tensors of one shape that are compared to find out how ranks share them.
const N_TRIED_MAX: usize = 8;
/// Elements that are read at once.
const N_AT_ONCE: u64 = 1 << 18;
/// Maximum number of views between an operator and the collective that reduces its result.
const N_VIEWS_MAX: usize = 4;

/// Step, type, name and repetition of an execution.
type ExecutionKey = (Option<u64>, SharedText, SharedText, usize);

/// The slots of a side; none where two have one key.
type KnownSlots<'a> = HashMap<ExecutionKey, HashMap<SlotKey, Option<&'a ExecutionSlot>>>;

/// Puts tensors whose parts differ together along the axis that is longer on the other side.
pub(in crate::compare) fn cut_like_others([a, b]: [&mut ComparedDump; 2]) {
    let inferred = [inferred_slots(a, b), inferred_slots(b, a)];
    for (side, slots) in [a, b].into_iter().zip(inferred) {
        for (run, slot, whole) in slots {
            let slot = &mut side.runs[run].slots[slot];
            *slot = ExecutionSlot::of_whole(slot, Arc::new(whole));
        }
    }
}

/// A way in which ranks may share a tensor: the shapes of a part and of the whole.
type SharedShape = (Vec<u64>, Vec<u64>);

/// A slot of a side with another way to put it together.
struct InferredSlot<'a> {
    run: usize,
    slot: usize,
    whole: WholeTensor,
    other: &'a ExecutionSlot,
    /// None of contributions, which a collective proves.
    shared: Option<SharedShape>,
}

/// The slots of a side that are assembled differently, by run and position.
fn inferred_slots(side: &ComparedDump, other: &ComparedDump) -> Vec<(usize, usize, WholeTensor)> {
    let has_parts = |slot: &ExecutionSlot| slot.whole().is_some();
    if !side.runs.iter().flat_map(|run| &run.slots).any(has_parts) {
        return Vec::new();
    }
    let others = known_slots(other);
    let reduced = reduced_values(side);
    let mut found = Vec::new();
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
            // Parts of an axis have other shapes, and contributions the same one.
            let cut = cut_like(whole, other.dims());
            let (mut inferred, n_parts, shared) = match (cut, reduced.get(&made)) {
                (Some((cut, n_parts)), _) => {
                    let shared = (whole.shape.clone(), cut.shape.clone());
                    (cut, n_parts, Some(shared))
                }
                (None, Some(&(reduction, n_ranks))) => {
                    let Some(sum) = summed(whole, other, reduction, n_ranks) else {
                        continue;
                    };
                    (sum, u32::try_from(n_ranks).unwrap_or(1), None)
                }
                (None, None) => continue,
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
    let is_usable = |one: &InferredSlot<'_>| {
        let shared = one.shared.as_ref();
        shared.is_none_or(|shared| borne_out.contains(shared))
    };
    let usable = found.into_iter().filter(is_usable);
    usable.map(|one| (one.run, one.slot, one.whole)).collect()
}

/// The shapes for which an assembled tensor agrees with that of the other side.
fn borne_out(found: &[InferredSlot<'_>]) -> HashSet<SharedShape> {
    let mut borne_out = HashSet::new();
    let mut n_tried: HashMap<&SharedShape, usize> = HashMap::new();
    for one in found {
        let Some(shared) = &one.shared else {
            continue;
        };
        let n = n_tried.entry(shared).or_insert(0);
        // Equal parts agree in any order.
        let is_settled = borne_out.contains(shared) || *n == N_TRIED_MAX;
        if is_settled || are_replicas(&one.whole, &vec![0; one.whole.parts.len()]) {
            continue;
        }
        *n += 1;
        if agree(&one.whole, one.other) {
            borne_out.insert(shared.clone());
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
    let parts = whole.parts.iter().map(|part| FoundPart {
        rank: part.rank,
        slot: &part.slot,
    });
    contributions_of(&parts.collect::<Vec<_>>(), reduction).ok()
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
fn cut_like(whole: &WholeTensor, other: &[u64]) -> Option<(WholeTensor, u32)> {
    let is_noted = whole.parts.iter().any(|part| !part.noted.is_empty());
    if is_noted || whole.reduction.is_some() || whole.shape.len() != other.len() {
        return None;
    }
    let mut longer = (0..other.len()).filter(|&axis| whole.shape[axis] != other[axis]);
    let axis = longer.next()?;
    if longer.next().is_some() {
        return None;
    }
    let n = other[axis].checked_div(whole.shape[axis])?;
    let n_ranks = whole.parts.len();
    let n_parts = usize::try_from(n).ok().filter(|&n| n > 1)?;
    let is_filled = n.checked_mul(whole.shape[axis]) == Some(other[axis]);
    if !is_filled || !n_ranks.is_multiple_of(n_parts) {
        return None;
    }
    // With tensor-parallel ranks as well, several ranks hold the same part of the batch.
    let n_replicas = n_ranks / n_parts;
    // Replicas are adjacent, or as far apart as there are parts: equality decides.
    let neighbours: Vec<u64> = (0..n_ranks).map(|at| (at / n_replicas) as u64).collect();
    let interleaved: Vec<u64> = (0..n_ranks).map(|at| (at % n_parts) as u64).collect();
    let mut orders = [neighbours, interleaved].into_iter();
    let places = orders.find(|places| n_replicas == 1 || are_replicas(whole, places))?;
    let parts = whole.parts.iter().map(|part| FoundPart {
        rank: part.rank,
        slot: &part.slot,
    });
    let cut = in_parts_of(&parts.collect::<Vec<_>>(), axis, &places, n).ok()?;
    Some((cut, u32::try_from(n_parts).ok()?))
}

/// Whether parts in one place have the same bytes.
fn are_replicas(whole: &WholeTensor, places: &[u64]) -> bool {
    let mut firsts: HashMap<u64, Vec<u8>> = HashMap::new();
    whole.parts.iter().zip(places).all(|(part, place)| {
        let Ok(loaded) = part.slot.load(None) else {
            return false;
        };
        let bytes = loaded.view().bytes;
        firsts.entry(*place).or_insert_with(|| bytes.to_vec()) == bytes
    })
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

/// Whether the elements are those of the other side but for rounding.
fn agree(whole: &WholeTensor, other: &ExecutionSlot) -> bool {
    sums(whole, other).is_some_and(|sums| {
        let tolerance = if is_float(whole.dtype) {
            TOLERANCE
        } else {
            0.0
        };
        sums.difference.sqrt() <= tolerance * sums.other.sqrt()
    })
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// Sums of squares of the elements of both sides and of their differences.
#[derive(Default)]
struct SquareSums {
    own: f64,
    other: f64,
    difference: f64,
}

/// None where elements cannot be read, or the other side has others or is in parts itself.
fn sums(whole: &WholeTensor, other: &ExecutionSlot) -> Option<SquareSums> {
    if other.dtype != Some(whole.dtype) || other.dims() != whole.shape || other.whole().is_some() {
        return None;
    }
    let loaded = other.load(None).ok()?;
    let mut others = numbers(whole.dtype, loaded.view().bytes);
    let mut reader = WholeReader::new(whole, vec![false; whole.parts.len()]).ok()?;
    let (mut sums, mut bytes) = (SquareSums::default(), Vec::new());
    let (mut first, end) = (0, whole.n_elements());
    while first < end {
        let n = (end - first).min(N_AT_ONCE);
        // One buffer for all pieces.
        bytes.clear();
        reader
            .read(first, usize::try_from(n).ok()?, &mut bytes)
            .ok()?;
        for own in numbers(whole.dtype, &bytes) {
            let other = others.next()?;
            sums.own += own * own;
            sums.other += other * other;
            // Infinities of masks have no difference.
            let difference = if own == other { 0.0 } else { own - other };
            sums.difference += difference * difference;
        }
        first += n;
    }
    Some(sums)
}

fn numbers(dtype: DType, bytes: &[u8]) -> Box<dyn Iterator<Item = f64> + '_> {
    if is_float(dtype) {
        let elements = bytes.chunks_exact(dtype.bytes().unwrap_or(1));
        return Box::new(elements.map(move |bytes| float(dtype, bytes)));
    }
    Box::new(ElementValue::all(dtype, bytes).map(number))
}

fn number(value: ElementValue) -> f64 {
    match value {
        ElementValue::Float(value) => value,
        ElementValue::Signed(value) => value as f64,
        ElementValue::Unsigned(value) => value as f64,
        ElementValue::Bool(value) => f64::from(u8::from(value)),
        _ => f64::NAN,
    }
}
