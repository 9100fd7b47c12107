//! Whether an operator overflowed since a program last asked to forget it.

use std::sync::atomic::{AtomicBool, Ordering};

/// The status that stands in for a device's register.
#[derive(Debug, Default)]
pub(crate) struct OverflowStatus {
    /// Looking at every operator costs time, so nothing is looked at before a program asks.
    is_watched: AtomicBool,
    has_overflowed: AtomicBool,
}

impl OverflowStatus {
    pub(crate) fn watch(&self) {
        // No order with other memory is needed: executions and questions of one stream are ordered
        // by the calls that make them.
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
