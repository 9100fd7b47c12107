//! A session that writes an AscendCL tree.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::sink::{AclSink, Content};
use opscope_capture::{SessionOptions, Summary};
use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, Modes};
use opscope_store::record::ModelId;
use opscope_store::run_file::RunFile;
use opscope_store::tree::own;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::description::{OperatorDescription, ValueDescription};
use super::eager::Eager;
use super::graph::Graph;
use super::memory::Lender;
use super::report;
use super::request::Request;
use super::run_record;
use super::shared::{Shared, tidy};

/// A plan at work, and the directory that it fills.
#[pyclass(frozen, module = "opscope._native.capture")]
pub(super) struct Session {
    /// `None` once it is finished.
    session: Mutex<Option<opscope_capture::Session>>,
    shared: Arc<Shared>,
    root: PathBuf,
    run: Arc<RunFile>,
    creator: Creator,
    /// Whether an `acl.json` asks for operators that belong to no model.
    has_single_operators: bool,
}

#[pymethods]
impl Session {
    /// Creates `{dump_path}/{time}` with the first of `times` that is free, and starts the writers.
    ///
    /// `data` is `tensor` or `stats`; `mode` is `input`, `output` or `all`; `steps` are pairs of a first and
    /// a last step, or `None` for all. `plain_types` are `torch.Tensor` and those of its subclasses that
    /// only add a name, `torch_version` is for the record of the run. With `has_graph_inputs` a selected operator's graph inputs have records of their own.
    #[new]
    #[pyo3(signature = (dump_path, times, plain_types, torch_version, *, data="tensor", mode="all", steps=None,
                        has_graph_inputs=false, queue_bytes_max=None, n_writers=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        dump_path: PathBuf,
        times: Vec<String>,
        plain_types: Vec<Bound<'_, PyType>>,
        torch_version: &str,
        data: &str,
        mode: &str,
        steps: Option<Vec<(u64, u64)>>,
        has_graph_inputs: bool,
        queue_bytes_max: Option<u64>,
        n_writers: Option<usize>,
    ) -> PyResult<Session> {
        let request = Request::of_options(dump_path, data, mode, steps, has_graph_inputs)?;
        let how = options(queue_bytes_max, n_writers);
        Session::start(py, request, times, (&plain_types, torch_version), how)
    }

    /// The same for what an `acl.json` asks for, in `{dump_path}/{below}/{time}` with its `dump_path`.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    #[pyo3(signature = (text, below, times, plain_types, torch_version, *, queue_bytes_max=None, n_writers=None))]
    fn of_acl_json(
        py: Python<'_>,
        text: &str,
        below: PathBuf,
        times: Vec<String>,
        plain_types: Vec<Bound<'_, PyType>>,
        torch_version: &str,
        queue_bytes_max: Option<u64>,
        n_writers: Option<usize>,
    ) -> PyResult<Session> {
        let Some(mut request) = Request::of_acl_json(text)? else {
            return Err(PyValueError::new_err("the acl.json asks for no dump"));
        };
        request.place.push(below);
        let how = options(queue_bytes_max, n_writers);
        Session::start(py, request, times, (&plain_types, torch_version), how)
    }

    /// Writes a description of a graph beside the dump.
    fn describe(&self, py: Python<'_>, name: &str, text: &str) -> PyResult<()> {
        let written = py.detach(|| self.write_description(name, text));
        written.map_err(|error| PyOSError::new_err(error.to_string()))
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
        run_record::note_graph(&self.run, &model.graph_name);
        Graph::attach(&self.shared, session, model, &operators, values)
    }

    /// Lets operators take part that run without a graph: [`Eager`]. `is_single` is as the `acl.json`
    /// says, unless it is given.
    #[pyo3(signature = (describe, choose=None, is_single=None))]
    fn attach_eager(
        slf: Bound<'_, Session>,
        describe: Py<PyAny>,
        choose: Option<Py<PyAny>>,
        is_single: Option<bool>,
    ) -> PyResult<Eager> {
        let is_single = is_single.unwrap_or(slf.get().has_single_operators);
        Eager::attach(slf.py(), slf.unbind(), describe, choose, is_single)
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
        let (summary, ended) = py.detach(|| {
            let summary: Summary = session.finish();
            let ended = run_record::end(&self.run, &summary);
            (summary, ended)
        });
        tidy(py, &self.shared);
        if let Err(error) = ended {
            self.shared.note_fault(|| error.to_string());
        }
        report::summary(py, &summary, &self.shared).map(Some)
    }
}

impl Session {
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Adds to the record of the run what is dumped by which means.
    pub(super) fn note_graph(&self, command: &str, name: &str) {
        run_record::note_command(&self.run, command);
        run_record::note_graph(&self.run, name);
    }

    /// Writes a description beside the dump.
    pub(super) fn write_description(&self, name: &str, text: &str) -> Result<(), StoreError> {
        let path = own::graph_file(&self.root, name);
        let above = path.parent().unwrap_or(&self.root);
        self.creator.create_dir(above)?;
        self.creator.replace_file(&path, &[text.as_bytes()])
    }

    fn start(
        py: Python<'_>,
        request: Request,
        times: Vec<String>,
        (plain_types, torch_version): (&[Bound<'_, PyType>], &str),
        options: SessionOptions,
    ) -> PyResult<Session> {
        let Request {
            plan,
            content,
            place,
            has_single_operators,
        } = request;
        let lender = Lender::new(plain_types)?;
        // The sink keeps no elements then, once it has seen them.
        let is_reducing = matches!(content, Content::Statistics(_));
        py.detach(|| {
            let sink = AclSink::create(&place, times, Modes::default())
                .map_err(|error| PyOSError::new_err(error.to_string()))?
                .with_content(content);
            let root = sink.tree().root().to_owned();
            let run = run_record::begin(&place, &root, &plan, torch_version, options.n_writers);
            sink.set_run(run.clone());
            let session = opscope_capture::Session::start(plan, Arc::new(sink), options)?;
            let pool = session.pool();
            let shared = Shared::new(lender, pool, is_reducing, options.queue_bytes_max);
            Ok(Session {
                session: Mutex::new(Some(session)),
                shared: Arc::new(shared),
                root,
                run,
                creator: Creator::in_dump(&place, Modes::default()),
                has_single_operators,
            })
        })
    }

    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, Option<opscope_capture::Session>> {
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

fn options(queue_bytes_max: Option<u64>, n_writers: Option<usize>) -> SessionOptions {
    let usual = SessionOptions::default();
    SessionOptions {
        queue_bytes_max: queue_bytes_max.unwrap_or(usual.queue_bytes_max),
        n_writers: n_writers.unwrap_or(usual.n_writers).max(1),
        ..usual
    }
}
