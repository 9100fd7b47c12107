//! Forks of this process, of which Python tells.
//!
//! In a fork other threads are gone, and whatever they had locked stays locked: nothing of a dump
//! runs there.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

/// How many forks lie between this process and the one that loaded this module.
static N_FORKS: AtomicU64 = AtomicU64::new(0);

/// The process that something was made in, kept with it to recognise forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForkGeneration(u64);

impl ForkGeneration {
    /// That of this process.
    pub(super) fn now() -> ForkGeneration {
        ForkGeneration(N_FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is a fork of the process that made it. Costs no system call.
    pub(super) fn is_past(self) -> bool {
        self != ForkGeneration::now()
    }
}

/// Says that this process is a fork. Called in it before anything else runs.
#[pyfunction]
pub(super) fn note_fork() {
    N_FORKS.fetch_add(1, Ordering::Relaxed);
}
