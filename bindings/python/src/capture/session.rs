//! A session that writes an AscendCL tree.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::sink::{AclSink, Content};
use opscope_capture::{SessionOptions, Summary};
use opscope_store::atomic_file::Modes;
use opscope_store::record::ModelId;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::description::{OperatorDescription, ValueDescription};
use super::graph::Graph;
use super::memory::Lender;
use super::report;
use super::request::Request;
use super::shared::{Shared, tidy};

/// A plan at work, and the directory that it fills.
#[pyclass(frozen, module = "opscope._native.capture")]
pub(super) struct Session {
    /// `None` once it is finished.
    session: Mutex<Option<opscope_capture::Session>>,
    shared: Arc<Shared>,
    root: PathBuf,
}

#[pymethods]
impl Session {
    /// Creates `{dump_path}/{time}` with the first of `times` that is free, and starts the writers.
    ///
    /// `data` is `tensor` or `stats`; `mode` is `input`, `output` or `all`; `steps` are pairs of a first and
    /// a last step, or `None` for all. `plain_types` are `torch.Tensor` and those of its subclasses that
    /// only add a name. With `has_graph_inputs` a selected operator's graph inputs have records of their own.
    #[new]
    #[pyo3(signature = (dump_path, times, plain_types, *, data="tensor", mode="all", steps=None,
                        has_graph_inputs=false, queue_bytes_max=None, n_writers=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        dump_path: PathBuf,
        times: Vec<String>,
        plain_types: Vec<Bound<'_, PyType>>,
        data: &str,
        mode: &str,
        steps: Option<Vec<(u64, u64)>>,
        has_graph_inputs: bool,
        queue_bytes_max: Option<u64>,
        n_writers: Option<usize>,
    ) -> PyResult<Session> {
        let request = Request::of_options(dump_path, data, mode, steps, has_graph_inputs)?;
        Session::start(
            py,
            request,
            times,
            &plain_types,
            (queue_bytes_max, n_writers),
        )
    }

    /// The same for what an `acl.json` asks for, in `{dump_path}/{below}/{time}` with its `dump_path`.
    #[staticmethod]
    #[pyo3(signature = (text, below, times, plain_types, *, queue_bytes_max=None, n_writers=None))]
    fn of_acl_json(
        py: Python<'_>,
        text: &str,
        below: PathBuf,
        times: Vec<String>,
        plain_types: Vec<Bound<'_, PyType>>,
        queue_bytes_max: Option<u64>,
        n_writers: Option<usize>,
    ) -> PyResult<Session> {
        let Some(mut request) = Request::of_acl_json(text)? else {
            return Err(PyValueError::new_err("the acl.json asks for no dump"));
        };
        request.place.push(below);
        Session::start(
            py,
            request,
            times,
            &plain_types,
            (queue_bytes_max, n_writers),
        )
    }

    /// The directory that models write to.
    #[getter]
    fn root(&self) -> PathBuf {
        self.root.clone()
    }

    /// Whether tensors are described by torch's C functions, and not by their attributes.
    #[getter]
    fn has_exchange_table(&self) -> bool {
        self.shared.lender.has_table()
    }

    /// Lets a graph take part. `model_name` and `load` are its place in the tree.
    #[pyo3(signature = (model_name, load, operators, values))]
    fn attach(
        &self,
        model_name: String,
        load: u32,
        operators: Vec<OperatorDescription>,
        values: Vec<ValueDescription>,
    ) -> PyResult<Graph> {
        let session = self.lock();
        let Some(session) = &*session else {
            return Err(PyRuntimeError::new_err("the dump is finished"));
        };
        let model = ModelId {
            file_stem: model_name.clone(),
            graph_name: model_name,
            load: Some(load),
            device: 0,
        };
        Graph::attach(&self.shared, session, model, &operators, values)
    }

    /// The counts so far; they add up once the session is finished.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tidy(py, &self.shared);
        let watch = self.lock().as_ref().map(opscope_capture::Session::watch);
        match watch {
            Some(watch) => report::counters(py, &watch.counters(), &self.shared),
            None => Err(PyRuntimeError::new_err("the dump is finished")),
        }
    }

    /// Writes the rest, ends the writers, and says what came of it; `None` if that was done before, and in
    /// a process that was forked from the one that has the writers.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.shared.is_forked() {
            return Ok(None);
        }
        self.shared.end();
        let Some(session) = self.lock().take() else {
            return Ok(None);
        };
        let summary: Summary = py.detach(|| session.finish());
        tidy(py, &self.shared);
        report::summary(py, &summary, &self.shared).map(Some)
    }
}

impl Session {
    fn start(
        py: Python<'_>,
        request: Request,
        times: Vec<String>,
        plain_types: &[Bound<'_, PyType>],
        (queue_bytes_max, n_writers): (Option<u64>, Option<usize>),
    ) -> PyResult<Session> {
        let mut options = SessionOptions::default();
        options.queue_bytes_max = queue_bytes_max.unwrap_or(options.queue_bytes_max);
        options.n_writers = n_writers.unwrap_or(options.n_writers);
        let lender = Lender::new(plain_types)?;
        // The sink keeps no elements then, once it has seen them.
        let is_reducing = matches!(request.content, Content::Statistics(_));
        py.detach(|| {
            let sink = AclSink::create(&request.place, times, Modes::default())
                .map_err(|error| PyOSError::new_err(error.to_string()))?
                .with_content(request.content);
            let root = sink.tree().root().to_owned();
            let session = opscope_capture::Session::start(request.plan, Arc::new(sink), options)?;
            let pool = session.pool();
            let shared = Shared::new(lender, pool, is_reducing, options.queue_bytes_max);
            Ok(Session {
                session: Mutex::new(Some(session)),
                shared: Arc::new(shared),
                root,
            })
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<opscope_capture::Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let session = self.lock().take();
        if self.shared.is_forked() {
            // Its writers are threads of another process, nobody can wait for them here.
            std::mem::forget(session);
        }
    }
}
