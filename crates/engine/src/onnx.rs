//! Engines for ONNX models.

mod attribute;
mod call_site;
mod defaults;
#[cfg(any(feature = "tract", feature = "onnxruntime"))]
mod description;
mod external;
mod known_types;
mod layout;
mod operators;
#[cfg(any(feature = "onnxruntime", test))]
mod origin;
#[cfg(feature = "onnxruntime")]
mod ort;
mod private_dir;
mod proto;
mod quantised;
#[cfg(any(feature = "tract", feature = "onnxruntime"))]
mod random;
mod schema;
#[cfg(feature = "tract")]
mod tract;
mod typed;
mod widen;

pub(crate) use layout::layout_of;
pub use operators::OnnxOperators;
#[cfg(feature = "onnxruntime")]
pub use ort::{OnnxRuntime, with_taps};
#[cfg(feature = "onnxruntime")]
pub(crate) use ort::{disable_telemetry, is_lack};
#[cfg(feature = "tract")]
pub use tract::Tract;
pub use widen::{WidenedModel, widen_input, widen_model};
