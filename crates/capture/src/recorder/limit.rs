//! How many findings are kept.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the operators in which something was found, and keeps the first of them.
pub(crate) struct FindingLimit {
    n_max: Option<u64>,
    n_found: AtomicU64,
}

impl FindingLimit {
    /// `None` keeps all.
    pub(crate) fn new(n_max: Option<u64>) -> FindingLimit {
        FindingLimit {
            n_max,
            n_found: AtomicU64::new(0),
        }
    }

    pub(super) fn is_limited(&self) -> bool {
        self.n_max.is_some()
    }

    /// Counts a finding; returns whether it is among those to keep.
    pub(super) fn has_room(&self) -> bool {
        let n_before = self.n_found.fetch_add(1, Ordering::Relaxed);
        self.n_max.is_none_or(|n_max| n_before < n_max)
    }
}
