//! Values on devices, and records that wait for them.
//!
//! Python's queue makes a device compute statistics, or copy elements, concurrently with the
//! program. Each pending value has a ticket, and a record with such a value waits here, after
//! earlier records. Only the end of a session waits for a device, and a program whose dump has used
//! up its memory.
//!
//! This file, `shared` and `take` import each other: a session has a link, which records losses in
//! the session, and code that takes a value asks the link first.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use opscope_capture::{Probe, Tap};
use opscope_tensor::{DeviceArrival, DeviceElements, Tensor};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use super::arrival::{CopiedElements, DeviceTicket, complete_rows};
use super::memory::TensorMemory;
use super::reason::UnseenReason;
use super::release::ReleaseQueue;
use super::shared::TorchSessionState;
use super::take::detached;
use super::taps::Home;

/// Maximum number of waiting records; beyond, the program waits for the oldest.
const N_WAITING_MAX: usize = 1 << 16;

/// A session's access to devices.
pub(super) struct DeviceLink {
    /// Python's queue.
    queue: Py<PyAny>,
    /// Whether anything was requested so far.
    is_used: AtomicBool,
    tickets: Mutex<HashMap<u64, DeviceTicket>>,
    waiting: Mutex<VecDeque<WaitingWork>>,
    /// Whether Ctrl-C came while the dump was working.
    is_interrupted: AtomicBool,
    /// Held while moving records on, so that they keep their order.
    turn: Mutex<()>,
    /// Number of values reduced on a device, and of those copied to the host.
    pub(super) n_reduced: AtomicU64,
    pub(super) n_copied: AtomicU64,
}

/// Work that waits for device values.
enum WaitingWork {
    Record(ShownRecord),
    /// The end of a step with waiting records.
    StepEnd(Tap, Home),
}

/// A recorded operator with its values.
pub(super) struct ShownRecord {
    pub(super) probe: Probe,
    pub(super) inputs: Vec<(usize, Tensor)>,
    pub(super) outputs: Vec<(usize, Tensor)>,
}

/// A device's work on a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceWork {
    Numbers,
    Copy,
}

/// How long to wait for a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    None,
    /// Until the oldest value arrives.
    Oldest,
    /// Until all values arrive.
    All,
}

/// An answer to tickets: `rows`, `copy` or `lost`; the tickets; the tensor with their statistics,
/// or the elements; the owner of the memory; whether memory is scarce.
type Completion<'py> = (
    String,
    Vec<u64>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    bool,
);

/// Python's answer to a request for a value.
#[derive(FromPyObject)]
enum QueueAnswer {
    /// A ticket: positive for statistics, negative for a copy. 0 means that there is no room now.
    Ticket(i64),
    /// Why the value cannot be observed.
    Refusal(String),
    /// A ticket of statistics, with an object for requesting the elements.
    Kept(i64, Py<PyAny>),
}

/// A device value whose elements are still available.
struct KeptValue {
    /// `None` only while being dropped.
    object: Option<Py<PyAny>>,
    released: Arc<ReleaseQueue>,
}

impl Drop for KeptValue {
    fn drop(&mut self) {
        // A writer's thread must not wait for the interpreter.
        if let Some(object) = self.object.take() {
            self.released.push(object);
        }
    }
}

impl ShownRecord {
    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let slots = self.inputs.iter().chain(&self.outputs);
        slots.map(|(_, tensor)| tensor)
    }

    fn has_device_values(&self) -> bool {
        self.tensors()
            .any(|tensor| tensor.device_elements().is_some())
    }

    fn n_bytes(&self) -> usize {
        self.tensors().map(Tensor::n_bytes).sum()
    }

    /// Whether device statistics show that no operator has overflowed: every result is
    /// floating-point and finite.
    fn is_clear(&self) -> bool {
        let mut outputs = self.outputs.iter();
        let are_finite = outputs.all(|(_, tensor)| {
            let elements = tensor.device_elements();
            let arrival = elements.and_then(|elements| elements.arrival());
            matches!(arrival, Some(DeviceArrival::Numbers))
                && tensor.dtype().parts().0.is_float()
                && !tensor.non_finite().any()
        });
        !self.outputs.is_empty() && are_finite
    }

    /// Requests the elements of values that only have statistics. Returns whether any will come.
    fn fetch(&mut self, py: Python<'_>, link: &DeviceLink, shared: &TorchSessionState) -> bool {
        let mut has_asked = false;
        for (_, tensor) in self.inputs.iter_mut().chain(&mut self.outputs) {
            let elements = tensor.device_elements();
            let arrival = elements.and_then(|elements| elements.arrival());
            if let Some(DeviceArrival::Numbers) = arrival {
                *tensor = link.fetch(py, shared, tensor);
                has_asked |= tensor.is_awaited();
            }
        }
        has_asked
    }

    /// Marks the operator as failed; its available inputs are written.
    pub(super) fn fail(mut self, reason: &str) {
        for (position, tensor) in self.inputs {
            if let Ok(tensor) = tensor.arrived() {
                self.probe.input(position, tensor);
            }
        }
        self.probe.fail(reason);
    }

    /// Completes the record and submits it.
    pub(super) fn submit(mut self, py: Python<'_>, shared: &TorchSessionState) {
        // Statistics hold no memory. A full queue may block this thread.
        let n_bytes = if shared.is_reducing {
            self.n_bytes()
        } else {
            usize::MAX
        };
        for (position, tensor) in self.inputs {
            match tensor.arrived() {
                Ok(tensor) => self.probe.input(position, tensor),
                Err(_) => shared.note_unseen(&UnseenReason::lost()),
            }
        }
        for (position, tensor) in self.outputs {
            match tensor.arrived() {
                Ok(tensor) => self.probe.output(position, tensor),
                Err(_) => shared.note_unseen(&UnseenReason::lost()),
            }
        }
        let probe = self.probe;
        detached(py, n_bytes, || Probe::submit(probe));
    }
}

impl WaitingWork {
    fn is_awaited(&self) -> bool {
        match self {
            WaitingWork::Record(record) => record.tensors().any(Tensor::is_awaited),
            WaitingWork::StepEnd(..) => false,
        }
    }

    fn carry_out(self, py: Python<'_>, shared: &TorchSessionState) {
        match self {
            WaitingWork::Record(record) => record.submit(py, shared),
            WaitingWork::StepEnd(tap, home) => {
                py.detach(|| tap.end_step());
                home.put_back(tap);
            }
        }
    }
}

impl DeviceLink {
    pub(super) fn new(queue: Py<PyAny>) -> DeviceLink {
        DeviceLink {
            queue,
            is_used: AtomicBool::new(false),
            tickets: Mutex::default(),
            waiting: Mutex::default(),
            is_interrupted: AtomicBool::new(false),
            turn: Mutex::default(),
            n_reduced: AtomicU64::new(0),
            n_copied: AtomicU64::new(0),
        }
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Makes a device compute statistics of a tensor, or copy it. `is_held` says that nothing
    /// writes to it while it is referenced.
    ///
    /// # Errors
    ///
    /// [`UnseenReason::Device`] for a tensor that torch must copy; another reason if the tensor
    /// cannot be observed.
    pub(super) fn request(
        &self,
        shared: &TorchSessionState,
        object: &Bound<'_, PyAny>,
        memory: &TensorMemory,
        is_held: bool,
    ) -> Result<(Tensor, DeviceWork), UnseenReason> {
        let (dtype, shape) = memory.unpacked()?;
        let elements = Arc::<DeviceElements>::default();
        let tensor = Tensor::on_device(dtype, shape, elements.clone());
        let tensor = tensor.map_err(|_| UnseenReason::Shape)?;
        let (ticket, kept) = self.ticket(shared, object, is_held)?;
        if let Some(kept) = kept {
            let released = shared.released.clone();
            tensor.observed().keep(|_| {
                Some(KeptValue {
                    object: Some(kept),
                    released,
                })
            });
        }
        let (work, counter) = if ticket > 0 {
            (DeviceWork::Numbers, &self.n_reduced)
        } else {
            (DeviceWork::Copy, &self.n_copied)
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.is_used.store(true, Ordering::Relaxed);
        self.expect(ticket, &tensor, elements);
        Ok((tensor, work))
    }

    /// Registers the owner of a ticket.
    fn expect(&self, ticket: i64, tensor: &Tensor, elements: Arc<DeviceElements>) {
        // The memo is shared by all clones of the tensor, so filling it here informs them all.
        let waiting = DeviceTicket {
            elements,
            memo: tensor.memo().clone(),
            n_elements: tensor.shape().n_elements(),
            n_bytes: tensor.n_bytes(),
        };
        // Python reports a ticket only when polled, which this thread has not done since.
        lock(&self.tickets).insert(ticket.unsigned_abs(), waiting);
    }

    /// The elements, to arrive later, of a value with statistics; without elements if they are no
    /// longer available.
    fn fetch(&self, py: Python<'_>, shared: &TorchSessionState, tensor: &Tensor) -> Tensor {
        let kept = tensor.observed().keep(|_| None::<KeptValue>);
        let object = (*kept).as_ref().and_then(|kept| kept.object.as_ref());
        let elements = Arc::<DeviceElements>::default();
        let described = (tensor.dtype(), tensor.shape().clone());
        let fetched = Tensor::on_device(described.0, described.1, elements.clone());
        let fetched = fetched.map(|fetched| fetched.with_memo(tensor.memo().clone()));
        let (Some(object), Ok(fetched)) = (object, fetched) else {
            return tensor.clone();
        };
        let queue = self.queue.bind(py);
        // This thread already holds the turn.
        match self.ask(
            py,
            shared,
            || queue.call_method1(intern!(py, "fetch"), (object,)),
            || self.receive(py, shared, Patience::Oldest),
        ) {
            Ok((ticket, _)) => self.expect(ticket, &fetched, elements),
            Err(reason) => {
                shared.note_unseen(&reason);
                elements.arrive(DeviceArrival::Lost);
            }
        }
        fetched
    }

    fn ticket(
        &self,
        shared: &TorchSessionState,
        object: &Bound<'_, PyAny>,
        is_held: bool,
    ) -> Result<(i64, Option<Py<PyAny>>), UnseenReason> {
        let py = object.py();
        let queue = self.queue.bind(py);
        self.ask(
            py,
            shared,
            || {
                if shared.is_sifting {
                    return queue.call_method1(intern!(py, "take_flag"), (object, is_held));
                }
                let arguments = (object, shared.reduces_on_devices, is_held);
                queue.call_method1(intern!(py, "take"), arguments)
            },
            || self.advance(py, shared, Patience::Oldest),
        )
    }

    /// Requests a value until there is room for it.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        shared: &TorchSessionState,
        question: impl Fn() -> PyResult<Bound<'py, PyAny>>,
        make_room: impl Fn() -> bool,
    ) -> Result<(i64, Option<Py<PyAny>>), UnseenReason> {
        loop {
            let answer = question();
            let answer = answer.map_err(|error| self.fault(py, shared, &error))?;
            // Python can only make a blocking copy for this device.
            if answer.is_none() {
                return Err(UnseenReason::Device);
            }
            match answer.extract::<QueueAnswer>() {
                Ok(QueueAnswer::Ticket(0)) => {
                    // Each wait ends one copy, so the loop ends.
                    if !make_room() {
                        return Err(UnseenReason::behind());
                    }
                }
                Ok(QueueAnswer::Ticket(ticket)) => return Ok((ticket, None)),
                Ok(QueueAnswer::Kept(ticket, kept)) => return Ok((ticket, Some(kept))),
                Ok(QueueAnswer::Refusal(reason)) => return Err(UnseenReason::Refused(reason)),
                Err(error) => return Err(self.fault(py, shared, &error)),
            }
        }
    }

    /// Re-raises a Ctrl-C that came while the dump was working.
    pub(super) fn pass_interrupt_on(&self, shared: &TorchSessionState) {
        if !self.is_interrupted.swap(false, Ordering::Relaxed) {
            return;
        }
        Python::attach(|py| {
            let thread = py.import("_thread");
            if let Err(error) = thread.and_then(|thread| thread.call_method0("interrupt_main")) {
                shared.note_fault(|| error.to_string());
            }
        });
    }

    /// Records an error in Python.
    fn fault(&self, py: Python<'_>, shared: &TorchSessionState, error: &PyErr) -> UnseenReason {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            self.is_interrupted.store(true, Ordering::Relaxed);
            return UnseenReason::Refused("interrupted".to_owned());
        }
        shared.note_fault(|| format!("values of a device: {error}"));
        UnseenReason::Refused("device queue failed".to_owned())
    }

    /// Submits a record once its values and earlier records are complete.
    pub(super) fn submit(&self, py: Python<'_>, shared: &TorchSessionState, record: ShownRecord) {
        let is_behind_others = self.is_used() && !lock(&self.waiting).is_empty();
        if !is_behind_others && !record.has_device_values() {
            return record.submit(py, shared);
        }
        let n_waiting = {
            let mut waiting = lock(&self.waiting);
            waiting.push_back(WaitingWork::Record(record));
            waiting.len()
        };
        let patience = if n_waiting > N_WAITING_MAX {
            Patience::Oldest
        } else {
            Patience::None
        };
        self.advance(py, shared, patience);
    }

    /// Ends a step after its records; returns the tap if nothing is waiting.
    pub(super) fn end_step(&self, tap: Tap, home: &Home) -> Option<Tap> {
        let mut waiting = lock(&self.waiting);
        if waiting.is_empty() {
            return Some(tap);
        }
        waiting.push_back(WaitingWork::StepEnd(tap, home.clone()));
        None
    }

    /// Makes the device send a step's results.
    pub(super) fn flush(&self, py: Python<'_>, shared: &TorchSessionState) {
        if !self.is_used() {
            return;
        }
        if let Err(error) = self.queue.bind(py).call_method0(intern!(py, "flush")) {
            self.fault(py, shared, &error);
        }
        self.advance(py, shared, Patience::None);
    }

    /// Waits for everything, and releases the device.
    pub(super) fn finish(&self, py: Python<'_>, shared: &TorchSessionState) {
        if self.is_used() {
            self.advance(py, shared, Patience::All);
        }
        if let Err(error) = self.queue.bind(py).call_method0(intern!(py, "close")) {
            self.fault(py, shared, &error);
        }
    }

    /// Receives arrivals, and submits the records that waited for them. Returns whether anything
    /// arrived, or may arrive soon.
    fn advance(&self, py: Python<'_>, shared: &TorchSessionState, patience: Patience) -> bool {
        let turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            // The other thread submits this record as well, or the next call does.
            Err(TryLockError::WouldBlock) if patience == Patience::None => return true,
            Err(TryLockError::WouldBlock) => {
                // The other thread may need the interpreter.
                let turn = self.turn.lock_py_attached(py);
                turn.unwrap_or_else(PoisonError::into_inner)
            }
        };
        let has_any = self.receive(py, shared, patience);
        self.hand_over(py, shared);
        if patience == Patience::All {
            // Elements of overflowing operators are requested only then.
            while !lock(&self.waiting).is_empty() && self.receive(py, shared, patience) {
                self.hand_over(py, shared);
            }
            self.lose_all();
            self.hand_over(py, shared);
        }
        drop(turn);
        has_any
    }

    /// Receives arrivals; returns whether there were any.
    fn receive(&self, py: Python<'_>, shared: &TorchSessionState, patience: Patience) -> bool {
        let name = match patience {
            Patience::None => intern!(py, "poll"),
            Patience::Oldest => intern!(py, "wait"),
            Patience::All => intern!(py, "finish"),
        };
        let found = self.queue.bind(py).call_method0(name);
        let found = found.and_then(|found| found.extract::<Vec<Completion<'_>>>());
        match found {
            Ok(completions) => {
                let n = completions.len();
                for completion in completions {
                    self.complete(shared, &completion);
                }
                n > 0
            }
            Err(error) => {
                if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    // The values lost by this failure will never be reported.
                    self.lose_all();
                }
                self.fault(py, shared, &error);
                false
            }
        }
    }

    /// Submits the leading records whose values are complete.
    fn hand_over(&self, py: Python<'_>, shared: &TorchSessionState) {
        loop {
            let work = {
                let mut waiting = lock(&self.waiting);
                match waiting.front() {
                    Some(work) if !work.is_awaited() => waiting.pop_front(),
                    _ => None,
                }
            };
            let Some(work) = work else {
                return;
            };
            let work = match work {
                WaitingWork::Record(record) if shared.is_sifting && record.is_clear() => {
                    // The elements are not needed: the step is over and selected nothing.
                    continue;
                }
                WaitingWork::Record(mut record) if shared.is_sifting => {
                    let has_fetched = record.fetch(py, self, shared);
                    let work = WaitingWork::Record(record);
                    if has_fetched {
                        lock(&self.waiting).push_front(work);
                        continue;
                    }
                    work
                }
                work => work,
            };
            // A failing record must not block later ones.
            let done = catch_unwind(AssertUnwindSafe(|| work.carry_out(py, shared)));
            if done.is_err() {
                shared.note_fault(|| "a record that waited panicked".to_owned());
            }
        }
    }

    fn complete(&self, shared: &TorchSessionState, completion: &Completion<'_>) {
        let (kind, tickets, tensor, lease, is_scarce) = completion;
        let known: Vec<Option<DeviceTicket>> = {
            let mut all = lock(&self.tickets);
            tickets.iter().map(|ticket| all.remove(ticket)).collect()
        };
        let known = known.into_iter();
        match (kind.as_str(), tensor) {
            ("rows", Some(tensor)) => complete_rows(&shared.lender, known, tensor),
            ("copy", Some(tensor)) => {
                for ticket in known.flatten() {
                    let held = CopiedElements {
                        tensor,
                        lease: lease.as_ref(),
                        is_scarce: *is_scarce,
                    };
                    let bytes = held.bytes(&shared.lender, &shared.pool, &shared.released);
                    ticket.elements.arrive(match bytes {
                        Some(bytes) if (*bytes).as_ref().len() == ticket.n_bytes => {
                            DeviceArrival::Elements(bytes)
                        }
                        _ => DeviceArrival::Lost,
                    });
                }
            }
            _ => known
                .flatten()
                .for_each(|ticket| ticket.elements.arrive(DeviceArrival::Lost)),
        }
    }

    fn lose_all(&self) {
        for (_, ticket) in lock(&self.tickets).drain() {
            ticket.elements.arrive(DeviceArrival::Lost);
        }
    }
}

/// Ignores poisoning: values behind these locks stay consistent after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
