//! How much a session may take before it has enough.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The bytes and tensors that a session may still take.
///
/// Called on the engine's thread, in the order of execution, for each operator to be written; so
/// the selection does not depend on how fast anything is written.
pub(crate) struct Budget {
    /// `None` where nothing is limited.
    left: Option<Mutex<BudgetLeft>>,
    is_spent: AtomicBool,
}

struct BudgetLeft {
    n_bytes: u64,
    n_tensors: u64,
}

impl Budget {
    pub(crate) fn new(n_bytes_max: Option<u64>, n_tensors_max: Option<u64>) -> Budget {
        let is_limited = n_bytes_max.is_some() || n_tensors_max.is_some();
        let left = is_limited.then(|| {
            Mutex::new(BudgetLeft {
                n_bytes: n_bytes_max.unwrap_or(u64::MAX),
                n_tensors: n_tensors_max.unwrap_or(u64::MAX),
            })
        });
        Budget {
            left,
            is_spent: AtomicBool::new(false),
        }
    }

    /// Whether there is a limit at all.
    pub(crate) fn is_limited(&self) -> bool {
        self.left.is_some()
    }

    /// Whether something went beyond the limit, so that nothing is taken any more.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Admits a group of tensors, all or none. After the first refusal it admits nothing more,
    /// however small, so that a dump has no holes.
    pub(crate) fn take(&self, n_tensors: u64, n_bytes: u64) -> bool {
        let Some(left) = &self.left else {
            return true;
        };
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked again under the lock: another model may have spent it while this one waited.
        if self.is_spent() {
            return false;
        }
        let after = (
            left.n_bytes.checked_sub(n_bytes),
            left.n_tensors.checked_sub(n_tensors),
        );
        if let (Some(n_bytes), Some(n_tensors)) = after {
            *left = BudgetLeft { n_bytes, n_tensors };
            return true;
        }
        self.is_spent.store(true, Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_does_not_fit_is_the_end() {
        let cases: &[(Option<u64>, Option<u64>, &[bool])] = &[
            (None, None, &[true, true, true, true]),
            (Some(12), None, &[true, false, false, false]),
            (Some(15), None, &[true, true, false, false]),
            (Some(0), None, &[false, false, false, false]),
            (None, Some(3), &[true, true, false, false]),
            (None, Some(4), &[true, true, true, false]),
            (Some(1000), Some(1), &[true, false, false, false]),
        ];
        for (n_bytes_max, n_tensors_max, expected) in cases {
            let budget = Budget::new(*n_bytes_max, *n_tensors_max);
            let takes = [(1, 10), (2, 5), (1, 1), (1, 0)];
            let taken = takes.map(|(n_tensors, n_bytes)| budget.take(n_tensors, n_bytes));
            assert_eq!(taken, *expected, "{n_bytes_max:?} {n_tensors_max:?}");
            assert_eq!(budget.is_spent(), taken.contains(&false));
        }
    }
}
