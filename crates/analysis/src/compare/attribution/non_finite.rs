//! Where NaN and infinities come from, and where they go.

use std::collections::HashMap;

use super::{NonFiniteRole, slots};
use crate::compare::flow::ValueFlow;
use crate::compare::result::{MetricId, OperatorPlace, OperatorResult, SlotResult};

/// Sets the role of every operator.
pub(super) fn fill_in(operators: &mut [OperatorResult], flow: &ValueFlow, is_hidden: &[bool]) {
    // Places that had something bad already.
    let mut carriers: HashMap<OperatorPlace, usize> = HashMap::new();
    for i in 0..operators.len() {
        let operator = &operators[i];
        let place = operator.place();
        let has_bad = [false, true].map(|is_output| slots(operator, is_output).any(is_bad));
        let has_inputs = slots(operator, false).next().is_some();
        let is_seen_before = carriers.contains_key(&place);
        let role = match has_bad {
            [true, true] => Some(NonFiniteRole::Propagator {
                from: source_of(operators, i, flow),
            }),
            // It may have got them by what was not compared.
            [false, true] if is_hidden[i] || (!has_inputs && is_seen_before) => {
                Some(NonFiniteRole::Propagator { from: None })
            }
            [false, true] => Some(NonFiniteRole::Producer),
            [true, false] if slots(operator, true).next().is_some() => {
                Some(NonFiniteRole::Absorber)
            }
            _ => None,
        };
        if has_bad[1] {
            carriers.entry(place).or_insert(i);
        }
        operators[i].non_finite = role;
    }
}

/// The operator that made a bad input.
fn source_of(operators: &[OperatorResult], i: usize, flow: &ValueFlow) -> Option<usize> {
    let slots = operators[i].slots.iter().enumerate();
    let mut bad = slots.filter(|(_, slot)| !slot.is_output() && is_bad(slot));
    bad.find_map(|(k, _)| {
        // A value is bad on the target side, so its way is the one that the target's values took.
        let from = flow.source(i, k).target?;
        operators[from.operator].slots[from.slot]
            .is_output()
            .then_some(from.operator)
    })
}

/// Whether the target has a NaN or an infinity where the golden side has none.
fn is_bad(slot: &SlotResult) -> bool {
    slot.metrics.get(MetricId::FirstBad).is_some() || slot.metrics.get(MetricId::IsBad).is_some()
}

/// The way from the first producer to the last operator that is known to pass its values on. If no
/// operator is known to have produced them, the first one that shows them is all of it.
pub(super) fn chain(operators: &[OperatorResult], order: &[usize]) -> Vec<usize> {
    let role = |i: usize| operators[i].non_finite.as_ref();
    let first = |is: fn(&NonFiniteRole) -> bool| {
        let mut found = order.iter().copied().filter(|&i| role(i).is_some_and(is));
        found.next()
    };
    let Some(producer) = first(|role| *role == NonFiniteRole::Producer) else {
        return first(|_| true).into_iter().collect();
    };
    // Where each operator has its values from, back to the producer.
    let mut reached: HashMap<usize, usize> = HashMap::from([(producer, producer)]);
    let mut last = producer;
    for &i in order {
        let Some(NonFiniteRole::Propagator { from: Some(from) }) = role(i) else {
            continue;
        };
        // A source precedes its readers in the order, so one pass finds everything that the
        // producer reached.
        if reached.contains_key(from) {
            reached.insert(i, *from);
            last = i;
        }
    }
    let mut chain = vec![last];
    while last != producer {
        last = reached[&last];
        chain.push(last);
    }
    chain.reverse();
    chain
}
