//! Operators at which both sides part.
//!
//! Such an operator of the target reads nothing but what the golden side has too, and makes what it
//! has not. Whatever is wrong in what comes after may come from it, so nothing else is accused.

use std::collections::{BTreeMap, HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::region::LearnedRegions;
use super::values::{SideValues, ValueIndex};
use super::{ComparedValues, name_of};
use crate::compare::matching::{MatchedDumps, RunPair, SlotRef, is_same_type};
use crate::compare::result::{
    Cause, OperatorName, OperatorResult, PartingOperator, RewiredInput, SlotKey,
};
use crate::compare::side::{ComparedDump, OperatorExecution};

/// Most readers of a value that are looked at.
const N_READERS_MAX: usize = 64;
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

/// Brings together operators at which both sides part: that read the same values and make others.
pub(super) fn frontier(
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


impl ComparedValues {
    /// The operators at which both sides part, in the order of execution, with what is known of each.
    pub(super) fn parting_operators(
        &self,
        sides: MatchedDumps<'_>,
        operators: &[OperatorResult],
    ) -> Vec<PartingOperator> {
        let pairs = sides.matching.pairs.iter().enumerate();
        let mut of_run: [BTreeMap<usize, usize>; 2] = [BTreeMap::new(), BTreeMap::new()];
        for (operator, pair) in pairs {
            let RunPair { target, golden, .. } = pair;
            for (of_run, runs) in of_run.iter_mut().zip([target, golden]) {
                of_run.extend(runs.iter().map(|&run| (run, operator)));
            }
        }
        let mut parting = self.parting.clone();
        parting.sort_unstable();
        let found = parting.into_iter().filter_map(|[target, golden]| {
            let own = of_run[0].get(&target).or(of_run[1].get(&golden)).copied();
            // What vanished in the graph of the other side stands before the next that did not.
            let next = || of_run[0].range(target..).next().map(|(_, &operator)| operator);
            let operator = own.or_else(next)?;
            let outside = self.changed_outside(sides, [target, golden]);
            let slot = outside.or_else(|| self.new_output(sides.target, target))?;
            let cause = match (outside, operators.get(operator)?.cause) {
                (Some(_), _) => Cause::Outside,
                (None, Some(Cause::Gradual)) if own.is_some() => Cause::Gradual,
                (None, _) => Cause::Own,
            };
            Some(PartingOperator {
                operator,
                name: OperatorName::for_execution(&sides.target.runs[target]),
                slot,
                cause,
                rewired: self.rewired(sides, [target, golden]),
            })
        });
        found.collect()
    }

    /// The first output that the golden side does not come to.
    fn new_output(&self, dump: &ComparedDump, run: usize) -> Option<SlotKey> {
        let slots = dump.runs[run].slots.iter().enumerate();
        let mut outputs = slots.filter(|(_, slot)| slot.side == SlotSide::Output);
        let is_new = |slot: usize| {
            let value = self.sides[0].value_of(SlotRef { run, slot });
            value.is_some_and(|value| !self.is_rejoined[0][value.0])
        };
        let first = outputs.clone().next();
        let found = outputs.find(|(slot, _)| is_new(*slot)).or(first);
        found.map(|(_, slot)| slot.key())
    }

    /// An input from outside that the golden side has nowhere, where the golden operator reads such
    /// a one as well.
    fn changed_outside(
        &self,
        sides: MatchedDumps<'_>,
        [target, golden]: [usize; 2],
    ) -> Option<SlotKey> {
        let dumps = [sides.target, sides.golden];
        let orphans = |side: usize, run: usize| {
            let slots = dumps[side].runs[run].slots.iter().enumerate();
            let inputs = slots.filter(|(_, slot)| slot.side == SlotSide::Input);
            inputs.filter_map(move |(slot, described)| {
                let place = SlotRef { run, slot };
                let value = self.sides[side].value_of(place)?;
                let of = &self.sides[side].values[value.0];
                let is_it = of.is_outside && !of.is_extents && self.is_orphan(side, value);
                is_it.then_some((place, described.key(), of.stats.counts.n_elements))
            })
        };
        let of_golden: Vec<u64> = orphans(1, golden).map(|(_, _, n)| n).collect();
        // A folded weight has no counterpart of its own.
        let is_norm_behind = !self.norms_behind(sides.golden, 1, golden).is_empty();
        let mut changed = orphans(0, target).filter(|(place, _, n)| {
            (of_golden.contains(n) || is_norm_behind)
                && !self.is_folded(dumps, 0, *place, golden)
        });
        changed.next().map(|(_, key, _)| key)
    }

    /// Inputs of an operator that are on the golden side, and that its operator there does not read,
    /// while it reads something else that the target has.
    fn rewired(&self, sides: MatchedDumps<'_>, [target, golden]: [usize; 2]) -> Vec<RewiredInput> {
        let [of_target, of_golden] = &self.sides;
        let is_computed = |side: &SideValues, value: ValueIndex| {
            let of = &side.values[value.0];
            !of.is_outside && of.is_distinctive()
        };
        let is_left = of_golden.inputs_of(golden).any(|value| {
            let equal = self.equals[1][value.0];
            let is_read = |equal| of_target.reads(target, equal);
            is_computed(of_golden, value) && equal.is_some_and(|equal| !is_read(equal))
        });
        let slots = sides.target.runs[target].slots.iter().enumerate();
        let inputs = slots.filter(|(_, slot)| is_left && slot.side == SlotSide::Input);
        let rewired = inputs.filter_map(|(slot, described)| {
            let value = of_target.value_of(SlotRef { run: target, slot })?;
            let equal = self.equals[0][value.0].filter(|_| is_computed(of_target, value))?;
            let is_other = !of_golden.reads(golden, equal);
            is_other.then(|| RewiredInput {
                slot: described.key(),
                golden: name_of(sides, of_golden.first_slot(equal)),
            })
        });
        rewired.collect()
    }
}
