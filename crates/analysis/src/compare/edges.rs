//! Which operator reads what another makes, as the graphs beside the dumps tell.
//!
//! Values say what agrees, edges say where it comes from: an input that differs although what it
//! reads agrees with its own partner reads something else than the golden side's operator does.

use std::collections::{BTreeSet, HashMap};

use opscope_store::record::SlotSide;

use super::matching::{MatchedDumps, RunPair, SlotRef};
use super::result::{
    Cause, Comparison, OperatorName, OperatorResult, PartingOperator, RewiredInput, SlotResult,
    VerdictLevel,
};
use super::side::ComparedDump;

/// Most operators without a partner that are passed on the way to the next that has one.
const N_PASSED_MAX: usize = 64;

/// Both sides with the place of each execution in the list of results.
struct Edges<'a> {
    dumps: [&'a ComparedDump; 2],
    pairs: &'a [RunPair],
    operators: [HashMap<usize, usize>; 2],
}

/// Notes which operators read the outputs of each, inputs from outside, and inputs that read
/// another value than the golden side's. Levels have to be there, and have to be given again.
pub(super) fn note(comparison: &mut Comparison, sides: MatchedDumps<'_>) {
    let slots = comparison.operators.iter().flat_map(|one| &one.slots);
    if !slots.into_iter().any(is_apart) {
        return;
    }
    let edges = Edges::new(sides);
    edges.note_readers(comparison);
    edges.note_outside(comparison);
    edges.note_rewired(comparison);
}

impl<'a> Edges<'a> {
    fn new(sides: MatchedDumps<'a>) -> Edges<'a> {
        let mut operators = [HashMap::new(), HashMap::new()];
        for (operator, pair) in sides.matching.pairs.iter().enumerate() {
            for (of_side, runs) in operators.iter_mut().zip([&pair.target, &pair.golden]) {
                of_side.extend(runs.iter().map(|&run| (run, operator)));
            }
        }
        Edges {
            dumps: [sides.target, sides.golden],
            pairs: &sides.matching.pairs,
            operators,
        }
    }

    /// Operators of the list that read each output of the target's, also through operators that
    /// have no partner.
    fn note_readers(&self, comparison: &mut Comparison) {
        let [dump, _] = self.dumps;
        let mut readers: HashMap<SlotRef, Vec<usize>> = HashMap::new();
        for run in 0..dump.runs.len() {
            for made in inputs(dump, run).filter_map(|slot| dump.producer_of(slot)) {
                readers.entry(made).or_default().push(run);
            }
        }
        for (index, operator) in comparison.operators.iter_mut().enumerate() {
            let slots = self.pairs[index].slots.iter().enumerate();
            let mut found = BTreeSet::new();
            for (k, slot) in slots.filter(|(k, _)| operator.slots[*k].is_output()) {
                let next = self.readers_of(slot.target, &readers);
                found.extend(
                    next.into_iter()
                        .filter(|&next| next != index)
                        .map(|next| [k, next]),
                );
            }
            operator.readers = found.into_iter().collect();
        }
    }

    fn readers_of(&self, made: SlotRef, readers: &HashMap<SlotRef, Vec<usize>>) -> BTreeSet<usize> {
        let of = |made: &SlotRef| readers.get(made).into_iter().flatten().copied();
        let mut found = BTreeSet::new();
        let mut passed = BTreeSet::new();
        let mut open: Vec<usize> = of(&made).collect();
        while let Some(run) = open.pop() {
            if let Some(&operator) = self.operators[0].get(&run) {
                found.insert(operator);
            } else if passed.len() < N_PASSED_MAX && passed.insert(run) {
                let slots = self.dumps[0].runs[run].slots.iter().enumerate();
                let outputs = slots.filter(|(_, slot)| slot.side == SlotSide::Output);
                open.extend(outputs.flat_map(|(slot, _)| of(&SlotRef { run, slot })));
            }
        }
        found
    }

    /// Inputs that no operator of either graph makes.
    fn note_outside(&self, comparison: &mut Comparison) {
        for (pair, operator) in self.pairs.iter().zip(&mut comparison.operators) {
            if !(operator.is_certain && self.is_described(pair)) {
                continue;
            }
            for (slot, result) in pair.slots.iter().zip(&mut operator.slots) {
                let is_made = [(0, slot.target), (1, slot.golden)].map(|(i, at)| {
                    self.dumps[i].producer_of(at).is_some() || self.dumps[i].is_unseen(at)
                });
                result.is_outside |=
                    is_apart(result) && !result.is_output() && is_made == [false, false];
            }
        }
    }

    fn is_described(&self, pair: &RunPair) -> bool {
        let mut runs = [(0, &pair.target), (1, &pair.golden)]
            .into_iter()
            .flat_map(|(i, runs)| runs.iter().map(move |&run| (i, run)));
        runs.all(|(i, run)| self.dumps[i].description_of(run).is_some())
    }

    fn note_rewired(&self, comparison: &mut Comparison) {
        let mut found = Vec::new();
        for operator in comparison.operators.iter().filter(|one| one.is_certain) {
            let pair = &self.pairs[operator.index];
            let slots = pair.slots.iter().zip(&operator.slots);
            let rewired = slots.filter(|(_, result)| !result.is_output() && is_apart(result));
            let rewired: Vec<RewiredInput> = rewired
                .filter_map(|(slot, result)| {
                    self.rewired([slot.target, slot.golden], result, &comparison.operators)
                })
                .collect();
            let Some(first) = rewired.first() else {
                continue;
            };
            found.push(PartingOperator {
                operator: operator.index,
                name: operator.target.last().cloned().unwrap_or_default(),
                slot: first.slot,
                cause: Cause::Own,
                rewired,
                ..PartingOperator::default()
            });
        }
        for one in found {
            comparison
                .partings
                .retain(|known| known.operator != one.operator);
            comparison.partings.push(one);
        }
        comparison.partings.sort_by_key(|one| one.operator);
    }

    /// An input that differs, where what the target reads agrees with its own partner and is not
    /// what the golden side reads.
    fn rewired(
        &self,
        slots: [SlotRef; 2],
        result: &SlotResult,
        operators: &[OperatorResult],
    ) -> Option<RewiredInput> {
        let made = self.dumps[0].producer_of(slots[0])?;
        let read = self.dumps[1].producer_of(slots[1])?;
        let maker = *self.operators[0].get(&made.run)?;
        let pair = &self.pairs[maker];
        let at = pair.slots.iter().position(|slot| slot.target == made)?;
        let own = pair.slots[at].golden;
        let agrees = operators[maker].slots[at].level == VerdictLevel::Pass;
        let name = |run: usize| OperatorName::for_execution(&self.dumps[1].runs[run]);
        (agrees && own != read && self.operators[1].contains_key(&read.run)).then(|| RewiredInput {
            slot: result.slot,
            golden: name(own.run),
            instead: Some(name(read.run)),
        })
    }
}

fn inputs(dump: &ComparedDump, run: usize) -> impl Iterator<Item = SlotRef> {
    let slots = dump.runs[run].slots.iter().enumerate();
    let inputs = slots.filter(|(_, slot)| slot.side == SlotSide::Input);
    inputs.map(move |(slot, _)| SlotRef { run, slot })
}

fn is_apart(slot: &SlotResult) -> bool {
    matches!(slot.level, VerdictLevel::Warn | VerdictLevel::Fail)
}
