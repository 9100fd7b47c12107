//! Engines for ONNX models.

mod annotate;
mod attribute;
mod call_site;
#[cfg(any(feature = "tract", feature = "onnxruntime"))]
mod description;
mod external;
mod graft;
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
mod rounded_weights;
mod schema;
#[cfg(feature = "tract")]
mod tract;
mod typed;
mod widen;

use std::path::Path;

use crate::{EngineError, ModelSignature};

pub use annotate::{AnnotatedModel, Notes};
pub use graft::{
    DefinitionDifference, DifferentPart, ExchangedOutputs, HealedModel, ModelPair, NodeLabel,
    OperatorChanges, SameValue, ValueForm,
};
pub(crate) use layout::layout_of;
pub use operators::OnnxOperators;
#[cfg(feature = "onnxruntime")]
pub use ort::{OnnxRuntime, with_taps};
#[cfg(feature = "onnxruntime")]
pub(crate) use ort::{disable_telemetry, is_lack};
#[cfg(feature = "tract")]
pub use tract::Tract;
pub use widen::{WidenedModel, widen_input, widen_model};

/// Reads the inputs and outputs of the model in a file. Nothing is prepared for running, and
/// external data are not needed.
///
/// # Errors
/// [`EngineError`] if the file cannot be read or is not a model.
pub fn read_signature(path: &Path) -> Result<ModelSignature, EngineError> {
    let model = proto::read(path)?;
    // `read` has refused a file without a graph.
    let graph = model.proto.graph.unwrap_or_default();
    proto::signature(&graph).map_err(|reason| EngineError::invalid(path, reason))
}
