//! Infers which output an input is, from the numbers of both.
//!
//! Dumps seldom record how operators are connected. A saved result has extremes, mean, deviation
//! and norm of every tensor. Two tensors for which all of these are equal bit for bit are
//! considered the same.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use opscope_tensor::digest::xxh3_128;

use super::metric::{MetricId, TensorStatistic};
use super::party::Party;
use super::result::{Comparison, OperatorPlace, OperatorResult, SlotResult};

/// A slot of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResultSlot {
    /// The operator, as an index into [`Comparison::operators`].
    pub(super) operator: usize,
    /// The slot, as an index into its list.
    pub(super) slot: usize,
}

/// Where an input comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResultSource {
    /// The output that it is on the target side, or the first input that is the same.
    pub(super) target: Option<ResultSlot>,
    /// The same on the golden side.
    pub(super) golden: Option<ResultSlot>,
    /// Whether that is so of both sides together: the pair was compared before with the very same
    /// numbers.
    pub(super) is_same: bool,
    /// Whether nothing before is it, and an output of the operator itself is: it was changed in
    /// place, or handed through.
    pub(super) is_own_output: bool,
}

/// Where the inputs of all operators come from.
#[derive(Debug, Default)]
pub(super) struct ValueFlow {
    /// Of each operator, the place of its first slot among all.
    firsts: Vec<u32>,
    sources: Vec<PackedSource>,
}

/// A slot as its place among all slots of the result: large comparisons have millions.
type Place = Option<NonZeroU32>;

/// A source in few bytes.
#[derive(Clone, Copy, Debug, Default)]
struct PackedSource {
    target: Place,
    golden: Place,
    is_same: bool,
    is_own_output: bool,
}

/// The numbers of a slot by which it is known, as a digest: so long that no two agree by chance.
type Mark = [u8; 16];

/// The marks of a slot: by the numbers of both sides together, of the target, of the golden side.
type Marks = [Option<Mark>; 3];

/// Outputs and inputs seen so far, by each of their marks.
type Seen = [HashMap<Mark, u32>; 3];

impl ValueFlow {
    /// Connects inputs with the latest output before them, and outside values with their first
    /// reader.
    pub(super) fn trace(comparison: &Comparison) -> ValueFlow {
        let n_slots = comparison
            .operators
            .iter()
            .map(|operator| operator.slots.len());
        let mut flow = ValueFlow {
            firsts: Vec::with_capacity(comparison.operators.len()),
            sources: Vec::with_capacity(n_slots.sum()),
        };
        let mut marks = SlotMarks::default();
        let mut seen_at = SeenAtPlaces::count(comparison);
        for operator in &comparison.operators {
            let mut seen = seen_at.take(operator.place());
            let first = u32::try_from(flow.sources.len()).unwrap_or(u32::MAX);
            flow.firsts.push(first);
            let own = marks.of_operator(operator);
            // Most inputs existed before, so this is rarely needed.
            let outputs: OnceCell<HashSet<&[Option<Mark>]>> = OnceCell::new();
            for (k, of_slot) in own.iter().enumerate() {
                if operator.slots[k].is_output() {
                    flow.sources.push(PackedSource::default());
                    continue;
                }
                let [both, target, golden] = [0, 1, 2].map(|which| {
                    let found = *seen[which].get(of_slot[which].as_ref()?)?;
                    NonZeroU32::new(found.saturating_add(1))
                });
                let may_be_output = target.is_none() && golden.is_none();
                let may_be_output = may_be_output && of_slot.iter().all(Option::is_some);
                flow.sources.push(PackedSource {
                    // The numbers of the pair are more specific than one side's: many constants
                    // share those.
                    target: both.or(target),
                    golden: both.or(golden),
                    is_same: both.is_some(),
                    is_own_output: may_be_output
                        && outputs
                            .get_or_init(|| {
                                let slots = operator.slots.iter().zip(&own);
                                let outputs = slots.filter(|(slot, _)| slot.is_output());
                                outputs.map(|(_, marks)| &marks[1..]).collect()
                            })
                            .contains(&of_slot[1..]),
                });
            }
            // Sources are looked up before the operator's own slots are noted; otherwise an output
            // that passes an input on would be that input's source.
            for (place, (k, of_slot)) in (first..).zip(own.iter().enumerate()) {
                for (known, mark) in seen.iter_mut().zip(of_slot) {
                    let Some(mark) = mark else {
                        continue;
                    };
                    if operator.slots[k].is_output() {
                        known.insert(*mark, place);
                    } else {
                        // A reader never hides the output that it reads; a weight's first reader
                        // represents the others.
                        known.entry(*mark).or_insert(place);
                    }
                }
            }
            seen_at.put_back(operator.place(), seen);
        }
        flow
    }

    /// Where a slot comes from.
    pub(super) fn source(&self, operator: usize, slot: usize) -> ResultSource {
        let end = self.firsts.get(operator + 1);
        let end = end.map_or(self.sources.len(), |end| *end as usize);
        let of_operator = self.firsts.get(operator);
        let place = of_operator.map(|first| *first as usize + slot);
        let Some(place) = place.filter(|place| *place < end) else {
            return ResultSource::default();
        };
        let source = self.sources[place];
        ResultSource {
            target: self.slot_at(source.target),
            golden: self.slot_at(source.golden),
            is_same: source.is_same,
            is_own_output: source.is_own_output,
        }
    }

    /// The slot at a place among all.
    fn slot_at(&self, place: Place) -> Option<ResultSlot> {
        let place = place?.get() - 1;
        // Operators without slots have the same first place as the next.
        let operator = self.firsts.partition_point(|first| *first <= place) - 1;
        Some(ResultSlot {
            operator,
            slot: (place - self.firsts[operator]) as usize,
        })
    }
}

/// The values seen at each rank and step, and how many operators are yet to come there. No value
/// passes from one place to another, but weights have the same numbers in all of them.
struct SeenAtPlaces(HashMap<OperatorPlace, (usize, Seen)>);

impl SeenAtPlaces {
    fn count(comparison: &Comparison) -> SeenAtPlaces {
        let mut places: HashMap<OperatorPlace, (usize, Seen)> = HashMap::new();
        for operator in &comparison.operators {
            places.entry(operator.place()).or_default().0 += 1;
        }
        SeenAtPlaces(places)
    }

    fn take(&mut self, place: OperatorPlace) -> Seen {
        let known = self.0.get_mut(&place);
        known
            .map(|(_, seen)| std::mem::take(seen))
            .unwrap_or_default()
    }

    fn put_back(&mut self, place: OperatorPlace, seen: Seen) {
        let Some((n_left, known)) = self.0.get_mut(&place) else {
            return;
        };
        *n_left -= 1;
        // Entries of a finished step are never used, and would add up to all numbers of the dump.
        if *n_left > 0 {
            *known = seen;
        }
    }
}

/// Makes marks of slots.
#[derive(Default)]
struct SlotMarks {
    bytes: Vec<u8>,
}

impl SlotMarks {
    fn of_operator(&mut self, operator: &OperatorResult) -> Vec<Marks> {
        let slots = operator.slots.iter();
        slots.map(|slot| self.of_slot(slot)).collect()
    }

    fn of_slot(&mut self, slot: &SlotResult) -> Marks {
        // Of another dtype it is another tensor; the numbers of short ones are often the same by
        // chance.
        let target = self.of_side(slot, Party::Target, &slot.target.dtype);
        let golden = self.of_side(slot, Party::Golden, &slot.golden.dtype);
        let is_known = target.is_some() && golden.is_some();
        // Of the same two tensors every number is the same, also where the largest difference is.
        let both = is_known.then(|| self.digest(slot.metrics.iter().map(|(_, value)| value), ""));
        [both, target, golden]
    }

    /// The mark of one side of a slot, if there are enough numbers to know it by.
    fn of_side(&mut self, slot: &SlotResult, party: Party, dtype: &str) -> Option<Mark> {
        let of_party = |statistic| slot.metrics.get(MetricId::of_tensor(party, statistic));
        // A pair of tensors has one count for both sides, tables have one each.
        let n = slot
            .metrics
            .get(MetricId::Count)
            .or_else(|| of_party(TensorStatistic::Count));
        // Several numbers of a shape; a lone maximum is often the same by chance.
        let telling = [
            TensorStatistic::Min,
            TensorStatistic::Max,
            TensorStatistic::Mean,
            TensorStatistic::L2Norm,
        ];
        let telling = telling.map(of_party);
        if telling.iter().flatten().count() < 3 {
            return None;
        }
        let all = slot.metrics.iter();
        let own = all.filter(|(metric, _)| metric.party() == Some(party));
        // Zeros have the same statistics whatever their number is.
        let numbers = own.map(|(_, value)| value).chain([n?]);
        Some(self.digest(numbers, dtype))
    }

    fn digest(&mut self, numbers: impl Iterator<Item = f64>, dtype: &str) -> Mark {
        self.bytes.clear();
        for number in numbers {
            // Bits, since a NaN equals itself in them.
            self.bytes.extend(number.to_bits().to_le_bytes());
        }
        // Behind the numbers, each of which has eight bytes, and of another length than they.
        self.bytes.extend(dtype.as_bytes());
        self.bytes
            .push(u8::try_from(dtype.len()).unwrap_or(u8::MAX));
        xxh3_128(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::OperatorName;
    use super::*;
    use crate::compare::result::SlotKey;

    fn slot(name: &str, target: f64, golden: f64) -> SlotResult {
        let mut metrics = vec![(MetricId::Count, 4.0)];
        for (party, value) in [(Party::Target, target), (Party::Golden, golden)] {
            let statistics = [
                TensorStatistic::Min,
                TensorStatistic::Max,
                TensorStatistic::Mean,
            ];
            let named = statistics.map(|statistic| MetricId::of_tensor(party, statistic));
            metrics.extend(named.map(|metric| (metric, value)));
        }
        SlotResult {
            slot: SlotKey::parse(name).unwrap(),
            metrics: metrics.into(),
            ..SlotResult::default()
        }
    }

    fn operator(step: u64, slots: Vec<SlotResult>) -> OperatorResult {
        let name = OperatorName {
            step: Some(step),
            ..OperatorName::default()
        };
        OperatorResult {
            target: [name].into(),
            slots,
            ..OperatorResult::default()
        }
    }

    #[test]
    fn inputs_are_the_latest_equal_outputs() {
        let comparison = Comparison {
            operators: vec![
                operator(0, vec![slot("output.0", 1.0, 1.0)]),
                operator(0, vec![slot("output.0", 1.0, 2.0)]),
                operator(
                    0,
                    vec![slot("input.0", 1.0, 1.0), slot("input.1", 1.0, 7.0)],
                ),
                operator(
                    0,
                    vec![slot("input.0", 5.0, 5.0), slot("output.0", 5.0, 5.0)],
                ),
                operator(1, vec![slot("input.0", 1.0, 1.0)]),
            ],
            ..Comparison::default()
        };
        let flow = ValueFlow::trace(&comparison);
        let at = |operator| Some(ResultSlot { operator, slot: 0 });
        let source = flow.source(2, 0);
        assert_eq!((source.target, source.golden), (at(0), at(0)));
        assert!(source.is_same);
        let source = flow.source(2, 1);
        assert_eq!((source.target, source.golden), (at(1), None));
        assert!(!source.is_same);
        assert!(flow.source(3, 0).is_own_output && !source.is_own_output);
        assert_eq!(flow.source(4, 0), ResultSource::default());
        assert_eq!(flow.source(9, 9), ResultSource::default());
    }
}
