//! A tensor's digest together with numbers about its elements, in one pass over memory.
//!
//! Computing both separately would read a large tensor from memory twice. Here each piece is
//! digested and then summarized while it is in the nearest cache. The results equal those of the
//! separate functions, bit for bit.

use crate::digest::{Xxh3Pieces, xxh3_128};
use crate::stats::non_finite_beside;
use crate::{
    NonFinite, PartialStats, StatsAndWeight, StatsError, TensorView, chunks, non_finite,
    weighed_stats,
};

/// [`xxh3_128`] of the bytes of `tensor`, and its [`weighed_stats`].
///
/// Bytes after the last element only belong to the digest.
pub fn digest_and_stats(tensor: TensorView<'_>) -> ([u8; 16], Result<StatsAndWeight, StatsError>) {
    let TensorView { dtype, bytes, .. } = tensor;
    let Some(mut digest) = Xxh3Pieces::new(bytes.len()) else {
        return (xxh3_128(bytes), weighed_stats(tensor));
    };
    let stats = chunks(dtype, tensor.shape.n_elements(), bytes).map(|chunks| {
        let mut total = PartialStats::default();
        for chunk in chunks {
            total.append(&chunk.look_beside(&mut digest));
        }
        total.weighed()
    });
    (digest.finish(bytes), stats)
}

/// [`xxh3_128`] of the bytes of `tensor`, and how many of its elements are [`non_finite`].
pub fn digest_and_non_finite(tensor: TensorView<'_>) -> ([u8; 16], NonFinite) {
    let Some(mut digest) = Xxh3Pieces::new(tensor.bytes.len()) else {
        return (xxh3_128(tensor.bytes), non_finite(tensor));
    };
    let counts = non_finite_beside(tensor, &mut digest);
    (digest.finish(tensor.bytes), counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Shape};

    /// Bytes without a pattern of any dtype, but with zeros, NaN and infinities of most.
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
                240,
                256,
                1024,
                32_768,
                70_000,
                1 << 20,
                4 << 20,
                bytes.len() - 48,
            ] {
                let bytes = &bytes[..n_bytes];
                let shape = Shape::new([n_bytes * 8 / n_bits as usize]).unwrap();
                let view = TensorView::new(dtype, &shape, bytes);
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
        let bytes = bytes(200_005);
        let shape = Shape::new([15_003]).unwrap();
        let view = TensorView::new(DType::F32, &shape, &bytes);
        let expected = format!("{:?}", (xxh3_128(&bytes), weighed_stats(view)));
        assert_eq!(format!("{:?}", digest_and_stats(view)), expected);
    }
}
