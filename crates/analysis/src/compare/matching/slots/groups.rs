//! Slots of operators of which several are one on the other side.

use std::collections::{HashMap, HashSet, VecDeque};

use opscope_store::record::SlotSide;
use opscope_tensor::DType;

use super::{Position, Two, described, extents, is_made_up, missing, original_extents};
use crate::compare::matching::names::file_name;
use crate::compare::matching::{MatchEvidence, RunPair, SharedValues, SlotRef};
use crate::compare::side::{ComparedDump, ExecutionSlot};

/// Which operator of the other side made an output, and which of its outputs it is: by side, run
/// and position.
type Origins<'a> = &'a dyn Fn(usize, usize, u32) -> Option<(String, u32)>;

/// Operators that belong together, in order.
pub(crate) struct OperatorGroup<'a> {
    /// Those of the target and of the golden side.
    pub runs: [Vec<usize>; 2],
    /// Slots that are given, by run and position.
    pub given: Vec<[(usize, Position); 2]>,
    /// The known origins of outputs.
    pub origins: Origins<'a>,
    /// Whether the last operators of both sides make the same values, as far as nothing else is
    /// known.
    pub is_end_shared: bool,
}

/// An input is told from others by its extents, and by whether it has floats: codes are no scales.
fn form_of(slot: &ExecutionSlot) -> Option<(Vec<u64>, bool)> {
    Some((extents(slot)?, slot.dtype.is_none_or(DType::is_float)))
}

struct GroupPairing<'a> {
    sides: [&'a ComparedDump; 2],
    values: &'a SharedValues,
    found: Vec<Two>,
    is_used: [HashSet<SlotRef>; 2],
}

/// Pairs what comes out of operators and what goes into them; values in between belong to one side
/// alone.
pub(crate) fn of_group(
    sides: [&ComparedDump; 2],
    group: &OperatorGroup<'_>,
    how: MatchEvidence,
    values: &SharedValues,
) -> RunPair {
    let mut work = GroupPairing {
        sides,
        values,
        found: Vec::new(),
        is_used: [HashSet::new(), HashSet::new()],
    };
    // The surest way comes first, since a slot that is taken is free for no other.
    work.given(group);
    work.by_value(group);
    work.by_origin(group);
    let mut found = work.found.iter().map(|two| work.slot(0, two[0]));
    // One known origin shows that the dump records origins, and then a position proves nothing.
    if found.all(|slot| slot.side != SlotSide::Output) && group.is_end_shared {
        work.ends(group);
    }
    work.inputs(group);
    work.found.sort_unstable();
    let contributing = [0, 1].map(|i| {
        let runs = work.found.iter().map(|two| two[i].run);
        runs.collect::<HashSet<_>>()
    });
    // If no slot of a side is compared, the last operator represents all.
    let kept = [0, 1].map(|i| {
        let runs = &group.runs[i];
        let mut kept: Vec<usize> = runs
            .iter()
            .copied()
            .filter(|run| contributing[i].contains(run))
            .collect();
        if kept.is_empty() {
            kept.extend(runs.last());
        }
        kept
    });
    let mut pair = RunPair {
        how,
        slots: work
            .found
            .iter()
            .map(|&two| described(sides, two))
            .collect(),
        ..RunPair::default()
    };
    for (i, kept) in kept.iter().enumerate() {
        for &run in kept {
            for (slot, described) in sides[i].runs[run].slots.iter().enumerate() {
                if !work.is_used[i].contains(&SlotRef { run, slot }) {
                    let is_inner = group.runs[i].len() > 1 || is_made_up(sides, i, described);
                    pair.missing.push(missing(i, run, described, is_inner));
                }
            }
        }
    }
    [pair.target, pair.golden] = kept.map(Into::into);
    pair
}

impl<'a> GroupPairing<'a> {
    fn slot(&self, side: usize, place: SlotRef) -> &'a ExecutionSlot {
        self.sides[side].slot(place)
    }

    /// Slots of one kind that are free, in order.
    fn free(&self, i: usize, runs: &[usize], kind: SlotSide) -> Vec<SlotRef> {
        let all = runs.iter().flat_map(|&run| {
            let slots = &self.sides[i].runs[run].slots;
            (0..slots.len()).map(move |slot| SlotRef { run, slot })
        });
        all.filter(|place| {
            let slot = self.slot(i, *place);
            slot.side == kind
                && !self.is_used[i].contains(place)
                && !is_made_up(self.sides, i, slot)
        })
        .collect()
    }

    fn add(&mut self, two: Two) {
        for (is_used, place) in self.is_used.iter_mut().zip(two) {
            is_used.insert(place);
        }
        self.found.push(two);
    }

    /// Pairs the slots of the user's mapping.
    fn given(&mut self, group: &OperatorGroup<'_>) {
        for pair in &group.given {
            let found = [0, 1].map(|i| {
                let (run, position) = pair[i];
                let mut slots = self.sides[i].runs[run].slots.iter();
                let slot = slots.position(|slot| (slot.side, slot.index) == position)?;
                Some(SlotRef { run, slot }).filter(|place| !self.is_used[i].contains(place))
            });
            if let [Some(target), Some(golden)] = found {
                self.add([target, golden]);
            }
        }
    }

    /// Slots that show the same elements, in order.
    fn by_value(&mut self, group: &OperatorGroup<'_>) {
        let values = self.values;
        for kind in [SlotSide::Input, SlotSide::Output] {
            let mut of_value: HashMap<usize, VecDeque<SlotRef>> = HashMap::new();
            for place in self.free(1, &group.runs[1], kind) {
                if let Some(value) = values.number(1, place) {
                    of_value.entry(value).or_default().push_back(place);
                }
            }
            for place in self.free(0, &group.runs[0], kind) {
                let same = values.number(0, place);
                let same = same.and_then(|value| of_value.get_mut(&value)?.pop_front());
                if let Some(golden) = same {
                    self.add([place, golden]);
                }
            }
        }
    }

    /// Outputs of which it is known what made them. Later operators come first: their values are
    /// the ones that leave the group.
    fn by_origin(&mut self, group: &OperatorGroup<'_>) {
        for i in [0, 1] {
            let mut others: HashMap<(String, u32), VecDeque<SlotRef>> = HashMap::new();
            for other in self.free(1 - i, &group.runs[1 - i], SlotSide::Output) {
                let run = &self.sides[1 - i].runs[other.run];
                let key = (file_name(&run.op_name), run.slots[other.slot].index);
                others.entry(key).or_default().push_back(other);
            }
            for &run in group.runs[i].iter().rev() {
                for place in self.free(i, &[run], SlotSide::Output) {
                    let index = self.slot(i, place).index;
                    let Some((name, output)) = (group.origins)(i, run, index) else {
                        continue;
                    };
                    let found = others.get_mut(&(file_name(&name), output));
                    if let Some(other) = found.and_then(VecDeque::pop_front) {
                        self.add(if i == 0 {
                            [place, other]
                        } else {
                            [other, place]
                        });
                    }
                }
            }
        }
    }

    /// The outputs of the last operators, by position.
    fn ends(&mut self, group: &OperatorGroup<'_>) {
        let [t, g] = [0, 1].map(|i| {
            let last: Vec<usize> = group.runs[i].last().copied().into_iter().collect();
            self.free(i, &last, SlotSide::Output)
        });
        let mut of_index: HashMap<u32, SlotRef> = HashMap::new();
        for golden in g {
            let index = self.slot(1, golden).index;
            of_index.entry(index).or_insert(golden);
        }
        for target in t {
            let index = self.slot(0, target).index;
            // A file may have two outputs of one position: a slot is in one pair.
            if let Some(golden) = of_index.remove(&index) {
                self.add([target, golden]);
            }
        }
    }

    /// Pairs inputs from outside of a group, in order, if shapes agree.
    fn inputs(&mut self, group: &OperatorGroup<'_>) {
        // A value that is elsewhere on the other side has no match here.
        let values = self.values;
        let [targets, goldens] = [0, 1].map(|i| {
            let mut outer = self.outer_inputs(i, &group.runs[i]);
            outer.retain(|place| values.number(i, *place).is_none());
            outer
        });
        // Fusion renumbers inputs and keeps their shapes.
        let mut of_form: HashMap<(Vec<u64>, bool), VecDeque<SlotRef>> = HashMap::new();
        for golden in goldens {
            if let Some(form) = form_of(self.slot(1, golden)) {
                of_form.entry(form).or_default().push_back(golden);
            }
        }
        for target in targets {
            let form = form_of(self.slot(0, target));
            let goldens = form.and_then(|key| of_form.get_mut(&key));
            if let Some(golden) = goldens.and_then(VecDeque::pop_front) {
                self.add([target, golden]);
            }
        }
    }

    /// Inputs that cannot be outputs of an earlier operator of the group, because of their shapes.
    fn outer_inputs(&self, i: usize, runs: &[usize]) -> Vec<SlotRef> {
        let mut inner: HashSet<Option<&Vec<u64>>> = HashSet::new();
        let mut outer = Vec::new();
        for (n, &run) in runs.iter().enumerate() {
            let slots = &self.sides[i].runs[run].slots;
            for place in self.free(i, &[run], SlotSide::Input) {
                let of_slot = original_extents(self.slot(i, place));
                // Without earlier outputs, inner inputs cannot be recognized.
                let is_sure =
                    n == 0 || (!inner.is_empty() && of_slot.is_some() && !inner.contains(&None));
                if is_sure && !inner.contains(&of_slot) {
                    outer.push(place);
                }
            }
            let outputs = slots.iter().filter(|slot| slot.side == SlotSide::Output);
            inner.extend(outputs.map(original_extents));
        }
        outer
    }
}
