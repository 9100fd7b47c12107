//! Values of a narrow dtype in a wider one that has all of them.

use half::{bf16, f16};
use opscope_tensor::{DType, Tensor};

/// Whether a dtype represents every value of another.
pub(super) fn is_within(narrow: DType, wide: DType) -> bool {
    match (narrow, wide) {
        (DType::F16 | DType::BF16, DType::F32 | DType::F64)
        | (DType::F32, DType::F64)
        | (DType::I32, DType::I64) => true,
        (from, to) => from == to,
    }
}

/// The same values in a wider dtype; none if it lacks some of them, or if there are no elements.
pub(super) fn widened(tensor: &Tensor, dtype: DType) -> Option<Tensor> {
    if tensor.dtype() == dtype {
        return Some(tensor.clone());
    }
    let bytes = tensor.host_bytes().ok()?;
    let wide: Vec<u8> = match (tensor.dtype(), dtype) {
        (DType::F16, DType::F32) => each(bytes, |b| f16::from_le_bytes(b).to_f32().to_le_bytes()),
        (DType::F16, DType::F64) => each(bytes, |b| f16::from_le_bytes(b).to_f64().to_le_bytes()),
        (DType::BF16, DType::F32) => each(bytes, |b| bf16::from_le_bytes(b).to_f32().to_le_bytes()),
        (DType::BF16, DType::F64) => each(bytes, |b| bf16::from_le_bytes(b).to_f64().to_le_bytes()),
        (DType::F32, DType::F64) => each(bytes, |b| f64::from(f32::from_le_bytes(b)).to_le_bytes()),
        (DType::I32, DType::I64) => each(bytes, |b| i64::from(i32::from_le_bytes(b)).to_le_bytes()),
        _ => return None,
    };
    Tensor::from_vec(dtype, tensor.shape().clone(), wide).ok()
}

fn each<const N: usize, const M: usize>(
    bytes: &[u8],
    widen: impl Fn([u8; N]) -> [u8; M],
) -> Vec<u8> {
    let elements = bytes.as_chunks::<N>().0.iter();
    elements.flat_map(|&element| widen(element)).collect()
}
