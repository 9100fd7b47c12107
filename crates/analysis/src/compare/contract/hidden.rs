//! Differences inside that outputs do not show because only their statistics are known.

use super::state::slot_of;
use crate::compare::result::{Cause, Comparison, Contract, DivergencePoint, Evidence};

/// The operator that fails because it is wired otherwise, where statistics alone show that outputs
/// agree: they may have another order of elements, or a difference within the limits of statistics.
pub(super) fn by_statistics(
    contract: &Contract,
    comparison: &Comparison,
) -> Option<DivergencePoint> {
    let mut slots = contract
        .outputs
        .iter()
        .filter_map(|value| slot_of(value, comparison));
    let first = comparison.summary.first_failure.as_ref();
    let is_wired = |point: &&DivergencePoint| {
        let mut partings = comparison.partings.iter();
        point.cause == Cause::Own && partings.any(|at| at.operator == point.operator)
    };
    let first = first.filter(is_wired);
    first
        .filter(|_| slots.any(|slot| slot.evidence == Evidence::Statistics))
        .cloned()
}
