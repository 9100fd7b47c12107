//! Tensors of floating-point numbers as `f64`.

use half::f16;
use opscope_tensor::convert::dtype::decode;
use opscope_tensor::{NumpyType, Tensor};

/// Every element; `None` if the elements are not floating-point.
pub(super) fn to_f64(tensor: &Tensor) -> Option<Vec<f64>> {
    let decoded = decode(tensor.dtype(), tensor.shape(), tensor.host_bytes().ok()?).ok()?;
    let bytes = &decoded.bytes;
    let wide = match decoded.dtype.as_numpy()? {
        NumpyType::F16 => cut(bytes, |b| f16::from_le_bytes(b).to_f64()),
        NumpyType::F32 => cut(bytes, |b| f32::from_le_bytes(b).into()),
        NumpyType::F64 => cut(bytes, f64::from_le_bytes),
        NumpyType::Bool
        | NumpyType::I8
        | NumpyType::U8
        | NumpyType::I16
        | NumpyType::U16
        | NumpyType::I32
        | NumpyType::U32
        | NumpyType::I64
        | NumpyType::U64
        | NumpyType::C64
        | NumpyType::C128 => return None,
    };
    Some(wide)
}

fn cut<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|b| read(*b)).collect()
}
