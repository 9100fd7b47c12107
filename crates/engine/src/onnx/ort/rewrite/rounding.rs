//! Putting nodes into a model that round results and weights of its operators.
//!
//! Such a node directly follows its operator. The operator's output is renamed, and the node
//! outputs the rounded value under the old name, so that every reader, in this graph or in a body,
//! reads the rounded value.
//!
//! A node before each operator that reads a weight rounds it, so that other readers get the weight of
//! the file.

use std::collections::HashMap;

use opscope_tensor::DType;

use super::own_node::{PREFIX, SITE, own_node};
use crate::onnx::proto;
use crate::onnx::rounded_weights::{self, RoundedWeight};
use crate::onnx::schema::{AttributeProto, GraphProto, ModelProto, NodeProto, OnnxAttributeType};

/// Types of the outputs that are rounded, by task and position.
pub(crate) type FloatOutputs = HashMap<u32, Vec<(usize, DType)>>;

/// The operator that rounds elements of this type; `None` of types that are not rounded.
pub(crate) fn rounding_operator(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::F32 => Some("RoundFloat32"),
        DType::F64 => Some("RoundFloat64"),
        DType::F16 => Some("RoundFloat16"),
        DType::BF16 => Some("RoundBfloat16"),
        _ => None,
    }
}

/// The attributes of a node that rounds a weight: the axes of its channels, from the first to before
/// the end, and 1 if it is a bias.
pub(crate) const CHANNELS_BEGIN: &str = "channels_begin";
pub(crate) const CHANNELS_END: &str = "channels_end";
pub(crate) const IS_BIAS: &str = "is_bias";

/// The model with a node behind each of these outputs.
pub(crate) fn with_rounding(model: &ModelProto, floats: &FloatOutputs) -> ModelProto {
    let mut model = model.clone();
    if let Some(graph) = &mut model.graph {
        let weights = rounded_weights::find(graph);
        add_to(graph, floats, &weights, &mut 0);
    }
    super::add_domain(&mut model);
    model
}

/// Nodes are numbered in file order, those of bodies right after the node that they belong to, as
/// everywhere.
fn add_to(
    graph: &mut GraphProto,
    floats: &FloatOutputs,
    weights: &HashMap<u32, Vec<RoundedWeight>>,
    n_tasks: &mut u32,
) {
    let mut nodes = Vec::with_capacity(graph.node.len() * 2);
    for mut node in std::mem::take(&mut graph.node) {
        let task_id = *n_tasks;
        *n_tasks += 1;
        for body in proto::bodies_mut(&mut node) {
            add_to(body, floats, weights, n_tasks);
        }
        if floats
            .get(&task_id)
            .is_some_and(|floats| !floats.is_empty())
        {
            for weight in weights.get(&task_id).into_iter().flatten() {
                nodes.extend(weight_node(&mut node, task_id, weight));
            }
        }
        let mut behind = Vec::new();
        for &(position, dtype) in floats.get(&task_id).into_iter().flatten() {
            let (Some(op_type), Some(output)) =
                (rounding_operator(dtype), node.output.get_mut(position))
            else {
                continue;
            };
            let own = format!("{PREFIX}unrounded:{task_id}:{position}");
            let name = std::mem::replace(output, own.clone());
            // Errors name nodes, and names of ours are recognised by their beginning.
            let title = format!("{PREFIX}round:{task_id}:{position}");
            let mut rounding = own_node(op_type, &title, vec![own], vec![name]);
            // A kernel learns from its node only what the node's attributes say.
            rounding.attribute.push(number(SITE, task_id.into()));
            behind.push(rounding);
        }
        nodes.push(node);
        // In bodies the library asks for nodes in an order in which they can run.
        nodes.extend(behind);
    }
    graph.node = nodes;
}

/// The node in front of an operator that rounds a weight; the operator reads its output.
fn weight_node(node: &mut NodeProto, task_id: u32, weight: &RoundedWeight) -> Option<NodeProto> {
    let op_type = rounding_operator(weight.dtype)?;
    let input = node.input.get_mut(weight.position)?;
    let own = format!("{PREFIX}weight:{task_id}:{}", weight.position);
    let name = std::mem::replace(input, own.clone());
    let title = format!("{PREFIX}round_weight:{task_id}:{}", weight.position);
    let mut rounding = own_node(op_type, &title, vec![name], vec![own]);
    rounding.attribute.extend([
        number(SITE, task_id.into()),
        number(CHANNELS_BEGIN, weight.channel_axes.start as i64),
        number(CHANNELS_END, weight.channel_axes.end as i64),
        number(IS_BIAS, weight.is_bias.into()),
    ]);
    Some(rounding)
}

fn number(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: Some(OnnxAttributeType::Int as i32),
        i: Some(value),
        ..AttributeProto::default()
    }
}
