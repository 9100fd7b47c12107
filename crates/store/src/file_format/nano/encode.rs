//! From [`NanoHeader`] to bytes.

use super::decode::{TAG_INPUTS, TAG_NAME, TAG_ORIGINAL_SHAPE, TAG_OUTPUTS, TAG_SHAPE};
use super::{MAGIC, NanoHeader, NanoTensor};

impl NanoHeader {
    /// The bytes that precede the tensors: length and header. Both lists are present even when they
    /// are empty.
    pub fn encode(&self) -> Vec<u8> {
        let mut header = [MAGIC.to_le_bytes(), self.version.to_le_bytes()].concat();
        push_piece(&mut header, TAG_INPUTS, &list(&self.inputs));
        push_piece(&mut header, TAG_OUTPUTS, &list(&self.outputs));
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], &header].concat()
    }
}

fn list(tensors: &[NanoTensor]) -> Vec<u8> {
    let mut bytes = (tensors.len() as u32).to_le_bytes().to_vec();
    tensors
        .iter()
        .for_each(|tensor| push_entry(&mut bytes, tensor));
    bytes
}

fn push_entry(bytes: &mut Vec<u8>, tensor: &NanoTensor) {
    let mut codes = vec![tensor.data_type, tensor.format, tensor.address_type];
    if let Some(original) = &tensor.original {
        codes.extend([original.index, original.data_type, original.format]);
    }
    bytes.extend(codes.into_iter().flat_map(i32::to_le_bytes));
    bytes.extend(
        [tensor.address, tensor.offset, tensor.size]
            .into_iter()
            .flat_map(u64::to_le_bytes),
    );
    let mut pieces = Vec::new();
    push_piece(&mut pieces, TAG_SHAPE, &dims(&tensor.shape));
    push_piece(
        &mut pieces,
        TAG_ORIGINAL_SHAPE,
        &dims(&tensor.original_shape),
    );
    if let Some(original) = &tensor.original {
        push_piece(&mut pieces, TAG_NAME, original.name.as_bytes());
    }
    bytes.extend_from_slice(&(pieces.len() as u32).to_le_bytes());
    bytes.append(&mut pieces);
}

fn push_piece(bytes: &mut Vec<u8>, tag: u32, value: &[u8]) {
    bytes.extend_from_slice(&tag.to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(value);
}

fn dims(dims: &[u64]) -> Vec<u8> {
    dims.iter().flat_map(|dim| dim.to_le_bytes()).collect()
}
