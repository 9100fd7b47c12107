//! ONNX Runtime as an engine.
//!
//! Its library is loaded while the program runs, one for each process. A session runs the model's own graph with
//! optimisation off.
//!
//! Inputs have to be tensors: a model that takes a sequence or an optional is refused. Results that are none are
//! computed, but neither listed in the signature nor returned.

mod by_reference;
mod error;
mod kind;
mod library;
mod memory;
mod native;
mod prepared;
mod provider;
mod rewrite;
mod session;
mod site;
mod tap_operator;
mod tapped;
mod value;
mod weights;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::{Purpose, Tap};
use opscope_store::record::Operator;
use opscope_store::record::graph::TensorType;
use opscope_tensor::Tensor;

use self::library::Library;
use self::prepared::{Origin, Prepared};
use self::session::{Session, Source};
use self::site::Wanted;
use self::tap_operator::{Halt, Kept};
use self::tapped::{Ended, TappedSession, inputs_of_failed};
use super::proto::ModelBytes;
use super::schema::GraphProto;
use super::{known_types, proto};
use crate::{
    Engine, EngineError, GraphKind, LoadOptions, LoadedModel, ModelSource, Signature, input,
};

/// The engine's name.
const NAME: &str = "ONNX Runtime";
/// The engine to suggest where ONNX Runtime does not do.
const OTHER_ENGINE: &str = "tract";

/// The engine ONNX Runtime, with its library.
#[derive(Clone)]
pub struct OnnxRuntime {
    library: Arc<Library>,
}

struct OrtModel {
    library: Arc<Library>,
    options: LoadOptions,
    /// Where the model was read from.
    path: PathBuf,
    signature: Signature,
    operators: Vec<Arc<Operator>>,
    constants: Vec<String>,
    value_types: Vec<(String, TensorType)>,
    opsets: Vec<(String, i64)>,
    prepared: Prepared,
    /// Runs the model when nobody looks. Let go of while it was not needed yet.
    plain: Option<Session>,
    is_plain_needed: bool,
    /// Runs it with taps.
    tapped: Option<TappedSession>,
}

impl OnnxRuntime {
    /// Loads ONNX Runtime's shared library, such as `libonnxruntime.so.1.31.1`, 1.17 or newer.
    ///
    /// A process can use one library: loading it again is free, and loading another one an error.
    ///
    /// # Errors
    /// [`EngineError::Library`] if there is no such file, it is no such library, or too old.
    pub fn load(path: &Path) -> Result<OnnxRuntime, EngineError> {
        let library = Library::load(path)?;
        Ok(OnnxRuntime { library })
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
        if options.graph == GraphKind::Executed {
            return Err(EngineError::Engine {
                engine: NAME,
                reason: "it runs the model's own graph only".into(),
            });
        }
        let memory = || PathBuf::from(super::MEMORY);
        let (model, path) = match source {
            ModelSource::File(path) => (proto::read(path)?, path.to_owned()),
            ModelSource::Memory(bytes) => (proto::decode(bytes)?, memory()),
            ModelSource::Part { bytes, path } => (proto::decode(bytes)?, path.to_owned()),
        };
        let is_file = matches!(source, ModelSource::File(_));
        let model = OrtModel::new(&self.library, model, &path, is_file, options)?;
        Ok(Box::new(model))
    }
}

impl OrtModel {
    /// Prepares a model that was read from `path`, or is part of one that was.
    fn new(
        library: &Arc<Library>,
        model: ModelBytes,
        path: &Path,
        is_file: bool,
        options: &LoadOptions,
    ) -> Result<OrtModel, EngineError> {
        let invalid = |reason: String| EngineError::Invalid {
            path: path.to_owned(),
            reason,
        };
        let proto = &model.proto;
        let empty = GraphProto::default();
        let graph = proto.graph.as_ref().unwrap_or(&empty);
        let mut signature = proto::signature(graph).map_err(invalid)?;
        let (opsets, operators) = (proto::opsets(proto), proto::operators(graph));
        let constants = proto::constants(graph);
        let value_types = known_types::of(graph, &signature);
        let origin = Origin {
            path,
            is_file,
            can_refer: library.has_data_folder(),
        };
        let prepared = Prepared::new(model, &origin, &operators);
        let session = plain_session(library, options, &prepared, path)?;
        let is_given = |name: &String| session.outputs().contains(name);
        signature.outputs.retain(|value| is_given(&value.name));
        Ok(OrtModel {
            library: library.clone(),
            options: options.clone(),
            path: path.to_owned(),
            signature,
            operators,
            constants,
            value_types,
            opsets,
            prepared,
            plain: Some(session),
            is_plain_needed: false,
            tapped: None,
        })
    }

    fn check(&self, inputs: &[Tensor]) -> Result<(), EngineError> {
        let declared = &self.signature.inputs;
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

    fn run_plain(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let names = names(&self.signature);
        self.is_plain_needed = true;
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
        if tap.plan().purpose == Purpose::Watch {
            return Err(EngineError::Watch {
                engine: NAME,
                other_engine: OTHER_ENGINE,
            });
        }
        if tap.is_stopped() {
            return Err(EngineError::Stopped);
        }
        let wanted = Wanted::by(tap);
        let is_shown = |task_id: &u32| wanted.of(*task_id).is_some();
        let tasks = self.prepared.main_tasks().iter();
        let unshown: Vec<u32> = tasks.filter(|task_id| !is_shown(task_id)).copied().collect();
        let result = match wanted.is_empty() {
            true => self.run_plain(inputs).map_err(Ended::Failed),
            false => {
                self.prepare_tapped(wanted)?;
                let names = names(&self.signature);
                let session = self.tapped.as_mut();
                let session = session.ok_or_else(|| fail("there is no session".into()))?;
                session.run(&names, inputs, tap)
            }
        };
        match result {
            Ok(outputs) => {
                tap.count_seen(unshown.len() as u64);
                Ok(outputs)
            }
            Err(Ended::By(Halt::Stopped)) => Err(EngineError::Stopped),
            Err(Ended::By(Halt::Panicked(text))) => Err(fail(text)),
            Err(Ended::Failed(text)) => Err(self.tell_failure(&text, inputs, tap, &unshown)),
        }
    }

    /// The session whose taps show what is wanted.
    fn prepare_tapped(&mut self, wanted: Wanted) -> Result<(), EngineError> {
        if self.tapped.as_ref().is_none_or(|tapped| tapped.wanted != wanted) {
            // Two sessions would hold the packed weights twice.
            self.tapped = None;
            if !self.is_plain_needed {
                self.plain = None;
            }
            let (library, options) = (&self.library, &self.options);
            let tapped = TappedSession::new(library, options, &mut self.prepared, wanted);
            self.tapped = Some(tapped.map_err(|text| fail(self.prepared.with_own_names(&text)))?);
        }
        Ok(())
    }

    /// Shows the operator that a failed run is about, with what it read if that is wanted. `unshown` are operators
    /// without a tap.
    fn tell_failure(
        &self,
        text: &str,
        inputs: &[Tensor],
        tap: &Tap,
        unshown: &[u32],
    ) -> EngineError {
        let failed = error::failed_operator(text);
        let operator = failed.and_then(|(_, name, _)| self.prepared.operator_of_node(name));
        let (Some(operator), Some((_, _, reason))) = (operator, failed) else {
            return self.error_of_run(text);
        };
        let reason = self.prepared.with_own_names(reason);
        let is_before = |task_id: &&u32| **task_id < operator.task_id;
        tap.count_seen(unshown.iter().filter(is_before).count() as u64);
        let is_told = matches!(tap.plan().purpose, Purpose::Failures(_));
        let is_kept = is_told && tap.selected().kept.contains_key(&operator.task_id);
        let kept = is_kept.then(|| {
            let names = names(&self.signature);
            let (library, options) = (&self.library, &self.options);
            let task_id = operator.task_id;
            inputs_of_failed(library, options, &self.prepared, task_id, &names, inputs)
        });
        let kept = kept.flatten().unwrap_or_else(|| Kept {
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

fn fail(reason: String) -> EngineError {
    EngineError::Engine {
        engine: NAME,
        reason,
    }
}

fn names(signature: &Signature) -> Vec<&str> {
    let inputs = signature.inputs.iter();
    inputs.map(|value| value.name.as_str()).collect()
}

/// A session without taps.
fn plain_session(
    library: &Library,
    options: &LoadOptions,
    prepared: &Prepared,
    path: &Path,
) -> Result<Session, EngineError> {
    let builder = session::builder(library, options).map_err(fail)?;
    let session = by_reference::encode(prepared.model()).and_then(|bytes| {
        Session::new(library, builder, Source::Bytes(&bytes, prepared.folder()))
    });
    session.map_err(|text| {
        let text = prepared.with_own_names(&text);
        error::at_load(&text, path, prepared.model(), &library.version)
    })
}

impl LoadedModel for OrtModel {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn operators(&self) -> &[Arc<Operator>] {
        &self.operators
    }

    fn constants(&self) -> &[String] {
        &self.constants
    }

    fn value_types(&self) -> &[(String, TensorType)] {
        &self.value_types
    }

    fn opsets(&self) -> &[(String, i64)] {
        &self.opsets
    }

    fn run(&mut self, inputs: &[Tensor], tap: Option<&Tap>) -> Result<Vec<Tensor>, EngineError> {
        self.check(inputs)?;
        match tap.filter(|tap| tap.is_active()) {
            Some(tap) => self.run_tapped(inputs, tap),
            None => {
                let result = self.run_plain(inputs);
                result.map_err(|text| self.error_of_run(&text))
            }
        }
    }
}

#[cfg(test)]
mod tests;
