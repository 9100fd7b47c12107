//! Python objects that other threads no longer need.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use super::fork::ForkGeneration;

/// Objects to be released by a thread that has the interpreter: a writer's thread must not wait for
/// the interpreter, whose owner may be waiting for the writer.
pub(super) struct ReleaseQueue {
    generation: ForkGeneration,
    has_any: AtomicBool,
    objects: Mutex<Vec<Py<PyAny>>>,
}

impl Default for ReleaseQueue {
    fn default() -> ReleaseQueue {
        ReleaseQueue {
            generation: ForkGeneration::now(),
            has_any: AtomicBool::new(false),
            objects: Mutex::default(),
        }
    }
}

impl ReleaseQueue {
    /// From any thread.
    pub(super) fn push(&self, object: Py<PyAny>) {
        if self.generation.is_past() {
            // A writer may have held the lock when the process forked.
            return std::mem::forget(object);
        }
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.push(object);
        self.has_any.store(true, Ordering::Release);
    }

    /// Releases queued objects. Costs only a flag check if there are none.
    pub(super) fn empty(&self, _py: Python<'_>) {
        if self.generation.is_past() || !self.has_any.swap(false, Ordering::Acquire) {
            return;
        }
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let done = std::mem::take(&mut *objects);
        // Freeing a tensor may run Python code, which may come back here.
        drop(objects);
        drop(done);
    }
}
