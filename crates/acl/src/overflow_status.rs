//! Whether an operator overflowed since a program last reset the status.

use std::sync::atomic::{AtomicBool, Ordering};

/// The status that replaces a device's register.
#[derive(Debug, Default)]
pub(crate) struct OverflowStatus {
    /// Checking every operator costs time, so it is enabled by the first query.
    is_watched: AtomicBool,
    has_overflowed: AtomicBool,
}

impl OverflowStatus {
    pub(crate) fn watch(&self) {
        // Relaxed ordering is enough: executions and queries of one stream are ordered by the
        // program's calls.
        self.is_watched.store(true, Ordering::Relaxed);
    }

    pub(crate) fn note_overflow(&self) {
        self.has_overflowed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        self.has_overflowed.store(false, Ordering::Relaxed);
    }

    pub(crate) fn has_overflowed(&self) -> bool {
        self.has_overflowed.load(Ordering::Relaxed)
    }

    /// Whether the next execution can change the status.
    pub(crate) fn is_open(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed) && !self.has_overflowed()
    }
}
