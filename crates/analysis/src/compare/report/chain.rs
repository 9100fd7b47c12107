//! How NaN and infinities spread.

use crate::compare::result::{Comparison, NonFiniteRole};

/// The way of the first bad value: its producer and the operators that passed it on, each from the one before, in
/// the order of execution; at most `n` of them.
pub fn of_first(comparison: &Comparison, n: usize) -> Vec<usize> {
    let mut chain: Vec<usize> = comparison.summary.first_non_finite.into_iter().collect();
    let operators = comparison.operators.iter().enumerate();
    for (index, operator) in operators {
        if chain.len() >= n {
            break;
        }
        if let (Some(NonFiniteRole::Propagator { from: Some(from) }), Some(last)) =
            (&operator.non_finite, chain.last())
            && from == last
        {
            chain.push(index);
        }
    }
    chain.truncate(n);
    chain
}

/// How many operators make bad values, and how many pass them on.
pub fn counts(comparison: &Comparison) -> [usize; 2] {
    let n = |is_it: fn(&NonFiniteRole) -> bool| {
        let roles = comparison.operators.iter();
        let roles = roles.filter_map(|operator| operator.non_finite.as_ref());
        roles.filter(|role| is_it(role)).count()
    };
    [
        n(|role| *role == NonFiniteRole::Producer),
        n(|role| matches!(role, NonFiniteRole::Propagator { .. })),
    ]
}
