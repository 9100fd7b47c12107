//! Matches operators at the same position in both graphs.
//!
//! One additional operator shifts all names with a counter. From certain pairs, and from operators
//! that read a parameter of one name, the graphs lead to the others: the producer of the same
//! input, and the only reader of its type of the same output.

use std::collections::{HashMap, HashSet, VecDeque};

use opscope_store::record::SlotSide;

use super::identity::without_counter;
use super::op_type::is_view;
use super::{MatchedDumps, SlotRef};
use crate::compare::side::ComparedDump;

/// Types whose inputs may be in either order.
const COMMUTATIVE: [&str; 7] = ["add", "mul", "and", "or", "equal", "max", "min"];

/// Least share of the kinds of names of a side that the other has, too: four of five.
const SHARED_MIN: [usize; 2] = [4, 5];

/// Number of operators without one of their type on the other side that one change may add, and the
/// number of operators that may have one such each.
const N_APART_MAX: usize = 2;
const N_RUNS_EACH: usize = 20;

/// An input, as the run that reads it and the number of the input.
type Reader = (usize, u32);

/// Both graphs, and the pairs that were found.
struct Structure<'a> {
    dumps: [&'a ComparedDump; 2],
    types: [Vec<String>; 2],
    readers: [HashMap<SlotRef, Vec<Reader>>; 2],
    partners: [HashMap<usize, usize>; 2],
    /// Pairs whose neighbours have not been visited yet.
    open: Vec<[usize; 2]>,
    /// Operators that may be partners, as far as the readers of what they make show.
    doubtful: VecDeque<[usize; 2]>,
}

/// The certain pairs, extended by those that follow from the graphs around them.
pub(crate) fn extended(certain: Vec<[usize; 2]>, sides: MatchedDumps<'_>) -> Vec<[usize; 2]> {
    let dumps = [sides.target, sides.golden];
    // With one listing, everything has its partner by name.
    let is_complete = dumps.iter().all(|dump| dump.runs.len() == certain.len());
    if is_complete || dumps.iter().any(|dump| dump.is_without_wires()) || !have_one_exporter(dumps)
    {
        return certain;
    }
    let mut structure = Structure::new(dumps, certain);
    // Names of parameters outlive an export, and are the same on both sides whatever the operators
    // around them are called.
    structure.pair_by_parameters();
    // Each pair is taken once, so that this ends after as many rounds as there are operators.
    while let Some(pair) = structure.next() {
        structure.pair_makers(pair);
        structure.pair_readers(pair);
    }
    let [partners, _] = structure.partners;
    let mut pairs: Vec<[usize; 2]> = partners.into_iter().map(|(t, g)| [t, g]).collect();
    pairs.sort_unstable();
    pairs
}

/// Whether most operators of both sides have names of one kind, or nearly all have the types of the
/// other side. Graphs of two exporters have parts that look alike and are not.
fn have_one_exporter(dumps: [&ComparedDump; 2]) -> bool {
    if have_same_types(dumps) {
        return true;
    }
    let kinds = dumps.map(|dump| {
        let runs = dump.runs.iter();
        runs.map(|run| (without_counter(&run.op_name), run.op_type.as_str()))
            .collect::<HashSet<_>>()
    });
    let [own, others] = &kinds;
    let n_shared = own.intersection(others).count();
    n_shared * SHARED_MIN[1] >= own.len().max(others.len()) * SHARED_MIN[0]
}

/// Whether all operators but a few have the types of the other side's: one graph, whose operators
/// have other names.
fn have_same_types(dumps: [&ComparedDump; 2]) -> bool {
    let mut n_more: HashMap<String, isize> = HashMap::new();
    for (dump, step) in dumps.into_iter().zip([1, -1]) {
        let runs = dump.runs.iter();
        // A body may run more often on one side.
        let operators: HashSet<(&str, &str)> = runs
            .map(|run| (run.op_type.as_str(), without_iteration(&run.op_name)))
            .collect();
        for (op_type, _) in operators {
            *n_more.entry(op_type.to_ascii_lowercase()).or_default() += step;
        }
    }
    let n_apart: usize = n_more.values().map(|n| n.unsigned_abs()).sum();
    let n_runs = dumps[0].runs.len().max(dumps[1].runs.len());
    n_apart <= N_APART_MAX.max(n_runs / N_RUNS_EACH)
}

/// A name without the number of the iteration that ran it, as in `body/Add.2`.
fn without_iteration(op_name: &str) -> &str {
    let bare = op_name.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = bare.strip_suffix('.');
    stem.filter(|_| bare.len() < op_name.len())
        .unwrap_or(op_name)
}

/// A parameter that an operator reads, where there is one such operator.
type ParameterKey = (Option<u32>, Option<u64>, String, u32, String);

impl<'a> Structure<'a> {
    fn new(dumps: [&'a ComparedDump; 2], certain: Vec<[usize; 2]>) -> Structure<'a> {
        let types = dumps.map(|dump| {
            let runs = dump.runs.iter();
            runs.map(|run| run.op_type.to_ascii_lowercase()).collect()
        });
        let readers = dumps.map(|dump| {
            let mut readers: HashMap<SlotRef, Vec<Reader>> = HashMap::new();
            for run in 0..dump.runs.len() {
                for (slot, index) in slots(dump, run, SlotSide::Input) {
                    if let Some(made) = dump.producer_of(slot) {
                        readers.entry(made).or_default().push((run, index));
                    }
                }
            }
            readers
        });
        Structure {
            dumps,
            types,
            readers,
            partners: [0, 1].map(|i| certain.iter().map(|pair| (pair[i], pair[1 - i])).collect()),
            open: certain,
            doubtful: VecDeque::new(),
        }
    }

    /// The next pair whose neighbours have to be visited. Doubtful ones come last: other neighbours
    /// may know better.
    fn next(&mut self) -> Option<[usize; 2]> {
        while self.open.is_empty() {
            let pair = self.doubtful.pop_front()?;
            if self.may_pair(pair) {
                self.add(pair);
            }
        }
        self.open.pop()
    }

    fn is_free(&self, side: usize, run: usize) -> bool {
        !self.partners[side].contains_key(&run)
    }

    fn may_pair(&self, [t, g]: [usize; 2]) -> bool {
        let is_told = !self.types[0][t].is_empty();
        is_told
            && self.types[0][t] == self.types[1][g]
            && self.is_free(0, t)
            && self.is_free(1, g)
            && self.dumps[0].runs[t]
                .other_originals()
                .eq(self.dumps[1].runs[g].other_originals())
            // One that reads more may have taken another operator in.
            && n_inputs(self.dumps[0], t) == n_inputs(self.dumps[1], g)
    }

    fn pair(&mut self, pair: [usize; 2]) {
        let pair = self.of_a_row(pair);
        if !self.may_pair(pair) {
            return;
        }
        if self.is_doubtful(pair) {
            self.doubtful.push_back(pair);
        } else {
            self.add(pair);
        }
    }

    fn add(&mut self, pair: [usize; 2]) {
        self.partners[0].insert(pair[0], pair[1]);
        self.partners[1].insert(pair[1], pair[0]);
        self.open.push(pair);
    }

    /// Whether no two operators that both read from are partners, or one reads from an operator whose
    /// partner the other does not read from.
    fn is_doubtful(&self, pair: [usize; 2]) -> bool {
        let mut is_supported = false;
        for side in 0..2 {
            let others: HashSet<usize> = self.makers_of(1 - side, pair[1 - side]).collect();
            let makers = self.makers_of(side, pair[side]);
            for partner in makers.filter_map(|made| self.partners[side].get(&made)) {
                if !others.contains(partner) {
                    return true;
                }
                is_supported = true;
            }
        }
        !is_supported
    }

    /// The pair, or where one side has two operators of the type in a row, that with the attributes
    /// of the other side's.
    fn of_a_row(&self, [t, g]: [usize; 2]) -> [usize; 2] {
        if self.has_one_set_of_attributes([t, g]) != Some(false) {
            return [t, g];
        }
        let of_target = self.next_to(0, t).map(|next| [next, g]);
        let of_golden = self.next_to(1, g).map(|next| [t, next]);
        let mut others = of_target.chain(of_golden);
        others
            .find(|pair| {
                self.may_pair(*pair) && self.has_one_set_of_attributes(*pair) == Some(true)
            })
            .unwrap_or([t, g])
    }

    /// Whether two operators have the same attributes, if graphs have them.
    fn has_one_set_of_attributes(&self, [t, g]: [usize; 2]) -> Option<bool> {
        let [target, golden] = self.dumps;
        let attributes = target.attributes_of(t)?;
        Some(attributes.differences(&golden.attributes_of(g)?).is_empty())
    }

    /// The makers of what an operator reads, and the readers of what it makes.
    fn next_to(&self, side: usize, run: usize) -> impl Iterator<Item = usize> {
        self.makers_of(side, run).chain(self.readers_of(side, run))
    }

    fn makers_of(&self, side: usize, run: usize) -> impl Iterator<Item = usize> {
        let dump = self.dumps[side];
        let inputs = slots(dump, run, SlotSide::Input);
        inputs.filter_map(|(slot, _)| Some(dump.producer_of(slot)?.run))
    }

    fn readers_of(&self, side: usize, run: usize) -> impl Iterator<Item = usize> {
        let known = &self.readers[side];
        let outputs = slots(self.dumps[side], run, SlotSide::Output);
        let readers = outputs.filter_map(|(slot, _)| known.get(&slot));
        readers.flatten().map(|(run, _)| *run)
    }

    /// The pair, or of views of values that do not belong together, the target's with the view of
    /// its type of the partner: that the other view is read further on is what differs.
    fn of_one_maker(&self, [t, g]: [usize; 2]) -> [usize; 2] {
        let read = [(0, t), (1, g)].map(|(side, run)| self.makers_of(side, run).next());
        let [Some(of_target), Some(of_golden)] = read else {
            return [t, g];
        };
        let partner = self.partners[0].get(&of_target).copied();
        let is_moved = partner.is_some_and(|partner| partner != of_golden);
        let Some(partner) = partner.filter(|_| is_moved && is_view(&self.dumps[0].runs[t])) else {
            return [t, g];
        };
        let mut others = self.readers_of(1, partner);
        let other = others.find(|&other| self.may_pair([t, other]));
        let is_only = !others.any(|other| self.may_pair([t, other]));
        [t, other.filter(|_| is_only).unwrap_or(g)]
    }

    /// Operators of one type that alone read a parameter of one name.
    fn pair_by_parameters(&mut self) {
        let [targets, goldens] = [0, 1].map(|side| {
            let dump = self.dumps[side];
            let mut of_key: HashMap<ParameterKey, Option<usize>> = HashMap::new();
            for run in 0..dump.runs.len() {
                for (slot, index) in slots(dump, run, SlotSide::Input) {
                    let Some(name) = dump.parameter_of(slot) else {
                        continue;
                    };
                    let place = &dump.runs[run].place;
                    let op_type = self.types[side][run].clone();
                    // Each step and rank has separate operators with the same parameters.
                    let key = (place.rank, place.step, op_type, index, name);
                    let reader = of_key.entry(key).or_insert(Some(run));
                    *reader = reader.filter(|known| *known == run);
                }
            }
            of_key
        });
        let found = targets.into_iter().filter_map(|(key, target)| {
            let golden = goldens.get(&key).copied().flatten()?;
            Some([target?, golden])
        });
        let mut found: Vec<[usize; 2]> = found.collect();
        // A map has no order, and the same dumps have to lead to the same pairs.
        found.sort_unstable();
        for pair in found {
            let pair = self.of_a_row(pair);
            if self.may_pair(pair) {
                self.add(pair);
            }
        }
    }

    /// Pairs the makers of the inputs of a pair.
    fn pair_makers(&mut self, pair: [usize; 2]) {
        // Both have one type, so the target's is enough.
        let is_commutative = COMMUTATIVE.contains(&self.types[0][pair[0]].as_str());
        let makers = [0, 1].map(|side| {
            let inputs = slots(self.dumps[side], pair[side], SlotSide::Input);
            let makers = inputs.filter_map(|(slot, index)| {
                let made = self.dumps[side].producer_of(slot)?;
                let output = self.dumps[side].slot(made).index;
                // If the input order is free, types must identify the match.
                let key = if is_commutative { 0 } else { index };
                Some(((key, self.types[side][made.run].clone(), output), made.run))
            });
            only(makers)
        });
        self.pair_alike(makers);
    }

    /// Pairs the readers of the outputs of a pair that are alone of their type.
    fn pair_readers(&mut self, pair: [usize; 2]) {
        let readers = [0, 1].map(|side| {
            let outputs = slots(self.dumps[side], pair[side], SlotSide::Output);
            let readers = outputs.flat_map(|(slot, output)| {
                let readers = self.readers[side].get(&slot).into_iter().flatten();
                readers.map(move |(run, index)| (output, *run, *index))
            });
            // An operator that already has a match leaves its position to the other.
            let free = readers.filter(|(_, run, _)| self.is_free(side, *run));
            only(free.map(|(output, run, index)| {
                let op_type = self.types[side][run].clone();
                let is_commutative = COMMUTATIVE.contains(&op_type.as_str());
                let index = if is_commutative { 0 } else { index };
                ((index, op_type, output), run)
            }))
        });
        self.pair_alike(readers);
    }

    fn pair_alike(&mut self, [targets, goldens]: [HashMap<Place, usize>; 2]) {
        let mut found: Vec<[usize; 2]> = targets
            .into_iter()
            .filter_map(|(place, target)| Some([target, *goldens.get(&place)?]))
            .collect();
        found.sort_unstable();
        for pair in found {
            self.pair(self.of_one_maker(pair));
        }
    }
}

/// The position of a neighbour: input index, type, output index.
type Place = (u32, String, u32);

/// The neighbours with a unique position.
fn only(neighbours: impl Iterator<Item = (Place, usize)>) -> HashMap<Place, usize> {
    let mut found: HashMap<Place, usize> = HashMap::new();
    let mut is_many: HashSet<Place> = HashSet::new();
    for (place, run) in neighbours {
        if found.get(&place).is_some_and(|known| *known != run) {
            is_many.insert(place.clone());
        }
        found.insert(place, run);
    }
    // Operators at the same position are indistinguishable.
    found.retain(|place, _| !is_many.contains(place));
    found
}

fn n_inputs(dump: &ComparedDump, run: usize) -> usize {
    slots(dump, run, SlotSide::Input).count()
}

fn slots(dump: &ComparedDump, run: usize, side: SlotSide) -> impl Iterator<Item = (SlotRef, u32)> {
    let slots = dump.runs[run].slots.iter().enumerate();
    let slots = slots.filter(move |(_, slot)| slot.side == side);
    slots.map(move |(slot, of)| (SlotRef { run, slot }, of.index))
}
