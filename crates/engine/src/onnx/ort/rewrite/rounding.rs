//! Putting nodes into a model that round results of its operators.
//!
//! Such a node directly follows its operator. The operator's output is renamed, and the node
//! outputs the rounded value under the old name, so that every reader, in this graph or in a body,
//! reads the rounded value.

use std::collections::HashMap;

use opscope_tensor::DType;

use super::super::super::proto;
use super::super::super::schema::{AttributeProto, GraphProto, ModelProto, OnnxAttributeType};
use super::own_node::{PREFIX, SITE, own_node};

/// Types of the outputs that are rounded, by task and position.
pub(in super::super) type FloatOutputs = HashMap<u32, Vec<(usize, DType)>>;

/// The operator that rounds elements of this type; `None` of types that are not rounded.
pub(in super::super) fn rounding_operator(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::F32 => Some("RoundFloat32"),
        DType::F64 => Some("RoundFloat64"),
        DType::F16 => Some("RoundFloat16"),
        DType::BF16 => Some("RoundBfloat16"),
        _ => None,
    }
}

/// The model with a node behind each of these outputs.
pub(in super::super) fn with_rounding(model: &ModelProto, floats: &FloatOutputs) -> ModelProto {
    let mut model = model.clone();
    if let Some(graph) = &mut model.graph {
        add_to(graph, floats, &mut 0);
    }
    super::add_domain(&mut model);
    model
}

/// Nodes are numbered in file order, those of bodies right after the node that they belong to, as
/// everywhere.
fn add_to(graph: &mut GraphProto, floats: &FloatOutputs, n_tasks: &mut u32) {
    let mut nodes = Vec::with_capacity(graph.node.len() * 2);
    for mut node in std::mem::take(&mut graph.node) {
        let task_id = *n_tasks;
        *n_tasks += 1;
        for body in proto::bodies_mut(&mut node) {
            add_to(body, floats, n_tasks);
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
            rounding.attribute.push(AttributeProto {
                name: SITE.to_owned(),
                r#type: Some(OnnxAttributeType::Int as i32),
                i: Some(task_id.into()),
                ..AttributeProto::default()
            });
            behind.push(rounding);
        }
        nodes.push(node);
        // In bodies the library asks for nodes in an order in which they can run.
        nodes.extend(behind);
    }
    graph.node = nodes;
}
