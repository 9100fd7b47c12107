//! A tensor's digest together with numbers about its elements, in one pass over memory.
//!
//! Whoever wants both would read a large tensor from memory twice. Here each stretch of it is digested
//! and looked at in turn, while it is in a cache that the core has for itself. The results are those
//! of the functions that take one of the two alone, bit for bit.

use crate::digest::{Xxh3Hasher, xxh3_128};
use crate::stats::wide_non_finite;
use crate::{
    NonFinite, PartialStats, StatsAndWeight, StatsError, TensorView, chunks, non_finite,
    weighed_stats,
};

/// Bytes that are digested before they are looked at: a small part of a core's own cache, yet so many
/// that beginning with a stretch costs nothing beside it. Whole blocks of statistics of every dtype.
pub(crate) const STRETCH_BYTES: usize = 64 << 10;

/// [`xxh3_128`] of the bytes of `tensor`, and its [`weighed_stats`].
///
/// Bytes behind the last element belong to the digest alone.
pub fn digest_and_stats(tensor: TensorView<'_>) -> ([u8; 16], Result<StatsAndWeight, StatsError>) {
    let TensorView { dtype, bytes, .. } = tensor;
    let chunks = match chunks(dtype, tensor.shape.n_elements(), bytes) {
        // What fits a cache is there for the second look anyway.
        Ok(chunks) if bytes.len() > STRETCH_BYTES => chunks,
        _ => return (xxh3_128(bytes), weighed_stats(tensor)),
    };
    let mut hasher = Xxh3Hasher::default();
    let mut total = PartialStats::default();
    let mut n_digested = 0;
    for chunk in chunks {
        let part = chunk.look_beside(|stretch| {
            hasher.write(stretch);
            n_digested += stretch.len();
        });
        total.append(&part);
    }
    hasher.write(&bytes[n_digested..]);
    (hasher.finish(), Ok(total.weighed()))
}

/// [`xxh3_128`] of the bytes of `tensor`, and how many of its elements are [`non_finite`].
pub fn digest_and_non_finite(tensor: TensorView<'_>) -> ([u8; 16], NonFinite) {
    let bytes = tensor.bytes;
    let part = tensor.dtype.parts().0;
    // Narrow floats are counted by their patterns, which takes the whole tensor.
    if bytes.len() <= STRETCH_BYTES || wide_non_finite(part, &[]).is_none() {
        return (xxh3_128(bytes), non_finite(tensor));
    }
    let mut hasher = Xxh3Hasher::default();
    let mut total = NonFinite::default();
    for stretch in bytes.chunks(STRETCH_BYTES) {
        hasher.write(stretch);
        total = total + wide_non_finite(part, stretch).unwrap_or_default();
    }
    (hasher.finish(), total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Layout, Shape};

    /// Bytes that are no pattern of any dtype, but have zeros, NaN and infinities of most.
    fn bytes(n: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut bytes: Vec<u8> = (0..n)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        for (i, special) in [[0_u8; 4], [0, 0, 0x80, 0x7f], [0, 0, 0x80, 0xff], [0xff; 4]]
            .iter()
            .enumerate()
        {
            for at in (i * 4000..n.saturating_sub(4)).step_by(100_000) {
                bytes[at..at + 4].copy_from_slice(special);
            }
        }
        bytes
    }

    #[test]
    fn agrees_with_two_passes_for_every_dtype_and_round_every_bound() {
        let bytes = bytes((4 << 20) + (1 << 17));
        for &dtype in DType::ALL {
            let Some(n_bits) = dtype.bits().filter(|_| dtype != DType::String) else {
                continue;
            };
            for n_bytes in [
                0,
                16,
                STRETCH_BYTES,
                STRETCH_BYTES + 16,
                1 << 20,
                4 << 20,
                bytes.len() - 48,
            ] {
                let bytes = &bytes[..n_bytes];
                let shape = Shape::new([n_bytes * 8 / n_bits as usize]).unwrap();
                let view = TensorView {
                    dtype,
                    shape: &shape,
                    layout: Layout::Nd,
                    bytes,
                };
                // NaN differs from itself, so the text is compared.
                let expected = format!("{:?}", (xxh3_128(bytes), weighed_stats(view)));
                assert_eq!(
                    format!("{:?}", digest_and_stats(view)),
                    expected,
                    "{dtype}, {n_bytes} bytes"
                );
                let expected = (xxh3_128(bytes), non_finite(view));
                assert_eq!(
                    digest_and_non_finite(view),
                    expected,
                    "{dtype}, {n_bytes} bytes"
                );
            }
        }
    }

    #[test]
    fn bytes_behind_the_last_element_are_digested_too() {
        let bytes = bytes(STRETCH_BYTES * 3 + 5);
        let shape = Shape::new([STRETCH_BYTES / 4 + 3]).unwrap();
        let view = TensorView {
            dtype: DType::F32,
            shape: &shape,
            layout: Layout::Nd,
            bytes: &bytes,
        };
        let expected = format!("{:?}", (xxh3_128(&bytes), weighed_stats(view)));
        assert_eq!(format!("{:?}", digest_and_stats(view)), expected);
    }
}
