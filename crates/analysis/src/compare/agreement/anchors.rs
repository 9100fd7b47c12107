//! Which operators make the same values.

use std::collections::{HashMap, HashSet, VecDeque};

use opscope_store::record::SlotSide;
use opscope_tensor::DType;

use super::ComparedValues;
use super::parting::{PartingPair, frontier};
use super::region::LearnedRegions;
use super::values::{SideValues, ValueIndex};
use crate::compare::attribution::kinds::plain_type;
use crate::compare::matching::{SlotRef, ValueAnchor, is_same_type, without_counter};
use crate::compare::side::ComparedDump;

/// Types of operators that compute something else from exchanged inputs, of which statistics may be
/// the same.
const ORDERED: [&str; 7] = ["cat", "concat", "div", "matmul", "stack", "sub", "where"];

/// Operators with equal keys are matched: by name and repetition, by type, or without a further
/// criterion.
type LikenessKey = (String, usize);

/// Matches operators with an output of equal value: those of one name first, then those with one
/// place among the parts of a value, then of one type, then the rest in execution order; and then
/// those at which both sides diverge. Operators that pass an input on produce nothing.
pub(super) fn find(values: &mut ComparedValues, dumps: [&ComparedDump; 2]) {
    let makers = [0, 1].map(|i| values.sides[i].makers());
    let mut is_taken = [HashSet::new(), HashSet::new()];
    let mut anchors = Vec::new();
    let parts = [0, 1].map(|i| values.places_among_parts(i, dumps[i]));
    for (t, equal) in values.equals[0].iter().enumerate() {
        let (t, Some(g)) = (ValueIndex(t), *equal) else {
            continue;
        };
        let (Some(targets), Some(goldens)) = (makers[0].get(&t), makers[1].get(&g)) else {
            continue;
        };
        let keys: [&dyn Fn(usize, usize) -> Option<LikenessKey>; 4] = [
            &|i, run| {
                Some((
                    dumps[i].runs[run].op_name.to_string(),
                    dumps[i].runs[run].repeat,
                ))
            },
            &|i, run| parts[i].get(&run).cloned(),
            &|i, run| Some((dumps[i].runs[run].op_type.to_ascii_lowercase(), 0)),
            &|_, _| Some(LikenessKey::default()),
        ];
        for key in keys {
            // By key, since thousands of operators may make one value.
            let mut free: HashMap<LikenessKey, VecDeque<usize>> = HashMap::new();
            for &golden in goldens.iter().filter(|run| !is_taken[1].contains(*run)) {
                if let Some(key) = key(1, golden) {
                    free.entry(key).or_default().push_back(golden);
                }
            }
            for &target in targets {
                if free.is_empty() || is_taken[0].contains(&target) {
                    continue;
                }
                let alike = key(0, target).and_then(|key| free.get_mut(&key));
                if let Some(golden) = alike.and_then(VecDeque::pop_front) {
                    is_taken[0].insert(target);
                    is_taken[1].insert(golden);
                    anchors.push(anchor(values, dumps, [target, golden]));
                }
            }
        }
    }
    let left = last_parts(&parts, &is_taken);
    values.pair_last_parts(dumps, &makers[0], left, &mut anchors);
    for &runs in &values.last_parts {
        is_taken[0].insert(runs[0]);
        is_taken[1].insert(runs[1]);
    }
    is_taken[0].extend(anchors.iter().map(|anchor| anchor.runs[0]));
    let regions = LearnedRegions::learn(values, dumps, &makers[0], &anchors);
    let anchored: HashMap<usize, usize> = anchors
        .iter()
        .map(|anchor| (anchor.runs[0], anchor.runs[1]))
        .collect();
    let mut parting = frontier(values, dumps, (&anchored, &mut is_taken), &regions);
    if values.is_partial {
        parting.retain(|pair| values.is_proven(dumps, pair));
    }
    for pair in &parting {
        if let Some(golden) = pair.golden.filter(|_| !anchored.contains_key(&pair.target)) {
            anchors.push(anchor(values, dumps, [pair.target, golden]));
        }
    }
    let last_parts = values.last_parts.iter();
    parting.extend(last_parts.map(|&[t, g]| PartingPair::new(t, Some(g), Vec::new())));
    parting.sort_unstable();
    parting.dedup_by_key(|pair| pair.target);
    values.anchors = anchors;
    values.parting = parting;
}

/// The only part of a value that has no partner on either side, where it has the same place on both.
fn last_parts(
    parts: &[HashMap<usize, LikenessKey>; 2],
    is_taken: &[HashSet<usize>; 2],
) -> Vec<[usize; 2]> {
    let [targets, goldens] = [0, 1].map(|i| {
        let open = parts[i]
            .iter()
            .filter(|(run, _)| !is_taken[i].contains(*run));
        let mut of_value: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
        for (run, (value, place)) in open {
            of_value.entry(value).or_default().push((*place, *run));
        }
        of_value
    });
    let paired = parts[0]
        .iter()
        .filter(|(run, _)| is_taken[0].contains(*run));
    let paired: HashSet<&str> = paired.map(|(_, (value, _))| value.as_str()).collect();
    let found = targets.iter().filter_map(|(value, open)| {
        let ([(place, target)], [(other, golden)]) = (&open[..], &goldens.get(value)?[..]) else {
            return None;
        };
        (place == other && paired.contains(value)).then_some([*target, *golden])
    });
    let mut found: Vec<[usize; 2]> = found.collect();
    found.sort_unstable();
    found
}

/// Sorts operators by the numbers in their names, where these are names of one kind: engines execute
/// them in another order than the program calls them.
fn sort_by_counter(dump: &ComparedDump, runs: &mut [usize]) {
    let number = |run: usize| {
        let name = dump.runs[run].op_name.as_str();
        let stem = without_counter(name);
        let counter = name[stem.len()..].trim_start_matches(['_', '-']);
        let number = counter.trim_start_matches("op").parse().unwrap_or(0_u64);
        (stem, number)
    };
    let is_one_kind = runs.windows(2).all(|pair| {
        let [a, b] = [number(pair[0]), number(pair[1])];
        a.0 == b.0 && a.1 != b.1
    });
    if is_one_kind {
        runs.sort_by_key(|&run| number(run).1);
    }
}

/// Two operators with the slots that show the same values: in their own positions where they can,
/// else in order.
fn anchor(values: &ComparedValues, dumps: [&ComparedDump; 2], runs: [usize; 2]) -> ValueAnchor {
    let slots = [0, 1].map(|i| &dumps[i].runs[runs[i]].slots);
    let value = |i: usize, slot: usize| values.sides[i].value_of(SlotRef { run: runs[i], slot });
    let mut of_value: HashMap<(SlotSide, ValueIndex), VecDeque<usize>> = HashMap::new();
    for (k, slot) in slots[1].iter().enumerate() {
        if let Some(value) = value(1, k) {
            of_value.entry((slot.side, value)).or_default().push_back(k);
        }
    }
    let mut pairs = Vec::new();
    if values.is_by_order(dumps, runs) {
        let numbers = [0, 1].map(|i| {
            let inputs = slots[i].iter().filter(|slot| slot.side == SlotSide::Input);
            inputs.map(|slot| slot.index)
        });
        let [targets, goldens] = numbers;
        let inputs = targets.zip(goldens);
        pairs.extend(inputs.map(|pair| <[u32; 2]>::from(pair).map(|k| (SlotSide::Input, k))));
    }
    for (k, slot) in slots[0].iter().enumerate() {
        if pairs
            .iter()
            .any(|pair: &[(SlotSide, u32); 2]| pair[0] == (slot.side, slot.index))
        {
            continue;
        }
        let equal = value(0, k).and_then(|value| values.equals[0][value.0]);
        let same = equal.and_then(|equal| of_value.get_mut(&(slot.side, equal)));
        let Some(same) = same.filter(|same| !same.is_empty()) else {
            continue;
        };
        let own = same.iter().position(|&k| slots[1][k].index == slot.index);
        if let Some(golden) = same.remove(own.unwrap_or(0)) {
            pairs.push([(slot.side, slot.index), (slot.side, slots[1][golden].index)]);
        }
    }
    // A weight that differs belongs to the one that the other side has nowhere either, and what is
    // left then to what is left.
    for is_orphan in [true, false] {
        let open = [0, 1].map(|i| {
            let inputs = slots[i].iter().enumerate().filter(|(k, slot)| {
                let is_free = pairs.iter().all(|pair| pair[i] != (slot.side, slot.index));
                slot.side == SlotSide::Input
                    && is_free
                    && !slot.is_in_own_order()
                    && (!is_orphan
                        || value(i, *k).is_some_and(|value| {
                            let is_outside = values.sides[i].values[value.0].is_outside;
                            is_outside && values.is_orphan(i, value)
                        }))
            });
            let with_keys = inputs.filter_map(|(k, slot)| {
                let of = &values.sides[i].values[value(i, k)?.0];
                // Codes are no scales.
                let is_float = slot.dtype.is_none_or(DType::is_float);
                Some((
                    (slot.side, slot.index),
                    (of.stats.counts.n_elements, is_float),
                ))
            });
            with_keys.collect::<Vec<_>>()
        });
        let [targets, mut goldens] = open;
        for (target, key) in targets {
            if let Some(at) = goldens.iter().position(|(_, other)| *other == key) {
                pairs.push([target, goldens.remove(at).0]);
            }
        }
    }
    ValueAnchor { runs, slots: pairs }
}

impl ComparedValues {
    /// Whether only the order of its inputs tells what an operator computes: its inputs have a
    /// meaning by position, and it makes another value than its partner, as far as is known: equal
    /// statistics prove nothing.
    pub(super) fn is_by_order(&self, dumps: [&ComparedDump; 2], runs: [usize; 2]) -> bool {
        let [target, golden] = [0, 1].map(|i| &dumps[i].runs[runs[i]]);
        let is_ordered = ORDERED.contains(&plain_type(&target.op_type).as_str());
        let n_inputs = [target, golden].map(|run| {
            let slots = run.slots.iter();
            slots.filter(|slot| slot.side == SlotSide::Input).count()
        });
        let is_open = |i: usize| {
            let mut made = self.sides[i].outputs.get(&runs[i]).into_iter().flatten();
            made.any(|value| {
                let is_known = self.sides[i].values[value.0].has_counts;
                !is_known || self.equals[i][value.0].is_none()
            })
        };
        is_ordered
            && is_same_type(target, golden)
            && n_inputs[0] == n_inputs[1]
            && (is_open(0) || is_open(1))
    }

    /// Pairs the parts that are left, each with its own partner or that of its twin.
    fn pair_last_parts(
        &mut self,
        dumps: [&ComparedDump; 2],
        makers: &HashMap<ValueIndex, Vec<usize>>,
        left: Vec<[usize; 2]>,
        anchors: &mut Vec<ValueAnchor>,
    ) {
        for [target, golden] in left {
            let twin = self.twin_of(dumps, makers, [target, golden]);
            let at = anchors.iter().position(|one| Some(one.runs[0]) == twin);
            let last = at.map_or(target, |at| {
                let [twin, partner] = anchors[at].runs;
                anchors[at] = anchor(self, dumps, [target, partner]);
                twin
            });
            anchors.push(anchor(self, dumps, [last, golden]));
            self.last_parts.push([last, golden]);
        }
    }

    /// Another operator of the target that makes the same value, and that operators of the types
    /// read that read golden's. Programs may call the parts in another order.
    fn twin_of(
        &self,
        dumps: [&ComparedDump; 2],
        makers: &HashMap<ValueIndex, Vec<usize>>,
        [target, golden]: [usize; 2],
    ) -> Option<usize> {
        let readers = |side: usize, run: usize| {
            let dump = dumps[side];
            let runs = (0..dump.runs.len()).filter(|reader| {
                let mut inputs = dump.inputs_of(*reader);
                inputs.any(|slot| dump.producer_of(slot).is_some_and(|made| made.run == run))
            });
            let mut types: Vec<String> = runs
                .map(|reader| dump.runs[reader].op_type.to_ascii_lowercase())
                .collect();
            types.sort_unstable();
            types
        };
        let wanted = readers(1, golden);
        let made = self.sides[0].outputs.get(&target).into_iter().flatten();
        let twins = made.filter_map(|value| makers.get(value)).flatten();
        let is_other = !wanted.is_empty() && readers(0, target) != wanted;
        let mut twins = twins.copied().filter(|_| is_other);
        twins.find(|&twin| twin != target && readers(0, twin) == wanted)
    }

    /// The place of each operator among those of its type that compute with the same value alone,
    /// such as the second of the three parts of a projection. Two parts are the same where an index
    /// is wrong.
    fn places_among_parts(&self, side: usize, dump: &ComparedDump) -> HashMap<usize, LikenessKey> {
        let mut of_value: HashMap<(ValueIndex, &str), Vec<usize>> = HashMap::new();
        let mut runs: Vec<usize> = self.sides[side].outputs.keys().copied().collect();
        runs.sort_unstable();
        for run in runs {
            // A view of the same elements makes no value.
            let mut made = self.sides[side].outputs[&run].iter();
            if made.any(|value| self.sides[side].reads(run, *value)) {
                continue;
            }
            let mut read = self.sides[side].inputs_of(run).filter(|value| {
                let of = &self.sides[side].values[value.0];
                of.is_distinctive() && (self.equals[side][value.0].is_some() || !of.is_outside)
            });
            let only = read.next().filter(|_| read.next().is_none());
            let golden = only.and_then(|value| match side {
                0 => self.equals[0][value.0],
                _ => self.equals[1][value.0].map(|_| value),
            });
            if let Some(value) = golden {
                let key = (value, dump.runs[run].op_type.as_str());
                of_value.entry(key).or_default().push(run);
            }
        }
        // Groups of two types are indistinguishable on the other side.
        let mut groups: HashMap<(ValueIndex, usize), Option<Vec<usize>>> = HashMap::new();
        for ((value, _), runs) in of_value {
            let group = groups.entry((value, runs.len()));
            group
                .and_modify(|known| *known = None)
                .or_insert(Some(runs));
        }
        let groups = groups.into_iter().filter(|((_, n), _)| *n > 1);
        let places = groups.flat_map(|((value, n), runs)| {
            let mut runs = runs.unwrap_or_default();
            sort_by_counter(dump, &mut runs);
            let key = format!("part of {} in {n}", value.0);
            let places = runs.into_iter().enumerate();
            places.map(move |(place, run)| (run, (key.clone(), place)))
        });
        places.collect()
    }
}

impl SideValues {
    /// The operators that make each value, in the order of execution.
    pub(super) fn makers(&self) -> HashMap<ValueIndex, Vec<usize>> {
        let mut makers: HashMap<ValueIndex, Vec<usize>> = HashMap::new();
        let mut runs: Vec<(&usize, &Vec<ValueIndex>)> = self.outputs.iter().collect();
        runs.sort_unstable_by_key(|(run, _)| **run);
        for (&run, outputs) in runs {
            for &value in outputs.iter().filter(|value| !self.reads(run, **value)) {
                let makers = makers.entry(value).or_default();
                if makers.last() != Some(&run) {
                    makers.push(run);
                }
            }
        }
        makers
    }
}
