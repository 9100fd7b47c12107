//! Which slot of partners is which.

mod groups;
mod layouts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use opscope_store::record::SlotSide;

use super::{MatchEvidence, MissingSlot, RunPair, SlotPair, SlotRef};
use crate::compare::result::Party;
use crate::compare::side::{ComparedDump, ExecutionSlot, OperatorExecution, positions};

pub(super) use groups::{OperatorGroup, of_group};
pub(super) use layouts::is_plain;

/// Side and position of a slot.
pub(super) type Position = (SlotSide, u32);

/// Two slots, the target's first.
pub(super) type Two = [SlotRef; 2];

/// The shape before the device changed the layout. `None` if padding hides it.
fn original_extents(slot: &ExecutionSlot) -> Option<&Vec<u64>> {
    let is_plain = slot.layout.is_none_or(is_plain);
    let stored = slot.shape.as_ref().filter(|_| is_plain);
    slot.original_shape.as_ref().or(stored)
}

/// The dimensions other than 1 in ascending order: the same in every layout.
pub(super) fn extents(slot: &ExecutionSlot) -> Option<Vec<u64>> {
    let mut dims = original_extents(slot)?.clone();
    dims.retain(|&dim| dim != 1);
    dims.sort_unstable();
    Some(dims)
}

/// The shape of the first output; without outputs, that of the first input if inputs may replace
/// them.
pub(super) fn first_extents(run: &OperatorExecution, may_be_input: bool) -> Option<Vec<u64>> {
    let [output, input] = [SlotSide::Output, SlotSide::Input].map(|side| {
        let mut slots = run.slots.iter();
        slots.find(|slot| slot.side == side)
    });
    extents(output.or(input.filter(|_| may_be_input))?)
}

/// Whether a slot of one side has a value that an engine made up when it made its graph, such as
/// weights with others multiplied in or values in blocks of channels. The other side, whose graph
/// is the original one, has nothing like it.
pub(super) fn is_made_up(sides: [&ComparedDump; 2], i: usize, slot: &ExecutionSlot) -> bool {
    let known = &sides[1 - i].value_names;
    // Without a description of the original graph every value would pass for made up.
    let made = slot.made_value().filter(|_| !known.is_empty());
    let is_unknown = made.is_some_and(|name| !known.contains(name.as_str()));
    slot.is_in_own_order() || slot.original().is_none() && is_unknown
}

/// Partners whose slots belong together by side and position, apart from those that are given.
pub(super) fn one_to_one(
    sides: [&ComparedDump; 2],
    runs: [usize; 2],
    how: MatchEvidence,
    given: &[[Position; 2]],
) -> RunPair {
    let slots = [0, 1].map(|i| &sides[i].runs[runs[i]].slots[..]);
    let mut is_used = slots.map(|slots| vec![false; slots.len()]);
    let mut found: Vec<Two> = Vec::new();
    if !given.is_empty() {
        let all = slots.map(|slots| at_positions(slots, |_| true, stated));
        for pair in given {
            if let [Some(t), Some(g)] = [0, 1].map(|i| all[i].get(&pair[i])?.front().copied()) {
                add(&mut found, &mut is_used, runs, [t, g]);
            }
        }
    }
    let given = [0, 1].map(|i| given.iter().map(|pair| pair[i]).collect::<BTreeSet<_>>());
    // A slot that the mapping names goes to no other, even if the one it names is not in the dump.
    let is_open = |i: usize, slot: &ExecutionSlot| {
        !given[i].contains(&(slot.side, slot.index)) && !is_made_up(sides, i, slot)
    };
    let places = places(sides, runs);
    let mut open = at_positions(
        slots[1],
        |g| !is_used[1][g] && is_open(1, &slots[1][g]),
        |g, _| places[1][g],
    );
    for (t, slot) in slots[0].iter().enumerate() {
        if is_used[0][t] || !is_open(0, slot) {
            continue;
        }
        let partners = open.get_mut(&places[0][t]);
        if let Some(g) = partners.and_then(VecDeque::pop_front) {
            add(&mut found, &mut is_used, runs, [t, g]);
        }
    }
    found.sort_unstable();
    RunPair {
        target: [runs[0]].into(),
        golden: [runs[1]].into(),
        how,
        slots: found.into_iter().map(|two| described(sides, two)).collect(),
        missing: without_partner(sides, runs, &is_used).into(),
    }
}

/// The position that a dump states.
fn stated(_: usize, slot: &ExecutionSlot) -> Position {
    (slot.side, slot.index)
}

/// Where the operator has each slot of two partners. Files of the runtime leave absent optional
/// ones out and count on, so that their numbers are others than those of a dump that counts the
/// absent ones.
fn places(sides: [&ComparedDump; 2], runs: [usize; 2]) -> [Vec<Position>; 2] {
    let partners = [0, 1].map(|i| &sides[i].runs[runs[i]]);
    let mut places = partners.map(|run| {
        let slots = run.slots.iter().enumerate();
        slots.map(|(i, slot)| stated(i, slot)).collect::<Vec<_>>()
    });
    // As nearly always.
    if places[0] == places[1] {
        return places;
    }
    let is_same_type = partners[0].op_type == partners[1].op_type;
    for (i, side) in [0, 1]
        .into_iter()
        .flat_map(|i| [SlotSide::Input, SlotSide::Output].map(|side| (i, side)))
    {
        let own = sides[i].presence(runs[i], side);
        // A dump without a description counts what the other one describes, if the operator is the
        // same.
        let present = own.or_else(|| {
            let other = sides[1 - i].presence(runs[1 - i], side);
            other.filter(|_| is_same_type)
        });
        for (slot, position) in positions(partners[i], side, &present.unwrap_or_default()) {
            places[i][slot].1 = u32::try_from(position).unwrap_or(u32::MAX);
        }
    }
    places
}

/// Slots by their position, of equal positions in order; only those that are wanted, by their place
/// among all.
fn at_positions(
    slots: &[ExecutionSlot],
    is_wanted: impl Fn(usize) -> bool,
    position: impl Fn(usize, &ExecutionSlot) -> Position,
) -> BTreeMap<Position, VecDeque<usize>> {
    let mut found: BTreeMap<Position, VecDeque<usize>> = BTreeMap::new();
    for (i, slot) in slots.iter().enumerate().filter(|(i, _)| is_wanted(*i)) {
        found.entry(position(i, slot)).or_default().push_back(i);
    }
    found
}

/// The slots of two partners that are in no pair.
fn without_partner(
    sides: [&ComparedDump; 2],
    runs: [usize; 2],
    is_used: &[Vec<bool>; 2],
) -> Vec<MissingSlot> {
    let slots = [0, 1].map(|i| &sides[i].runs[runs[i]].slots[..]);
    let made_up = [0, 1].map(|i| {
        let all = slots[i].iter();
        let made_up = all.filter(|slot| is_made_up(sides, i, slot));
        made_up
            .map(|slot| (slot.side, slot.index))
            .collect::<BTreeSet<Position>>()
    });
    let mut all = Vec::new();
    for i in [0, 1] {
        let left = slots[i].iter().zip(&is_used[i]).filter(|(_, used)| !**used);
        // The partner of a made-up slot is not missing either: the other engine computed with
        // something else in its place.
        all.extend(left.map(|(slot, _)| {
            let is_inner =
                is_made_up(sides, i, slot) || made_up[1 - i].contains(&(slot.side, slot.index));
            missing(i, runs[i], slot, is_inner)
        }));
    }
    all
}

fn add(found: &mut Vec<Two>, is_used: &mut [Vec<bool>; 2], runs: [usize; 2], [t, g]: [usize; 2]) {
    is_used[0][t] = true;
    is_used[1][g] = true;
    let [target, golden] = [(runs[0], t), (runs[1], g)].map(|(run, slot)| SlotRef { run, slot });
    found.push([target, golden]);
}

fn missing(side: usize, run: usize, slot: &ExecutionSlot, is_inner: bool) -> MissingSlot {
    MissingSlot {
        party: Party::BOTH[side],
        run,
        side: slot.side,
        index: slot.index,
        is_inner,
    }
}

/// Two slots, with the layout that they have to be brought to.
fn described(sides: [&ComparedDump; 2], [target, golden]: Two) -> SlotPair {
    let a = sides[0].slot(target);
    let b = sides[1].slot(golden);
    let layout = layouts::common(a, b);
    SlotPair {
        target,
        golden,
        layout,
        hint: layouts::hint(a, b, layout),
    }
}
