//! A model in tract's own messages.

use std::collections::HashSet;

use prost::Message;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

/// Decodes a model that was decoded before.
pub(super) fn decode(bytes: &[u8]) -> Result<ModelProto, String> {
    // tract has its own types for the same messages, so the bytes are decoded a second time.
    let mut model = ModelProto::decode(bytes).map_err(|error| error.to_string())?;
    if let Some(graph) = &mut model.graph {
        graph.initializer.iter_mut().for_each(repair_unsigned);
        keep_apart(graph);
    }
    Ok(model)
}

/// The engine's loader looks for `uint32` and `uint64` elements in the wrong field of the message
/// when they are not given as raw bytes.
fn repair_unsigned(tensor: &mut TensorProto) {
    if !tensor.raw_data.is_empty() || tensor.uint64_data.is_empty() {
        return;
    }
    match DataType::try_from(tensor.data_type) {
        Ok(DataType::Uint32) => {
            let bytes = tensor
                .uint64_data
                .iter()
                .flat_map(|&v| (v as u32).to_le_bytes());
            tensor.raw_data = bytes.collect();
        }
        Ok(DataType::Uint64) => {
            let bytes = tensor.uint64_data.iter().flat_map(|&v| v.to_le_bytes());
            tensor.raw_data = bytes.collect();
        }
        _ => {}
    }
}

/// Makes operators of float constants, those of bodies too.
///
/// The engine's loader merges constants that compare as equal, and zeros of either sign do. It
/// leaves the output of a `Constant` alone.
fn keep_apart(graph: &mut GraphProto) {
    let initializers = std::mem::take(&mut graph.initializer);
    let (floats, others) = initializers.into_iter().partition(is_float);
    graph.initializer = others;
    let floats: Vec<TensorProto> = floats;
    let names: HashSet<&str> = floats.iter().map(|tensor| tensor.name.as_str()).collect();
    graph
        .input
        // A value cannot be an input and the result of a node.
        .retain(|input| !names.contains(input.name.as_str()));
    for node in &mut graph.node {
        for attribute in &mut node.attribute {
            attribute.g.iter_mut().for_each(keep_apart);
            attribute.graphs.iter_mut().for_each(keep_apart);
        }
    }
    let constants = floats.into_iter().map(constant);
    // In front of all nodes, since values have to be there before they are read.
    graph.node.splice(..0, constants);
}

fn is_float(tensor: &TensorProto) -> bool {
    let data_type = DataType::try_from(tensor.data_type);
    matches!(
        data_type,
        Ok(DataType::Float16 | DataType::Float | DataType::Double)
    )
}

fn constant(tensor: TensorProto) -> NodeProto {
    NodeProto {
        op_type: "Constant".into(),
        output: vec![tensor.name.clone()],
        attribute: vec![AttributeProto {
            name: "value".into(),
            r#type: AttributeType::Tensor as i32,
            t: Some(tensor),
            ..AttributeProto::default()
        }],
        ..NodeProto::default()
    }
}
