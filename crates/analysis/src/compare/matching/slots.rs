//! Which slot of partners is which.

mod groups;
mod layouts;

use opscope_store::record::Side as SlotSide;

use super::{How, MissingSlot, RunPair, SlotPair, SlotRef};
use crate::compare::side::{Run, Side, Slot};

pub(super) use groups::{Group, of_group};
pub(super) use layouts::is_plain;

/// Side and position of a slot.
pub(super) type Position = (SlotSide, u32);

/// Two slots, the target's first.
pub(super) type Two = [SlotRef; 2];

/// The extents before the device changed the layout. None where padding hides them.
fn original_extents(slot: &Slot) -> Option<&Vec<u64>> {
    let is_plain = slot.layout.is_none_or(is_plain);
    let stored = slot.shape.as_ref().filter(|_| is_plain);
    slot.original_shape.as_ref().or(stored)
}

/// The extents without those of 1, from the smallest to the largest: the same in every layout.
pub(super) fn extents(slot: &Slot) -> Option<Vec<u64>> {
    let mut dims = original_extents(slot)?.clone();
    dims.retain(|&dim| dim != 1);
    dims.sort_unstable();
    Some(dims)
}

/// The extents of the first output, or of the first input where there are no outputs and inputs may stand for
/// them.
pub(super) fn first_extents(run: &Run, may_be_input: bool) -> Option<Vec<u64>> {
    let first = |side| run.slots.iter().find(|slot| slot.side == side);
    let output = first(SlotSide::Output);
    let slot = match output {
        None if may_be_input => first(SlotSide::Input),
        found => found,
    };
    extents(slot?)
}

/// Whether a slot of one side has a value that an engine made up when it made its graph, such as weights with others
/// multiplied in or values in blocks of channels. The other side, whose graph is the original one, has nothing like it.
pub(super) fn is_made_up(sides: [&Side; 2], i: usize, slot: &Slot) -> bool {
    let known = &sides[1 - i].value_names;
    let is_unknown = |name: &String| !known.is_empty() && !known.contains(name);
    slot.original.is_none() && slot.made_value.as_ref().is_some_and(is_unknown)
}

/// Partners whose slots belong together by side and position, apart from those that are given.
pub(super) fn one_to_one(
    sides: [&Side; 2],
    runs: [usize; 2],
    how: How,
    given: &[[Position; 2]],
) -> RunPair {
    let slots = [0, 1].map(|i| &sides[i].runs[runs[i]].slots);
    let mut is_used = slots.map(|slots| vec![false; slots.len()]);
    let mut found: Vec<Two> = Vec::new();
    let is_given = |i: usize, slot: &Slot| {
        let mut all = given.iter();
        all.any(|pair| pair[i] == (slot.side, slot.index))
    };
    for &[t, g] in given {
        let find = |i: usize, (side, index): Position| {
            let mut all = slots[i].iter();
            all.position(|slot| (slot.side, slot.index) == (side, index))
        };
        if let (Some(t), Some(g)) = (find(0, t), find(1, g)) {
            add(&mut found, &mut is_used, runs, [t, g]);
        }
    }
    for (t, slot) in slots[0].iter().enumerate() {
        if is_used[0][t] || is_given(0, slot) || is_made_up(sides, 0, slot) {
            continue;
        }
        let is_it = |&(g, other): &(usize, &Slot)| {
            !is_used[1][g]
                && !is_given(1, other)
                && !is_made_up(sides, 1, other)
                && (other.side, other.index) == (slot.side, slot.index)
        };
        if let Some((g, _)) = slots[1].iter().enumerate().find(is_it) {
            add(&mut found, &mut is_used, runs, [t, g]);
        }
    }
    found.sort_unstable();
    let mut pair = RunPair {
        target: vec![runs[0]],
        golden: vec![runs[1]],
        how,
        slots: found.into_iter().map(|two| described(sides, two)).collect(),
        missing: Vec::new(),
    };
    for i in [0, 1] {
        let left = slots[i].iter().zip(&is_used[i]).filter(|(_, used)| !**used);
        let others = |slot: &Slot| {
            let mut others = slots[1 - i].iter();
            others.any(|other| {
                (other.side, other.index) == (slot.side, slot.index)
                    && is_made_up(sides, 1 - i, other)
            })
        };
        let is_inner = |slot: &Slot| is_made_up(sides, i, slot) || others(slot);
        pair.missing
            .extend(left.map(|(slot, _)| missing(i, runs[i], slot, is_inner(slot))));
    }
    pair
}

fn add(found: &mut Vec<Two>, is_used: &mut [Vec<bool>; 2], runs: [usize; 2], [t, g]: [usize; 2]) {
    is_used[0][t] = true;
    is_used[1][g] = true;
    let [target, golden] = [(runs[0], t), (runs[1], g)].map(|(run, slot)| SlotRef { run, slot });
    found.push([target, golden]);
}

fn missing(side: usize, run: usize, slot: &Slot, is_inner: bool) -> MissingSlot {
    MissingSlot {
        is_of_target: side == 0,
        run,
        side: slot.side,
        index: slot.index,
        is_inner,
    }
}

/// Two slots, with the layout that they have to be brought to.
fn described(sides: [&Side; 2], [target, golden]: Two) -> SlotPair {
    let a = &sides[0].runs[target.run].slots[target.slot];
    let b = &sides[1].runs[golden.run].slots[golden.slot];
    let layout = layouts::common(a, b);
    SlotPair {
        target,
        golden,
        layout,
        hint: layouts::hint(a, b, layout),
    }
}
