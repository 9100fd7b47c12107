//! Operators described while they run: those of PyTorch's eager mode.
//!
//! An [`EagerOperators`] belongs to a session and begins steps. A [`step::EagerStep`] receives each
//! operator twice: its arguments before it runs, and its results. Values are identified by their
//! memory ([`values`]), so that an unchanged one is not read again.
//!
//! This file, `step` and `session` import each other: a session creates an [`EagerOperators`], and
//! the end of a step passes the step's description to the session's background worker.

mod arguments;
mod call;
mod chooser;
mod description;
mod inner;
mod kind;
mod links;
mod lock;
mod look;
mod names;
mod noted;
mod step;
mod values;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use opscope_capture::GraphView;
use opscope_store::record::ModelId;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use self::chooser::TensorChooser;
use self::inner::EagerState;
use self::kind::KindTable;
use self::lock::lock;
use self::step::EagerStep;
use self::values::MemoryValues;
use super::parallel::PlacementNotes;
use super::session::TorchSession;
use super::shared::tidy;

/// Directory of the operators, if they count as a model's.
const MODEL_NAME: &str = "eager";

/// The operators of eager mode in one session.
#[pyclass(name = "Eager", frozen, module = "opscope._native.capture")]
pub(super) struct EagerOperators {
    session: Py<TorchSession>,
    inner: Arc<EagerState>,
}

#[pymethods]
impl EagerOperators {
    /// Begins a step; `None` if it is not recorded. With `is_forced` operators are named anyway.
    #[pyo3(signature = (number, is_forced=false))]
    fn begin_step(
        &self,
        py: Python<'_>,
        number: u64,
        is_forced: bool,
    ) -> PyResult<Option<EagerStep>> {
        if self.inner.shared.is_over() {
            return Ok(None);
        }
        tidy(py, &self.inner.shared);
        let mut tap = {
            let session = self.session.get().lock();
            let Some(session) = &*session else {
                return Ok(None);
            };
            session
                .attach_graph(&self.inner.model, GraphView::default())
                .0
        };
        tap.begin_step(number);
        if !tap.is_active() && !is_forced {
            return Ok(None);
        }
        lock(&self.inner.values).begin_step();
        Ok(Some(EagerStep::new(self.inner.clone(), tap, number)))
    }

    /// Names tensors without a producer, such as parameters.
    fn name_values(&self, named: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<()> {
        for (name, tensor) in named {
            // A tensor that cannot be read is named in its step, like any other argument.
            let Ok(looked) = self.inner.look(&tensor) else {
                continue;
            };
            if let Some(found) = looked.found {
                let pin = self.inner.pin(&looked.subject, found.storage)?;
                lock(&self.inner.values).give(found, pin, name.into());
            }
        }
        Ok(())
    }

    /// Records an error in Python.
    fn note_fault(&self, text: String) {
        self.inner.shared.note_fault(|| text);
    }

    /// Reports that a storage was resized, so its contents are undefined.
    fn note_blank(&self, storage: &Bound<'_, PyAny>) -> PyResult<()> {
        let address: usize = storage.getattr("_cdata")?.extract()?;
        let pin = if lock(&self.inner.values).has(address) {
            None
        } else {
            Some(storage.call_method0("_weak_ref")?.extract()?)
        };
        lock(&self.inner.values).blank(address, pin);
        Ok(())
    }

    /// Whether the forward operator of this sequence number is known.
    fn is_linked(&self, seq_nr: u64) -> bool {
        lock(&self.inner.links).find(seq_nr).is_some()
    }

    /// Forgets freed memory. Called occasionally.
    fn sweep(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.sweep(py)
    }

    /// Number of known storages, for tests.
    #[getter]
    fn n_storages(&self) -> usize {
        lock(&self.inner.values).n_storages()
    }
}

impl EagerOperators {
    /// `describe` returns an operator's kind, `place` a distributed tensor's placement, and
    /// `choose` the wanted operators; `is_single` writes to the directory of operators without a
    /// model.
    pub(super) fn attach(
        py: Python<'_>,
        session: Py<TorchSession>,
        (describe, place): (Py<PyAny>, Py<PyAny>),
        choose: Option<Py<PyAny>>,
        is_single: bool,
    ) -> PyResult<EagerOperators> {
        let name = if is_single { "" } else { MODEL_NAME };
        let model = ModelId {
            file_stem: name.to_owned(),
            graph_name: name.to_owned(),
            load: (!is_single).then_some(1),
            device: 0,
        };
        let (shared, plan) = {
            let session = session.get();
            let held = session.lock();
            let Some(held) = &*held else {
                return Err(PyRuntimeError::new_err("the dump is finished"));
            };
            let (tap, _) = held.attach_graph(&Arc::new(model.clone()), GraphView::default());
            (session.shared().clone(), tap.plan().clone())
        };
        // Its operators become known at run time.
        shared.asked.note(&model, None);
        session.get().note_graph("torch eager", MODEL_NAME);
        let inner = EagerState {
            chooser: TensorChooser::new(&plan, &model, choose)?,
            model: Arc::new(model),
            kinds: KindTable::new(describe),
            placements: PlacementNotes::new(place),
            tensor: py
                .import("torch")?
                .getattr("Tensor")?
                .cast_into::<PyType>()?
                .unbind(),
            values: Mutex::new(MemoryValues::new(py)?),
            links: Mutex::default(),
            names: is_single.then(Arc::default),
            shared,
        };
        inner.shared.n_graphs.fetch_add(1, Ordering::Relaxed);
        Ok(EagerOperators {
            session,
            inner: Arc::new(inner),
        })
    }
}

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<EagerOperators>()?;
    module.add_class::<EagerStep>()?;
    module.add_class::<call::EagerCall>()
}
