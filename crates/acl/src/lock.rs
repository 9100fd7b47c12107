//! Locks of the state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose data are sound after a panic elsewhere: every change is made in one step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
