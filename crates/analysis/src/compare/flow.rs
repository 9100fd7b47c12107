//! Which output an input is, told from the numbers of both.
//!
//! Dumps seldom say how operators are connected. A saved result has extremes, mean, deviation and norm of
//! every tensor, and two tensors that agree in all of these bit for bit are the same for all that matters here.

use std::collections::{HashMap, HashSet};

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
    /// Whether that is so of both sides together: the pair was compared before with the very same numbers.
    pub(super) is_same: bool,
    /// Whether nothing before is it, and an output of the operator itself is: it was changed in place, or
    /// handed through.
    pub(super) is_own_output: bool,
}

/// Where the inputs of all operators come from.
#[derive(Debug, Default)]
pub(super) struct ValueFlow(Vec<Vec<ResultSource>>);

// No value goes from one rank or step to another, while weights have the same numbers in all of
// them.
type Key = (OperatorPlace, Vec<u64>);

/// Outputs and inputs seen so far: by the numbers of both sides together, of the target, of the
/// golden side.
type Seen = [HashMap<Key, ResultSlot>; 3];

impl ValueFlow {
    /// Connects inputs with the latest output before them; what comes from outside, with its first reader.
    pub(super) fn trace(comparison: &Comparison) -> ValueFlow {
        let mut seen = Seen::default();
        let mut flow = ValueFlow::default();
        for (i, operator) in comparison.operators.iter().enumerate() {
            let keys: Vec<[Option<Key>; 3]> = keys_of(operator);
            let is_output = |k: usize| operator.slots[k].is_output();
            let outputs: HashSet<&[Option<Key>]> = (0..keys.len())
                .filter(|&k| is_output(k))
                .map(|k| &keys[k][1..])
                .collect();
            let sources = keys.iter().enumerate().map(|(k, of_slot)| {
                if is_output(k) {
                    return ResultSource::default();
                }
                let [both, target, golden] = [0, 1, 2].map(|which| {
                    let key = of_slot[which].as_ref()?;
                    seen[which].get(key).copied()
                });
                let is_known = of_slot.iter().all(Option::is_some);
                ResultSource {
                    // The numbers of the pair tell more than those of one side, of which constants
                    // have many alike.
                    target: both.or(target),
                    golden: both.or(golden),
                    is_same: both.is_some(),
                    is_own_output: target.is_none()
                        && golden.is_none()
                        && is_known
                        && outputs.contains(&of_slot[1..]),
                }
            });
            // Sources are looked up before the operator's own slots are noted, or an output that
            // hands an input on would be that input's source.
            flow.0.push(sources.collect());
            for (slot, of_slot) in keys.into_iter().enumerate() {
                for (known, key) in seen.iter_mut().zip(of_slot) {
                    let Some(key) = key else {
                        continue;
                    };
                    let at = ResultSlot { operator: i, slot };
                    if is_output(slot) {
                        known.insert(key, at);
                    } else {
                        // A reader never hides the output that it read, and of a weight's readers
                        // the first stands for all.
                        known.entry(key).or_insert(at);
                    }
                }
            }
        }
        flow
    }

    /// Where a slot comes from.
    pub(super) fn source(&self, operator: usize, slot: usize) -> ResultSource {
        let of_operator = self.0.get(operator);
        let source = of_operator.and_then(|slots| slots.get(slot));
        source.copied().unwrap_or_default()
    }
}

fn keys_of(operator: &OperatorResult) -> Vec<[Option<Key>; 3]> {
    let place = operator.place();
    let slots = operator.slots.iter();
    slots
        .map(|slot| {
            let [target, golden] = Party::BOTH.map(|party| mark(slot, party));
            let is_known = target.is_some() && golden.is_some();
            // Of the same two tensors every number is the same, also where the largest difference is.
            let all = || slot.metrics.iter().map(|(_, value)| value.to_bits());
            let both = is_known.then(|| all().collect());
            // Of another dtype it is another tensor; the numbers of short ones are often the same by chance.
            let dtype = |mark: Option<Vec<u64>>, name: &str| {
                let mut mark = mark?;
                mark.extend(name.bytes().map(u64::from));
                Some(mark)
            };
            let target = dtype(target, &slot.target.dtype);
            let golden = dtype(golden, &slot.golden.dtype);
            [both, target, golden].map(|mark| Some((place, mark?)))
        })
        .collect()
}

/// The numbers of one side of a slot, if there are enough of them to know it by.
fn mark(slot: &SlotResult, party: Party) -> Option<Vec<u64>> {
    let get = |statistic| slot.metrics.get(MetricId::of_tensor(party, statistic));
    // A pair of tensors has one count for both sides, tables have one each.
    let n = slot
        .metrics
        .get(MetricId::Count)
        .or_else(|| get(TensorStatistic::Count));
    // Several numbers of a shape; a lone maximum is often the same by chance.
    let telling = [
        get(TensorStatistic::Min),
        get(TensorStatistic::Max),
        get(TensorStatistic::Mean),
        get(TensorStatistic::L2Norm),
    ];
    if telling.iter().flatten().count() < 3 {
        return None;
    }
    let all = slot.metrics.iter();
    let own = all.filter(|(metric, _)| metric.party() == Some(party));
    // Bits, since they can be hashed and since a NaN equals itself in them.
    let mut bits: Vec<u64> = own.map(|(_, value)| value.to_bits()).collect();
    // Zeros have the same statistics whatever their number is.
    bits.push(n?.to_bits());
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::super::result::{Metrics, OperatorName};
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
            target: vec![name],
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
