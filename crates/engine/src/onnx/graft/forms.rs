//! Values in another dtype or shape.

use prost::bytes::Bytes;

use super::ValueForm;
use crate::onnx::schema::{
    AttributeProto, NodeProto, OnnxAttributeType, OnnxDataType, TensorProto,
};
use crate::onnx_dtype;

/// Operators that turn the value `from` of one form into the value `to` of another, and weights
/// that they read. `name` is free for values between.
pub(super) fn conversion(
    [from, to]: [&str; 2],
    forms: [&ValueForm; 2],
    name: &str,
) -> (Vec<NodeProto>, Vec<TensorProto>) {
    let [old, new] = forms;
    let mut nodes = Vec::new();
    let mut weights = Vec::new();
    let mut last = from.to_owned();
    // The cast comes first, so that the reshaped value already has its final dtype.
    if old.dtype != new.dtype {
        let cast = format!("{name}/cast");
        nodes.push(cast_to(
            onnx_dtype::code(new.dtype).unwrap_or_default(),
            &last,
            &cast,
        ));
        last = cast;
    }
    if old.shape != new.shape {
        let shape = format!("{name}/shape");
        let dims = new.shape.iter().flat_map(|&dim| (dim as i64).to_le_bytes());
        weights.push(TensorProto {
            name: shape.clone(),
            dims: vec![new.shape.len() as i64],
            data_type: Some(OnnxDataType::Int64 as i32),
            raw_data: Some(Bytes::from(dims.collect::<Vec<u8>>())),
            ..TensorProto::default()
        });
        let reshaped = format!("{name}/reshaped");
        nodes.push(NodeProto {
            name: reshaped.clone(),
            op_type: "Reshape".to_owned(),
            input: vec![last, shape],
            output: vec![reshaped],
            ..NodeProto::default()
        });
    }
    // The last node outputs the value under the name that readers use.
    if let Some(node) = nodes.last_mut() {
        node.output = vec![to.to_owned()];
    }
    (nodes, weights)
}

/// A `Cast` to the dtype of this number.
pub(super) fn cast_to(dtype: u64, from: &str, to: &str) -> NodeProto {
    NodeProto {
        name: to.to_owned(),
        op_type: "Cast".to_owned(),
        input: vec![from.to_owned()],
        output: vec![to.to_owned()],
        attribute: vec![AttributeProto {
            name: "to".to_owned(),
            i: i64::try_from(dtype).ok(),
            r#type: Some(OnnxAttributeType::Int as i32),
            ..AttributeProto::default()
        }],
        ..NodeProto::default()
    }
}
