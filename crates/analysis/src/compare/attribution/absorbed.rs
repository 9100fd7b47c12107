//! Differences without effect.
//!
//! A mask of -1e4 and one of minus infinity are far apart, but the results computed with them are
//! the same. An operator is only considered if its difference leads to another difference
//! downstream, or to something unknown.

use super::cause::exchanges_parts;
use crate::compare::flow::ValueFlow;
use crate::compare::result::{
    Comparison, Evidence, MetricId, OperatorResult, PairingEvidence, SlotResult, VerdictLevel,
};
use crate::compare::verdict::value_of;

/// Relative distance of statistics of float32 that rounding explains: some 200 roundings.
const SAME_STATISTICS: f64 = 1e-5;

/// Of each operator, whether something differs there and all that is known to read it agrees.
pub(super) fn find(comparison: &Comparison, flow: &ValueFlow) -> Vec<bool> {
    let operators = &comparison.operators;
    let is_told = operators
        .iter()
        .any(|operator| !operator.readers.is_empty());
    let leads_on = if is_told {
        leads_on(operators)
    } else {
        along(operators, &readers_by_numbers(operators, flow))
    };
    // Without a difference there is nothing to absorb.
    let all = operators.iter().zip(leads_on);
    all.map(|(operator, leads_on)| !leads_on && operator.slots.iter().any(SlotResult::is_apart))
        .collect()
}

/// For each operator, whether its difference leads to another one, according to a graph.
pub(crate) fn leads_on(operators: &[OperatorResult]) -> Vec<bool> {
    let readers: Vec<Readers> = operators
        .iter()
        .map(|operator| operator.readers.to_vec())
        .collect();
    along(operators, &readers)
}

/// Readers of an operator's outputs: the place of the output, and the reader.
type Readers = Vec<[usize; 2]>;

/// Readers inferred from equal numbers, without a graph.
fn readers_by_numbers(operators: &[OperatorResult], flow: &ValueFlow) -> Vec<Readers> {
    let mut readers: Vec<Readers> = vec![Vec::new(); operators.len()];
    for (reader, operator) in operators.iter().enumerate() {
        for slot in 0..operator.slots.len() {
            let source = flow.source(reader, slot);
            for made in [source.target, source.golden].into_iter().flatten() {
                let is_output = operators[made.operator].slots[made.slot].is_output();
                if is_output && made.operator != reader {
                    readers[made.operator].push([made.slot, reader]);
                }
            }
        }
    }
    readers
}

fn along(operators: &[OperatorResult], readers: &[Readers]) -> Vec<bool> {
    // Until it is known, everything may lead on.
    let mut leads_on = vec![true; operators.len()];
    // A reader that ran earlier, as in a loop, is not followed.
    for (i, operator) in operators.iter().enumerate().rev() {
        let slots = operator.slots.iter().enumerate();
        let mut outputs = slots.filter(|(_, result)| result.is_output());
        // An output that was not compared does not count as agreeing.
        let mut hidden = readers[i]
            .iter()
            .filter(|[made, reader]| *made == operator.slots.len() && *reader < operators.len());
        leads_on[i] = !has_outputs(operator)
            || outputs.any(|(slot, result)| {
                let known = readers[i].iter().filter(|[made, _]| *made == slot);
                let known = known.filter(|[_, reader]| *reader < operators.len());
                let known: Vec<usize> = known.map(|&[_, reader]| reader).collect();
                let goes_on = known.iter().any(|&reader| reader <= i || leads_on[reader]);
                let grows = known.iter().any(|&reader| is_amplified(&operators[reader]));
                // Its reader has a partner that reads another value, which shows nothing of it.
                let is_passed_by = operator.is_certain
                    && result.is_apart()
                    && known
                        .iter()
                        .any(|&reader| is_pair_of_values(&operators[reader]));
                let is_open = result.is_updated || known.is_empty() && !operator.is_unread;
                let may_differ = may_differ(result) || exchanges_parts(operator);
                may_differ && (is_open || goes_on || is_passed_by) || !is_exact(result) && grows
            })
            || hidden.any(|&[_, reader]| reader <= i || leads_on[reader]);
    }
    leads_on
}

/// Whether values alone brought an operator together with one of which all inputs agree with its own.
fn is_pair_of_values(operator: &OperatorResult) -> bool {
    operator.how == PairingEvidence::Value && operator.inputs().all(|slot| !may_differ(slot))
}

/// Whether inputs agree and outputs do not: small differences of a value that passes may be why.
fn is_amplified(operator: &OperatorResult) -> bool {
    operator.outputs().any(SlotResult::is_apart) && !operator.inputs().any(SlotResult::is_apart)
}

fn is_exact(slot: &SlotResult) -> bool {
    slot.metrics.get(MetricId::MaxAbs) == Some(0.0)
}

fn has_outputs(operator: &OperatorResult) -> bool {
    operator.slots.iter().any(SlotResult::is_output)
}

/// Whether there is no evidence that a slot agrees.
fn may_differ(slot: &SlotResult) -> bool {
    let is_judged = slot.level != VerdictLevel::Skip && slot.agreement.is_none();
    slot.is_apart() || !is_judged || is_only_near(slot)
}

/// Whether the statistics of a slot pass, and differ by more than rounding makes them: its elements
/// may be beyond their limits.
pub(crate) fn is_only_near(slot: &SlotResult) -> bool {
    let is_float32 = [&slot.target, &slot.golden].map(|side| &*side.dtype == "float32");
    let distance = value_of(slot, MetricId::StatisticRel);
    slot.evidence == Evidence::Statistics
        && is_float32 == [true, true]
        && distance.is_some_and(|distance| distance > SAME_STATISTICS)
}
