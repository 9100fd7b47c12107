//! Which executions on several ranks are those of one operator.
//!
//! Eager mode of PyTorch counts operators of a type on each rank, so a rank with one operator more
//! shifts all later numbers, and stages of a pipeline share numbers. Where the module or the line of
//! a call is known, it decides.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use opscope_store::SharedText;
use opscope_store::record::SlotSide;

use super::movement::selects;
use super::names::counted_word;
use super::note::rank_name;
use super::pipeline::{Stages, stages};
use crate::compare::matching::updated_parameters;
use crate::compare::side::{ComparedDump, OperatorExecution, SlotRef};
use crate::compare::slot_key::SlotKey;
use crate::compare::slot_ranks::RankOperator;

/// Why results are not put together of which each rank reads its own.
const SHARED_OUT: &str = "each rank takes another of its results";

/// The executions of an operator.
#[derive(Default)]
pub(super) struct RankGroup {
    /// In the order of the dump.
    pub(super) runs: Vec<usize>,
    /// Why its tensors cannot be assembled: other ranks compute them by other operators.
    pub(super) problem: Option<String>,
    /// By slot, the operators that ranks have in place of each other.
    pub(super) operators: Vec<(SlotKey, RankOperator)>,
}

/// Executions on several ranks that are one: the same call, or the same operator, model, step and
/// repetition.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ExecutionKey {
    step: Option<u64>,
    model: Option<SharedText>,
    model_id: Option<u32>,
    kind: u8,
    /// The stage of a pipeline.
    stage: usize,
    op_type: SharedText,
    name: CalledName,
    repeat: usize,
}

/// The name of an operator, or its call.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum CalledName {
    /// The name that the dump has.
    Name(SharedText),
    /// Module and line of the call.
    Call(String, String),
}

/// Facts about executions that decide how they are grouped.
struct RankFacts {
    stages: Stages,
    /// By execution, the parameter that it helps to update.
    updates: HashMap<usize, String>,
}

/// Groups of executions, in the order of the first of each. Operators that would share a name
/// without being one are numbered anew.
pub(super) fn group_ranks(side: &mut ComparedDump) -> Vec<RankGroup> {
    let all: Vec<usize> = (0..side.runs.len()).collect();
    let facts = RankFacts {
        stages: stages(side),
        updates: updated_parameters(side, &all).into_iter().collect(),
    };
    let mut groups = by_call(side, &facts);
    merge_lines(side, &facts, &mut groups);
    merge_replaced(side, &mut groups);
    groups.retain(|group| !group.is_empty());
    for group in &mut groups {
        group.sort_unstable();
    }
    groups.sort_unstable();
    number_anew(side, &groups);
    let groups = groups.into_iter().map(|runs| RankGroup {
        runs,
        ..RankGroup::default()
    });
    let mut groups: Vec<RankGroup> = groups.collect();
    note_others(side, &mut groups);
    groups
}

fn by_call(side: &ComparedDump, facts: &RankFacts) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<(ExecutionKey, usize), usize> = HashMap::new();
    let mut n_of: HashMap<(Option<u32>, ExecutionKey), usize> = HashMap::new();
    for run in 0..side.runs.len() {
        let key = key_of(side, facts, run);
        // The k-th of a call on a rank is the k-th on the others.
        let n = match &key.name {
            CalledName::Name(_) => 0,
            CalledName::Call(..) => {
                let rank = side.runs[run].place.rank;
                let n = n_of.entry((rank, key.clone())).or_insert(0);
                *n += 1;
                *n
            }
        };
        let group = *known.entry((key, n)).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(runs) => runs.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

fn key_of(side: &ComparedDump, facts: &RankFacts, run: usize) -> ExecutionKey {
    let execution = &side.runs[run];
    let is_counted = execution.collective.is_none() && counted_word(execution).is_some();
    let [module, source] = match facts.updates.get(&run) {
        // Ranks may update other parameters each.
        Some(parameter) if is_counted => [parameter.clone(), String::new()],
        _ if is_counted => side.module_and_source(run).map(Option::unwrap_or_default),
        _ => Default::default(),
    };
    ExecutionKey {
        step: execution.place.step,
        model: execution.place.model.clone(),
        model_id: execution.place.model_id,
        kind: execution.kind as u8,
        stage: (execution.place.rank)
            .and_then(|rank| facts.stages.get(&rank).copied())
            .unwrap_or(0),
        op_type: execution.op_type.clone(),
        name: if module.is_empty() && source.is_empty() {
            CalledName::Name(execution.op_name.clone())
        } else {
            CalledName::Call(module, source)
        },
        repeat: execution.repeat,
    }
}

/// Merges groups of one type and module whose ranks call it at different lines, equally often.
fn merge_lines(side: &ComparedDump, facts: &RankFacts, groups: &mut [Vec<usize>]) {
    let n_ranks = ranks_of(side, 0..side.runs.len()).len();
    let mut rest: BTreeMap<ExecutionKey, BTreeMap<BTreeSet<u32>, Vec<usize>>> = BTreeMap::new();
    for (g, runs) in groups.iter().enumerate() {
        let ranks = ranks_of(side, runs.iter().copied());
        let mut key = key_of(side, facts, runs[0]);
        if let CalledName::Call(module, line) = &mut key.name
            && !module.is_empty()
            && ranks.len() < n_ranks
        {
            line.clear();
            rest.entry(key)
                .or_default()
                .entry(ranks)
                .or_default()
                .push(g);
        }
    }
    for of_ranks in rest.into_values() {
        let mut lists = of_ranks.iter();
        let Some((first_ranks, first)) = lists.next() else {
            continue;
        };
        let mut seen = first_ranks.clone();
        for (ranks, list) in lists {
            // Each of some ranks and of others, as many.
            if list.len() != first.len() || !seen.is_disjoint(ranks) {
                break;
            }
            seen.extend(ranks);
            for (&into, &from) in first.iter().zip(list) {
                let moved = std::mem::take(&mut groups[from]);
                groups[into].extend(moved);
            }
        }
    }
}

/// Merges an operator of some ranks with the one that other ranks have in its place: both read the
/// same, and the same reads both.
fn merge_replaced(side: &ComparedDump, groups: &mut [Vec<usize>]) {
    let wires = Wires::new(side, groups);
    let n_ranks = ranks_of(side, 0..side.runs.len()).len();
    let mut of_place: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (g, runs) in groups.iter().enumerate() {
        let is_some = !runs.is_empty() && ranks_of(side, runs.iter().copied()).len() < n_ranks;
        let place = is_some.then(|| wires.place_of(side, runs[0])).flatten();
        if let Some(place) = place {
            of_place.entry(place).or_default().push(g);
        }
    }
    for of_one in of_place.into_values() {
        let (&into, others) = of_one.split_first().unwrap_or((&0, &[]));
        for &from in others {
            let [a, b] = [into, from].map(|g| ranks_of(side, groups[g].iter().copied()));
            if a.is_disjoint(&b) {
                let moved = std::mem::take(&mut groups[from]);
                groups[into].extend(moved);
            }
        }
    }
}

fn ranks_of(side: &ComparedDump, runs: impl Iterator<Item = usize>) -> BTreeSet<u32> {
    runs.filter_map(|run| side.runs[run].place.rank).collect()
}

/// Which groups read what.
struct Wires {
    group_of: Vec<usize>,
    /// The first input that reads an output.
    reader_of: HashMap<SlotRef, SlotRef>,
}

/// Where an operator stands: what its first input reads, and what reads its first output.
type WiredPlace = ([usize; 2], [SlotKey; 2]);

impl Wires {
    fn new(side: &ComparedDump, groups: &[Vec<usize>]) -> Wires {
        let mut group_of = vec![usize::MAX; side.runs.len()];
        for (g, runs) in groups.iter().enumerate() {
            for &run in runs {
                group_of[run] = g;
            }
        }
        let mut reader_of: HashMap<SlotRef, SlotRef> = HashMap::new();
        for (run, execution) in side.runs.iter().enumerate() {
            for slot in 0..execution.slots.len() {
                let at = SlotRef { run, slot };
                if let Some(made) = side.producer_of(at) {
                    reader_of.entry(made).or_insert(at);
                }
            }
        }
        Wires {
            group_of,
            reader_of,
        }
    }

    fn place_of(&self, side: &ComparedDump, run: usize) -> Option<WiredPlace> {
        let mut slots = (0..side.runs[run].slots.len()).map(|slot| SlotRef { run, slot });
        let made = slots.clone().find_map(|at| side.producer_of(at))?;
        let output = slots.find(|&at| side.slot(at).side == SlotSide::Output)?;
        let reader = self.reader_of.get(&output)?;
        let groups = [made.run, reader.run].map(|run| self.group_of[run]);
        Some((groups, [made, *reader].map(|at| side.slot(at).key())))
    }
}

/// Gives operators of different groups different names.
fn number_anew(side: &mut ComparedDump, groups: &[Vec<usize>]) {
    type Place = (Option<u64>, Option<SharedText>, Option<u32>, usize);
    let place = |run: &OperatorExecution| -> Place {
        let place = &run.place;
        (place.step, place.model.clone(), place.model_id, run.repeat)
    };
    let mut names: HashSet<(Place, SharedText, SharedText)> = HashSet::new();
    let mut last: HashMap<(Place, SharedText, String), usize> = HashMap::new();
    for run in &side.runs {
        names.insert((place(run), run.op_type.clone(), run.op_name.clone()));
    }
    let mut taken: HashSet<(Place, SharedText, SharedText)> = HashSet::new();
    for runs in groups {
        let first = &side.runs[runs[0]];
        let (at, op_type) = (place(first), first.op_type.clone());
        if taken.insert((at.clone(), op_type.clone(), first.op_name.clone())) {
            continue;
        }
        let Some(word) = counted_word(first).map(str::to_owned) else {
            continue;
        };
        let n = last
            .entry((at.clone(), op_type.clone(), word.clone()))
            .or_insert(0);
        let name = loop {
            *n += 1;
            let name: SharedText = format!("{word}_{n}").as_str().into();
            if names.insert((at.clone(), op_type.clone(), name.clone())) {
                break name;
            }
        };
        taken.insert((at, op_type, name.clone()));
        side.runs[runs[0]].op_name = name;
    }
}

/// By input of a group, the groups that make it: an operator of each, and the ranks that read it.
type Makers = BTreeMap<SlotKey, BTreeMap<usize, (usize, BTreeSet<u32>)>>;

fn makers_of(side: &ComparedDump, runs: &[usize], wires: &Wires) -> Makers {
    let mut makers = Makers::new();
    for &run in runs {
        for (slot, of) in side.runs[run].slots.iter().enumerate() {
            if let Some(made) = side.producer_of(SlotRef { run, slot }) {
                let makers = makers.entry(of.key()).or_default();
                let maker = makers.entry(wires.group_of[made.run]);
                let (_, ranks) = maker.or_insert((made.run, BTreeSet::new()));
                ranks.extend(side.runs[run].place.rank);
            }
        }
    }
    makers.retain(|_, makers| makers.len() > 1);
    makers
}

/// Operators of whose results ranks read another each at one input, so that each takes a part.
fn shared_out(side: &ComparedDump, runs: &[usize]) -> BTreeSet<usize> {
    let mut read: BTreeMap<SlotKey, BTreeMap<SlotKey, usize>> = BTreeMap::new();
    for &run in runs {
        for (slot, of) in side.runs[run].slots.iter().enumerate() {
            let made = side.producer_of(SlotRef { run, slot });
            if let Some(made) = made.filter(|made| selects(&side.runs[made.run].op_type)) {
                let result = side.runs[made.run].slots[made.slot].key();
                read.entry(of.key()).or_default().insert(result, made.run);
            }
        }
    }
    let several = read.into_values().filter(|results| results.len() > 1);
    several.flat_map(BTreeMap::into_values).collect()
}

/// Notes why readers of a group have the value of other operators on other ranks, and which
/// operators ranks have in place of each other.
fn note_others(side: &ComparedDump, groups: &mut [RankGroup]) {
    let runs: Vec<Vec<usize>> = groups.iter().map(|group| group.runs.clone()).collect();
    let wires = Wires::new(side, &runs);
    for (g, of_group) in runs.iter().enumerate() {
        for run in shared_out(side, of_group) {
            let problem = &mut groups[wires.group_of[run]].problem;
            problem.get_or_insert_with(|| SHARED_OUT.to_owned());
        }
        for (key, makers) in makers_of(side, of_group, &wires) {
            for &maker in makers.keys() {
                let ranks = ranks_of(side, runs[maker].iter().copied());
                let mut others = makers.iter().filter_map(|(other, (run, readers))| {
                    let rank = readers.difference(&ranks).next()?;
                    (*other != maker).then_some((*run, *rank))
                });
                if let Some((other, rank)) = others.next() {
                    let other = &side.runs[other];
                    let (rank, op_type) = (rank_name(Some(rank)), &other.op_type);
                    let problem = &mut groups[maker].problem;
                    problem.get_or_insert_with(|| {
                        format!("{rank} computes it by {op_type} `{}`", other.op_name)
                    });
                }
            }
            let makers = makers.into_values();
            let operators = makers.map(|(run, ranks)| (key, rank_operator(side, run, ranks)));
            groups[g].operators.extend(operators);
        }
        groups[g].operators.extend(called_otherwise(side, of_group));
    }
}

/// The operators of a group, by their outputs, if ranks have several types or lines of the program.
fn called_otherwise(side: &ComparedDump, runs: &[usize]) -> Vec<(SlotKey, RankOperator)> {
    let mut calls: BTreeMap<(SharedText, Option<String>), (usize, BTreeSet<u32>)> = BTreeMap::new();
    for &run in runs {
        let [_, source] = side.module_and_source(run);
        let call = calls.entry((side.runs[run].op_type.clone(), source));
        let (_, ranks) = call.or_insert((run, BTreeSet::new()));
        ranks.extend(side.runs[run].place.rank);
    }
    if calls.len() < 2 {
        return Vec::new();
    }
    let operators = calls.into_values().flat_map(|(run, ranks)| {
        let slots = side.runs[run].slots.iter();
        let outputs = slots.filter(|slot| slot.side == SlotSide::Output);
        outputs.map(move |slot| (slot.key(), rank_operator(side, run, ranks.clone())))
    });
    operators.collect()
}

fn rank_operator(side: &ComparedDump, run: usize, ranks: BTreeSet<u32>) -> RankOperator {
    let [_, source] = side.module_and_source(run);
    RankOperator {
        ranks: ranks.into_iter().collect(),
        op_type: side.runs[run].op_type.clone(),
        op_name: side.runs[run].op_name.clone(),
        source,
    }
}
