//! The operators with a partner, and the gaps between them.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::names::{file_name, joined};
use super::op_type::{OpType, OpTypeIndex};
use super::places::PlaceScope;
use super::slots::{self, OperatorGroup, Position};
use super::{
    MatchEvidence, Matching, MissingSlot, RunPair, SharedValues, SlotRef, UnmatchedExecution,
    UnmatchedReason, ValueAnchor,
};
use crate::compare::result::Party;
use crate::compare::side::{ComparedDump, OperatorExecution, RunPlace};
use crate::compare::statistics;

/// The state of the search for partners. Sides are 0, the target, and 1, the golden one.
pub(super) struct Board<'a> {
    pub sides: [&'a ComparedDump; 2],
    pub unmatched: Vec<UnmatchedExecution>,
    pub pairs: Vec<RunPair>,
    values: &'a SharedValues,
    names: [Vec<String>; 2],
    /// Numbers of names, the same on both sides, and which execution of its name it is within its
    /// place.
    keys: [Vec<Key>; 2],
    /// Positions in the order of execution of a place.
    positions: [Vec<usize>; 2],
    types: [Vec<OpType>; 2],
    states: [Vec<ExecutionState>; 2],
    /// Of each pair, the last position of its executions on each side.
    ends: Vec<[usize; 2]>,
    /// The two likest operators of those that are about equally like two.
    doubts: HashMap<(usize, usize), (String, String)>,
}

/// A name's number, and which of its executions it is.
pub(super) type Key = (usize, usize);

#[derive(Clone, Copy, Debug, PartialEq)]
enum ExecutionState {
    Free,
    Paired(usize),
    /// Without a partner, for a reason that is noted.
    Out,
}

/// Executions without a partner yet between two pairs that follow each other on both sides.
#[derive(Debug, Default)]
pub(super) struct PairingGap {
    /// Executions of each side, in order.
    pub runs: [Vec<usize>; 2],
    /// Whether there is a pair before it, and one after it.
    pub is_bounded: [bool; 2],
}

impl<'a> Board<'a> {
    pub(super) fn new(
        sides: [&'a ComparedDump; 2],
        scopes: &[PlaceScope],
        values: &'a SharedValues,
    ) -> Board<'a> {
        let mut types = OpTypeIndex::default();
        let names = sides.map(|side| {
            let names = side.runs.iter().map(|run| file_name(&run.op_name));
            names.collect::<Vec<_>>()
        });
        let mut ids: HashMap<&str, usize> = HashMap::new();
        let keys = [0, 1].map(|i| keys(sides[i], &names[i], &mut ids));
        let mut positions = sides.map(|side| vec![0; side.runs.len()]);
        for scope in scopes {
            for (positions, runs) in positions.iter_mut().zip(&scope.runs) {
                for (position, &run) in runs.iter().enumerate() {
                    positions[run] = position;
                }
            }
        }
        Board {
            unmatched: Vec::new(),
            values,
            positions,
            pairs: Vec::new(),
            types: sides.map(|side| side.runs.iter().map(|run| types.op_type_of(run)).collect()),
            states: sides.map(|side| vec![ExecutionState::Free; side.runs.len()]),
            ends: Vec::new(),
            sides,
            names,
            keys,
            doubts: HashMap::new(),
        }
    }

    pub(super) fn run(&self, side: usize, run: usize) -> &'a OperatorExecution {
        &self.sides[side].runs[run]
    }

    /// The name as file names have it.
    pub(super) fn name(&self, side: usize, run: usize) -> &str {
        &self.names[side][run]
    }

    /// The name's number, and which of its executions it is.
    pub(super) fn key(&self, side: usize, run: usize) -> Key {
        self.keys[side][run]
    }

    pub(super) fn op_type(&self, side: usize, run: usize) -> &OpType {
        &self.types[side][run]
    }

    pub(super) fn is_free(&self, side: usize, run: usize) -> bool {
        self.states[side][run] == ExecutionState::Free
    }

    /// Its position in the execution order of its place.
    pub(super) fn position(&self, side: usize, run: usize) -> usize {
        self.positions[side][run]
    }

    /// Brings executions of one place into the order of execution.
    pub(super) fn sort(&self, side: usize, runs: &mut [usize]) {
        runs.sort_by_key(|&run| self.positions[side][run]);
    }

    /// The last positions of the pair that it is in.
    fn ends_of(&self, side: usize, run: usize) -> Option<[usize; 2]> {
        match self.states[side][run] {
            ExecutionState::Paired(pair) => self.ends.get(pair).copied(),
            _ => None,
        }
    }

    /// Whether two are known to be operators of different types.
    pub(super) fn types_clash(&self, t: usize, g: usize) -> bool {
        self.types[0][t].clashes_with(&self.types[1][g])
    }

    /// Whether one has another dtype kind and size than its namesake, as the counter of a loop
    /// does. If a side lacks operators, also whether none of its inputs and outputs has the shape
    /// of its namesake's.
    pub(super) fn kinds_clash(&self, t: usize, g: usize) -> bool {
        if self.values.is_partial && self.is_baseless(&[t], &[g]) {
            let [own, others] = [(0, t), (1, g)].map(|(i, run)| {
                let slots = self.run(i, run).slots.iter();
                let extents = slots.map(|slot| (slot.side, slot.shape.clone()));
                extents.collect::<HashSet<_>>()
            });
            if own.is_disjoint(&others) {
                return true;
            }
        }
        match (self.is_float(0, t), self.is_float(1, g)) {
            (Some(a), Some(b)) => a != b && !self.has_like_outputs(t, g),
            _ => false,
        }
    }

    /// Whether two views have different shapes: their names were counted separately on each side.
    pub(super) fn views_clash(&self, t: usize, g: usize) -> bool {
        let runs = [self.run(0, t), self.run(1, g)];
        self.types[0][t].is_view
            && self.types[1][g].is_view
            && [SlotSide::Input, SlotSide::Output].into_iter().all(|kind| {
                let first = runs.map(|run| run.slots.iter().position(|slot| slot.side == kind));
                let [Some(a), Some(b)] = first else {
                    return false;
                };
                let numbers = [(0, t, a), (1, g, b)]
                    .map(|(side, run, slot)| self.values.number(side, SlotRef { run, slot }));
                runs[0].slots[a].shape != runs[1].slots[b].shape && numbers[0] != numbers[1]
            })
    }

    /// Whether two views of logs, which have no elements, turn other tensors: extents or hashes
    /// differ. A log counts operators of a type, so one more view shifts the names of all others.
    pub(super) fn logged_views_clash(&self, t: usize, g: usize) -> bool {
        let runs = [self.run(0, t), self.run(1, g)];
        let mut slots = runs.iter().flat_map(|run| &run.slots);
        let is_view = self.types[0][t].is_view && self.types[1][g].is_view;
        if !is_view || slots.any(|slot| slot.has_elements) {
            return false;
        }
        [SlotSide::Input, SlotSide::Output].into_iter().any(|kind| {
            let first = runs.map(|run| run.slots.iter().find(|slot| slot.side == kind));
            let [Some(a), Some(b)] = first else {
                return false;
            };
            a.shape != b.shape || statistics::digests_differ(a, b)
        })
    }

    fn is_float(&self, side: usize, run: usize) -> Option<bool> {
        let mut slots = self.run(side, run).slots.iter();
        let output = slots.find(|slot| slot.side == SlotSide::Output)?;
        // Engines quantise to bytes and keep the name.
        let dtype = output.dtype.filter(|dtype| dtype.bits() > Some(8))?;
        Some(dtype.is_float())
    }

    /// Whether the first outputs have the same dimensions in any order, if known.
    pub(super) fn has_like_outputs(&self, t: usize, g: usize) -> bool {
        let runs = [self.run(0, t), self.run(1, g)];
        match runs.map(|run| slots::first_extents(run, true)) {
            [Some(a), Some(b)] => a == b,
            _ => true,
        }
    }

    /// Whether type and order speak for executions as partners and nothing else does, where these
    /// say little. A weight or an output that both show does, and so do all inputs of operators of
    /// one type that compute something.
    pub(super) fn is_baseless(&self, targets: &[usize], goldens: &[usize]) -> bool {
        if !self.values.is_partial {
            return false;
        }
        let [own, others] = [(0, targets), (1, goldens)].map(|(side, runs)| {
            let runs = runs.iter().copied();
            runs.flat_map(|run| self.numbers(side, run))
                .collect::<HashSet<_>>()
        });
        // Of what several make of a weight, the end may be missing.
        let is_group = targets.len() + goldens.len() > 2;
        let is_told = own.intersection(&others).any(|&(side, number)| {
            let known = number.and_then(|number| self.values.distinctive.get(&number));
            known.is_some_and(|is_weight| side == SlotSide::Output || *is_weight && !is_group)
        });
        if is_told {
            return false;
        }
        let ([t], [g]) = (targets, goldens) else {
            return true;
        };
        let [own, others] = [own, others].map(|shown| {
            let inputs = shown
                .into_iter()
                .filter(|(side, _)| *side == SlotSide::Input);
            inputs.map(|(_, number)| number).collect::<HashSet<_>>()
        });
        let (op_type, other) = (self.op_type(0, *t), self.op_type(1, *g));
        let computes = op_type.is_same(other) && !op_type.is_view;
        !computes || own.is_empty() || own.contains(&None) || own != others
    }

    /// The numbers of the values that an execution shows, by side, none where the other side has it
    /// nowhere.
    fn numbers(&self, side: usize, run: usize) -> impl Iterator<Item = (SlotSide, Option<usize>)> {
        let slots = self.run(side, run).slots.iter().enumerate();
        slots.map(move |(slot, of)| {
            let number = self.values.number(side, SlotRef { run, slot });
            (of.side, number)
        })
    }

    /// Makes two partners.
    pub(super) fn pair(&mut self, t: usize, g: usize, how: MatchEvidence) {
        let pair = slots::one_to_one(self.sides, [t, g], how, &[]);
        self.add(pair);
    }

    /// Makes partners of two whose frameworks have other orders for their inputs: inputs belong
    /// together as is given, and in no other way.
    pub(super) fn pair_inputs(
        &mut self,
        [t, g]: [usize; 2],
        how: MatchEvidence,
        inputs: &[[Position; 2]],
    ) {
        let mut pair = slots::one_to_one(self.sides, [t, g], how, inputs);
        let (kept, apart): (Vec<_>, Vec<_>) = pair.slots.into_iter().partition(|slots| {
            let own = [(0, slots.target), (1, slots.golden)].map(|(side, at)| {
                let slot = self.sides[side].slot(at);
                (slot.side, slot.index)
            });
            own[0].0 == SlotSide::Output || inputs.contains(&own)
        });
        pair.slots = kept;
        let apart = apart.iter();
        let apart = apart.flat_map(|slots| [(0, slots.target), (1, slots.golden)]);
        pair.missing.extend(apart.map(|(side, at)| MissingSlot {
            party: Party::BOTH[side],
            run: at.run,
            side: self.sides[side].slot(at).side,
            index: self.sides[side].slot(at).index,
            is_inner: false,
        }));
        self.add(pair);
    }

    /// The partner of an execution, if neither has others.
    pub(super) fn only_partner(&self, side: usize, run: usize) -> Option<usize> {
        let ExecutionState::Paired(pair) = self.states[side][run] else {
            return None;
        };
        let pair = self.pairs.get(pair)?;
        let mut runs = [&pair.target, &pair.golden];
        runs.rotate_left(side);
        match (&runs[0][..], &runs[1][..]) {
            ([_], [partner]) => Some(*partner),
            _ => None,
        }
    }

    /// Which slots of both sides show one value.
    pub(super) fn values(&self) -> &SharedValues {
        self.values
    }

    /// Makes partners of executions of a place that are certain.
    pub(super) fn pair_certain(&mut self, certain: &[[usize; 2]], scope: &PlaceScope) {
        if certain.is_empty() {
            return;
        }
        let of_target: HashMap<usize, usize> = certain.iter().map(|&[t, g]| (t, g)).collect();
        for &t in &scope.runs[0] {
            let golden = of_target.get(&t).copied();
            if let Some(g) = golden.filter(|&g| self.is_free(0, t) && self.is_free(1, g)) {
                let has_one_name = self.name(0, t) == self.name(1, g);
                let how = if has_one_name {
                    MatchEvidence::Name
                } else {
                    MatchEvidence::Structure
                };
                self.pair(t, g, how);
            }
        }
    }

    /// Makes partners of executions of a place that make the same values and are still alone.
    pub(super) fn pair_anchors(
        &mut self,
        anchors: &HashMap<usize, &ValueAnchor>,
        scope: &PlaceScope,
    ) {
        if anchors.is_empty() {
            return;
        }
        let golden: HashSet<usize> = scope.runs[1].iter().copied().collect();
        for anchor in scope.runs[0].iter().filter_map(|run| anchors.get(run)) {
            let [t, g] = anchor.runs;
            if !(golden.contains(&g) && self.is_free(0, t) && self.is_free(1, g)) {
                continue;
            }
            let has_one_name =
                file_name(&self.run(0, t).op_name) == file_name(&self.run(1, g).op_name);
            let how = if has_one_name {
                MatchEvidence::Name
            } else {
                MatchEvidence::Value
            };
            self.add(slots::one_to_one(self.sides, [t, g], how, &anchor.slots));
        }
    }

    /// Makes operators partners of which several are one on the other side. What contributes no
    /// slot has vanished inside.
    pub(super) fn pair_group(&mut self, group: &OperatorGroup<'_>, how: MatchEvidence) {
        let pair = slots::of_group(self.sides, group, how, self.values);
        let inside = [0, 1].map(|i| {
            let others = group.runs[1 - i].iter();
            let names = others.map(|&run| self.run(1 - i, run).op_name.as_str());
            UnmatchedReason::InsideFusion(joined(names))
        });
        for (i, reason) in inside.into_iter().enumerate() {
            let kept = if i == 0 { &pair.target } else { &pair.golden };
            let kept: HashSet<usize> = kept.iter().copied().collect();
            let lost: Vec<usize> = group.runs[i]
                .iter()
                .copied()
                .filter(|run| !kept.contains(run))
                .collect();
            for run in lost {
                self.leave(i, run, reason.clone());
            }
        }
        self.add(pair);
    }

    pub(super) fn add(&mut self, pair: RunPair) {
        let last = [(0, &pair.target), (1, &pair.golden)].map(|(side, runs)| {
            let positions = runs.iter().map(|&run| self.position(side, run));
            positions.max().unwrap_or_default()
        });
        // Both lists grow together: a pair's number is its place in either.
        self.ends.push(last);
        for (i, runs) in [&pair.target, &pair.golden].into_iter().enumerate() {
            for &run in runs {
                self.states[i][run] = ExecutionState::Paired(self.pairs.len());
            }
        }
        self.pairs.push(pair);
    }

    /// Leaves an execution without a partner.
    pub(super) fn leave(&mut self, side: usize, run: usize, reason: UnmatchedReason) {
        self.states[side][run] = ExecutionState::Out;
        self.unmatched.push(UnmatchedExecution {
            party: Party::BOTH[side],
            run,
            reason,
        });
    }

    /// Notes that an operator is about equally like two.
    pub(super) fn doubt(&mut self, side: usize, run: usize, likest: (String, String)) {
        self.doubts.insert((side, run), likest);
    }

    /// The two that an operator is about equally like.
    pub(super) fn doubt_of(&self, side: usize, run: usize) -> Option<&(String, String)> {
        self.doubts.get(&(side, run))
    }

    /// Returns the executions left between pairs in the same order on both sides, for the largest
    /// set of such pairs. If the order is unknown, returns all remaining executions.
    pub(super) fn gaps(&self, scope: &PlaceScope) -> Vec<PairingGap> {
        let mut anchors: Vec<[usize; 2]> = Vec::new();
        for &run in scope.runs[0].iter().filter(|_| scope.is_ordered) {
            let position = self.position(0, run);
            let ends = self.ends_of(0, run);
            // A fused pair counts once, at its last operator: there is no gap between its parts.
            anchors.extend(ends.filter(|ends| ends[0] == position));
        }
        // Pairs cross if one side ran an operator earlier, and there is no gap between crossing
        // pairs.
        let anchors = longest_rise(&anchors);
        let mut gaps: Vec<PairingGap> = (0..=anchors.len())
            .map(|k| PairingGap {
                is_bounded: [k > 0, k < anchors.len()],
                ..PairingGap::default()
            })
            .collect();
        for side in [0, 1] {
            let mut k = 0;
            for &run in &scope.runs[side] {
                while k < anchors.len() && anchors[k][side] < self.position(side, run) {
                    k += 1;
                }
                if self.is_free(side, run) {
                    gaps[k].runs[side].push(run);
                }
            }
        }
        gaps.retain(|gap| gap.runs.iter().any(|runs| !runs.is_empty()));
        gaps
    }

    /// Everything in order.
    pub(super) fn finish(mut self) -> Matching {
        self.pairs.shrink_to_fit();
        // An archive of values lists them in any order, and golden's operators are in theirs.
        let [target, golden] = self.sides;
        let is_listed = |side: &ComparedDump| side.runs.iter().all(OperatorExecution::is_value);
        let first = usize::from(is_listed(target) && !is_listed(golden));
        self.pairs.sort_by_key(|pair| {
            let mut runs = [&pair.target, &pair.golden].map(|runs| runs.first().copied());
            runs.rotate_left(first);
            runs
        });
        self.unmatched.sort_by_key(|one| (one.party, one.run));
        Matching {
            pairs: self.pairs,
            unmatched: self.unmatched,
        }
    }
}

fn keys<'n>(
    side: &ComparedDump,
    names: &'n [String],
    ids: &mut HashMap<&'n str, usize>,
) -> Vec<Key> {
    let mut places: HashMap<&RunPlace, usize> = HashMap::new();
    let mut last: Option<(&RunPlace, usize)> = None;
    let mut n_of: HashMap<(usize, usize), usize> = HashMap::new();
    let runs = side.runs.iter().zip(names);
    runs.map(|(run, name)| {
        let next = ids.len();
        let id = *ids.entry(name).or_insert(next);
        // Executions of one place mostly follow each other.
        let place = match last {
            Some((place, number)) if *place == *run.place => number,
            _ => {
                let next = places.len();
                *places.entry(&run.place).or_insert(next)
            }
        };
        last = Some((&run.place, place));
        let n = n_of.entry((place, id)).or_insert(0);
        *n += 1;
        (id, *n - 1)
    })
    .collect()
}

/// The longest part of a list, ordered by the first number, in which the second numbers rise too.
fn longest_rise(anchors: &[[usize; 2]]) -> Vec<[usize; 2]> {
    // The end of the best subsequence of each length, and the predecessor of each element.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(anchors.len());
    for (i, anchor) in anchors.iter().enumerate() {
        // The second numbers of the ends rise with the length, so a binary search takes the place
        // of comparing all anchors with each other.
        let length = ends.partition_point(|&end| anchors[end][1] < anchor[1]);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        if length == ends.len() {
            ends.push(i);
        } else {
            ends[length] = i;
        }
    }
    let mut part = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(i) = next {
        part.push(anchors[i]);
        next = before[i];
    }
    part.reverse();
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rise_is_found() {
        let cases: &[(&[usize], &[usize])] = &[
            (&[], &[]),
            (&[5], &[5]),
            (&[1, 2, 3], &[1, 2, 3]),
            (&[3, 2, 1], &[1]),
            (&[0, 7, 1, 2, 8, 3, 4], &[0, 1, 2, 3, 4]),
        ];
        for (seconds, expected) in cases {
            let anchors: Vec<[usize; 2]> =
                seconds.iter().enumerate().map(|(i, &s)| [i, s]).collect();
            let found: Vec<usize> = longest_rise(&anchors).iter().map(|a| a[1]).collect();
            assert_eq!(&found, expected, "{seconds:?}");
        }
    }
}
