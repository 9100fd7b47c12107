//! The taps of a graph, which its executions borrow.

use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::Tap;

/// Where an execution takes a tap from and puts it back.
pub(super) type Home = Arc<TapPool>;

/// A graph's taps: as many as there were executions at the same time.
pub(super) struct TapPool {
    idle: Mutex<IdleTaps>,
}

struct IdleTaps {
    /// The tap that further ones are made from.
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

    /// Lets another execution have the tap.
    pub(super) fn put_back(&self, tap: Tap) {
        self.lock().taps.push(tap);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IdleTaps> {
        // Nothing panics while it is locked.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
