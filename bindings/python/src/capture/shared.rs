//! State shared by a session's graphs and their executions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::Pool;
use pyo3::prelude::*;

use super::device::{DeviceLink, ShownRecord};
use super::executions::ExecutionLog;
use super::fork::ForkGeneration;
use super::memory::TensorLender;
use super::names_asked::AskedNames;
use super::reason::UnseenReason;
use super::release::ReleaseQueue;

/// State shared by a session's graphs and their executions.
pub(super) struct TorchSessionState {
    pub(super) lender: TensorLender,
    pub(super) pool: Arc<Pool>,
    pub(super) released: Arc<ReleaseQueue>,
    pub(super) executions: ExecutionLog,
    /// A Python function that converts tensors without plain CPU memory.
    pub(super) forms: Option<Py<PyAny>>,
    /// Access to device values.
    pub(super) devices: Option<DeviceLink>,
    /// Whether the sink takes statistics only, at once, so that nothing outlives the operator.
    pub(super) is_reducing: bool,
    /// Whether statistics computed on a device suffice.
    pub(super) reduces_on_devices: bool,
    /// Whether only overflowing operators are wanted, which device statistics identify.
    pub(super) is_sifting: bool,
    /// Whether the sink would write a tensor several times if several operators have it, so that
    /// identities are worthwhile.
    pub(super) has_identities: bool,
    /// Larger expanded tensors are not written out.
    pub(super) queue_bytes_max: u64,
    pub(super) n_graphs: AtomicU64,
    /// Number of tensors copied from other devices.
    pub(super) n_copied_from_device: AtomicU64,
    /// Number of executions that raised.
    pub(super) n_runs_failed: AtomicU64,
    is_finished: AtomicBool,
    /// The writers' process.
    pid: u32,
    generation: ForkGeneration,
    /// Names in the plan without a match so far.
    pub(super) asked: AskedNames,
    notes: Mutex<SessionNotes>,
}

#[derive(Default)]
struct SessionNotes {
    /// Unobserved values, by reason.
    unseen: BTreeMap<String, u64>,
    /// The first error in this crate.
    first_fault: Option<String>,
}

impl TorchSessionState {
    pub(super) fn new(
        (lender, forms, devices): (TensorLender, Option<Py<PyAny>>, Option<Py<PyAny>>),
        pool: Arc<Pool>,
        executions: ExecutionLog,
        (is_reducing, reduces_on_devices, is_sifting, has_identities): (bool, bool, bool, bool),
        queue_bytes_max: u64,
        asked: AskedNames,
    ) -> TorchSessionState {
        TorchSessionState {
            lender,
            pool,
            released: Arc::default(),
            executions,
            forms,
            devices: devices.map(DeviceLink::new),
            is_reducing,
            reduces_on_devices,
            is_sifting,
            has_identities,
            queue_bytes_max,
            n_graphs: AtomicU64::new(0),
            n_copied_from_device: AtomicU64::new(0),
            n_runs_failed: AtomicU64::new(0),
            is_finished: AtomicBool::new(false),
            pid: std::process::id(),
            generation: ForkGeneration::now(),
            asked,
            notes: Mutex::default(),
        }
    }

    /// Whether this is a fork of the writers' process.
    pub(super) fn is_forked(&self) -> bool {
        // Forks by code other than Python's only show in the process id.
        std::process::id() != self.pid
    }

    /// Likewise for forks reported by Python, without a system call.
    pub(super) fn is_past(&self) -> bool {
        self.generation.is_past()
    }

    /// Whether the session has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_finished.load(Ordering::Relaxed) || self.is_forked()
    }

    pub(super) fn end(&self) {
        self.is_finished.store(true, Ordering::Relaxed);
    }

    /// Submits an operator with its values, after earlier ones.
    pub(super) fn submit(&self, py: Python<'_>, record: ShownRecord) {
        match &self.devices {
            Some(link) => link.submit(py, self, record),
            None => record.submit(py, self),
        }
    }

    pub(super) fn note_unseen(&self, reason: &UnseenReason) {
        let mut notes = self.lock();
        *notes.unseen.entry(reason.name().into_owned()).or_default() += 1;
    }

    pub(super) fn note_fault(&self, text: impl FnOnce() -> String) {
        self.lock().first_fault.get_or_insert_with(text);
    }

    /// Unobserved values by reason, and the first error.
    pub(super) fn notes(&self) -> (BTreeMap<String, u64>, Option<String>) {
        let notes = self.lock();
        (notes.unseen.clone(), notes.first_fault.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SessionNotes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees memory that writers have finished with.
pub(super) fn tidy(py: Python<'_>, shared: &TorchSessionState) {
    if !shared.is_past() {
        shared.released.empty(py);
    }
}
