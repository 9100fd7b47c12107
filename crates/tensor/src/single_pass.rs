//! A tensor's digest together with numbers about its elements, in one pass over memory.
//!
//! Computing both separately would read a large tensor from memory twice. Here each piece is
//! digested and then summarized while it is in the nearest cache. The results equal those of the
//! separate functions, bit for bit.

use twox_hash::XxHash3_128;

use crate::digest::{Xxh3Pieces, xxh3_128};
use crate::stats::non_finite_beside;
use crate::stats::{CHUNK_ELEMENTS, StatsOptions};
use crate::{
    DType, NonFinite, PartialStats, Stats, StatsAndWeight, StatsError, TensorView, chunks,
    non_finite, weighed_stats,
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

/// Digest and statistics of a tensor whose bytes arrive in pieces: the numbers of the tensor at
/// once, bit for bit.
pub struct PiecewiseNumbers {
    dtype: DType,
    n_elements_left: usize,
    digest: Option<XxHash3_128>,
    stats: Result<PartialStats, StatsError>,
}

impl PiecewiseNumbers {
    /// Begins with a tensor of `n_elements`. A digest takes additional time.
    pub fn new(dtype: DType, n_elements: usize, has_digest: bool) -> PiecewiseNumbers {
        PiecewiseNumbers {
            dtype,
            n_elements_left: n_elements,
            digest: has_digest.then(XxHash3_128::new),
            // An empty tensor has no piece that would refuse the dtype.
            stats: chunks(dtype, 0, &[]).map(|_| PartialStats::default()),
        }
    }

    /// Size of the pieces that [`PiecewiseNumbers::append`] accepts.
    pub fn piece_bytes(dtype: DType) -> usize {
        CHUNK_ELEMENTS / 8 * dtype.bits().unwrap_or(8) as usize
    }

    /// Appends the bytes that follow: [`PiecewiseNumbers::piece_bytes`], or the rest.
    pub fn append(&mut self, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest {
            digest.write(bytes);
        }
        if let (Ok(total), Ok(chunks)) = (
            &mut self.stats,
            chunks(self.dtype, self.n_elements_left, bytes),
        ) {
            for chunk in chunks {
                self.n_elements_left -= chunk.n_elements;
                total.append(&chunk.look(StatsOptions::default()));
            }
        }
    }

    /// The [`xxh3_128`] digest, if it was requested, and the statistics.
    pub fn finish(self) -> (Option<[u8; 16]>, Result<Stats, StatsError>) {
        let digest = self.digest.map(|digest| digest.finish_128().to_be_bytes());
        (digest, self.stats.map(|total| total.finish()))
    }
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
                let mut pieces = PiecewiseNumbers::new(dtype, shape.n_elements(), true);
                for piece in bytes.chunks(PiecewiseNumbers::piece_bytes(dtype)) {
                    pieces.append(piece);
                }
                let stats = weighed_stats(view).map(|weighed| weighed.stats);
                let expected = format!("{:?}", (Some(xxh3_128(bytes)), stats));
                assert_eq!(
                    format!("{:?}", pieces.finish()),
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
