//! The effect of a weight that differs.
//!
//! Operators of one side alone may make up for it, as those of an adapter do for a weight into which
//! the other side has merged it.

use super::matching::is_view_type;
use super::result::{
    Cause, Comparison, OperatorName, OperatorResult, PartingOperator, SkipReason, SkipSide,
    SlotAgreement, SlotResult, VerdictLevel,
};

/// Whether what an operator computes with a weight differs, and what is computed from that agrees.
pub(super) fn is_made_up_for(operators: &[OperatorResult], reader: usize) -> bool {
    computing(operators, reader).into_iter().any(|row| {
        let mut outputs = operators[row].outputs();
        outputs.any(|slot| slot.agreement == Some(SlotAgreement::Downstream))
            || is_read_alike(operators, row)
    })
}

/// Whether an operator makes another value, and all that read it read what golden's read: on that
/// side others come in between, as a normalization that is folded into a weight on this one.
fn is_read_alike(operators: &[OperatorResult], row: usize) -> bool {
    let mut readers = readers(operators, row).peekable();
    let is_read = readers.peek().is_some();
    operators[row].outputs().any(SlotResult::is_apart)
        && is_read
        && readers.all(|reader| {
            let mut slots = operators[reader].slots.iter();
            slots.all(|slot| slot.level == VerdictLevel::Pass)
        })
}

/// Adds the target's operators that join the result of a weight that differs, and that the golden
/// side does not have, to the finding on the weight: together they may be one on the golden side.
pub(super) fn join_operators(comparison: &mut Comparison) {
    let operators = &comparison.operators;
    let joined: Vec<Vec<OperatorName>> = comparison
        .partings
        .iter()
        .map(|weight| {
            let is_weight = weight.cause == Cause::Outside && weight.others.is_empty();
            let rows = is_weight.then(|| computing(operators, weight.operator));
            let rows = rows.into_iter().flatten();
            let next = rows.flat_map(|row| readers(operators, row));
            let next: Vec<usize> = next.flat_map(|row| computing(operators, row)).collect();
            let mut partings = comparison.partings.iter();
            let own =
                partings.find(|own| next.contains(&own.operator) && is_without_row(own, operators));
            own.map_or(Vec::new(), |own| members(comparison, weight, own))
        })
        .collect();
    for (parting, others) in comparison.partings.iter_mut().zip(joined) {
        parting.others.extend(others);
    }
}

/// The operators that compute with what a row makes, views left out; the row itself if it computes.
fn computing(operators: &[OperatorResult], row: usize) -> Vec<usize> {
    let (mut rows, mut open) = (Vec::new(), vec![row]);
    while let Some(row) = open.pop() {
        let name = operators
            .get(row)
            .and_then(|operator| operator.target.last());
        match name {
            // A reader that ran earlier, as in a loop, is not followed.
            Some(name) if is_view_type(&name.op_type) => {
                open.extend(readers(operators, row).filter(|reader| *reader > row));
            }
            Some(_) if !rows.contains(&row) => rows.push(row),
            _ => {}
        }
    }
    rows
}

fn readers(operators: &[OperatorResult], row: usize) -> impl Iterator<Item = usize> {
    operators[row].readers.iter().map(|[_, reader]| *reader)
}

/// Whether a finding is about an operator that only the target has.
fn is_without_row(parting: &PartingOperator, operators: &[OperatorResult]) -> bool {
    parting.cause == Cause::Own && !operators[parting.operator].target.contains(&parting.name)
}

/// The operators of the target alone that compute between a weight and what they are joined with.
fn members(
    comparison: &Comparison,
    weight: &PartingOperator,
    own: &PartingOperator,
) -> Vec<OperatorName> {
    let skips = comparison.skips.iter().filter(|skip| {
        let is_between = |before| (weight.operator..=own.operator).contains(&before);
        skip.side == SkipSide::Target
            && skip.reason == SkipReason::Missing
            && skip.slot.is_none()
            && skip.before.is_some_and(is_between)
    });
    let names = skips.filter_map(|skip| skip.operator.clone());
    names.filter(|name| !is_view_type(&name.op_type)).collect()
}
