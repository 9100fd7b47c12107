//! ONNX Runtime as an engine.
//!
//! Its library is loaded while the program runs, one for each process. A session runs the model's
//! own graph, or the one that ONNX Runtime makes of it, with optimisation off.
//!
//! Inputs have to be tensors: a model that takes a sequence or an optional is refused. Results that
//! are none are computed, but neither listed in the signature nor returned.

mod by_reference;
mod device;
mod domain;
mod error;
mod executed;
mod kind;
mod library;
mod loan;
mod memory;
mod native;
mod prepared;
mod provider;
mod rewrite;
mod round_operator;
mod rounded;
mod session;
mod shared;
mod site;
mod tap_operator;
mod tapped;
#[cfg(test)]
mod tests;
mod value;
mod weights;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{Purpose, Tap};
use opscope_store::record::Operator;
use opscope_tensor::Tensor;

pub(crate) use self::error::is_lack;
pub(crate) use self::native::disable_telemetry;

use self::device::{CudaDevice, DeviceOpener};
use self::error::NAME;
use self::executed::ExecutedGraph;
use self::library::OrtLibrary;
use self::prepared::{ModelOrigin, PreparedModel};
use self::rounded::RoundedSession;
use self::session::{LoadedSession, SessionSource};
use self::shared::{FailedInputs, RunHalt};
use self::site::TapRequests;
use self::tapped::{RunFailure, TappedSession, inputs_of_failed};
use super::description::describe;
use super::private_dir::PrivateDir;
use super::proto::{self, ModelBytes};
use super::random;
use super::schema::GraphProto;
use crate::{
    Engine, EngineError, GraphKind, LoadOptions, LoadedModel, ModelDescription, ModelSignature,
    ModelSource, ResultRounding, ResultSurvey, input,
};

/// The engine to suggest where ONNX Runtime does not do.
const OTHER_ENGINE: &str = "tract";

/// The engine ONNX Runtime, with its library.
#[derive(Clone)]
pub struct OnnxRuntime {
    library: Arc<OrtLibrary>,
    open_device: DeviceOpener,
}

struct OrtModel {
    library: Arc<OrtLibrary>,
    options: LoadOptions,
    /// Where the model was read from.
    path: PathBuf,
    description: ModelDescription,
    prepared: PreparedModel,
    /// Runs the model without taps. Released when taps are used, unless both are kept.
    plain: Option<LoadedSession>,
    /// Whether runs with taps and without alternate.
    is_plain_needed: bool,
    /// Whether operators draw random numbers, with which the library goes on from run to run.
    draws_numbers: bool,
    has_run: bool,
    /// Runs it with taps.
    tapped: Option<TappedSession>,
    /// Notes which operators run.
    surveying: Option<TappedSession>,
    /// The operators that were noted so far.
    surveyed: ResultSurvey,
    /// Runs it while results are rounded.
    rounded: Option<RoundedSession>,
    /// The files that sessions are created from, if they were made for this model. Sessions go
    /// first.
    _files: Option<PrivateDir>,
    /// Whether the warning about taps out of order was printed.
    is_order_told: bool,
    /// Whether the nodes of the file had to be sorted, until that was said.
    is_sorted_anew: bool,
}

/// A model that is to be loaded.
struct LoadedFile<'a> {
    model: ModelBytes,
    operators: Vec<Arc<Operator>>,
    /// Where the user has it, or the model that it is a part of.
    path: &'a Path,
    /// The file whose bytes the model is.
    file: Option<PathBuf>,
    files: Option<PrivateDir>,
}

impl<'a> LoadedFile<'a> {
    /// Returns the model that ONNX Runtime makes of this one.
    fn executed(
        self,
        library: &OrtLibrary,
        options: &LoadOptions,
    ) -> Result<LoadedFile<'a>, EngineError> {
        let place = (self.path, self.file.is_some());
        let mut executed = ExecutedGraph::new(library, options, &self.model, place)?;
        Ok(LoadedFile {
            path: self.path,
            file: Some(executed.file()),
            operators: executed.operators(),
            model: executed.model,
            files: Some(executed.dir),
        })
    }
}

impl OnnxRuntime {
    /// Loads ONNX Runtime's shared library, such as `libonnxruntime.so.1.31.1`, 1.17 or newer.
    ///
    /// A process can use one library: loading it again is free, and loading another one an error.
    ///
    /// # Errors
    /// [`EngineError::Library`] if the file is missing, is not the library, or is too old.
    pub fn load(path: &Path) -> Result<OnnxRuntime, EngineError> {
        let library = OrtLibrary::load(path)?;
        Ok(OnnxRuntime {
            library,
            open_device: |options| provider::cuda_device(&options.providers).map(CudaDevice::open),
        })
    }
}

impl Engine for OnnxRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Option<&str> {
        Some(&self.library.version)
    }

    fn library(&self) -> Option<&Path> {
        Some(&self.library.path)
    }

    fn load(
        &self,
        source: ModelSource<'_>,
        options: &LoadOptions,
    ) -> Result<Box<dyn LoadedModel>, EngineError> {
        let (model, path) = match source {
            ModelSource::File(path) => (proto::read(path)?, path.to_owned()),
            ModelSource::Memory(bytes) => (proto::decode(bytes)?, proto::MEMORY.into()),
            ModelSource::Part { bytes, path } => (proto::decode(bytes)?, path.to_owned()),
        };
        let is_file = matches!(source, ModelSource::File(_));
        let is_sorted_anew = model.is_sorted_anew;
        let given = LoadedFile {
            path: &path,
            file: is_file.then(|| path.clone()),
            operators: model
                .proto
                .graph
                .as_ref()
                .map(proto::operators)
                .unwrap_or_default(),
            files: None,
            model,
        };
        let given = match options.graph {
            GraphKind::Original => given,
            GraphKind::Executed => given.executed(&self.library, options)?,
        };
        let mut model = OrtModel::new(self, given, options)?;
        model.is_sorted_anew = is_sorted_anew;
        Ok(Box::new(model))
    }
}

impl OrtModel {
    /// Prepares a model.
    fn new(
        OnnxRuntime {
            library,
            open_device,
        }: &OnnxRuntime,
        given: LoadedFile<'_>,
        options: &LoadOptions,
    ) -> Result<OrtModel, EngineError> {
        let LoadedFile {
            mut model,
            mut operators,
            path,
            file,
            files,
        } = given;
        // Seeds are written into the model before anything else reads it, so that each form of it
        // draws the same numbers.
        let draws_numbers = random::pin_seeds(&mut model.proto);
        let proto = &model.proto;
        let empty = GraphProto::default();
        let graph = proto.graph.as_ref().unwrap_or(&empty);
        let mut description =
            describe(proto, graph).map_err(|reason| EngineError::invalid(path, reason))?;
        for operator in &mut operators {
            Arc::make_mut(operator).set_defaults(&description.opsets);
        }
        let origin = ModelOrigin {
            path: file.as_deref().unwrap_or(path),
            is_file: file.is_some(),
            can_refer: library.has_data_folder(),
        };
        // The graph goes with the model, and a refusal names its results.
        let result_names: Vec<String> = graph
            .output
            .iter()
            .map(|value| value.name.clone())
            .collect();
        // The session with taps uses the same form of the model, so that both compute the same to
        // the last bit.
        let mut prepared = PreparedModel::new(model, &origin, &operators).with_device(*open_device);
        // A session takes as long as many runs. If creating one with taps fails, one without taps
        // is created, whose error describes the problem of the model itself.
        let tapped = options.is_watched.then(|| {
            prepared.open_device(options);
            let wanted = TapRequests::every(&operators);
            TappedSession::new(library, options, &mut prepared, wanted).ok()
        });
        let tapped = tapped.flatten();
        // A session is created at once, because only it shows whether the library accepts the
        // model.
        let plain = match tapped {
            Some(_) => None,
            None => Some(plain_session(library, options, &prepared, path)?),
        };
        let results = plain.as_ref().map(LoadedSession::outputs);
        let results = results.or(tapped.as_ref().map(TappedSession::outputs));
        description.operators = operators;
        let outputs = &mut description.signature.outputs;
        // The library computes results that are no tensors, and they have no place in a list of
        // tensors.
        outputs.retain(|value| results.is_some_and(|names| names.contains(&value.name)));
        if outputs.is_empty() && !result_names.is_empty() {
            return Err(EngineError::invalid(
                path,
                format!(
                    "none of its outputs (`{}`) is a tensor; expected at least one, as sequences and \
                 other types cannot be returned",
                    result_names.join("`, `")
                ),
            ));
        }
        Ok(OrtModel {
            library: library.clone(),
            options: options.clone(),
            path: path.to_owned(),
            description,
            prepared,
            plain,
            is_plain_needed: false,
            draws_numbers,
            has_run: false,
            tapped,
            surveying: None,
            surveyed: ResultSurvey::default(),
            rounded: None,
            _files: files,
            is_order_told: false,
            is_sorted_anew: false,
        })
    }

    fn check(&self, inputs: &[Tensor]) -> Result<(), EngineError> {
        let declared = &self.description.signature.inputs;
        if declared.len() != inputs.len() {
            return Err(fail(format!(
                "{} inputs were given of {}",
                inputs.len(),
                declared.len()
            )));
        }
        for (value, tensor) in declared.iter().zip(inputs) {
            input::check(value, tensor)?;
        }
        Ok(())
    }

    /// Checks the inputs of a run, and restarts its random numbers.
    fn begin_run(&mut self, inputs: &[Tensor]) -> Result<(), EngineError> {
        self.check(inputs)?;
        if std::mem::replace(&mut self.has_run, true) && self.draws_numbers {
            // Only a new session begins with the seed again.
            self.let_go();
        }
        Ok(())
    }

    fn run_plain(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let names = names(&self.description.signature);
        self.is_plain_needed |= self.tapped.is_some();
        let session = match &mut self.plain {
            Some(session) => session,
            None => {
                let session =
                    plain_session(&self.library, &self.options, &self.prepared, &self.path);
                let session = session.map_err(|error| error.to_string())?;
                self.plain.insert(session)
            }
        };
        session.run(&names, inputs)
    }

    fn run_tapped(&mut self, inputs: &[Tensor], tap: &Tap) -> Result<Vec<Tensor>, EngineError> {
        if let Some(error) = self.refusal(tap.plan().purpose) {
            return Err(error);
        }
        if tap.is_stopped() {
            return Err(EngineError::Stopped);
        }
        let wanted = TapRequests::by(tap);
        let tasks = self.prepared.main_tasks().iter();
        let unshown: Vec<u32> = tasks
            .filter(|task_id| wanted.slots_for(**task_id).is_none())
            .copied()
            .collect();
        let result = if wanted.is_empty() {
            self.run_plain(inputs).map_err(RunFailure::Failed)
        } else {
            self.prepare_tapped(wanted)?;
            let names = names(&self.description.signature);
            let session = self.tapped.as_mut();
            let session = session.ok_or_else(|| fail("there is no session".into()))?;
            session.run(&names, inputs, tap)
        };
        match result {
            Ok(outputs) => {
                // Operators without a tap ran as well, and counts must not depend on what was
                // selected.
                tap.count_seen(unshown.len() as u64);
                Ok(outputs)
            }
            Err(RunFailure::By(RunHalt::Stopped)) => Err(EngineError::Stopped),
            Err(RunFailure::By(RunHalt::Panicked(text))) => Err(fail(text)),
            Err(RunFailure::Failed(text)) => Err(self.tell_failure(&text, inputs, tap, &unshown)),
        }
    }

    /// The session whose taps show what is wanted.
    fn prepare_tapped(&mut self, wanted: TapRequests) -> Result<(), EngineError> {
        if self
            .tapped
            .as_ref()
            .is_none_or(|tapped| tapped.wanted != wanted)
        {
            // Two sessions would hold the packed weights twice.
            self.tapped = None;
            if !self.is_plain_needed {
                self.plain = None;
            }
            let (library, options) = (&self.library, &self.options);
            self.prepared.open_device(options);
            let tapped = TappedSession::new(library, options, &mut self.prepared, wanted);
            self.tapped = Some(tapped.map_err(|text| fail(self.prepared.with_own_names(&text)))?);
        }
        Ok(())
    }

    /// Shows the operator that a failed run is about, with what it read if that is wanted.
    /// `unshown` are operators without a tap.
    fn tell_failure(
        &self,
        text: &str,
        inputs: &[Tensor],
        tap: &Tap,
        unshown: &[u32],
    ) -> EngineError {
        // The library names the failed node only in the text of its error.
        let failed = error::failed_operator(text);
        let operator = failed.and_then(|(_, name, _)| self.prepared.operator_of_node(name));
        let (Some(operator), Some((_, _, reason))) = (operator, failed) else {
            return self.error_of_run(text);
        };
        let reason = self.prepared.with_own_names(reason);
        tap.count_seen(
            unshown
                .iter()
                .filter(|task_id| **task_id < operator.task_id)
                .count() as u64,
        );
        // Only dumps of failures are worth a second run of the model.
        let is_told = matches!(tap.plan().purpose, Purpose::Failures(_));
        let is_kept = is_told && tap.selected().kept.contains_key(&operator.task_id);
        let kept = is_kept.then(|| {
            let names = names(&self.description.signature);
            let (library, options) = (&self.library, &self.options);
            let task_id = operator.task_id;
            inputs_of_failed(library, options, &self.prepared, task_id, &names, inputs)
        });
        let kept = kept.flatten().unwrap_or_else(|| FailedInputs {
            operator: operator.clone(),
            inputs: Vec::new(),
        });
        if let Some(mut probe) = tap.open(&kept.operator) {
            for (position, tensor) in kept.inputs {
                probe.input(position, tensor);
            }
            probe.fail(&reason);
        }
        EngineError::Operator {
            op_type: operator.op_type.clone(),
            op_name: operator.op_name.clone(),
            reason,
        }
    }

    fn error_of_run(&self, text: &str) -> EngineError {
        let empty = GraphProto::default();
        let graph = self.prepared.model().graph.as_ref().unwrap_or(&empty);
        error::at_run(&self.prepared.with_own_names(text), graph)
    }
}

/// Encodes a model with a tap behind each of its operators. This needs no library; for tests that
/// try any bytes.
///
/// # Errors
/// [`EngineError::Invalid`] if it is not a model, or is too large.
#[doc(hidden)]
pub fn with_taps(bytes: &[u8]) -> Result<Vec<u8>, EngineError> {
    let path = Path::new(proto::MEMORY);
    let model = proto::decode(bytes)?;
    let operators = model.proto.graph.as_ref().map(proto::operators);
    let operators = operators.unwrap_or_default();
    let origin = ModelOrigin {
        path,
        is_file: false,
        can_refer: true,
    };
    let prepared = PreparedModel::new(model, &origin, &operators);
    let tapped = prepared.tapped(&TapRequests::every(&operators));
    by_reference::encode(&tapped.model).map_err(|reason| EngineError::invalid(path, reason))
}

fn fail(reason: String) -> EngineError {
    EngineError::Engine {
        engine: NAME,
        reason,
    }
}

fn names(signature: &ModelSignature) -> Vec<&str> {
    let inputs = signature.inputs.iter();
    inputs.map(|value| value.name.as_str()).collect()
}

/// A session without taps.
fn plain_session(
    library: &OrtLibrary,
    options: &LoadOptions,
    prepared: &PreparedModel,
    path: &Path,
) -> Result<LoadedSession, EngineError> {
    let builder = session::builder(library, options).map_err(fail)?;
    let session = match (by_reference::encode(prepared.model()), prepared.file()) {
        (Ok(bytes), _) => {
            let source = SessionSource::Bytes(&bytes, prepared.folder());
            LoadedSession::new(library, builder, source)
        }
        // A model that is too large for a message can still be read from its own file.
        (Err(_), Some(file)) => LoadedSession::new(library, builder, SessionSource::File(file)),
        (Err(text), None) => Err(text),
    };
    session.map_err(|text| {
        let text = prepared.with_own_names(&text);
        error::at_load(&text, path, prepared.model(), &library.version)
    })
}

impl LoadedModel for OrtModel {
    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn refusal(&self, purpose: Purpose) -> Option<EngineError> {
        let error = EngineError::Watch {
            engine: NAME,
            other_engine: OTHER_ENGINE,
        };
        (purpose == Purpose::Watch).then_some(error)
    }

    fn prepare(&mut self, tap: &Tap) {
        let wanted = TapRequests::by(tap);
        if tap.is_active() && !wanted.is_empty() {
            // The run repeats it, and reports the error.
            let _ = self.prepare_tapped(wanted);
        }
    }

    fn rest(&mut self) {
        self.tapped = None;
        self.plain = None;
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = Vec::new();
        if std::mem::take(&mut self.is_sorted_anew) {
            warnings.push(proto::SORTED_WARNING.to_owned());
        }
        if let Some(reason) = self.prepared.take_device_refusal() {
            warnings.push(format!(
                "taps cannot be on the device, so that {NAME} copies every value that is shown to the host: {reason}"
            ));
        }
        let Some(tapped) = &self.tapped else {
            return warnings;
        };
        if let Some(fault) = tapped.take_device_fault() {
            warnings.push(format!("values of the device were lost: {fault}"));
        }
        let n_inversions = tapped.n_inversions();
        if n_inversions > 0 && !std::mem::replace(&mut self.is_order_told, true) {
            warnings.push(format!(
                "{NAME} {} runs operators in another order than versions that are known; values are right, but more of \
                 them are in memory at once ({n_inversions} operators were shown late)",
                self.library.version
            ));
        }
        warnings
    }

    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError> {
        self.begin_run(inputs)?;
        match tap.filter(|tap| tap.is_active()) {
            Some(tap) => self.run_tapped(inputs, tap),
            None => {
                let result = self.run_plain(inputs);
                result.map_err(|text| self.error_of_run(&text))
            }
        }
    }

    fn survey_results(&mut self, inputs: &[Tensor]) -> Result<ResultSurvey, EngineError> {
        self.survey(inputs)
    }

    fn run_rounded(
        &mut self,
        inputs: &[Tensor],
        rounding: &ResultRounding,
    ) -> Result<Vec<Tensor>, EngineError> {
        self.run_with_rounding(inputs, rounding)
    }
}
