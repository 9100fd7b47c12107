//! Which operators make the same values.

use std::collections::{HashMap, HashSet, VecDeque};

use opscope_store::record::SlotSide;

use super::ComparedValues;
use super::parting::frontier;
use super::region::LearnedRegions;
use super::values::{SideValues, ValueIndex};
use crate::compare::matching::{SlotRef, ValueAnchor};
use crate::compare::side::{ComparedDump, OperatorExecution};

/// Operators with equal keys are matched: by name and repetition, by type, or without a further
/// criterion.
type LikenessKey = (String, usize);

/// Matches operators with an output of equal value: those of one name first, then of one type, then
/// the rest in execution order; and then those at which both sides diverge. Operators that pass an
/// input on produce nothing.
pub(super) fn find(values: &mut ComparedValues, dumps: [&ComparedDump; 2]) {
    let makers = [0, 1].map(|i| values.sides[i].makers());
    let mut is_taken = [HashSet::new(), HashSet::new()];
    let mut anchors = Vec::new();
    for (t, equal) in values.equals[0].iter().enumerate() {
        let (t, Some(g)) = (ValueIndex(t), *equal) else {
            continue;
        };
        let (Some(targets), Some(goldens)) = (makers[0].get(&t), makers[1].get(&g)) else {
            continue;
        };
        let keys: [fn(&OperatorExecution) -> LikenessKey; 3] = [
            |run| (run.op_name.to_string(), run.repeat),
            |run| (run.op_type.to_ascii_lowercase(), 0),
            |_| LikenessKey::default(),
        ];
        for key in keys {
            // By key, since thousands of operators may make one value.
            let mut free: HashMap<LikenessKey, VecDeque<usize>> = HashMap::new();
            for &golden in goldens.iter().filter(|run| !is_taken[1].contains(*run)) {
                let key = key(&dumps[1].runs[golden]);
                free.entry(key).or_default().push_back(golden);
            }
            for &target in targets {
                if free.is_empty() || is_taken[0].contains(&target) {
                    continue;
                }
                let alike = free.get_mut(&key(&dumps[0].runs[target]));
                if let Some(golden) = alike.and_then(VecDeque::pop_front) {
                    is_taken[0].insert(target);
                    is_taken[1].insert(golden);
                    anchors.push(anchor(values, dumps, [target, golden]));
                }
            }
        }
    }
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
    values.anchors = anchors;
    values.parting = parting;
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
    for (k, slot) in slots[0].iter().enumerate() {
        let equal = value(0, k).and_then(|value| values.equals[0][value.0]);
        let same = equal.and_then(|equal| of_value.get_mut(&(slot.side, equal)));
        let Some(same) = same.filter(|same| !same.is_empty()) else {
            continue;
        };
        let position = |k: usize| slots[1][k].index;
        let own = same.iter().position(|&k| position(k) == slot.index);
        if let Some(golden) = same.remove(own.unwrap_or(0)) {
            pairs.push([(slot.side, slot.index), (slot.side, position(golden))]);
        }
    }
    // A weight that differs belongs to the one that the other side has nowhere either, and what is
    // left then to what is left.
    for is_orphan in [true, false] {
        let open = [0, 1].map(|i| {
            let inputs = slots[i].iter().enumerate().filter(|(k, slot)| {
                let is_free = pairs.iter().all(|pair| pair[i] != (slot.side, slot.index));
                let is_it = || {
                    value(i, *k).is_some_and(|value| {
                        let is_outside = values.sides[i].values[value.0].is_outside;
                        is_outside && values.is_orphan(i, value)
                    })
                };
                slot.side == SlotSide::Input && is_free && (!is_orphan || is_it())
            });
            let with_lengths = inputs.filter_map(|(k, slot)| {
                let of = &values.sides[i].values[value(i, k)?.0];
                Some(((slot.side, slot.index), of.stats.counts.n_elements))
            });
            with_lengths.collect::<Vec<_>>()
        });
        let [targets, mut goldens] = open;
        for (target, n_elements) in targets {
            if let Some(at) = goldens.iter().position(|(_, n)| *n == n_elements) {
                pairs.push([target, goldens.remove(at).0]);
            }
        }
    }
    ValueAnchor { runs, slots: pairs }
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
