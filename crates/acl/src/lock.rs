//! Locks of the state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose data stays consistent after a panic elsewhere: every change is a single step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
