//! Operators that one side has before the counterpart of an operator of the other.

use std::collections::{HashMap, HashSet, VecDeque};

use super::ComparedValues;
use super::values::ValueIndex;
use crate::compare::matching::{is_same_type, is_view};
use crate::compare::side::ComparedDump;

/// Maximum number of operators that are checked behind the first that the other side lacks.
const N_CHECKED_MAX: usize = 16;

/// Operators of one side between a value that both have and the next operator of both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ExtraOperators {
    /// The side that has them: 0 the target, 1 golden.
    pub(super) side: usize,
    /// The last one first.
    pub(super) runs: Vec<usize>,
}

/// The counterparts among operators that read one value and are of other types: a side may have
/// operators before its own that the other side lacks.
///
/// The counterpart depends on the first of these, is of the other operator's type and size, and reads
/// what else that one reads. If that is no weight, operators of the same types compute with the
/// results of both. An operator that was replaced has no such counterpart, unless the type repeats
/// behind it; then both sides have one, and nothing is known.
pub(super) fn shifted(
    values: &ComparedValues,
    dumps: [&ComparedDump; 2],
    runs: [usize; 2],
    is_taken: &[HashSet<usize>; 2],
) -> Option<([usize; 2], ExtraOperators)> {
    if is_same_type(&dumps[0].runs[runs[0]], &dumps[1].runs[runs[1]]) {
        return None;
    }
    let [target, golden] = [0, 1].map(|side| values.behind(side, dumps, runs, is_taken));
    let (side, (run, extra)) = match (target, golden) {
        (Some(found), None) => (0, found),
        (None, Some(found)) => (1, found),
        _ => return None,
    };
    let mut pair = runs;
    pair[side] = run;
    Some((pair, ExtraOperators { side, runs: extra }))
}

impl ComparedValues {
    /// The operator of a side that is the other side's, behind the one that reads the same value;
    /// and the operators before it, the last one first.
    fn behind(
        &self,
        side: usize,
        dumps: [&ComparedDump; 2],
        runs: [usize; 2],
        is_taken: &[HashSet<usize>; 2],
    ) -> Option<(usize, Vec<usize>)> {
        let (own, first, other) = (&self.sides[side], runs[side], runs[1 - side]);
        let read: HashSet<ValueIndex> = own.inputs_of(first).collect();
        // The values that the other operator reads besides the one that both read.
        let equals = &self.equals[1 - side];
        let inputs = self.sides[1 - side].inputs_of(other);
        let inputs = inputs.filter_map(|value| equals[value.0]);
        let inputs: HashSet<ValueIndex> = inputs.collect();
        if self.takes_readers(side, first, &inputs) {
            return None;
        }
        let mut others = inputs.difference(&read);
        let reads_weight = others.any(|value| {
            let of = &own.values[value.0];
            of.is_outside && of.is_distinctive()
        });
        let mut open = VecDeque::from([first]);
        let mut sources: HashMap<usize, Option<usize>> = HashMap::from([(first, None)]);
        while let Some(run) = open.pop_front() {
            for reader in self.readers_of(side, run) {
                let is_free = !is_taken[side].contains(&reader) && !sources.contains_key(&reader);
                if sources.len() > N_CHECKED_MAX || !is_free {
                    continue;
                }
                sources.insert(reader, Some(run));
                let is_it = is_same_type(&dumps[side].runs[reader], &dumps[1 - side].runs[other])
                    && inputs
                        .difference(&read)
                        .all(|value| own.reads(reader, *value))
                    && self.n_made(side, reader) == self.n_made(1 - side, other)
                    && (reads_weight || self.have_like_readers(side, dumps, [reader, other]));
                if is_it {
                    let way = std::iter::successors(Some(run), |run| sources[run]);
                    return Some((reader, way.collect()));
                }
                if !self.reads_known_weight(side, reader) {
                    open.push_back(reader);
                }
            }
        }
        None
    }

    /// Whether an operator alone reads a value that operators of the other side compute with. It is
    /// these in another form, and not one more. `shared` are values that the other side's reads.
    fn takes_readers(&self, side: usize, run: usize, shared: &HashSet<ValueIndex>) -> bool {
        let own = &self.sides[side];
        own.inputs_of(run).any(|value| {
            let of = &own.values[value.0];
            let equal = self.equals[side][value.0].filter(|_| !of.is_outside);
            equal.is_some_and(|equal| {
                let n_readers = self.sides[1 - side].values[equal.0].readers.len();
                !shared.contains(&value) && of.readers.len() < n_readers + 1
            })
        })
    }

    /// Whether an operator computes with a weight that the other side has: that side does not lack it.
    fn reads_known_weight(&self, side: usize, run: usize) -> bool {
        let own = &self.sides[side];
        own.inputs_of(run).any(|value| {
            let of = &own.values[value.0];
            of.is_outside && of.is_distinctive() && self.equals[side][value.0].is_some()
        })
    }

    /// Whether as many operators of the same types compute with the results of both.
    fn have_like_readers(
        &self,
        side: usize,
        dumps: [&ComparedDump; 2],
        [run, other]: [usize; 2],
    ) -> bool {
        let mut others = self.readers_behind_views(1 - side, dumps[1 - side], other);
        for reader in self.readers_behind_views(side, dumps[side], run) {
            let alike = others.iter().position(|other| {
                is_same_type(&dumps[side].runs[reader], &dumps[1 - side].runs[*other])
            });
            let Some(alike) = alike else {
                return false;
            };
            others.swap_remove(alike);
        }
        others.is_empty()
    }

    /// The operators that compute with the result of an operator, through views.
    fn readers_behind_views(&self, side: usize, dump: &ComparedDump, run: usize) -> Vec<usize> {
        let mut open = VecDeque::from([run]);
        let (mut seen, mut readers) = (HashSet::new(), Vec::new());
        while let Some(run) = open.pop_front() {
            for reader in self.readers_of(side, run) {
                if seen.len() > N_CHECKED_MAX || !seen.insert(reader) {
                    continue;
                }
                if is_view(&dump.runs[reader]) {
                    open.push_back(reader);
                } else {
                    readers.push(reader);
                }
            }
        }
        readers
    }

    fn readers_of(&self, side: usize, run: usize) -> impl Iterator<Item = usize> {
        let own = &self.sides[side];
        let made = own.outputs.get(&run).into_iter().flatten();
        made.flat_map(|value| own.values[value.0].readers.iter().copied())
    }
}
