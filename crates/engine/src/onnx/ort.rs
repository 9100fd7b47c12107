//! ONNX Runtime as an engine.
//!
//! Its library is loaded while the program runs, one for each process. A session runs the model's own graph with
//! optimisation off.
//!
//! Inputs have to be tensors: a model that takes a sequence or an optional is refused. Results that are none are
//! computed, but neither listed in the signature nor returned.

mod error;
mod library;
mod native;
mod provider;
mod session;
mod value;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::Tap;
use opscope_store::record::Operator;
use opscope_store::record::graph::TensorType;
use opscope_tensor::Tensor;

use self::library::Library;
use self::session::{Session, Source};
use super::proto::ModelBytes;
use super::schema::GraphProto;
use super::{known_types, proto};
use crate::{
    Engine, EngineError, GraphKind, LoadOptions, LoadedModel, ModelSource, Signature, input,
};

/// The engine's name.
const NAME: &str = "ONNX Runtime";

/// The engine ONNX Runtime, with its library.
#[derive(Clone)]
pub struct OnnxRuntime {
    library: Arc<Library>,
}

struct OrtModel {
    signature: Signature,
    operators: Vec<Arc<Operator>>,
    constants: Vec<String>,
    value_types: Vec<(String, TensorType)>,
    opsets: Vec<(String, i64)>,
    /// What the session was made of; the graph is there.
    model: ModelBytes,
    session: Session,
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
        Ok(Box::new(OrtModel::new(
            &self.library,
            model,
            &path,
            is_file,
            options,
        )?))
    }
}

impl OrtModel {
    /// Prepares a model that was read from `path`, or is part of one that was.
    fn new(
        library: &Library,
        model: ModelBytes,
        path: &Path,
        is_file: bool,
        options: &LoadOptions,
    ) -> Result<OrtModel, EngineError> {
        let invalid = |reason: String| EngineError::Invalid {
            path: path.to_owned(),
            reason,
        };
        let fail = |reason| EngineError::Engine {
            engine: NAME,
            reason,
        };
        let proto = &model.proto;
        let empty = GraphProto::default();
        let graph = proto.graph.as_ref().unwrap_or(&empty);
        let mut signature = proto::signature(graph).map_err(invalid)?;
        let folder = proto::has_data_outside(graph).then(|| path.parent().unwrap_or(Path::new("")));
        let source = if is_file {
            Source::File(path)
        } else {
            Source::Bytes(&model.bytes, folder)
        };
        let builder = session::builder(library, options).map_err(fail)?;
        let session = Session::new(library, builder, source)
            .map_err(|text| error::at_load(&text, path, proto, &library.version))?;
        let is_given = |name: &String| session.outputs().contains(name);
        signature.outputs.retain(|value| is_given(&value.name));
        Ok(OrtModel {
            opsets: proto::opsets(proto),
            value_types: known_types::of(graph, &signature),
            operators: proto::operators(graph),
            constants: proto::constants(graph),
            signature,
            session,
            model,
        })
    }

    fn check(&self, inputs: &[Tensor]) -> Result<(), EngineError> {
        let declared = &self.signature.inputs;
        if declared.len() != inputs.len() {
            return Err(EngineError::Engine {
                engine: NAME,
                reason: format!("{} inputs were given of {}", inputs.len(), declared.len()),
            });
        }
        for (value, tensor) in declared.iter().zip(inputs) {
            input::check(value, tensor)?;
        }
        Ok(())
    }
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
        if tap.is_some_and(Tap::is_active) {
            return Err(EngineError::Engine {
                engine: NAME,
                reason: "its operators cannot be shown".into(),
            });
        }
        let names = self.signature.inputs.iter();
        let names: Vec<&str> = names.map(|value| value.name.as_str()).collect();
        self.session.run(&names, inputs).map_err(|text| {
            let empty = GraphProto::default();
            error::at_run(&text, self.model.proto.graph.as_ref().unwrap_or(&empty))
        })
    }
}
