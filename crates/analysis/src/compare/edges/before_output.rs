//! Operators without a partner before an output that differs, where nothing inside does.

use std::collections::{BTreeSet, HashSet};

use opscope_store::record::SlotSide;

use super::{Edges, Region};
use crate::compare::agreement::{CAST_TYPES, is_one_of};
use crate::compare::flow::ValueFlow;
use crate::compare::matching::{MatchedDumps, SlotRef, is_view_type};
use crate::compare::result::{
    Cause, Comparison, OperatorName, PartingOperator, SlotKey, ValueState,
};

/// Maximum number of operators that are named where nothing decides which of them is at fault.
const N_LOST_MAX: usize = 5;

/// Notes the operators that one side alone has before an output that differs, where none inside
/// differs.
pub(crate) fn note_before_output(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    let apart = comparison.contract.outputs.iter();
    let mut apart = apart
        .filter(|value| value.state == ValueState::Differ)
        .filter(|value| !comparison.has_place_by(value.step()));
    let found = apart.find_map(|value| {
        let result = value.result.as_deref()?;
        let [target, golden] = value.operators.each_ref().map(Option::as_ref);
        let keys = [result.slot, result.golden_slot.unwrap_or(result.slot)];
        let made = [
            sides.target.slot_named(target?, keys[0])?,
            sides.golden.slot_named(golden?, keys[1])?,
        ];
        before_output(comparison, sides, made)
    });
    comparison.contract.before_output = found.map(Box::new);
}

/// Operators without a partner between values that agree and an output of both models that differs,
/// by the executions that make it.
fn before_output(
    comparison: &Comparison,
    sides: MatchedDumps<'_>,
    made: [SlotRef; 2],
) -> Option<PartingOperator> {
    let edges = Edges::new(sides, ValueFlow::trace(comparison));
    if !sides.golden.has_graph() {
        return edges.first_lost(made[0]);
    }
    let regions =
        [0, 1].map(|side| edges.members_up_to(side, made[side], &comparison.operators, 0.0));
    let [Some(target), Some(golden)] = regions else {
        return None;
    };
    let border = target.borders.iter().max_by_key(|border| border.run)?;
    let operator = *edges.operators[0].get(&border.run)?;
    let mut members = [target.members, golden.members];
    for (members, dump) in members.iter_mut().zip(edges.dumps) {
        // A view or cast passes the error on.
        let computes = |run: &usize| !is_view_type(&dump.runs[*run].op_type);
        if members.iter().any(computes) {
            members.retain(computes);
        }
        // One model computes in another dtype.
        members.retain(|run| !is_one_of(&CAST_TYPES, &dump.runs[*run]));
    }
    if members.iter().all(Vec::is_empty) {
        return None;
    }
    let mut region = edges.region(operator, &edges.without_variants(members))?;
    edges.name_detached(&mut region);
    Some(region)
}

impl Edges<'_> {
    /// The operator of golden that makes an input, if it has no partner.
    pub(super) fn unmatched_maker(&self, slot: SlotRef) -> Option<Region> {
        let made = self.dumps[1].producer_of(slot)?;
        let has_partner = self.operators[1].contains_key(&made.run);
        (!has_partner && !self.left_out[1].contains(&made.run)).then(|| Region {
            members: vec![made.run],
            borders: Vec::new(),
        })
    }

    /// The members of a region, those first that compute what the other side nowhere does in that
    /// step: an optimizer runs the same operators on one tensor, in place, or on lists. If it does
    /// all that the target's compute, and golden's region one or two things more, these are meant.
    fn without_variants(&self, members: [Vec<usize>; 2]) -> [Vec<usize>; 2] {
        let [Some(&first), Some(&other)] = members.each_ref().map(|members| members.first()) else {
            return members;
        };
        let [target, golden] = [(0, first), (1, other)].map(|(side, run)| self.computed(side, run));
        let [mut own, others] = members;
        let computed = |side: usize, run: usize| computed_by(&self.dumps[side].runs[run].op_type);
        own.sort_by_key(|&run| golden.contains(computed(0, run)));
        let mut alone = others.clone();
        alone.retain(|&run| !target.contains(computed(1, run)));
        if golden.contains(computed(0, own[0])) && matches!(alone.len(), 1 | 2) {
            return [Vec::new(), alone];
        }
        [own, others]
    }

    /// All that is computed at the place of an execution.
    fn computed(&self, side: usize, run: usize) -> HashSet<&str> {
        let runs = &self.dumps[side].runs;
        let place = &runs[run].place;
        let here = runs.iter().filter(|run| run.place == *place);
        here.map(|run| computed_by(&run.op_type)).collect()
    }

    /// The first operators of the target on the way to an output from which on nothing has a partner,
    /// where golden's values have no graph. Some of them may be made of others there.
    fn first_lost(&self, output: SlotRef) -> Option<PartingOperator> {
        let dump = self.dumps[0];
        let readers = self.readers();
        // From the output towards the inputs, while operators have no partner.
        let mut lost = BTreeSet::new();
        let mut open = vec![output.run];
        while let Some(run) = open.pop() {
            let slots = dump.runs[run].slots.iter().enumerate();
            let mut outputs = slots.filter(|(_, slot)| slot.side == SlotSide::Output);
            // What leads to a value that has a partner is an inner value of something sound.
            let rejoins = outputs
                .any(|(slot, _)| !self.readers_of(SlotRef { run, slot }, &readers).is_empty());
            if rejoins || self.operators[0].contains_key(&run) || !lost.insert(run) {
                continue;
            }
            let read = dump
                .inputs_of(run)
                .filter_map(|slot| dump.producer_of(slot));
            open.extend(read.map(|made| made.run));
        }
        lost.retain(|&run| !is_view_type(&dump.runs[run].op_type));
        let mut names = lost
            .iter()
            .take(N_LOST_MAX)
            .map(|&run| OperatorName::for_execution(&dump.runs[run]));
        let name = names.next()?;
        let first = *lost.first()?;
        let before = self.operators[0].iter().filter(|(run, _)| **run < first);
        let (_, &operator) = before.max()?;
        Some(PartingOperator {
            operator,
            name,
            slot: SlotKey {
                side: SlotSide::Output,
                index: 0,
            },
            cause: Cause::Unknown,
            others: names.collect(),
            ..PartingOperator::default()
        })
    }
}

/// The name of a type's computation, without the name's marks of lists and of a result in place.
fn computed_by(op_type: &str) -> &str {
    let name = op_type
        .strip_prefix("aten_")
        .and_then(|name| name.rsplit_once('_'));
    let name = name.map_or(op_type, |(name, _overload)| name);
    name.strip_prefix("_foreach")
        .unwrap_or(name)
        .trim_matches('_')
}
