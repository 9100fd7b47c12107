//! The description of an ONNX model, which is the same for every engine but for its operators.

use super::schema::{GraphProto, ModelProto};
use super::{known_types, proto, quantised};
use crate::ModelDescription;

/// Describes a model whose main graph is `graph`. The engine adds the operators, in the order in
/// which it executes them.
///
/// # Errors
/// A text about an input that cannot be given.
pub(super) fn describe(model: &ModelProto, graph: &GraphProto) -> Result<ModelDescription, String> {
    let signature = proto::signature(graph)?;
    Ok(ModelDescription {
        operators: Vec::new(),
        unnamed: proto::unnamed(graph),
        constants: proto::constants(graph),
        carried: proto::carried(graph),
        value_types: known_types::collect_types(graph, &signature),
        opsets: proto::opsets(model),
        quantised: quantised::find(graph),
        signature,
    })
}
