//! Locks of eager mode's state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ignores poisoning: values behind these locks are replaced as a whole, so a panic leaves them
/// consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
