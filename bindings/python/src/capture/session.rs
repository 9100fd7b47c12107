//! A session that writes AscendCL's or MindSpore's tree, or the native form.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use opscope_capture::{SessionOptions, SessionSummary, WhenBehind};
use opscope_config::dialect::acl::AclContent;
use opscope_dump::{DumpForm, DumpOptions, DumpRequest, NativeContent, NativeOptions, OpenDump};
use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::run_json::RunRecord;
use opscope_store::record::ModelId;
use opscope_store::run_file::RunFile;
use opscope_store::tree::own;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::background_worker::BackgroundWorker;
use super::description::{BodyDescription, OperatorDescription, ValueDescription};
use super::eager::EagerOperators;
use super::executions::ExecutionLog;
use super::graph::{GraphFacts, SessionGraph};
use super::memory::TensorLender;
use super::mindspore::{DumpOwner, request as mindspore_request};
use super::names_asked::{AskedNames, Missing};
use super::request::{SessionPlan, name_of, request_of_acl_json};
use super::shared::{TorchSessionState, tidy};
use super::watch::MemoryWatch;
use super::{report, run_record};
use crate::os_error;

/// The CPU.
const DEVICE: u32 = 0;

/// Facts about torch and the settings of a session: a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TorchFacts<'py> {
    /// `torch.Tensor` and subclasses that only add a name.
    plain_types: Vec<Bound<'py, PyType>>,
    /// For the run's record.
    torch_version: String,
    /// Called with a tensor without plain CPU memory, and the reason; it returns pairs of substitute
    /// tensors, a reason, or `None`.
    forms: Option<Py<PyAny>>,
    /// The queue of device values, which includes CPU tensors if the host is claimed.
    devices: Option<Py<PyAny>>,
    is_host_claimed: bool,
    queue_bytes_max: Option<u64>,
    n_writers: Option<usize>,
    /// `wait` or `drop`.
    when_behind: String,
}

impl TorchFacts<'_> {
    /// # Errors
    /// `ValueError` for a word that is none of those allowed.
    fn options(&self) -> PyResult<SessionOptions> {
        let usual = SessionOptions::default();
        Ok(SessionOptions {
            queue_bytes_max: self.queue_bytes_max.unwrap_or(usual.queue_bytes_max),
            n_writers: self.n_writers.unwrap_or(usual.n_writers).max(1),
            when_behind: match &*self.when_behind {
                "wait" => WhenBehind::Wait,
                "drop" => WhenBehind::Drop,
                word => {
                    let text = format!("when_behind `{word}` is neither `wait` nor `drop`");
                    return Err(PyValueError::new_err(text));
                }
            },
            ..usual
        })
    }
}

/// A running plan, and its output directory.
#[pyclass(name = "Session", frozen, module = "opscope._native.capture")]
pub(super) struct TorchSession {
    /// `None` once finished.
    session: Mutex<Option<opscope_capture::CaptureSession>>,
    shared: Arc<TorchSessionState>,
    root: PathBuf,
    failure_dir: PathBuf,
    purpose: &'static str,
    run: Arc<RunFile>,
    creator: Arc<Creator>,
    /// Descriptions of steps, written asynchronously.
    background: BackgroundWorker,
    dump: OpenDump,
    /// The device to record for graphs.
    device: Option<u32>,
    /// Whether an `acl.json` requests operators without a model.
    has_single_operators: bool,
}

#[pymethods]
impl TorchSession {
    /// Creates `{dump_path}/{time}` with the first free one of `times`, and starts the writers.
    ///
    /// `plan` and `torch` are dictionaries with the fields of [`SessionPlan`] and [`TorchFacts`].
    #[new]
    fn new(
        py: Python<'_>,
        dump_path: PathBuf,
        times: Vec<String>,
        plan: SessionPlan,
        torch: TorchFacts<'_>,
    ) -> PyResult<TorchSession> {
        TorchSession::start(py, plan.request(dump_path)?, Some(times), torch)
    }

    /// The same for an `acl.json`, in `{dump_path}/{below}/{time}` with its `dump_path`.
    #[staticmethod]
    fn of_acl_json(
        py: Python<'_>,
        text: &str,
        below: PathBuf,
        times: Vec<String>,
        torch: TorchFacts<'_>,
    ) -> PyResult<TorchSession> {
        let Some(mut request) = request_of_acl_json(text)? else {
            return Err(PyValueError::new_err("the acl.json requests no dump"));
        };
        if let DumpForm::Acl { places, .. } = &mut request.form {
            // All ranks of a job may read the same acl.json, so each needs its own directory.
            places.iter_mut().for_each(|place| place.push(&below));
        }
        TorchSession::start(py, request, Some(times), torch)
    }

    /// The same for a MindSpore configuration, in its `path`; `target` selects the tree.
    #[staticmethod]
    fn of_mindspore_json(
        py: Python<'_>,
        text: &str,
        target: &str,
        rank: u32,
        device: u32,
        time: &str,
        torch: TorchFacts<'_>,
    ) -> PyResult<TorchSession> {
        let place = DumpOwner::new(target, rank, device)?;
        let Some(request) = mindspore_request(text, place, time)? else {
            return Err(PyValueError::new_err("the configuration requests no dump"));
        };
        let mut session = TorchSession::start(py, request, None, torch)?;
        // The tree uses this device number, whatever device torch runs on.
        session.device = Some(device);
        Ok(session)
    }

    /// Writes a graph's description next to the dump.
    fn describe(&self, py: Python<'_>, name: &str, text: &str) -> PyResult<()> {
        let written = py.detach(|| self.write_description(name, text));
        written.map_err(|error| os_error::of_store(&error))
    }

    /// Writes a text into the dump's directory, replacing an existing one.
    fn write_text(&self, py: Python<'_>, file_name: &str, text: &str) -> PyResult<()> {
        // The name must not leave the directory, and the dot excludes `..` and `.opscope`.
        if file_name.is_empty() || file_name.contains(['/', '\\']) || file_name.starts_with('.') {
            return Err(PyValueError::new_err(format!(
                "`{file_name}` is not a file name"
            )));
        }
        let written = py.detach(|| {
            self.creator.create_dir(&self.root)?;
            self.creator
                .replace_file(&self.root.join(file_name), &[text.as_bytes()])
        });
        written.map_err(|error| os_error::of_store(&error))
    }

    /// The purpose: `values`, `watch`, `overflow`, `exception_brief` and so on.
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

    /// Whether torch's C functions describe tensors, rather than their attributes.
    #[getter]
    fn has_exchange_table(&self) -> bool {
        self.shared.lender.has_table()
    }

    /// Adds a graph. `model_name` and `load` are its place in the tree.
    ///
    /// `bodies` are graphs inside operators, outer ones first; `device` is the number of the device
    /// that most of it runs on, unless the session sets it. `constants` are constant values of the
    /// graph, `types` those with known dtype and shape, -1 for a dynamic dimension, and `carried`
    /// those passed to bodies.
    #[pyo3(signature = (model_name, load, operators, values, bodies=Vec::new(), device=0, constants=Vec::new(),
                        types=Vec::new(), carried=Vec::new()))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn attach(
        &self,
        model_name: String,
        load: u32,
        operators: Vec<OperatorDescription>,
        values: Vec<ValueDescription>,
        bodies: Vec<BodyDescription>,
        device: u32,
        constants: Vec<usize>,
        types: Vec<(usize, String, Vec<i64>)>,
        carried: Vec<usize>,
    ) -> PyResult<SessionGraph> {
        let session = self.lock();
        let Some(session) = &*session else {
            return Err(PyRuntimeError::new_err("the dump is finished"));
        };
        let model = model_id(model_name, load, self.device.unwrap_or(device));
        run_record::note_graph(&self.run, &model.graph_name);
        let beside = GraphFacts::new(&values, &constants, types, carried);
        SessionGraph::attach(
            &self.shared,
            session,
            model,
            (&operators, values, bodies),
            &beside,
        )
    }

    /// Adds a graph, or code without one, whose values are to be watched. `state` returns a
    /// tensor's storage, its size, and the number of references beyond the tensor's own. At most
    /// `bytes_max` bytes are watched at once.
    #[pyo3(signature = (model_name, load, operators, values, state, bytes_max))]
    fn watch(
        &self,
        model_name: String,
        load: u32,
        operators: Vec<OperatorDescription>,
        values: Vec<ValueDescription>,
        state: Py<PyAny>,
        bytes_max: u64,
    ) -> PyResult<MemoryWatch> {
        let session = self.lock();
        let Some(session) = &*session else {
            return Err(PyRuntimeError::new_err("the dump is finished"));
        };
        let model = model_id(model_name, load, self.device.unwrap_or(DEVICE));
        run_record::note_graph(&self.run, &model.graph_name);
        let described = (&operators[..], &values[..]);
        MemoryWatch::attach(&self.shared, session, model, described, (state, bytes_max))
    }

    /// Adds operators that run without a graph: [`EagerOperators`]. The default of `is_single` is
    /// set by the `acl.json`.
    #[pyo3(signature = (describe, place, choose=None, is_single=None))]
    fn attach_eager(
        slf: Bound<'_, TorchSession>,
        describe: Py<PyAny>,
        place: Py<PyAny>,
        choose: Option<Py<PyAny>>,
        is_single: Option<bool>,
    ) -> PyResult<EagerOperators> {
        let is_single = is_single.unwrap_or(slf.get().has_single_operators);
        EagerOperators::attach(slf.py(), slf.unbind(), (describe, place), choose, is_single)
    }

    /// Models and operators in the configuration without a match so far, and the models that
    /// occurred.
    fn missing(&self) -> Missing {
        self.shared.asked.missing()
    }

    /// Records the number of processes and this one's rank.
    fn note_world(&self, size: u64, rank: u64) {
        run_record::note_world(&self.run, size, rank);
    }

    /// The counts so far; they add up once the session is finished.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tidy(py, &self.shared);
        let watch = self
            .lock()
            .as_ref()
            .map(opscope_capture::CaptureSession::watch);
        match watch {
            Some(watch) => report::counters(py, &watch.counters(), &self.shared),
            None => Err(PyRuntimeError::new_err("the dump is finished")),
        }
    }

    /// Writes the rest, stops the writers, and returns the summary; `None` if already done, and in
    /// a fork of the writers' process.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.shared.is_forked() {
            return Ok(None);
        }
        // From here on no execution begins, because nothing would be written.
        self.shared.end();
        if let Some(link) = &self.shared.devices
            && self.lock().is_some()
        {
            // Waiting records must reach the writers before these stop.
            link.finish(py, &self.shared);
            link.pass_interrupt_on(&self.shared);
        }
        let Some(session) = self.lock().take() else {
            return Ok(None);
        };
        let (summary, ended) = py.detach(|| {
            self.background.finish();
            let summary: SessionSummary = session.finish();
            let ended = run_record::end(&self.run, &summary);
            (summary, ended.and(self.shared.executions.write()))
        });
        tidy(py, &self.shared);
        if let Err(error) = ended {
            self.shared.note_fault(|| error.to_string());
        }
        // Reports list unsupported tensors of MindSpore's trees only.
        let refused = if self.dump.is_acl() {
            Vec::new()
        } else {
            self.dump.refused()
        };
        report::summary(py, &summary, refused, &self.shared).map(Some)
    }
}

impl TorchSession {
    pub(super) fn shared(&self) -> &Arc<TorchSessionState> {
        &self.shared
    }

    /// Adds a graph and the way it is captured to the run's record.
    pub(super) fn note_graph(&self, command: &str, name: &str) {
        run_record::note_command(&self.run, command);
        run_record::note_graph(&self.run, name);
    }

    /// Writes a description next to the dump.
    fn write_description(&self, name: &str, text: &str) -> Result<(), StoreError> {
        write_description(&self.creator, &own::graph_file(&self.root, name), text)
    }

    /// The same asynchronously, including the construction of the text.
    pub(super) fn describe_later(
        &self,
        name: &str,
        text: impl FnOnce() -> String + Send + 'static,
    ) {
        let path = own::graph_file(&self.root, name);
        let (shared, creator) = (self.shared.clone(), self.creator.clone());
        self.background.push(move || {
            // A panic would end the thread, and the program would wait for later descriptions.
            match catch_unwind(AssertUnwindSafe(|| {
                write_description(&creator, &path, &text())
            })) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => shared.note_fault(|| error.to_string()),
                Err(_) => shared.note_fault(|| "the description of a step panicked".to_owned()),
            }
        });
    }

    /// Opens the dump of `request` under the first free one of `times`, and starts the writers.
    fn start(
        py: Python<'_>,
        request: DumpRequest,
        times: Option<Vec<String>>,
        torch: TorchFacts<'_>,
    ) -> PyResult<TorchSession> {
        let options = torch.options()?;
        let lender = TensorLender::new(py, &torch.plain_types)?;
        let lender = lender.with_host_claimed(torch.is_host_claimed);
        let (forms, devices, version) = (torch.forms, torch.devices, torch.torch_version);
        let options = SessionOptions {
            n_writers: request.n_writers(options.n_writers),
            ..options
        };
        py.detach(|| {
            let dump_options = DumpOptions {
                times,
                ..DumpOptions::default()
            };
            let dump = request.open(&dump_options);
            let dump = dump.map_err(|error| os_error::of_store(&error))?;
            let record = run_record::record(&version, options.n_writers);
            TorchSession::open((lender, forms, devices), request, dump, record, options)
        })
    }

    fn open(
        lender: (TensorLender, Option<Py<PyAny>>, Option<Py<PyAny>>),
        request: DumpRequest,
        dump: OpenDump,
        record: RunRecord,
        options: SessionOptions,
    ) -> PyResult<TorchSession> {
        let Some(place) = dump.place() else {
            return Err(PyValueError::new_err("the dump has no path"));
        };
        let run = place.run_file(&request.plan, record);
        dump.set_run(&run);
        // The other trees get their records with the first file; for MindSpore's it is written
        // here.
        if dump.is_mindspore() {
            run.begin().map_err(|error| os_error::of_store(&error))?;
        }
        let failure_dir = dump.failure_dir(&ModelId::default(), 0);
        // MindSpore's trees have a directory of failures for each step, so no single one can be
        // reported.
        let failure_dir = failure_dir.filter(|_| dump.is_acl());
        // MindSpore's sample rows and digests need elements after the operator as well.
        let is_reducing = matches!(
            request.form,
            DumpForm::Acl {
                content: AclContent::Statistics(_) | AclContent::StepTable,
                ..
            } | DumpForm::Native(NativeOptions {
                content: NativeContent::Statistics,
                ..
            })
        );
        // Cells of the other forms depend on single elements, or on the order of a sum.
        let reduces_on_devices = is_reducing && matches!(request.form, DumpForm::Native(_));
        let purpose = name_of(request.plan.purpose);
        let asked = AskedNames::new(&request.plan);
        let session = dump
            .start_session(request.plan, options)
            .map_err(|error| os_error::of_chain(&error, "cannot start a writer", None))?;
        let executions = match purpose {
            "values" => ExecutionLog::new(own::executions_file(&place.root), dump.creator()),
            // Without a finding there is no directory.
            _ => ExecutionLog::unwritten(),
        };
        let shared = TorchSessionState::new(
            lender,
            session.pool(),
            executions,
            (
                is_reducing,
                reduces_on_devices,
                purpose == "overflow",
                !dump.is_acl(),
            ),
            options.queue_bytes_max,
            asked,
        );
        Ok(TorchSession {
            session: Mutex::new(Some(session)),
            shared: Arc::new(shared),
            creator: dump.creator(),
            background: BackgroundWorker::default(),
            failure_dir: failure_dir.unwrap_or_else(|| place.root.clone()),
            root: place.root,
            purpose,
            run,
            dump,
            device: None,
            has_single_operators: request.has_single_operators,
        })
    }

    pub(super) fn lock(
        &self,
    ) -> std::sync::MutexGuard<'_, Option<opscope_capture::CaptureSession>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TorchSession {
    fn drop(&mut self) {
        let session = self.lock().take();
        if self.shared.is_forked() {
            // Its writers are threads of another process and cannot be joined here.
            std::mem::forget(session);
            self.background.forget();
        }
        self.background.finish();
    }
}

fn write_description(creator: &Creator, path: &Path, text: &str) -> Result<(), StoreError> {
    if let Some(above) = path.parent() {
        creator.create_dir(above)?;
    }
    creator.replace_file(path, &[text.as_bytes()])
}

fn model_id(name: String, load: u32, device: u32) -> ModelId {
    ModelId {
        file_stem: name.clone(),
        graph_name: name,
        load: Some(load),
        device,
    }
}
