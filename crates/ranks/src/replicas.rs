//! Compares operators and tensors that several ranks have in common.

use std::collections::{BTreeMap, HashMap, HashSet};

use opscope_store::record::SlotSide;
use opscope_store::record::parallel::{AxisPlacement, Placement};

use super::content::{ContentMark, MarkKind};
use super::finding::{
    DivergenceEvidence, DivergenceFinding, DivergenceKind, Minority, RankDivergences, evidence_of,
    minority,
};
use super::run::RankedRun;
use opscope_analysis::compare::result::SlotKey;
use opscope_analysis::compare::side::{ExecutionSlot, SlotRef};
use opscope_analysis::statistics_of;

/// Substrings of operator types whose results may depend on the rank without an input that shows
/// it: they slice, fill, or draw random values.
const OF_RANK: [&str; 22] = [
    "slice",
    "narrow",
    "split",
    "chunk",
    "select",
    "index",
    "gather",
    "scatter",
    "rand",
    "dropout",
    "bernoulli",
    "normal_",
    "uniform",
    "multinomial",
    "arange",
    "full",
    "empty",
    "pad",
    "roll",
    "shard",
    "embedding",
    "constant",
];

/// Maximum number of reported tensors: tracing each through all collectives takes time.
const N_KEPT_MAX: usize = 256;

/// An operator of the program on any rank and step: type, name, model and index among its calls in
/// the step.
type Operator<'a> = (&'a str, &'a str, Option<&'a str>, usize);
/// The executions of an operator by step: rank and execution.
type Executions = BTreeMap<Option<u64>, Vec<(u32, usize)>>;

/// The executions of all operators that run on several ranks.
fn operators_of(run: &RankedRun) -> Vec<Executions> {
    let mut of_operator: HashMap<Operator<'_>, Executions> = HashMap::new();
    for sequence in &run.ranks {
        for &index in &sequence.runs {
            let one = &run.dump.runs[index];
            let key = (
                one.op_type.as_str(),
                one.op_name.as_str(),
                one.place.model.as_deref(),
                one.repeat,
            );
            let steps = of_operator.entry(key).or_default();
            steps
                .entry(one.place.step)
                .or_default()
                .push((sequence.rank, index));
        }
    }
    // A map's order differs between runs.
    let mut operators: Vec<_> = of_operator.into_iter().collect();
    operators.sort_by_key(|(key, _)| *key);
    operators.into_iter().map(|(_, steps)| steps).collect()
}

/// Reports operators that computed another result than other ranks from equal inputs.
pub(super) fn operators(run: &RankedRun, found: &mut RankDivergences) {
    for steps in operators_of(run) {
        let mut first = steps.values().flatten();
        if first.any(|(_, index)| run.is_collective(*index)) {
            continue;
        }
        let marks: Vec<HashMap<usize, [ContentMark; 2]>> =
            steps.values().map(|all| both_marks(run, all)).collect();
        for (nth, executions) in steps.values().enumerate() {
            let mut alike: BTreeMap<ContentMark, Vec<usize>> = BTreeMap::new();
            for (at, (_, index)) in executions.iter().enumerate() {
                if let Some([inputs, _]) = marks[nth].get(index) {
                    alike.entry(*inputs).or_default().push(at);
                }
            }
            // Equal inputs are the evidence; ranks with other inputs are not compared.
            for members in alike.into_values().filter(|members| members.len() > 1) {
                found.n_replicated += 1;
                let mut classes: BTreeMap<ContentMark, Vec<usize>> = BTreeMap::new();
                for at in members {
                    let [_, outputs] = marks[nth][&executions[at].1];
                    classes.entry(outputs).or_default().push(at);
                }
                let is_of_bits = classes.keys().all(|mark| mark.kind == MarkKind::Bits);
                let Some(apart) = minority(classes.into_values().collect()) else {
                    continue;
                };
                let known = is_known_equal(run, &steps, &marks, nth, executions, &apart);
                if let Some(evidence) = known {
                    let evidence = evidence.unwrap_or(evidence_of(is_of_bits));
                    let kind = DivergenceKind::OperatorDiffers;
                    let slot = first_output(run, executions, &apart);
                    found
                        .findings
                        .push(finding(kind, executions, &apart, slot, evidence));
                }
            }
        }
    }
}

/// The marks of inputs and outputs of executions, if both are known.
fn both_marks(run: &RankedRun, executions: &[(u32, usize)]) -> HashMap<usize, [ContentMark; 2]> {
    let known = executions.iter().filter_map(|&(_, index)| {
        let inputs = run.marks.of_side(&run.dump, index, SlotSide::Input)?;
        let outputs = run.marks.of_side(&run.dump, index, SlotSide::Output)?;
        // Equal statistics do not prove equal inputs.
        (inputs.kind == MarkKind::Bits).then_some((index, [inputs, outputs]))
    });
    known.collect()
}

/// Whether outlying members must agree with the others: they did in another step with equal inputs,
/// or placements require it, or the type does not depend on the rank and one disagrees with
/// several. The evidence is `None` if the operator itself is.
fn is_known_equal(
    run: &RankedRun,
    steps: &Executions,
    marks: &[HashMap<usize, [ContentMark; 2]>],
    nth: usize,
    executions: &[(u32, usize)],
    apart: &Minority,
) -> Option<Option<DivergenceEvidence>> {
    let mut members = apart.accused.iter().chain(&apart.others);
    let a = executions[*members.next()?];
    // One that differs from the first: without a majority, members that agree are suspected
    // together.
    let output_of = |(_, index): (u32, usize)| marks[nth].get(&index).map(|[_, output]| *output);
    let mut members = members.map(|&at| executions[at]);
    let b = members.find(|&other| output_of(other) != output_of(a))?;
    for (other_nth, executions) in steps.values().enumerate() {
        if other_nth == nth {
            continue;
        }
        // The same two ranks, because others may take other parts.
        let [a_marks, b_marks] = [a.0, b.0].map(|rank| {
            let (_, index) = executions.iter().find(|(known, _)| *known == rank)?;
            marks[other_nth].get(index)
        });
        if a_marks.is_some() && a_marks == b_marks {
            return Some(Some(DivergenceEvidence::History));
        }
    }
    let outputs = [a.1, b.1].map(|index| {
        let mut slots = run.dump.runs[index].slots.iter();
        slots.find(|slot| slot.side == SlotSide::Output)
    });
    let [Some(a_output), Some(b_output)] = outputs else {
        return None;
    };
    if let [Some(a), Some(b)] = [a_output, b_output].map(placement) {
        // Equal coordinates belong to two meshes, such as those of two pipeline stages.
        let is_one_mesh = coordinates(a) != coordinates(b);
        let is_replicated = is_one_mesh && replica_key(a) == replica_key(b);
        return is_replicated.then_some(Some(DivergenceEvidence::Placement));
    }
    // Not all dumps have attributes, so the type must suffice.
    let op_type = run.dump.runs[a.1].op_type.to_ascii_lowercase();
    // It slices by rank or draws random numbers, from equal inputs.
    let is_of_rank = OF_RANK.iter().any(|part| op_type.contains(part));
    let is_one_against_all = apart.accused.len() == 1 && apart.others.len() > 1;
    (!is_of_rank && is_one_against_all).then_some(None)
}

/// The first output in which an outlying member differs from another.
fn first_output(run: &RankedRun, executions: &[(u32, usize)], apart: &Minority) -> Option<SlotKey> {
    let index = executions[apart.accused[0]].1;
    let other = apart.others.first().or(apart.accused.get(1))?;
    let other = executions[*other].1;
    let slots = run.dump.runs[index].slots.iter().enumerate();
    let mut outputs = slots.filter(|(_, slot)| slot.side == SlotSide::Output);
    let first = outputs.find(|(at, _)| run.marks.get(index, *at) != run.marks.get(other, *at));
    first.map(|(_, slot)| slot.key())
}

fn finding(
    kind: DivergenceKind,
    executions: &[(u32, usize)],
    apart: &Minority,
    slot: Option<SlotKey>,
    evidence: DivergenceEvidence,
) -> DivergenceFinding {
    DivergenceFinding {
        kind,
        run: executions[apart.accused[0]].1,
        slot,
        ranks: apart.accused.iter().map(|&at| executions[at].0).collect(),
        is_each: apart.is_each,
        others: apart.others.iter().map(|&at| executions[at].0).collect(),
        meeting: None,
        difference: None,
        evidence,
        later: Vec::new(),
    }
}

fn placement(slot: &ExecutionSlot) -> Option<&Placement> {
    slot.record().placement.as_deref()
}

/// The placement without the coordinates of replicated axes: ranks with equal keys have equal
/// tensors.
fn replica_key(placement: &Placement) -> Vec<(String, Option<u32>)> {
    let axes = placement.axes.iter().map(|axis| {
        let is_replicated = axis.placement == AxisPlacement::Replicated;
        let text = format!("{}/{}:{}", axis.name, axis.size, axis.placement);
        (text, (!is_replicated).then_some(axis.coordinate))
    });
    let shape = placement
        .shape
        .iter()
        .map(|extent| (extent.to_string(), None));
    axes.chain(shape).collect()
}

fn coordinates(placement: &Placement) -> Vec<u32> {
    placement.axes.iter().map(|axis| axis.coordinate).collect()
}

/// For each mesh size, the lowest rank in the mesh of each rank.
type ConnectedRanks = HashMap<u64, HashMap<u32, u32>>;

/// Splits members with equal placements by mesh. A run may have several meshes with equal names,
/// such as those of pipeline stages, and a placement does not distinguish them: two members with
/// equal coordinates are in different meshes. Ranks that meet in collectives no larger than the
/// mesh are in the same one; members that never do are dropped.
fn of_one_mesh(
    run: &RankedRun,
    connected: &mut ConnectedRanks,
    executions: &[(u32, usize)],
    members: Vec<usize>,
    slot: usize,
) -> Vec<Vec<usize>> {
    let placement_of = |at: usize| placement(run.dump.runs[executions[at].1].slots.get(slot)?);
    let has_duplicates = |members: &[usize]| {
        let mut known = HashSet::new();
        let mut placements = members.iter().filter_map(|&at| placement_of(at));
        placements.any(|placement| !known.insert(coordinates(placement)))
    };
    if !has_duplicates(&members) {
        return vec![members];
    }
    let sizes = members.first().and_then(|&at| placement_of(at));
    let sizes = sizes.map(|placement| placement.axes.iter().map(|axis| u64::from(axis.size)));
    let n_ranks = sizes.map_or(0, Iterator::product::<u64>);
    let connected = connected.entry(n_ranks);
    let connected = connected.or_insert_with(|| run.meetings.connected(n_ranks));
    let mut of_mesh: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for at in members {
        if let Some(&mesh) = connected.get(&executions[at].0) {
            of_mesh.entry(mesh).or_default().push(at);
        }
    }
    let parts = of_mesh.into_values();
    parts.filter(|part| !has_duplicates(part)).collect()
}

/// A tensor that differs on some ranks in a step.
pub(super) struct TensorCandidate {
    pub(super) finding: DivergenceFinding,
    /// The executions of the suspected ranks.
    pub(super) accused: Vec<usize>,
}

/// Reports tensors that differ although placements declare them replicated, unless an earlier
/// finding explains it.
pub(super) fn placed(run: &RankedRun, before: &[DivergenceFinding]) -> Vec<DivergenceFinding> {
    let mut candidates = Vec::new();
    let mut connected = ConnectedRanks::new();
    for steps in operators_of(run) {
        for executions in steps.values() {
            let n_slots = executions
                .iter()
                .map(|(_, index)| run.dump.runs[*index].slots.len());
            for slot in 0..n_slots.max().unwrap_or(0) {
                candidates.extend(placed_apart(run, &mut connected, executions, slot));
            }
        }
    }
    unexplained(run, before, candidates)
}

fn placed_apart(
    run: &RankedRun,
    connected: &mut ConnectedRanks,
    executions: &[(u32, usize)],
    slot: usize,
) -> Vec<TensorCandidate> {
    let mut replicas: BTreeMap<Vec<(String, Option<u32>)>, Vec<usize>> = BTreeMap::new();
    for (at, (_, index)) in executions.iter().enumerate() {
        let tensor = run.dump.runs[*index].slots.get(slot);
        if let Some(placement) = tensor.and_then(placement) {
            replicas.entry(replica_key(placement)).or_default().push(at);
        }
    }
    let groups = replicas.into_values().filter(|members| members.len() > 1);
    let meshes = groups.flat_map(|all| of_one_mesh(run, connected, executions, all, slot));
    let apart = meshes.filter_map(|members| {
        // Different statistics prove a difference; equal ones prove nothing.
        let apart = minority(classes_of(run, executions, &members, slot)?)?;
        Some(candidate(
            run,
            executions,
            &apart,
            slot,
            DivergenceEvidence::Placement,
        ))
    });
    apart.collect()
}

/// Groups members with equal tensors; `None` unless all have marks of one kind.
fn classes_of(
    run: &RankedRun,
    executions: &[(u32, usize)],
    members: &[usize],
    slot: usize,
) -> Option<Vec<Vec<usize>>> {
    let mut classes: BTreeMap<ContentMark, Vec<usize>> = BTreeMap::new();
    for &at in members {
        let mark = run.marks.get(executions[at].1, slot)?;
        classes.entry(mark).or_default().push(at);
    }
    // A digest of one rank and statistics of another are not comparable.
    let kinds: HashSet<MarkKind> = classes.keys().map(|mark| mark.kind).collect();
    (kinds.len() == 1).then(|| classes.into_values().collect())
}

fn candidate(
    run: &RankedRun,
    executions: &[(u32, usize)],
    apart: &Minority,
    slot: usize,
    evidence: DivergenceEvidence,
) -> TensorCandidate {
    let accused = apart.accused.iter().map(|&at| executions[at].1).collect();
    let kind = DivergenceKind::ReplicaDiffers;
    let first = executions[apart.accused[0]].1;
    let key = run.dump.runs[first].slots.get(slot).map(ExecutionSlot::key);
    let finding = finding(kind, executions, apart, key, evidence);
    TensorCandidate { finding, accused }
}

/// Drops candidates that may follow from an earlier finding or from another candidate.
pub(super) fn unexplained(
    run: &RankedRun,
    before: &[DivergenceFinding],
    mut candidates: Vec<TensorCandidate>,
) -> Vec<DivergenceFinding> {
    candidates.sort_by_key(|candidate| run.sort_key(candidate.finding.run));
    // After a desync, nothing can be traced across ranks.
    let first_desync = before.iter().filter_map(|finding| {
        let is_desync = matches!(finding.kind, DivergenceKind::Desync(_));
        is_desync.then(|| run.dump.runs[finding.run].place.step)
    });
    // Steps before it are still valid.
    let first_desync = first_desync.min();
    // A finding explains everything that may depend on it.
    let mut causes: Vec<Vec<usize>> = Vec::new();
    for finding in before {
        causes.extend(reached(run, finding));
    }
    let mut kept = Vec::new();
    for candidate in candidates {
        if kept.len() == N_KEPT_MAX {
            break;
        }
        let step = run.dump.runs[candidate.finding.run].place.step;
        if first_desync.is_some_and(|first| step >= first) {
            continue;
        }
        // With two outlying ranks, either may have inherited it.
        let places = candidate
            .accused
            .iter()
            .filter_map(|&index| run.places[index]);
        let mut places = places.collect::<Vec<_>>().into_iter();
        let is_explained = places.any(|place| {
            let mut causes = causes.iter();
            causes.any(|reached| reached[place.nth_rank] <= place.position)
        });
        if !is_explained {
            for &index in &candidate.accused {
                let place = run.places[index];
                let reached = place.map(|place| run.order.reached_from(&run.meetings, place));
                causes.extend(reached);
            }
            kept.push(candidate.finding);
        }
    }
    kept
}

/// For each rank, the positions that may depend on a finding.
fn reached(run: &RankedRun, finding: &DivergenceFinding) -> Vec<Vec<usize>> {
    let runs = match finding.meeting {
        // Any of its ranks may be meant.
        Some(nth) if !finding.is_each => {
            let calls = run.meetings.meetings[nth].calls.iter();
            calls.map(|call| call.run).collect()
        }
        _ => executions_alike(run, finding),
    };
    let places = runs.into_iter().filter_map(|index| run.places[index]);
    let reached = places.map(|place| run.order.reached_from(&run.meetings, place));
    reached.collect()
}

/// The executions of a finding's operator and step on the suspected ranks.
fn executions_alike(run: &RankedRun, finding: &DivergenceFinding) -> Vec<usize> {
    let shown = &run.dump.runs[finding.run];
    if finding.ranks.len() < 2 {
        return vec![finding.run];
    }
    let ranks = run.ranks.iter();
    let ranks = ranks.filter(|sequence| finding.ranks.contains(&sequence.rank));
    let found = ranks.filter_map(|sequence| {
        let mut runs = sequence.runs.iter().copied();
        runs.find(|&index| {
            let one = &run.dump.runs[index];
            one.op_name == shown.op_name
                && one.place.step == shown.place.step
                && one.repeat == shown.repeat
        })
    });
    found.collect()
}

/// Reports weights that were equal on ranks in all earlier steps and no longer are: inputs without
/// a producer in the dump. Training data differ between steps by design, so a tensor counts only if
/// it was equal while it changed, or if all other ranks still have its value.
pub(super) fn equal_before(
    run: &RankedRun,
    before: &[DivergenceFinding],
) -> Vec<DivergenceFinding> {
    let mut candidates = Vec::new();
    for steps in operators_of(run) {
        let n_slots = steps.values().flatten();
        let n_slots = n_slots
            .map(|(_, index)| run.dump.runs[*index].slots.len())
            .max();
        for slot in 0..n_slots.unwrap_or(0) {
            let mut equal: Option<Vec<Vec<u32>>> = None;
            let mut last = HashMap::new();
            for executions in steps.values() {
                let members: Vec<usize> = (0..executions.len())
                    .filter(|&at| is_weight(run, executions[at].1, slot))
                    .collect();
                let Some(classes) = classes_of(run, executions, &members, slot) else {
                    continue;
                };
                let classes = classes.iter();
                let ranks = classes.map(|class| class.iter().map(|&at| executions[at].0).collect());
                let now: Vec<Vec<u32>> = ranks.collect();
                for group in equal.iter().flatten().filter(|group| group.len() > 1) {
                    let apart = split(&now, group);
                    let apart = apart.filter(|parts| {
                        parts[1].len() > 1 || is_one_alone_changed(run, &last, executions, slot)
                    });
                    if let Some(apart) = apart.and_then(|apart| at_ranks(executions, apart)) {
                        let evidence = DivergenceEvidence::History;
                        candidates.push(candidate(run, executions, &apart, slot, evidence));
                    }
                }
                equal = Some(match equal {
                    Some(equal) => intersected(&equal, &now),
                    None => now,
                });
                last = marks_of(run, executions, slot);
            }
        }
    }
    unexplained(run, before, candidates)
}

/// The marks of a tensor by rank.
fn marks_of(
    run: &RankedRun,
    executions: &[(u32, usize)],
    slot: usize,
) -> HashMap<u32, ContentMark> {
    let marks = executions.iter();
    let marks = marks.filter_map(|&(rank, index)| Some((rank, run.marks.get(index, slot)?)));
    marks.collect()
}

/// Whether a tensor changed since the previous step on one rank only. Two ranks that received the
/// same batch once look like replicas, but then both receive new data.
fn is_one_alone_changed(
    run: &RankedRun,
    last: &HashMap<u32, ContentMark>,
    executions: &[(u32, usize)],
    slot: usize,
) -> bool {
    let now = marks_of(run, executions, slot);
    let changed = now
        .iter()
        .filter(|(rank, mark)| last.get(rank).is_some_and(|last| last != *mark));
    changed.count() == 1
}

/// Splits a group if exactly one rank has left its class in this step.
fn split(now: &[Vec<u32>], group: &[u32]) -> Option<[Vec<u32>; 2]> {
    let parts = now.iter().map(|class| {
        let both = class.iter().filter(|rank| group.contains(rank));
        both.copied().collect::<Vec<u32>>()
    });
    let mut parts: Vec<Vec<u32>> = parts.filter(|part| !part.is_empty()).collect();
    parts.sort_by_key(Vec::len);
    match &mut parts[..] {
        [one, rest] if one.len() == 1 => Some([std::mem::take(one), std::mem::take(rest)]),
        _ => None,
    }
}

/// Converts ranks to indices of executions.
fn at_ranks(executions: &[(u32, usize)], [one, rest]: [Vec<u32>; 2]) -> Option<Minority> {
    let [accused, others] = [one, rest].map(|ranks| {
        let places = ranks
            .iter()
            .map(|rank| executions.iter().position(|(known, _)| known == rank));
        places.flatten().collect::<Vec<usize>>()
    });
    if others.len() > 1 {
        return Some(Minority {
            accused,
            others,
            is_each: true,
        });
    }
    // With two ranks, either may be the culprit.
    let accused: Vec<usize> = accused.into_iter().chain(others).collect();
    (accused.len() == 2).then_some(Minority {
        accused,
        others: Vec::new(),
        is_each: false,
    })
}

/// Ranks that were together before and still are.
fn intersected(equal: &[Vec<u32>], now: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let pairs = equal.iter().flat_map(|a| now.iter().map(move |b| (a, b)));
    let both = pairs.map(|(a, b)| {
        let both = a.iter().filter(|rank| b.contains(rank));
        both.copied().collect::<Vec<u32>>()
    });
    both.filter(|both| !both.is_empty()).collect()
}

/// Minimum number of elements of a weight: few numbers are rarely equal by chance.
const N_WEIGHT_ELEMENTS_MIN: u64 = 16;

/// Whether a slot may be a weight: floating-point, without a producer in the dump, with at least
/// two axes, and not a mask of zeros and ones or infinities.
fn is_weight(run: &RankedRun, index: usize, slot: usize) -> bool {
    let Some(tensor) = run.dump.runs[index].slots.get(slot) else {
        return false;
    };
    let is_number = tensor
        .dtype
        .is_some_and(|dtype| opscope_tensor::largest_finite(dtype).is_some());
    let cells = statistics_of(tensor);
    let [min, max, sum, _, _, l1, l2] = cells.numbers;
    let is_mask = match (min, max, sum, l1, l2) {
        (Some(min), Some(max), Some(sum), Some(l1), Some(l2)) => {
            // Zeros and ones have equal sums of values, magnitudes and squares.
            let of_ones = sum == l1 && (l2 * l2 - l1).abs() <= l1 * 1e-9;
            !min.is_finite() || !max.is_finite() || min == max || of_ones
        }
        _ => false,
    };
    let at = SlotRef { run: index, slot };
    tensor.side == SlotSide::Input
        && is_number
        && !is_mask
        && !run.is_collective(index)
        && tensor.shape.as_ref().is_some_and(|shape| shape.len() > 1)
        && tensor
            .n_elements()
            .is_some_and(|n| n >= N_WEIGHT_ELEMENTS_MIN)
        && run.dump.producer_of(at).is_none()
}
