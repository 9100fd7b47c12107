//! Forks of this process, as reported by Python.
//!
//! A fork has no other threads, and locks held by them stay locked, so dumps do not run there.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

/// Number of forks between the process that loaded this module and this one.
static N_FORKS: AtomicU64 = AtomicU64::new(0);

/// The process in which an object was created, to recognise forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForkGeneration(u64);

impl ForkGeneration {
    /// The current process.
    pub(super) fn now() -> ForkGeneration {
        ForkGeneration(N_FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is a fork of the creating process. Needs no system call.
    pub(super) fn is_past(self) -> bool {
        self != ForkGeneration::now()
    }
}

/// Reports that this process is a fork. Called before anything else runs in it.
#[pyfunction]
pub(super) fn note_fork() {
    N_FORKS.fetch_add(1, Ordering::Relaxed);
}
