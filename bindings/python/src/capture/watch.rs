//! Values that are compared after each operator, to find who overwrites them.
//!
//! Python decides which values to watch, when to compare, and who is responsible; this file handles
//! the memory. See `docs/watch.md`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use opscope_capture::{CaptureSession, GraphView, Tap, WatchRole};
use opscope_store::record::{ModelId, Operator};
use opscope_tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::description::{OperatorDescription, ValueDescription};
use super::reason::UnseenReason;
use super::shared::{TorchSessionState, tidy};
use super::watched::{ValueChange, WatchedMemory};

/// Values that are compared after each operator.
#[pyclass(name = "Watch", module = "opscope._native.capture")]
pub(super) struct MemoryWatch {
    shared: Arc<TorchSessionState>,
    tap: Tap,
    /// The role of each of the graph's operators, if selected.
    roles: Vec<Option<&'static str>>,
    /// Returns a tensor's storage, its size, and its number of references.
    state: Py<PyAny>,
    bytes_max: u64,
    n_bytes: u64,
    next_id: u64,
    /// Oldest first.
    values: Vec<WatchedMemory>,
    /// Values before and after each change, by change number.
    changes: HashMap<u64, (Tensor, Tensor)>,
    /// Values that are no longer watched, with the reason.
    gone: Vec<(u64, &'static str)>,
}

/// A storage's id, size and number of references.
type StorageState = (u64, u64, u64);

impl MemoryWatch {
    pub(super) fn attach(
        shared: &Arc<TorchSessionState>,
        session: &CaptureSession,
        model: ModelId,
        (operators, values): (&[OperatorDescription], &[ValueDescription]),
        (state, bytes_max): (Py<PyAny>, u64),
    ) -> PyResult<MemoryWatch> {
        let operators = operators.iter().enumerate();
        let named: Vec<Arc<Operator>> = operators
            .map(|(task_id, operator)| operator.named(task_id, values))
            .collect::<PyResult<_>>()?;
        let view = GraphView {
            operators: &named,
            ..GraphView::default()
        };
        let model = Arc::new(model);
        let (tap, selected) = session.attach_graph(&model, view);
        shared.asked.note(&model, Some(&selected));
        shared.n_graphs.fetch_add(1, Ordering::Relaxed);
        Ok(MemoryWatch {
            shared: shared.clone(),
            roles: named
                .iter()
                .map(|operator| {
                    let kept = selected.kept.get(&operator.task_id)?;
                    Some(match kept.role {
                        WatchRole::Watched => "watched",
                        WatchRole::Suspect {
                            is_collective: true,
                        } => "collective",
                        WatchRole::Suspect { .. } | WatchRole::None => "suspect",
                    })
                })
                .collect(),
            tap,
            state,
            bytes_max,
            n_bytes: 0,
            next_id: 0,
            values: Vec::new(),
            changes: HashMap::new(),
            gone: Vec::new(),
        })
    }
}

#[pymethods]
impl MemoryWatch {
    /// For each operator `watched`, `suspect`, `collective`, or `None` if the plan does not select
    /// it.
    #[getter]
    fn roles(&self) -> Vec<Option<&'static str>> {
        self.roles.clone()
    }

    /// Number of watched values.
    fn __len__(&self) -> usize {
        self.values.len()
    }

    /// Begins an execution with nothing watched; returns whether it is recorded.
    fn begin_step(&mut self, py: Python<'_>, step: u64) -> bool {
        if self.shared.is_over() {
            return false;
        }
        self.clear(py);
        self.tap.begin_step(step);
        self.tap.is_active()
    }

    /// Ends the execution and all watches.
    fn end_step(&mut self, py: Python<'_>) {
        if self.shared.is_past() {
            return;
        }
        py.detach(|| self.tap.end_step());
        self.clear(py);
    }

    /// Counts an operator that has run.
    fn count_operator(&self) {
        self.tap.count_seen(1);
    }

    /// Watches a tensor's memory from now on. `tensor` must be unshared; it is kept. With `is_kept`
    /// the value stays even if nothing else references its memory; with `is_view` it is skipped if
    /// its memory is already watched. Returns a number, or why it is not watched.
    #[pyo3(signature = (tensor, *, is_kept=false, is_view=false))]
    fn note(
        &mut self,
        tensor: &Bound<'_, PyAny>,
        is_kept: bool,
        is_view: bool,
    ) -> (Option<u64>, Option<String>) {
        if self.shared.is_over() {
            return (None, None);
        }
        match self.add(tensor, is_kept, is_view) {
            Ok(id) => (id, None),
            Err(reason) => {
                self.shared.note_unseen(&reason);
                (None, Some(reason.name().into_owned()))
            }
        }
    }

    /// Compares all values. Returns a dictionary for each change; its number is valid until
    /// `forget`.
    fn look<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        if self.shared.is_past() {
            return Ok(Vec::new());
        }
        tidy(py, &self.shared);
        // Resized memory must be dropped before comparing, because it may be gone.
        self.sweep(py)?;
        let values = &self.values;
        let find = || -> Vec<usize> {
            let numbered = values.iter().enumerate();
            let changed = numbered.filter(|(_, value)| value.is_changed());
            changed.map(|(i, _)| i).collect()
        };
        let changed = match self.n_bytes {
            0..DETACH_BYTES_MIN => find(),
            _ => py.detach(find),
        };
        let mut found = Vec::new();
        for i in changed {
            let value = &mut self.values[i];
            let id = value.id;
            match value.refresh() {
                Ok(Some(change)) => {
                    let number = self.next_id;
                    self.next_id += 1;
                    found.push(tell(py, number, id, &change)?);
                    self.changes.insert(number, (change.before, change.after));
                }
                Ok(None) => {}
                Err(reason) => self.shared.note_unseen(&reason),
            }
        }
        Ok(found)
    }

    /// Releases the values before and after a change.
    fn forget(&mut self, change: u64) {
        self.changes.remove(&change);
    }

    /// Values that are no longer watched since the last call, with the reason.
    fn take_gone(&mut self) -> Vec<(u64, &'static str)> {
        std::mem::take(&mut self.gone)
    }

    /// Stops watching some values.
    fn drop_values(&mut self, py: Python<'_>, ids: Vec<u64>) {
        self.retain(|value| !ids.contains(&value.id));
        tidy(py, &self.shared);
    }

    /// Writes a record of the values at the last comparison, each with its position among the
    /// outputs.
    fn write(
        &self,
        py: Python<'_>,
        op_type: &str,
        op_name: &str,
        task_id: u32,
        values: Vec<(usize, u64)>,
    ) {
        let mut outputs = Vec::new();
        for (position, id) in values {
            match self.values.iter().find(|value| value.id == id) {
                Some(value) => match value.value() {
                    Ok(tensor) => outputs.push((position, tensor)),
                    Err(reason) => self.shared.note_unseen(&reason),
                },
                None => self.shared.note_unseen(&UnseenReason::Missing),
            }
        }
        self.write_beside(py, (op_type, op_name, task_id), outputs);
    }

    /// Writes values before or after a change: pairs of a position among the outputs and a change
    /// number.
    fn write_changes(
        &self,
        py: Python<'_>,
        op_type: &str,
        op_name: &str,
        task_id: u32,
        changes: Vec<(usize, u64)>,
        is_after: bool,
    ) {
        let mut outputs = Vec::new();
        for (position, change) in changes {
            if let Some((before, after)) = self.changes.get(&change) {
                let tensor = if is_after { after } else { before };
                outputs.push((position, tensor.clone()));
            }
        }
        self.write_beside(py, (op_type, op_name, task_id), outputs);
    }
}

/// Shorter comparisons are done before another thread could take over the interpreter.
const DETACH_BYTES_MIN: u64 = 64 << 10;

impl MemoryWatch {
    fn add(
        &mut self,
        tensor: &Bound<'_, PyAny>,
        is_kept: bool,
        is_view: bool,
    ) -> Result<Option<u64>, UnseenReason> {
        let shared = self.shared.clone();
        let lent = shared.lender.look(tensor)?;
        let n_bytes = lent.bytes().len() as u64;
        // Empty memory cannot change.
        if n_bytes == 0 || (is_view && self.values.iter().any(|value| value.covers(&lent))) {
            return Ok(None);
        }
        if n_bytes > self.bytes_max {
            return Err(UnseenReason::Known(
                "larger than watch_bytes_max".to_owned(),
            ));
        }
        // The copy comes first: if there is no memory for it, no older value is dropped in vain.
        let value = WatchedMemory::new(self.next_id, &lent, is_kept, &shared.released)?;
        self.next_id += 1;
        let mut n_excess = (self.n_bytes + n_bytes).saturating_sub(self.bytes_max);
        if n_excess > 0 {
            // The oldest values make room.
            let mut evicted = Vec::new();
            for old in &self.values {
                if n_excess == 0 {
                    break;
                }
                n_excess = n_excess.saturating_sub(old.n_bytes());
                evicted.push(old.id);
            }
            self.gone.extend(evicted.iter().map(|id| (*id, "limit")));
            self.retain(|value| !evicted.contains(&value.id));
        }
        self.n_bytes += n_bytes;
        let id = value.id;
        self.values.push(value);
        Ok(Some(id))
    }

    /// Drops values whose memory is gone, or is referenced only here.
    fn sweep(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut states: Vec<Option<StorageState>> = Vec::with_capacity(self.values.len());
        // Number of our own tensors per storage.
        let mut n_ours: HashMap<u64, u64> = HashMap::new();
        for value in &self.values {
            let state = match value.tensor(py) {
                Some(tensor) => {
                    let lent = self.shared.lender.look(tensor.bind(py));
                    if lent.is_ok_and(|lent| value.is_still(&lent)) {
                        Some(
                            self.state
                                .bind(py)
                                .call1((tensor,))?
                                .extract::<StorageState>()?,
                        )
                    } else {
                        None
                    }
                }
                None => None,
            };
            if let Some((storage, ..)) = state {
                *n_ours.entry(storage).or_default() += 1;
            }
            states.push(state);
        }
        let mut gone = Vec::new();
        for (value, state) in self.values.iter().zip(states) {
            match state {
                None => gone.push((value.id, "resized")),
                // A storage may shrink without a change of the tensor's address and shape.
                Some((_, n_bytes, _)) if n_bytes < value.n_bytes() => {
                    gone.push((value.id, "resized"));
                }
                Some((storage, _, n_users)) => {
                    // Only our own tensors still use the storage.
                    if !value.is_kept() && n_users <= n_ours.get(&storage).copied().unwrap_or(0) {
                        gone.push((value.id, "freed"));
                    }
                }
            }
        }
        if !gone.is_empty() {
            self.retain(|value| gone.iter().all(|(id, _)| *id != value.id));
            self.gone.extend(gone);
            tidy(py, &self.shared);
        }
        Ok(())
    }

    fn retain(&mut self, keep: impl Fn(&WatchedMemory) -> bool) {
        self.values.retain(keep);
        self.n_bytes = self.values.iter().map(WatchedMemory::n_bytes).sum();
    }

    fn clear(&mut self, py: Python<'_>) {
        self.values.clear();
        self.changes.clear();
        self.gone.clear();
        self.n_bytes = 0;
        tidy(py, &self.shared);
    }

    fn write_beside(
        &self,
        py: Python<'_>,
        (op_type, op_name, task_id): (&str, &str, u32),
        outputs: Vec<(usize, Tensor)>,
    ) {
        if outputs.is_empty() {
            return;
        }
        // Unused positions have names, so that used ones keep theirs.
        let n = outputs.iter().map(|(position, _)| position + 1).max();
        let operator = Operator {
            task_id,
            op_type: op_type.to_owned(),
            op_name: op_name.to_owned(),
            outputs: (0..n.unwrap_or(0))
                .map(|i| format!("{op_name}.{i}"))
                .collect(),
            ..Operator::default()
        };
        // A full queue may block this thread.
        py.detach(|| self.tap.write_beside(Arc::new(operator), outputs));
    }
}

fn tell<'py>(
    py: Python<'py>,
    number: u64,
    id: u64,
    change: &ValueChange,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    let difference = &change.difference;
    let ranges = difference.ranges.iter();
    let ranges: Vec<[u64; 2]> = ranges.map(|range| [range.start, range.end]).collect();
    found.set_item("change", number)?;
    found.set_item("id", id)?;
    found.set_item("byte_ranges", ranges)?;
    found.set_item("n_byte_ranges", difference.n_ranges)?;
    found.set_item("n_bytes", difference.n_bytes)?;
    found.set_item("n_elements", change.n_elements)?;
    found.set_item("first_element", difference.first_element)?;
    found.set_item("before", &difference.before)?;
    found.set_item("after", &difference.after)?;
    Ok(found)
}
