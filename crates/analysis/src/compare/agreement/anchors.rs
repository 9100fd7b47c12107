//! Which operators make the same values.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use opscope_store::record::SlotSide;

use super::ComparedValues;
use super::region::LearnedRegions;
use super::values::{SideValues, ValueIndex};
use crate::compare::matching::{SlotRef, ValueAnchor, is_same_type};
use crate::compare::side::{ComparedDump, OperatorExecution};

/// Most readers of a value that are looked at.
const N_READERS_MAX: usize = 64;
/// Whether two operators are alike in some respect.
type AreAlike = dyn Fn(&OperatorExecution, &OperatorExecution) -> bool;

/// Types of operators that hand their input on.
const IDLE_TYPES: [&str; 3] = ["Identity", "aten_alias_default", "aten_clone_default"];
/// Types of operators that round their input.
const CAST_TYPES: [&str; 6] = [
    "Cast",
    "CastLike",
    "QuantizeLinear",
    "DequantizeLinear",
    "aten__to_copy_default",
    "prims_convert_element_type_default",
];
/// How many operators before another are looked at for such a one.
const N_IDLE_MAX: usize = 64;

/// Brings together operators of which an output is the same value: those of one name first, then
/// those of one type, then the rest, in the order of execution; and then those at which both sides
/// part. Operators that hand an input on make nothing.
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
        let run = |i: usize, run: usize| &dumps[i].runs[run];
        let is_alike: [&AreAlike; 3] = [
            &|a, b| a.op_name == b.op_name && a.repeat == b.repeat,
            &|a, b| a.op_type.eq_ignore_ascii_case(&b.op_type),
            &|_, _| true,
        ];
        for is_alike in is_alike {
            for &target in targets {
                let mut goldens = goldens.iter().copied();
                let golden = goldens.find(|&golden| {
                    !is_taken[0].contains(&target)
                        && !is_taken[1].contains(&golden)
                        && is_alike(run(0, target), run(1, golden))
                });
                if let Some(golden) = golden {
                    is_taken[0].insert(target);
                    is_taken[1].insert(golden);
                    anchors.push(anchor(values, dumps, [target, golden]));
                }
            }
        }
    }
    let regions = LearnedRegions::learn(values, dumps, &makers[0], &anchors);
    let parting = frontier(values, dumps, &mut is_taken, &regions);
    for &[target, golden] in &parting {
        anchors.push(anchor(values, dumps, [target, golden]));
    }
    values.anchors = anchors;
    values.parting = parting.into_iter().map(|[target, _]| target).collect();
}

/// Brings together operators at which both sides part: that read the same values and make others.
fn frontier(
    values: &ComparedValues,
    dumps: [&ComparedDump; 2],
    is_taken: &mut [HashSet<usize>; 2],
    regions: &LearnedRegions,
) -> Vec<[usize; 2]> {
    let mut parting = Vec::new();
    // A cast that rounds makes another value, though not one that the other side computes.
    let [targets, goldens] = [0, 1].map(|i| {
        let mut parts = values.sides[i].frontier(&values.equals[i], &values.is_rejoined[i]);
        parts.retain(|(run, _)| !is_one_of(&CAST_TYPES, &dumps[i].runs[*run]));
        parts
    });
    // Operators that read one value are few, and those at which the sides part may be all of them.
    let mut readers: HashMap<ValueIndex, Vec<usize>> = HashMap::new();
    for (at, (_, inputs)) in goldens.iter().enumerate() {
        for input in inputs {
            readers.entry(*input).or_default().push(at);
        }
    }
    for (target, inputs) in targets {
        let mut n_common: BTreeMap<usize, usize> = BTreeMap::new();
        for value in inputs.iter().filter_map(|value| values.equals[0][value.0]) {
            let readers = readers.get(&value).into_iter().flatten();
            for &at in readers.take(N_READERS_MAX) {
                *n_common.entry(at).or_default() += 1;
            }
        }
        let likeness = |golden: usize, n_common: usize| {
            let (a, b) = (&dumps[0].runs[target], &dumps[1].runs[golden]);
            let has_one_name = a.op_name == b.op_name && a.repeat == b.repeat;
            let is_one_type = is_same_type(a, b);
            (has_one_name && is_one_type, n_common, is_one_type)
        };
        let nearest = n_common
            .into_iter()
            .map(|(at, n)| (goldens[at].0, n))
            .filter(|(golden, _)| !is_taken[1].contains(golden))
            .map(|(golden, n)| (likeness(golden, n), golden))
            // Of equals the first, which ran first.
            .rev()
            .max_by_key(|(likeness, _)| *likeness);
        let Some((_, golden)) = nearest else {
            continue;
        };
        let idle = idle_before(values, dumps[0], target, &inputs);
        let target = match idle.filter(|run| !is_taken[0].contains(run)) {
            Some(idle) => idle,
            None => regions.culprit(values, dumps, [target, golden]),
        };
        if is_taken[0].insert(target) {
            is_taken[1].insert(golden);
            parting.push([target, golden]);
        }
    }
    parting
}

fn is_one_of(op_types: &[&str], run: &OperatorExecution) -> bool {
    op_types
        .iter()
        .any(|op_type| run.op_type.eq_ignore_ascii_case(op_type))
}

/// The operator before another that hands it one of its inputs and says that it does nothing: where
/// the golden side computes something of that input, this one stands for the computation.
fn idle_before(
    values: &ComparedValues,
    dump: &ComparedDump,
    reader: usize,
    inputs: &[ValueIndex],
) -> Option<usize> {
    let side = &values.sides[0];
    let hands_on = |run: &usize| {
        let outputs = side.outputs.get(run).into_iter().flatten();
        let mut handed = outputs.filter(|value| side.reads(*run, **value));
        handed.any(|value| inputs.contains(value))
    };
    let is_idle = |run: &usize| is_one_of(&IDLE_TYPES, &dump.runs[*run]);
    (0..reader)
        .rev()
        .take(N_IDLE_MAX)
        .find(|run| is_idle(run) && hands_on(run))
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
    fn makers(&self) -> HashMap<ValueIndex, Vec<usize>> {
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
