//! Operators that tract lacks, or computes wrongly without saying so.

mod element_type;
mod other_engine;
mod passed_over;

use tract_onnx::Onnx;

use self::element_type::UnsupportedValues;
use super::error::NAME;
use crate::EngineError;
use crate::onnx::schema::{AttributeProto, GraphProto, ModelProto, NodeProto};
use crate::onnx::{proto, random};

/// Domains whose operators tract looks up by type alone.
const DOMAINS: &[&str] = &["", "ai.onnx", "ai.onnx.ml", "com.microsoft"];

/// Operators that tract has of those that ONNX Runtime adds. Others of that domain share no more
/// than their names with standard ones.
const MICROSOFT: &[&str] = &[
    "BiasGelu",
    "DequantizeLinear",
    "FastGelu",
    "GatherBlockQuantized",
    "Gelu",
    "GroupQueryAttention",
    "MatMulNBits",
    "MultiHeadAttention",
    "QuantizeLinear",
    "QuickGelu",
    "RotaryEmbedding",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "Trilu",
];

/// The first opset in which `Resize` says how positions are rounded.
const OPSET_WITH_RESIZE_MODES: i64 = 11;
/// float64 among the types of elements.
const DOUBLE: i64 = 11;
/// The first opset in which `Scan` has no axis for a batch.
const OPSET_WITHOUT_BATCHES: i64 = 9;

/// Refuses a model with an operator that tract does not have or gets wrong, bodies included.
pub(super) fn check(
    framework: &Onnx,
    model: &ModelProto,
    graph: &GraphProto,
) -> Result<(), EngineError> {
    // Bodies count as well: a branch may run at any time.
    let nodes = proto::all_nodes(graph);
    let types = UnsupportedValues::from_graph(graph);
    let opset = proto::opset(model);
    let bad = |node: &&NodeProto| {
        reason_against(framework, opset, node).or_else(|| types.reason_against(node))
    };
    let Some((first, reason)) = nodes.iter().find_map(|node| Some((*node, bad(node)?))) else {
        return Ok(());
    };
    let mut lacking = nodes.iter().filter(|node| bad(node).is_some());
    let n_more = lacking.clone().count() - 1;
    // An engine that has the first of them and not the next would be of no help.
    let has_all = lacking.all(|node| other_engine::having(model, node).is_some());
    let reason = if n_more > 0 {
        format!("{reason} ({n_more} more like it)")
    } else {
        reason
    };
    let other = other_engine::having(model, first).filter(|_| has_all);
    Err(unsupported(first, reason, other))
}

/// Turns a loader's error into one that names the node it was about, where its text does.
pub(super) fn name_failing_node(
    model: &ModelProto,
    graph: &GraphProto,
    error: EngineError,
) -> EngineError {
    // The loader says which node it was at in the text of its error only.
    let text = error.to_string();
    let Some((_, rest)) = text.split_once("Building node ") else {
        return error;
    };
    let node = proto::all_nodes(graph)
        .into_iter()
        .find(|node| rest.starts_with(&format!("{} ({})", node.name, node.op_type)));
    match node {
        Some(node) => {
            let place = format!("{} ({}):", node.name, node.op_type);
            let reason = rest.strip_prefix(&place).unwrap_or(rest).trim_start();
            let other = other_engine::having(model, node);
            unsupported(node, reason.to_owned(), other)
        }
        None => error,
    }
}

/// The error about a node that the engine cannot run.
fn unsupported(
    node: &NodeProto,
    reason: String,
    other_engine: Option<&'static str>,
) -> EngineError {
    EngineError::Unsupported {
        engine: NAME,
        op_type: node.op_type.clone(),
        op_name: proto::node_name(node),
        reason,
        other_engine,
    }
}

fn attribute<'a>(node: &'a NodeProto, name: &str) -> Option<&'a AttributeProto> {
    node.attribute.iter().find(|attr| attr.name == name)
}

fn reason_against(framework: &Onnx, opset: i64, node: &NodeProto) -> Option<String> {
    // tract would take an operator of the same name for this one.
    if !DOMAINS.contains(&node.domain.as_str()) {
        return Some(format!("it is from the domain `{}`", node.domain));
    }
    let op_type = node.op_type.as_str();
    let is_known = framework.op_register.0.contains_key(op_type);
    if !is_known || (node.domain == "com.microsoft" && !MICROSOFT.contains(&op_type)) {
        return Some("it has no such operator".into());
    }
    if let Some(attribute) = passed_over::find(node) {
        return Some(format!("it passes over the attribute `{attribute}`"));
    }
    let is_reverse = attribute(node, "direction").is_some_and(|attr| attr.s() == b"reverse");
    if is_reverse && matches!(op_type, "LSTM" | "GRU" | "RNN") {
        return Some("it computes wrong values for `direction=reverse`".into());
    }
    if op_type == "Scan" && opset < OPSET_WITHOUT_BATCHES {
        return Some(format!(
            "it knows only the form of opset {OPSET_WITHOUT_BATCHES} and later"
        ));
    }
    let mut inner = proto::bodies(node).flat_map(proto::all_nodes);
    if op_type == "Scan" && inner.any(random::is_drawing) {
        return Some("it would draw the same random numbers in each iteration".into());
    }
    if op_type == "DFT" && node.input.get(1).is_some_and(|name| !name.is_empty()) {
        return Some("it passes over the length".into());
    }
    if op_type == "Resize"
        && opset < OPSET_WITH_RESIZE_MODES
        && attribute(node, "mode").is_none_or(|attr| attr.s() == b"nearest")
    {
        return Some(format!(
            "it rounds positions as from opset {OPSET_WITH_RESIZE_MODES} on"
        ));
    }
    let is_double = attribute(node, "output_datatype").is_some_and(|attr| attr.i() == DOUBLE);
    if is_double && op_type.ends_with("Window") {
        return Some("it computes the window in float32".into());
    }
    if op_type == "MatMulNBits" && node.input.get(5).is_some_and(|name| !name.is_empty()) {
        return Some("it passes over the bias".into());
    }
    None
}
