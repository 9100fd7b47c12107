//! Types that an ONNX file states before anything runs: those of inputs, weights and constants.

use opscope_store::record::graph::TensorType;
use opscope_tensor::DType;

use super::proto;
use super::schema::{AttributeProto, GraphProto, NodeProto, TensorProto};
use crate::{DeclaredDim, ModelSignature, ValueInfo};

/// A dynamic dimension.
const OPEN: i64 = -1;

/// Types by name. Bodies are looked into for constants and weights; what their inputs are is not
/// said.
pub(super) fn collect_types(
    graph: &GraphProto,
    signature: &ModelSignature,
) -> Vec<(String, TensorType)> {
    let mut types: Vec<_> = signature.inputs.iter().filter_map(of_input).collect();
    add_weights(graph, &mut types);
    for node in proto::all_nodes(graph) {
        proto::bodies(node).for_each(|body| add_weights(body, &mut types));
        if let (Some(name), Some(known)) = (node.output.first(), of_constant_node(node)) {
            types.push((name.clone(), known));
        }
    }
    types
}

fn add_weights(graph: &GraphProto, types: &mut Vec<(String, TensorType)>) {
    let weights = graph.initializer.iter();
    types.extend(weights.filter_map(|weight| Some((weight.name.clone(), of_tensor(weight)?))));
}

fn of_input(input: &ValueInfo) -> Option<(String, TensorType)> {
    let shape = input
        .dims
        .as_ref()?
        .iter()
        .map(|dim| match dim {
            DeclaredDim::Fixed(n) => i64::try_from(*n).unwrap_or(OPEN),
            DeclaredDim::Named(_) | DeclaredDim::Unknown => OPEN,
        })
        .collect();
    let dtype = input.dtype;
    Some((input.name.clone(), TensorType { dtype, shape }))
}

/// The type of a weight.
pub(super) fn of_tensor(tensor: &TensorProto) -> Option<TensorType> {
    Some(TensorType {
        dtype: proto::dtype(tensor.data_type())?,
        shape: tensor.dims.clone(),
    })
}

/// The type of the value that a `Constant` node holds; `None` for other nodes.
pub(super) fn of_constant_node(node: &NodeProto) -> Option<TensorType> {
    let attribute = node.attribute.first();
    attribute
        .filter(|_| node.op_type == proto::CONSTANT)
        .and_then(of_constant)
}

/// A `Constant` node has one attribute, named after the form in which it holds its value.
fn of_constant(attribute: &AttributeProto) -> Option<TensorType> {
    let (dtype, shape) = match attribute.name.as_str() {
        "value" => return of_tensor(attribute.t.as_ref()?),
        "value_float" => (DType::F32, Vec::new()),
        "value_floats" => (DType::F32, vec![attribute.floats.len() as i64]),
        "value_int" => (DType::I64, Vec::new()),
        "value_ints" => (DType::I64, vec![attribute.ints.len() as i64]),
        _ => return None,
    };
    Some(TensorType { dtype, shape })
}
