//! Engines for ONNX models.

mod attribute;
mod defaults;
mod known_types;
#[cfg(any(feature = "tract", feature = "onnxruntime"))]
mod layout;
mod operators;
#[cfg(any(feature = "onnxruntime", test))]
mod origin;
#[cfg(feature = "onnxruntime")]
mod ort;
mod proto;
mod quantised;
mod schema;
#[cfg(feature = "tract")]
mod tract;

pub use operators::OnnxOperators;
#[cfg(feature = "onnxruntime")]
pub(crate) use ort::disable_telemetry;
#[cfg(feature = "onnxruntime")]
pub use ort::{OnnxRuntime, with_taps};
#[cfg(feature = "tract")]
pub use tract::Tract;

/// How errors call a model that came as bytes.
const MEMORY: &str = "model in memory";
