//! One execution of a graph.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use opscope_capture::{Probe, Tap};
use opscope_tensor::{SharedBytes, Tensor, dense_copy};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::description::Stability;
use super::graph::{Home, Parts, put_back};
use super::memory::Lent;
use super::reason::Reason;
use super::shared::{Shared, tidy};

/// Shorter work is done before another thread could have taken the interpreter over.
const DETACH_BYTES_MIN: usize = 64 << 10;

/// One execution of a graph, which is shown what operators produce. Nothing here raises: the model goes on
/// whatever happens to its dump.
#[pyclass(module = "opscope._native.capture")]
pub(super) struct Run {
    shared: Arc<Shared>,
    parts: Arc<Parts>,
    /// `None` once the execution is over.
    tap: Option<Tap>,
    home: Home,
    /// What was shown and is still needed.
    values: Vec<Option<Tensor>>,
}

impl Run {
    pub(super) fn new(shared: Arc<Shared>, parts: Arc<Parts>, tap: Tap, home: Home) -> Run {
        let mut values = Vec::new();
        values.resize_with(parts.values.len(), || None);
        Run {
            shared,
            parts,
            tap: Some(tap),
            home,
            values,
        }
    }
}

#[pymethods]
impl Run {
    /// Shows values that no operator produces, each before the first operator that reads it.
    fn give(&mut self, values: &Bound<'_, PyTuple>, tensors: &Bound<'_, PyTuple>) {
        self.guard(|run| {
            for (value, tensor) in values.iter().zip(tensors.iter()) {
                run.see(value.extract()?, &tensor);
            }
            Ok(())
        });
    }

    /// Shows what an operator gave, just after it ran.
    fn tap(&mut self, py: Python<'_>, operator: usize, result: &Bound<'_, PyAny>) {
        self.guard(|run| {
            tidy(py, &run.shared);
            let parts = run.parts.clone();
            if let Some(part) = parts.operators.get(operator) {
                let mut outputs = part.outputs.iter();
                run.see_results(&mut outputs, result)?;
                for value in outputs.flatten() {
                    run.miss(*value, &Reason::Missing);
                }
                if part.is_kept {
                    run.submit(py, operator);
                }
                for &value in &part.last_uses {
                    run.values[value] = None;
                }
            }
            Ok(())
        });
    }

    /// Says that the execution went well.
    fn end(&mut self, py: Python<'_>) {
        self.guard(|run| {
            if let Some(tap) = &run.tap {
                py.detach(|| tap.end_step());
            }
            Ok(())
        });
        self.close();
        tidy(py, &self.shared);
    }

    /// Says that the execution ended with an error.
    fn fail(&mut self, py: Python<'_>, reason: &str) {
        let failed = &self.shared.n_runs_failed;
        failed.fetch_add(1, Ordering::Relaxed);
        self.guard(|run| {
            if let Some(tap) = &run.tap {
                tap.fail_step(reason);
            }
            Ok(())
        });
        self.close();
        tidy(py, &self.shared);
    }
}

impl Run {
    /// Keeps whatever goes wrong inside.
    fn guard(&mut self, work: impl FnOnce(&mut Run) -> PyResult<()>) {
        let result = catch_unwind(AssertUnwindSafe(|| work(self)));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.shared.note_fault(|| error.to_string()),
            Err(_) => self.shared.note_fault(|| "a tap panicked".to_owned()),
        }
    }

    fn close(&mut self) {
        self.values.fill_with(|| None);
        if let Some(tap) = self.tap.take() {
            put_back(&self.home, tap);
        }
    }

    /// Goes through results, of which some may be lists, in step with the values that they are.
    fn see_results(
        &mut self,
        outputs: &mut std::slice::Iter<'_, Option<usize>>,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if let Ok(results) = result.cast::<PyTuple>() {
            for result in results.iter() {
                self.see_results(outputs, &result)?;
            }
        } else if let Ok(results) = result.cast::<PyList>() {
            for result in results.iter() {
                self.see_results(outputs, &result)?;
            }
        } else if let Some(Some(value)) = outputs.next() {
            self.see(*value, result);
        } else if self.shared.lender.knows(result) {
            self.shared.note_unseen(&Reason::Undescribed);
        }
        Ok(())
    }

    fn see(&mut self, value: usize, object: &Bound<'_, PyAny>) {
        let Some(part) = self.parts.values.get(value).filter(|part| part.is_wanted) else {
            return;
        };
        let taken = match &part.reason {
            Some(reason) => Err(reason.clone()),
            None => self.take(part.stability, object),
        };
        match taken {
            Ok(tensor) => self.values[value] = Some(tensor),
            Err(reason) => self.shared.note_unseen(&reason),
        }
    }

    fn miss(&self, value: usize, reason: &Reason) {
        if self
            .parts
            .values
            .get(value)
            .is_some_and(|part| part.is_wanted)
        {
            self.shared.note_unseen(reason);
        }
    }

    fn take(&self, stability: Stability, object: &Bound<'_, PyAny>) -> Result<Tensor, Reason> {
        let lent = self.shared.lender.look(object)?;
        let outlives = stability == Stability::Held;
        if !outlives && lent.strides.is_none() && self.shared.is_reducing {
            // Numbers are taken here and now: writers would find what the caller or a later operator has written.
            if let Some(numbers) = self.numbers(object.py(), &lent) {
                return Ok(numbers);
            }
        }
        let bytes: SharedBytes = match &lent.strides {
            Some(strides) => Arc::new(self.gather(object.py(), &lent, strides)?),
            None if outlives => Arc::new(lent.hold(&self.shared.released)),
            None => {
                let (pool, bytes) = (&self.shared.pool, lent.bytes());
                let copy = || pool.copy(bytes).map_err(|_| Reason::Copy);
                Arc::new(detached(object.py(), bytes.len(), copy)?)
            }
        };
        Tensor::new(lent.dtype, lent.shape, bytes).map_err(|_| Reason::Shape)
    }

    /// What the sink needs of the tensor; `None` if that is its elements.
    fn numbers(&self, py: Python<'_>, lent: &Lent<'_, '_>) -> Option<Tensor> {
        let tap = self.tap.as_ref()?;
        let held = Arc::new(lent.hold(&self.shared.released));
        let tensor = Tensor::new(lent.dtype, lent.shape.clone(), held).ok()?;
        let n_bytes = tensor.n_bytes();
        let looked_at = detached(py, n_bytes, || tap.look(tensor));
        (!looked_at.has_elements()).then_some(looked_at)
    }

    /// The elements side by side.
    fn gather(
        &self,
        py: Python<'_>,
        lent: &Lent<'_, '_>,
        strides: &[isize],
    ) -> Result<Vec<u8>, Reason> {
        let (dtype, shape, bytes) = (lent.dtype, &lent.shape, lent.bytes());
        let n_bytes = shape.n_bytes(dtype).map_err(|_| Reason::Shape)?;
        if n_bytes > bytes.len() && n_bytes as u64 > self.shared.queue_bytes_max {
            return Err(Reason::Expanded);
        }
        let copy = || dense_copy(dtype, shape, strides, 0, bytes).map_err(|_| Reason::Copy);
        detached(py, n_bytes, copy)
    }

    fn submit(&self, py: Python<'_>, operator: usize) {
        let part = &self.parts.operators[operator];
        let Some(mut probe) = self.tap.as_ref().and_then(|tap| tap.open(&part.operator)) else {
            return;
        };
        for &(position, value) in &part.inputs {
            if let Some(tensor) = &self.values[value] {
                probe.input(position, tensor.clone());
            }
        }
        let mut n_bytes = 0;
        for (position, value) in part.outputs.iter().enumerate() {
            if let Some(tensor) = value.and_then(|value| self.values[value].as_ref()) {
                n_bytes += tensor.n_bytes();
                probe.output(position, tensor.clone());
            }
        }
        // A full queue may let this thread wait.
        let n_bytes = match self.shared.is_reducing {
            true => n_bytes,
            false => usize::MAX,
        };
        detached(py, n_bytes, || Probe::submit(probe));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.close();
    }
}

/// Works without the interpreter, if the work is long enough.
fn detached<T: Send>(py: Python<'_>, n_bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    if n_bytes < DETACH_BYTES_MIN {
        return work();
    }
    py.detach(work)
}
