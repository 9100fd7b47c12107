//! Operators that draw random numbers.
//!
//! Two executions of a model are compared all the time: with a dump and without one, in one engine
//! and in another. So an operator draws the same numbers at each execution, and an operator without
//! a seed in the model gets one derived from its name.

use opscope_tensor::digest::xxh3_128;

use super::proto::is_standard;
use super::schema::NodeProto;
#[cfg(feature = "onnxruntime")]
use super::{
    proto,
    schema::{AttributeProto, ModelProto, OnnxAttributeType},
};

/// Operators that draw numbers, and whether their seed is an integer.
const DRAWING: &[(&str, bool)] = &[
    ("Bernoulli", false),
    ("Dropout", true),
    ("Multinomial", false),
    ("RandomNormal", false),
    ("RandomNormalLike", false),
    ("RandomUniform", false),
    ("RandomUniformLike", false),
];

/// The seed of the operator that produces a value of this name: an integer that float32 holds
/// exactly.
pub(super) fn seed(value: &str) -> u16 {
    // The name of the value is the same in every engine and at every load.
    let digest = xxh3_128(value.as_bytes());
    u16::from_le_bytes([digest[0], digest[1]])
}

/// Whether an operator draws random numbers.
#[cfg(feature = "tract")]
pub(super) fn is_drawing(node: &NodeProto) -> bool {
    find(node).is_some()
}

/// Whether the seed of a node that draws numbers is an integer; `None` for a node that draws none.
fn find(node: &NodeProto) -> Option<bool> {
    let known = DRAWING.iter().find(|(name, _)| *name == node.op_type);
    let (_, is_integer) = known.filter(|_| is_standard(&node.domain))?;
    // `Dropout` draws if its third input switches to training.
    let may_draw = node.op_type != "Dropout" || node.input.get(2).is_some_and(|n| !n.is_empty());
    may_draw.then_some(*is_integer)
}

/// Adds a seed to each operator that draws numbers and has none, in bodies and functions too;
/// returns whether any operator draws.
#[cfg(feature = "onnxruntime")]
pub(super) fn pin_seeds(model: &mut ModelProto) -> bool {
    let functions = model
        .functions
        .iter_mut()
        .map(|function| &mut function.node);
    let main = model.graph.iter_mut().map(|graph| &mut graph.node);
    let mut is_any = false;
    for nodes in main.chain(functions) {
        is_any |= pin_nodes(nodes);
    }
    is_any
}

#[cfg(feature = "onnxruntime")]
fn pin_nodes(nodes: &mut [NodeProto]) -> bool {
    let mut is_any = false;
    for node in nodes {
        // Operators in a body draw as well, and a loop runs them many times.
        for body in proto::bodies_mut(node) {
            is_any |= pin_nodes(&mut body.node);
        }
        if let Some(is_integer) = find(node) {
            is_any = true;
            pin(node, is_integer);
        }
    }
    is_any
}

#[cfg(feature = "onnxruntime")]
fn pin(node: &mut NodeProto, is_integer: bool) {
    if node.attribute.iter().any(|attr| attr.name == "seed") {
        return;
    }
    let value = seed(node.output.first().map_or("", String::as_str));
    let kind = if is_integer {
        OnnxAttributeType::Int
    } else {
        OnnxAttributeType::Float
    };
    node.attribute.push(AttributeProto {
        name: "seed".to_owned(),
        r#type: Some(kind as i32),
        i: is_integer.then_some(value.into()),
        f: (!is_integer).then_some(value.into()),
        ..AttributeProto::default()
    });
}
