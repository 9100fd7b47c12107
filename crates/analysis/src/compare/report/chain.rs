//! How NaN and infinities spread.

use crate::compare::result::{Comparison, NonFiniteRole};

/// The way of the first bad value: its producer and operators that passed it on, in the order of
/// execution; at most `n` of them.
pub fn of_first(comparison: &Comparison, n: usize) -> Vec<usize> {
    let chain = &comparison.summary.non_finite_chain;
    chain.iter().copied().take(n).collect()
}

/// How many operators make bad values, and how many pass them on.
pub fn counts(comparison: &Comparison) -> [usize; 2] {
    let roles = comparison.operators.iter();
    let roles = roles.filter_map(|operator| operator.non_finite.as_ref());
    let producers = roles
        .clone()
        .filter(|role| **role == NonFiniteRole::Producer);
    let propagators = roles.filter(|role| matches!(role, NonFiniteRole::Propagator { .. }));
    [producers.count(), propagators.count()]
}
