//! Finds parameters that were equal on several ranks and no longer are.
//!
//! Replicas of a model start with equal parameters and stay equal while every gradient is reduced.
//! Replicas are inferred from equal values in the dump. Constant parameters, such as zero biases of
//! a layer that is split, are equal by chance. They count only if the other parameters of their
//! module, or all of the model's, are equal as well.

use std::collections::{BTreeMap, HashMap};

use opscope_store::record::SlotSide;

use super::content::ContentMark;
use super::finding::{
    DivergenceEvidence, DivergenceFinding, DivergenceKind, DriftedParameter, RankDivergences,
    minority,
};
use super::replicas::{TensorCandidate, unexplained};
use super::run::RankedRun;
use opscope_analysis::compare::side::SlotRef;
use opscope_analysis::statistics_of;

/// The phase in which parameters are updated.
const OPTIMIZER: &str = "optimizer";
/// The suffix of a gradient's name; a gradient is not a parameter.
const GRADIENT: &str = ".grad";

/// The first read of a parameter on each rank in a step.
type Reads = BTreeMap<u32, SlotRef>;

/// A parameter's reads by step.
type Steps = BTreeMap<Option<u64>, Reads>;

/// Ranks with equal values of a parameter.
struct ReplicaGroup {
    ranks: Vec<u32>,
    /// Whether all elements are the same number.
    is_constant: bool,
    /// The last step in which they were equal.
    step: Option<u64>,
}

/// Finds parameters that diverge between ranks, unless an earlier finding explains it.
pub(super) fn drifted(run: &RankedRun, found: &mut RankDivergences) -> Vec<DivergenceFinding> {
    let parameters = read_parameters(run);
    let groups: BTreeMap<&str, Vec<ReplicaGroup>> = parameters
        .iter()
        .map(|(name, steps)| (name.as_str(), first_groups(run, steps)))
        .collect();
    let mut candidates = Vec::new();
    // Iterates in name order, which decides when two drift at one operator.
    for (name, steps) in &parameters {
        found.n_parameters += u64::from(steps.values().filter(|reads| reads.len() > 1).count() > 1);
        for group in &groups[name.as_str()] {
            let is_replica = is_replicated(name, group, &groups);
            candidates.extend(drift_of(run, name, steps, group, is_replica));
        }
    }
    unexplained(run, &found.findings, candidates)
}

fn read_parameters(run: &RankedRun) -> BTreeMap<String, Steps> {
    let mut parameters: BTreeMap<String, Steps> = BTreeMap::new();
    for sequence in &run.ranks {
        for &index in &sequence.runs {
            let one = &run.dump.runs[index];
            for (slot, tensor) in one.slots.iter().enumerate() {
                let at = SlotRef { run: index, slot };
                if tensor.side != SlotSide::Input || run.dump.producer_of(at).is_some() {
                    continue;
                }
                // The optimizer reads state of the same parameter, which is also replicated.
                let name = run.dump.parameter_of(at);
                if let Some(name) = name.filter(|name| !name.ends_with(GRADIENT)) {
                    let reads = parameters.entry(name).or_default();
                    let reads = reads.entry(one.place.step).or_default();
                    reads.entry(sequence.rank).or_insert(at);
                }
            }
        }
    }
    parameters
}

/// Ranks with equal values in the first step with several ranks.
fn first_groups(run: &RankedRun, steps: &Steps) -> Vec<ReplicaGroup> {
    // A single rank has nothing to compare with.
    let Some((&step, reads)) = steps.iter().find(|(_, reads)| reads.len() > 1) else {
        return Vec::new();
    };
    let ranks: Vec<u32> = reads.keys().copied().collect();
    let classes = classes(run, reads, &ranks).unwrap_or_default();
    let groups = classes.into_iter().filter(|ranks| ranks.len() > 1);
    let groups = groups.map(|ranks| {
        let is_constant = is_constant(run, reads[&ranks[0]]);
        ReplicaGroup {
            ranks,
            is_constant,
            step,
        }
    });
    groups.collect()
}

/// Groups ranks by the value that they read; `None` unless all values have marks of one kind.
fn classes(run: &RankedRun, reads: &Reads, ranks: &[u32]) -> Option<Vec<Vec<u32>>> {
    let mut classes: BTreeMap<ContentMark, Vec<u32>> = BTreeMap::new();
    for rank in ranks {
        let at = reads.get(rank)?;
        let mark = run.marks.get(at.run, at.slot)?;
        classes.entry(mark).or_default().push(*rank);
    }
    let first = classes.keys().next()?.kind;
    let is_one_kind = classes.keys().all(|mark| mark.kind == first);
    is_one_kind.then(|| classes.into_values().collect())
}

/// Whether all elements are the same number, according to statistics. A single element always is.
fn is_constant(run: &RankedRun, at: SlotRef) -> bool {
    let tensor = &run.dump.runs[at.run].slots[at.slot];
    let [min, max, ..] = statistics_of(tensor).numbers;
    match (min, max) {
        (Some(min), Some(max)) => min == max,
        // Without statistics: two elements may be equal by chance, more are not.
        _ => tensor.n_elements().is_none_or(|n| n < 2),
    }
}

/// Whether equal values show that the parameter is a replica: it is not constant, or the
/// non-constant parameters of its module, or else of the whole model, are replicas on the same
/// ranks.
fn is_replicated(
    name: &str,
    group: &ReplicaGroup,
    groups: &BTreeMap<&str, Vec<ReplicaGroup>>,
) -> bool {
    if !group.is_constant {
        return true;
    }
    let own = name.rsplit_once('.').map(|(module, _)| module);
    let (mut beside, mut all) = (Vec::new(), Vec::new());
    for (other, known) in groups {
        // A parameter that is equal nowhere, or constant, has no group that varies.
        if known.iter().any(|group| group.is_constant) {
            continue;
        }
        let is_replica = known
            .iter()
            .any(|replicas| group.ranks.iter().all(|rank| replicas.ranks.contains(rank)));
        all.push(is_replica);
        if other.rsplit_once('.').map(|(module, _)| module) == own {
            beside.push(is_replica);
        }
    }
    let witnesses = if beside.is_empty() { all } else { beside };
    !witnesses.is_empty() && witnesses.iter().all(|is_replica| *is_replica)
}

/// The first step in which a group's ranks read different values.
fn drift_of(
    run: &RankedRun,
    name: &str,
    steps: &Steps,
    group: &ReplicaGroup,
    mut is_replica: bool,
) -> Option<TensorCandidate> {
    let mut equal_in = group.step;
    for (step, reads) in steps.iter().filter(|(step, _)| **step > group.step) {
        let Some(now) = classes(run, reads, &group.ranks) else {
            continue;
        };
        if now.len() == 1 {
            equal_in = *step;
            is_replica |= !is_constant(run, reads[&group.ranks[0]]);
            continue;
        }
        // Values that were equal by chance may differ later.
        if !is_replica {
            return None;
        }
        let members: Vec<u32> = group.ranks.clone();
        let of_classes = now.iter().map(|ranks| {
            let places = ranks
                .iter()
                .map(|rank| members.iter().position(|known| known == rank));
            places.flatten().collect()
        });
        let apart = minority(of_classes.collect())?;
        let accused: Vec<SlotRef> = apart
            .accused
            .iter()
            .map(|&at| reads[&members[at]])
            .collect();
        let first = accused[0];
        return Some(TensorCandidate {
            finding: DivergenceFinding {
                kind: DivergenceKind::Drifted(DriftedParameter {
                    name: name.to_owned(),
                    equal_in,
                    had_equal_gradients: had_equal_gradients(run, name, equal_in, &members),
                }),
                run: first.run,
                slot: Some(run.dump.runs[first.run].slots[first.slot].key()),
                ranks: apart.accused.iter().map(|&at| members[at]).collect(),
                is_each: apart.is_each,
                others: apart.others.iter().map(|&at| members[at]).collect(),
                meeting: None,
                difference: None,
                evidence: DivergenceEvidence::History,
                later: Vec::new(),
            },
            accused: accused.iter().map(|at| at.run).collect(),
        });
    }
    None
}

/// Whether the optimizer of a step read equal gradients of a parameter on these ranks: the values
/// that its own operators did not produce.
fn had_equal_gradients(
    run: &RankedRun,
    name: &str,
    step: Option<u64>,
    ranks: &[u32],
) -> Option<bool> {
    // For each rank, the marks of all gradients in reading order.
    let mut known: HashMap<u32, Vec<ContentMark>> = HashMap::new();
    let sequences = run.ranks.iter();
    for sequence in sequences.filter(|sequence| ranks.contains(&sequence.rank)) {
        for &index in &sequence.runs {
            let execution = &run.dump.runs[index];
            if execution.place.step != step || run.dump.phase_of(index) != Some(OPTIMIZER) {
                continue;
            }
            let slots = (0..execution.slots.len()).map(|slot| SlotRef { run: index, slot });
            let is_updated = slots.clone().any(|at| {
                let parameter = run.dump.parameter_of(at);
                let rest = parameter
                    .as_ref()
                    .and_then(|other| other.strip_prefix(name));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            if !is_updated {
                continue;
            }
            for at in slots {
                let maker = run.dump.producer_of(at);
                let is_from_outside =
                    maker.is_some_and(|made| run.dump.phase_of(made.run) != Some(OPTIMIZER));
                let is_gradient = run
                    .dump
                    .parameter_of(at)
                    .is_some_and(|other| other.ends_with(GRADIENT));
                if is_from_outside || maker.is_none() && is_gradient {
                    let marks = known.entry(sequence.rank).or_default();
                    marks.push(run.marks.get(index, at.slot)?);
                }
            }
        }
    }
    let first = known.get(ranks.first()?)?;
    let marks: Option<Vec<_>> = ranks.iter().map(|rank| known.get(rank)).collect();
    Some(marks?.into_iter().all(|marks| marks == first))
}
