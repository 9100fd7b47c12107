//! Operators with the same name at the same place.

use std::collections::{BTreeSet, HashMap};

use super::{How, Matching, MissingSlot, Reason, RunPair, SlotPair, SlotRef, Unmatched};
use crate::compare::side::{Run, RunPlace, Side};

type Key = (RunPlace, String, usize);

pub(super) fn matching(target: &Side, golden: &Side) -> Matching {
    let kept = Kept::of(target, golden);
    let mut of_key: HashMap<Key, usize> = HashMap::new();
    for (i, run) in keyed(golden, &kept).enumerate() {
        of_key.entry(run).or_insert(i);
    }
    let mut matching = Matching::default();
    let mut is_taken = vec![false; golden.runs.len()];
    for (i, key) in keyed(target, &kept).enumerate() {
        match of_key.get(&key) {
            Some(&partner) if !is_taken[partner] => {
                is_taken[partner] = true;
                matching.pairs.push(pair(target, golden, i, partner));
            }
            _ => matching.unmatched.push(Unmatched {
                is_of_target: true,
                run: i,
                reason: Reason::NoSuchName,
            }),
        }
    }
    let left = (0..golden.runs.len()).filter(|&i| !is_taken[i]);
    matching.unmatched.extend(left.map(|run| Unmatched {
        is_of_target: false,
        run,
        reason: Reason::NoSuchName,
    }));
    matching
}

/// Which parts of a place tell executions apart: those of which a side has several.
struct Kept {
    rank: bool,
    model: bool,
    step: bool,
}

impl Kept {
    fn of(target: &Side, golden: &Side) -> Kept {
        fn is_several<T: Ord>(sides: [&Side; 2], part: impl Fn(&RunPlace) -> T) -> bool {
            sides.into_iter().any(|side| {
                let parts: BTreeSet<T> = side.runs.iter().map(|run| part(&run.place)).collect();
                parts.len() > 1
            })
        }
        let sides = [target, golden];
        Kept {
            rank: is_several(sides, |place| place.rank),
            model: is_several(sides, |place| (place.model.clone(), place.model_id)),
            step: is_several(sides, |place| place.step),
        }
    }

    fn place(&self, place: &RunPlace) -> RunPlace {
        RunPlace {
            rank: place.rank.filter(|_| self.rank),
            model: place.model.clone().filter(|_| self.model),
            model_id: None,
            step: place.step.filter(|_| self.step),
        }
    }
}

fn keyed<'a>(side: &'a Side, kept: &'a Kept) -> impl Iterator<Item = Key> + 'a {
    let mut n_of: HashMap<(RunPlace, String), usize> = HashMap::new();
    side.runs.iter().map(move |run| {
        let key = (kept.place(&run.place), file_name_of(run));
        let n = n_of.entry(key.clone()).or_insert(0);
        let repeat = *n;
        *n += 1;
        (key.0, key.1, repeat)
    })
}

/// The name as file names have it, so that dumps with and without the full name agree.
fn file_name_of(run: &Run) -> String {
    run.op_name.replace(['/', '.', ' ', '\\'], "_")
}

/// Two runs, with the slots that have the same side and position.
pub(super) fn pair(target: &Side, golden: &Side, a: usize, b: usize) -> RunPair {
    let (left, right) = (&target.runs[a], &golden.runs[b]);
    let mut pair = RunPair {
        target: vec![a],
        golden: vec![b],
        how: How::Name,
        ..RunPair::default()
    };
    for (i, slot) in left.slots.iter().enumerate() {
        let is_it = |s: &crate::compare::side::Slot| (s.side, s.index) == (slot.side, slot.index);
        match right.slots.iter().position(is_it) {
            Some(j) => pair.slots.push(SlotPair {
                target: SlotRef { run: a, slot: i },
                golden: SlotRef { run: b, slot: j },
                layout: None,
            }),
            None => pair.missing.push(MissingSlot {
                is_of_target: true,
                side: slot.side,
                index: slot.index,
            }),
        }
    }
    for slot in &right.slots {
        if left.slot(slot.side, slot.index).is_none() {
            pair.missing.push(MissingSlot {
                is_of_target: false,
                side: slot.side,
                index: slot.index,
            });
        }
    }
    pair
}
