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
use super::graph::Graph;
use super::memory::Lender;
use super::report;
use super::request::{Request, name_of};
use super::run_record;
use super::shared::{Shared, tidy};
use super::watch::Watch;

/// The CPU.
const DEVICE: u32 = 0;

/// A plan at work, and the directory that it fills.
#[pyclass(frozen, module = "opscope._native.capture")]
pub(super) struct Session {
    /// `None` once it is finished.
    session: Mutex<Option<opscope_capture::Session>>,
    shared: Arc<Shared>,
    root: PathBuf,
    failure_dir: PathBuf,
    purpose: &'static str,
    run: Arc<RunFile>,
    creator: Creator,
}

#[pymethods]
impl Session {
    /// Creates `{dump_path}/{time}` with the first of `times` that is free, and starts the writers.
    ///
    /// `data` is `tensor` or `stats`; `mode` is `input`, `output` or `all`; `steps` are pairs of a first and
    /// a last step, or `None` for all; `purpose` is `values`, `watch`, `overflow`, `exception_brief`,
    /// `exception_norm` or `exception_detail`. `plain_types` are `torch.Tensor` and those of its subclasses that
    /// only add a name, `torch_version` is for the record of the run. With `has_graph_inputs` a selected operator's graph inputs have records of their own.
    #[new]
    #[pyo3(signature = (dump_path, times, plain_types, torch_version, *, data="tensor", mode="all", steps=None,
                        has_graph_inputs=false, purpose="values", queue_bytes_max=None, n_writers=None))]
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
        purpose: &str,
        queue_bytes_max: Option<u64>,
        n_writers: Option<usize>,
    ) -> PyResult<Session> {
        let request = Request::of_options(dump_path, purpose, data, mode, steps, has_graph_inputs)?;
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
        for place in &mut request.places {
            place.push(&below);
        }
        let how = options(queue_bytes_max, n_writers);
        Session::start(py, request, times, (&plain_types, torch_version), how)
    }

    /// Writes a description of a graph beside the dump.
    fn describe(&self, py: Python<'_>, name: &str, text: &str) -> PyResult<()> {
        let path = own::graph_file(&self.root, name);
        let written = py.detach(|| {
            let above = path.parent().unwrap_or(&self.root);
            self.creator.create_dir(above)?;
            self.creator.replace_file(&path, &[text.as_bytes()])
        });
        written.map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Writes a text into the dump's directory, which takes the place of one that is there.
    fn write_text(&self, py: Python<'_>, file_name: &str, text: &str) -> PyResult<()> {
        if file_name.is_empty() || file_name.contains(['/', '\\']) || file_name.starts_with('.') {
            return Err(PyValueError::new_err(format!(
                "`{file_name}` is no name of a file"
            )));
        }
        let written = py.detach(|| {
            self.creator.create_dir(&self.root)?;
            self.creator
                .replace_file(&self.root.join(file_name), &[text.as_bytes()])
        });
        written.map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// What is kept: `values`, `watch`, `overflow`, `exception_brief` and so on.
    #[getter]
    fn purpose(&self) -> &'static str {
        self.purpose
    }

    /// The directory of operators that failed.
    #[getter]
    fn failure_dir(&self) -> PathBuf {
        self.failure_dir.clone()
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
        let model = model_id(model_name, load);
        run_record::note_graph(&self.run, &model.graph_name);
        Graph::attach(&self.shared, session, model, &operators, values)
    }

    /// Lets a graph take part, or code that has none, whose values are to be watched. `state` says of a
    /// tensor which storage it has, how many bytes that has, and how many references to it there are beside
    /// one of the tensor's. At most `bytes_max` bytes are watched at once.
    #[pyo3(signature = (model_name, load, operators, values, state, bytes_max))]
    fn watch(
        &self,
        model_name: String,
        load: u32,
        operators: Vec<OperatorDescription>,
        values: Vec<ValueDescription>,
        state: Py<PyAny>,
        bytes_max: u64,
    ) -> PyResult<Watch> {
        let session = self.lock();
        let Some(session) = &*session else {
            return Err(PyRuntimeError::new_err("the dump is finished"));
        };
        let model = model_id(model_name, load);
        run_record::note_graph(&self.run, &model.graph_name);
        let described = (&operators[..], &values[..]);
        Watch::attach(&self.shared, session, model, described, (state, bytes_max))
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
    fn start(
        py: Python<'_>,
        request: Request,
        times: Vec<String>,
        (plain_types, torch_version): (&[Bound<'_, PyType>], &str),
        options: SessionOptions,
    ) -> PyResult<Session> {
        let is_lazy = request.is_lazy();
        let Request {
            plan,
            content,
            places,
        } = request;
        let purpose = name_of(plan.purpose);
        let lender = Lender::new(plain_types)?;
        // The sink keeps no elements then, once it has seen them.
        let is_reducing = matches!(content, Content::Statistics(_));
        py.detach(|| {
            let (sink, place) = create_sink(places, &times, is_lazy)
                .map_err(|error| PyOSError::new_err(error.to_string()))?;
            let sink = sink.with_content(content);
            let root = sink.tree().root().to_owned();
            let failure_dir = sink.tree().failure_dir(DEVICE);
            let run = run_record::begin(&place, &root, &plan, torch_version, options.n_writers);
            sink.set_run(run.clone());
            let session = opscope_capture::Session::start(plan, Arc::new(sink), options)?;
            let pool = session.pool();
            let shared = Shared::new(lender, pool, is_reducing, options.queue_bytes_max);
            Ok(Session {
                session: Mutex::new(Some(session)),
                shared: Arc::new(shared),
                root,
                failure_dir,
                purpose,
                run,
                creator: Creator::in_dump(&place, Modes::default()),
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

/// A sink at the first place that is usable. Where files may never come, no directory is made for them
/// before they do.
fn create_sink(
    places: Vec<PathBuf>,
    times: &[String],
    is_lazy: bool,
) -> Result<(AclSink, PathBuf), StoreError> {
    let mut first_error = None;
    for place in places {
        let modes = Modes::default();
        let sink = if is_lazy {
            let free = times.iter().find(|time| !place.join(time).exists());
            let time = free.or(times.first()).map_or("", |time| time);
            let creator = Creator::in_dump(&place, modes);
            let created = creator.create_dir(&place);
            created.map(|()| AclSink::lazy(&place, time, modes))
        } else {
            AclSink::create(&place, times.iter().cloned(), modes)
        };
        match sink {
            Ok(sink) => return Ok((sink, place)),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| StoreError::Io {
        action: "create",
        path: PathBuf::new(),
        source: std::io::ErrorKind::NotFound.into(),
    }))
}

fn model_id(name: String, load: u32) -> ModelId {
    ModelId {
        file_stem: name.clone(),
        graph_name: name,
        load: Some(load),
        device: DEVICE,
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
