//! Engines for ONNX models.

mod attribute;
mod known_types;
mod layout;
mod operators;
mod proto;
mod quantised;
mod schema;
#[cfg(feature = "tract")]
mod tract;

pub use operators::OnnxOperators;
#[cfg(feature = "tract")]
pub use tract::Tract;

/// How errors call a model that came as bytes.
const MEMORY: &str = "model in memory";
