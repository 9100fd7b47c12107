//! A model in tract's own messages.

use prost::Message;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{ModelProto, TensorProto};

/// Decodes a model that was decoded before.
pub(super) fn decode(bytes: &[u8]) -> Result<ModelProto, String> {
    let mut model = ModelProto::decode(bytes).map_err(|error| error.to_string())?;
    if let Some(graph) = &mut model.graph {
        graph.initializer.iter_mut().for_each(repair_unsigned);
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
