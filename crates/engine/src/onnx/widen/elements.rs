//! Elements of float16 and bfloat16 as float32.

use half::f16;
use opscope_tensor::{DType, Tensor};

use super::is_widened;
use crate::InputError;

/// How many bits of a mantissa float32 has more than float16.
const N_MANTISSA_BITS_MORE: u32 = 13;
/// The exponent of NaN and infinities in float32.
const SPECIAL_EXPONENT: u32 = 0x7f80_0000;

/// Makes an input for the widened model out of one for the original: float16 and bfloat16 become
/// float32, anything else stays as it is. Every element keeps its value, infinities and the payload of
/// NaN included.
///
/// # Errors
/// [`InputError::Memory`] if the elements are out of reach.
pub fn widen_input(name: &str, tensor: &Tensor) -> Result<Tensor, InputError> {
    if !is_widened(tensor.dtype()) {
        return Ok(tensor.clone());
    }
    let bytes = tensor.host_bytes().map_err(|error| InputError::Memory {
        name: name.to_owned(),
        n_bytes: tensor.n_bytes() as u64,
        reason: error.to_string(),
    })?;
    let bytes = widened(tensor.dtype(), bytes);
    let wide = Tensor::from_vec(DType::F32, tensor.shape().clone(), bytes);
    let wide = wide.map_err(|source| InputError::Size {
        name: name.to_owned(),
        source,
    })?;
    Ok(wide.with_layout(tensor.layout()))
}

/// Little-endian elements as those of float32; `dtype` is one that is widened.
pub(super) fn widened(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    // A bfloat16 is the upper half of a float32.
    let bits = match dtype {
        DType::BF16 => |half: u16| u32::from(half) << 16,
        _ => float16_bits,
    };
    let halves = bytes.as_chunks::<2>().0;
    let mut wide = vec![0; halves.len() * 4];
    for (to, from) in wide.as_chunks_mut::<4>().0.iter_mut().zip(halves) {
        *to = bits(u16::from_le_bytes(*from)).to_le_bytes();
    }
    wide
}

fn float16_bits(half: u16) -> u32 {
    let value = f16::from_bits(half);
    if value.is_nan() {
        // A conversion of numbers would make a signalling NaN a quiet one.
        let sign = u32::from(half & 0x8000) << 16;
        let payload = u32::from(half & 0x03ff) << N_MANTISSA_BITS_MORE;
        return sign | SPECIAL_EXPONENT | payload;
    }
    value.to_f32().to_bits()
}
