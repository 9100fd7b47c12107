//! The taps of a graph, which its executions borrow.

use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::Tap;

/// The pool from which an execution borrows a tap.
pub(super) type Home = Arc<TapPool>;

/// A graph's taps: as many as there were concurrent executions.
pub(super) struct TapPool {
    idle: Mutex<IdleTaps>,
}

struct IdleTaps {
    /// The tap from which others are cloned.
    first: Tap,
    taps: Vec<Tap>,
}

impl TapPool {
    pub(super) fn new(first: Tap) -> TapPool {
        let idle = IdleTaps {
            first,
            taps: Vec::new(),
        };
        TapPool {
            idle: Mutex::new(idle),
        }
    }

    pub(super) fn take(&self) -> Tap {
        let mut idle = self.lock();
        idle.taps.pop().unwrap_or_else(|| idle.first.another())
    }

    /// Returns a tap for other executions.
    pub(super) fn put_back(&self, tap: Tap) {
        self.lock().taps.push(tap);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IdleTaps> {
        // No code panics while it is locked.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
