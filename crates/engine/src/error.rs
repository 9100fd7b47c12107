//! Errors about a model and its inputs.

use std::io;
use std::path::{Path, PathBuf};

use opscope_tensor::{DType, Shape, ShapeError, TensorError};
use thiserror::Error;

/// Why a model could not be loaded or run.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The operating system refused.
    #[error("cannot read the model `{}`", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A file that an engine needs for itself could not be written.
    #[error("cannot write `{}`, which the model needs for a run", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The file is not a model, or is damaged.
    #[error("`{}` is not a usable ONNX model: {reason}", path.display())]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// The fault of the file.
        reason: String,
    },
    /// The engine's library cannot be used.
    #[error("cannot use `{}` as the engine's library: {reason}", path.display())]
    Library {
        /// Which file.
        path: PathBuf,
        /// The fault of the library, and what was expected.
        reason: String,
    },
    /// The model needs an operator that this engine does not have, or has wrong.
    #[error(
        "{engine} cannot run operator `{op_name}` of type `{op_type}`: {reason}{}",
        can(*other_engine)
    )]
    Unsupported {
        /// This engine.
        engine: &'static str,
        /// Type of the first such operator.
        op_type: String,
        /// Its name.
        op_name: String,
        /// Why, and how many more there are.
        reason: String,
        /// An engine that has it, if one is known to.
        other_engine: Option<&'static str>,
    },
    /// Values cannot be watched, because the engine uses their memory again while the model runs.
    #[error(
        "{engine} uses the memory of values again while a model runs, so they cannot be watched; {other_engine} can"
    )]
    Watch {
        /// This engine.
        engine: &'static str,
        /// An engine in which they can.
        other_engine: &'static str,
    },
    /// An operator failed while running.
    #[error("operator `{op_name}` of type `{op_type}` failed: {reason}")]
    Operator {
        /// Its type.
        op_type: String,
        /// Its name.
        op_name: String,
        /// The engine's words.
        reason: String,
    },
    /// The engine failed outside any operator.
    #[error("{engine} failed: {reason}")]
    Engine {
        /// Which engine.
        engine: &'static str,
        /// Its words.
        reason: String,
    },
    /// There is no engine to load models with, or not the requested one.
    #[error("{reason}")]
    NoEngine {
        /// Why, and what would help.
        reason: String,
    },
    /// The run was asked to stop.
    #[error("stopped before the end of the model")]
    Stopped,
    /// The inputs do not fit the model.
    #[error(transparent)]
    Input(#[from] InputError),
}

impl EngineError {
    pub(crate) fn invalid(path: &Path, reason: impl Into<String>) -> EngineError {
        EngineError::Invalid {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Who can instead, at the end of a sentence.
fn can(other_engine: Option<&str>) -> String {
    other_engine.map_or_else(String::new, |name| format!("; {name} can"))
}

/// Inputs that do not fit a model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InputError {
    /// A required input was not given.
    #[error("input `{name}` ({dtype} {shape}) was not given")]
    Missing {
        /// Its name.
        name: String,
        /// Type of its elements.
        dtype: DType,
        /// Its declared shape as text.
        shape: String,
    },
    /// The model has no such input.
    #[error("the model has no input `{name}`; its inputs are {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The model's inputs.
        known: String,
    },
    /// The file has a value for this input.
    #[error("input `{0}` has its value inside the model file and cannot be set")]
    Initialised(String),
    /// The elements are of another type.
    #[error("input `{name}` takes {expected}, found {found}")]
    Dtype {
        /// Which input.
        name: String,
        /// The type that the model declares.
        expected: DType,
        /// The type that was given.
        found: DType,
    },
    /// The shape does not agree with the declared one.
    #[error("input `{name}` takes shape {expected}, found {found}")]
    Shape {
        /// Which input.
        name: String,
        /// The shape that the model declares.
        expected: String,
        /// The shape that was given.
        found: Shape,
    },
    /// A shape is needed and not known.
    #[error("input `{name}` has the dynamic shape {shape}: set its dimensions")]
    Dynamic {
        /// Which input.
        name: String,
        /// The shape that the model declares.
        shape: String,
    },
    /// Random values of this type make no sense.
    #[error("input `{name}` takes {dtype}, which cannot be made at random")]
    NoRandom {
        /// Which input.
        name: String,
        /// Type of its elements.
        dtype: DType,
    },
    /// A shape too large for memory.
    #[error("input `{name}`")]
    TooLarge {
        /// Which input.
        name: String,
        /// Why.
        source: ShapeError,
    },
    /// More bytes than there is memory.
    #[error("input `{name}` takes {n_bytes} bytes: {reason}")]
    Memory {
        /// Which input.
        name: String,
        /// Its size.
        n_bytes: u64,
        /// How much there is, or the system's answer.
        reason: String,
    },
    /// Raw bytes of the wrong length.
    #[error("input `{name}`")]
    Size {
        /// Which input.
        name: String,
        /// The expected and the found length.
        source: TensorError,
    },
}
