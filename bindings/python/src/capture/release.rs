//! Objects of Python's that other threads have finished with.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use super::fork::ForkGeneration;

/// Objects that wait for a thread that has the interpreter, to be let go there: a writer's thread
/// must not wait for the interpreter, whose owner may be waiting for the writer.
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
            // A writer may have had the lock when the process was forked.
            return std::mem::forget(object);
        }
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.push(object);
        self.has_any.store(true, Ordering::Release);
    }

    /// Lets go of what has come together. Costs one look at a flag if that is nothing.
    pub(super) fn empty(&self, _py: Python<'_>) {
        if self.generation.is_past() || !self.has_any.swap(false, Ordering::Acquire) {
            return;
        }
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let done = std::mem::take(&mut *objects);
        // Freeing a tensor may run code of Python's, which may come back here.
        drop(objects);
        drop(done);
    }
}
