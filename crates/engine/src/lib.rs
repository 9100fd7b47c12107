//! Running models and tapping their operators.
//!
//! Engines are existing ones; this crate only watches them. [`Engine`] loads a model,
//! [`LoadedModel`] runs it and shows every operator's inputs and outputs to a `Tap` of
//! `opscope-capture`.
//!
//! | engine | feature | what it is |
//! | --- | --- | --- |
//! | `onnx::Tract` | `tract` (default) | tract, embedded; ONNX models on the CPU |
//! | `onnx::OnnxRuntime` | `onnxruntime` (default) | ONNX Runtime, whose library is loaded when it is asked for |
//! | [`fake::FakeModel`] | – | a graph of closures, for tests and examples |

pub mod choice;
mod description;
mod engine;
mod error;
pub mod fake;
#[cfg_attr(
    not(any(feature = "tract", feature = "onnxruntime")),
    allow(dead_code, reason = "only engines use it")
)]
mod guard;
pub mod input;
#[cfg_attr(
    not(any(feature = "tract", feature = "onnxruntime")),
    allow(dead_code, reason = "only engines use it")
)]
pub mod onnx;
mod onnx_dtype;
pub mod operator_source;
mod rounding;
pub mod single_operator;

pub use description::{DeclaredDim, ModelDescription, ModelSignature, ValueInfo};
pub use engine::{
    Engine, FallbackEngine, FallbackModel, GraphKind, LoadOptions, LoadedModel, ModelSource,
    SharedEngine,
};
pub use error::{EngineError, InputError};
pub use onnx_dtype::code as onnx_number;
pub use rounding::{ResultRounding, ResultSurvey, SurveyedOperator};

/// Keeps the libraries of engines that this process loads from reporting their use.
///
/// Loading an engine does this too. A program calls it first of all, as it sets an environment
/// variable (`ORT_DISABLE_TELEMETRY`), which is best done while there is one thread.
pub fn disable_telemetry() {
    #[cfg(feature = "onnxruntime")]
    onnx::disable_telemetry();
}
