//! Differences that come to nothing.
//!
//! A mask of -1e4 and one of minus infinity are far apart, and what is computed with them is the
//! same. An operator is looked at only if what differs there leads to something that differs behind
//! it, or to something of which nobody knows.

use super::is_apart;
use crate::compare::flow::ValueFlow;
use crate::compare::result::{Comparison, OperatorResult, SlotResult, VerdictLevel};

/// Of each operator, whether something differs there and all that is known to read it agrees.
pub(super) fn find(comparison: &Comparison, flow: &ValueFlow) -> Vec<bool> {
    let operators = &comparison.operators;
    // Readers of each operator's outputs: the output, and the reader.
    let mut readers: Vec<Vec<(usize, usize)>> = vec![Vec::new(); operators.len()];
    let is_told = operators
        .iter()
        .any(|operator| !operator.readers.is_empty());
    for (of, operator) in readers.iter_mut().zip(operators) {
        of.extend(
            operator
                .readers
                .iter()
                .map(|&[slot, reader]| (slot, reader)),
        );
    }
    // Without a graph, equal numbers tell.
    for (reader, operator) in operators.iter().enumerate().filter(|_| !is_told) {
        for slot in 0..operator.slots.len() {
            let source = flow.source(reader, slot);
            for made in [source.target, source.golden].into_iter().flatten() {
                let is_output = operators[made.operator].slots[made.slot].is_output();
                if is_output && made.operator != reader {
                    readers[made.operator].push((made.slot, reader));
                }
            }
        }
    }
    // Of each operator, whether a difference that it makes leads on; those behind it come first.
    let mut leads_on = vec![true; operators.len()];
    for (i, operator) in operators.iter().enumerate().rev() {
        let is_open = |(slot, result): (usize, &SlotResult)| {
            let mut known = readers[i]
                .iter()
                .filter(|(made, _)| *made == slot)
                .peekable();
            may_differ(result)
                && (known.peek().is_none()
                    || known.any(|&(_, reader)| reader <= i || leads_on[reader]))
        };
        let mut outputs = operator.slots.iter().enumerate();
        leads_on[i] = if has_outputs(operator) {
            outputs.any(|(slot, result)| result.is_output() && is_open((slot, result)))
        } else {
            true
        };
    }
    let is_different = |operator: &OperatorResult| operator.slots.iter().any(is_apart);
    let all = operators.iter().zip(leads_on);
    all.map(|(operator, leads_on)| !leads_on && is_different(operator))
        .collect()
}

fn has_outputs(operator: &OperatorResult) -> bool {
    operator.slots.iter().any(SlotResult::is_output)
}

/// Whether nothing says that a slot agrees.
fn may_differ(slot: &SlotResult) -> bool {
    is_apart(slot) || slot.level == VerdictLevel::Skip || slot.agreement.is_some()
}
