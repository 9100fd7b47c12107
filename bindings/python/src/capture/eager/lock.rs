//! Locks of eager mode's state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values behind these locks are replaced whole, so a panic cannot leave them half-changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
