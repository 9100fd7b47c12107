//! State that a session's graphs and their executions share.

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

/// State that a session's graphs and their executions share.
pub(super) struct TorchSessionState {
    pub(super) lender: TensorLender,
    pub(super) pool: Arc<Pool>,
    pub(super) released: Arc<ReleaseQueue>,
    pub(super) executions: ExecutionLog,
    /// A function of Python's that knows tensors of other kinds than those in the CPU's memory.
    pub(super) forms: Option<Py<PyAny>>,
    /// The way to values of devices.
    pub(super) devices: Option<DeviceLink>,
    /// Whether the sink takes numbers only, at once, so that nothing outlives the operator.
    pub(super) is_reducing: bool,
    /// Whether it makes do with numbers that a device can compute.
    pub(super) reduces_on_devices: bool,
    /// Whether only operators that overflow are wanted, which numbers of a device tell apart.
    pub(super) is_sifting: bool,
    /// Whether the sink writes a tensor that several operators have several times, so that it pays
    /// to tell it which ones are the same.
    pub(super) has_identities: bool,
    /// Expanded tensors beyond this are not written out.
    pub(super) queue_bytes_max: u64,
    pub(super) n_graphs: AtomicU64,
    /// Tensors of other devices that were copied to be shown.
    pub(super) n_copied_from_device: AtomicU64,
    /// Executions that ended with an error.
    pub(super) n_runs_failed: AtomicU64,
    is_finished: AtomicBool,
    /// The process that has the writers.
    pid: u32,
    generation: ForkGeneration,
    /// Names of the plan that nothing has so far.
    pub(super) asked: AskedNames,
    notes: Mutex<SessionNotes>,
}

#[derive(Default)]
struct SessionNotes {
    /// Values that were not seen, by reason.
    unseen: BTreeMap<String, u64>,
    /// The first thing that went wrong in here.
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

    /// Whether this is another process than the one that has the writers: a fork of it.
    pub(super) fn is_forked(&self) -> bool {
        // Forks that code other than Python's makes show in the number of the process only.
        std::process::id() != self.pid
    }

    /// The same as far as Python has told of forks, without a system call.
    pub(super) fn is_past(&self) -> bool {
        self.generation.is_past()
    }

    /// Whether nothing is taken any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_finished.load(Ordering::Relaxed) || self.is_forked()
    }

    pub(super) fn end(&self) {
        self.is_finished.store(true, Ordering::Relaxed);
    }

    /// Hands over an operator with its values, behind those before it.
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

    /// Values that were not seen by reason, and the first thing that went wrong.
    pub(super) fn notes(&self) -> (BTreeMap<String, u64>, Option<String>) {
        let notes = self.lock();
        (notes.unseen.clone(), notes.first_fault.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SessionNotes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees what writers have finished with.
pub(super) fn tidy(py: Python<'_>, shared: &TorchSessionState) {
    if !shared.is_past() {
        shared.released.empty(py);
    }
}
