//! What tract lacks, or computes wrongly without saying so.

mod element_type;

use tract_onnx::Onnx;

use self::element_type::Lacking;
use super::super::proto;
use super::super::schema::{AttributeProto, GraphProto, NodeProto};
use super::{NAME, OTHER_ENGINE};
use crate::EngineError;

/// Domains whose operators tract looks up by type alone.
const DOMAINS: &[&str] = &["", "ai.onnx", "ai.onnx.ml", "com.microsoft"];

/// Attributes of `Attention` that tract knows; later opsets add some that change the result.
const ATTENTION_ATTRIBUTES: &[&str] = &[
    "is_causal",
    "kv_num_heads",
    "q_num_heads",
    "qk_matmul_output_mode",
    "scale",
    "softcap",
    "softmax_precision",
];

/// Refuses a model with an operator that tract does not have or gets wrong, bodies included.
pub(super) fn check(framework: &Onnx, graph: &GraphProto) -> Result<(), EngineError> {
    let nodes = proto::all_nodes(graph);
    let lacking = Lacking::of(graph);
    let bad = |node: &&NodeProto| {
        reason_against(framework, node).or_else(|| lacking.reason_against(node))
    };
    let Some((first, reason)) = nodes.iter().find_map(|node| Some((*node, bad(node)?))) else {
        return Ok(());
    };
    let n_more = nodes.iter().filter(|node| bad(node).is_some()).count() - 1;
    let reason = if n_more > 0 {
        format!("{reason} ({n_more} more like it)")
    } else {
        reason
    };
    Err(unsupported(first, reason))
}

/// Turns a loader's error into one that names the node it was about, where its text does.
pub(super) fn name_failing_node(graph: &GraphProto, error: EngineError) -> EngineError {
    let text = error.to_string();
    let Some((_, rest)) = text.split_once("Building node ") else {
        return error;
    };
    let node = proto::all_nodes(graph)
        .into_iter()
        .find(|node| rest.starts_with(&format!("{} ({})", node.name, node.op_type)));
    match node {
        Some(node) => unsupported(node, rest.to_owned()),
        None => error,
    }
}

/// The error about a node that the engine cannot run.
fn unsupported(node: &NodeProto, reason: String) -> EngineError {
    EngineError::Unsupported {
        engine: NAME,
        op_type: node.op_type.clone(),
        op_name: proto::node_name(node),
        reason,
        other_engine: OTHER_ENGINE,
    }
}

fn reason_against(framework: &Onnx, node: &NodeProto) -> Option<String> {
    if !DOMAINS.contains(&node.domain.as_str()) {
        return Some(format!("it is from the domain `{}`", node.domain));
    }
    if !framework.op_register.0.contains_key(&node.op_type) {
        return Some("it has no such operator".into());
    }
    let attribute = |name: &str| node.attribute.iter().find(|attr| attr.name == name);
    if node.op_type == "SpaceToDepth" && attribute("mode").is_some_and(|mode| mode.s() == b"CRD") {
        return Some("it gives wrong values for `mode=CRD`".into());
    }
    let is_present = |i: usize| node.input.get(i).is_some_and(|name| !name.is_empty());
    let is_attention = node.op_type == "Attention" && is_standard(&node.domain);
    let is_newer = |attr: &&AttributeProto| !ATTENTION_ATTRIBUTES.contains(&attr.name.as_str());
    if let Some(attr) = node
        .attribute
        .iter()
        .find(is_newer)
        .filter(|_| is_attention)
    {
        return Some(format!("it passes over the attribute `{}`", attr.name));
    }
    let is_causal = attribute("is_causal").is_some_and(|attr| attr.i() == 1);
    if is_attention && is_causal && is_present(4) {
        return Some("it gives wrong values for causal attention with a past".into());
    }
    let direction = node.attribute.iter().find(|attr| attr.name == "direction");
    let is_reverse = direction.is_some_and(|attr| attr.s() == b"reverse");
    if is_reverse && matches!(node.op_type.as_str(), "LSTM" | "GRU" | "RNN") {
        return Some("it gives wrong values for `direction=reverse`".into());
    }
    None
}

fn is_standard(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}
