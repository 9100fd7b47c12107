//! Statistics of elements that do not lie side by side.

use super::{CHUNK_ELEMENTS, PartialStats, Stats, StatsError, StatsOptions, chunks};
use crate::strided::{StridedError, StridedWalk};
use crate::{DType, Shape};

/// Computes the statistics of elements at regular distances: `strides` are steps in elements along
/// each axis of `shape`, which may be negative or zero; `start` is the position of the first
/// element.
///
/// The result is that of [`stats`](crate::stats()) for a dense copy, bit for bit. At most one chunk
/// is copied at a time.
///
/// # Errors
/// [`StridedError`] if the dtype has no statistics or is packed, or an element lies outside
/// `bytes`.
pub fn stats_strided(
    dtype: DType,
    shape: &Shape,
    strides: &[isize],
    start: usize,
    bytes: &[u8],
) -> Result<Stats, StridedError> {
    // Whether there are statistics at all comes first.
    drop(chunks(dtype, 0, &[])?);
    let width = dtype.bytes().ok_or(StridedError::Packed(dtype))?;
    let walk = StridedWalk::new(shape, strides, start, bytes.len() / width)?;
    let mut total = PartialStats::default();
    let mut dense = Vec::with_capacity(shape.n_elements().min(CHUNK_ELEMENTS) * width);
    let mut flush = |dense: &mut Vec<u8>| -> Result<(), StatsError> {
        for chunk in chunks(dtype, dense.len() / width, dense)? {
            total.append(&chunk.look(StatsOptions::default()));
        }
        dense.clear();
        Ok(())
    };
    let mut result = Ok(());
    walk.runs(|run| {
        let mut i = 0;
        while i < run.n && result.is_ok() {
            let n = (run.n - i).min(CHUNK_ELEMENTS - dense.len() / width);
            run.copy(i, n, width, bytes, &mut dense);
            i += n;
            // Chunks have to end where those of a dense tensor end, so that the sums round alike.
            if dense.len() == CHUNK_ELEMENTS * width {
                result = flush(&mut dense);
            }
        }
    });
    result?;
    flush(&mut dense)?;
    Ok(total.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, TensorView, stats};

    fn bytes(n: usize) -> Vec<u8> {
        (0..n)
            .flat_map(|i| ((i * 37 % 101) as f32 - 50.5).to_le_bytes())
            .collect()
    }

    #[test]
    fn equals_the_statistics_of_a_dense_copy() {
        let bytes = bytes(1 << 21);
        let cases: &[(&[usize], &[isize], usize)] = &[
            (&[], &[], 5),
            (&[7], &[1], 3),
            (&[7], &[-2], 30),
            (&[4, 0, 3], &[1, 1, 1], 0),
            (&[5, 6], &[1, 100], 0),
            (&[3, 4, 5], &[0, 20, -1], 60),
            (&[1500, 1000], &[1, 1500], 0),
            (&[2, 1_000_000], &[1_000_000, 1], 1),
        ];
        for &(dims, strides, start) in cases {
            let shape = Shape::new(dims).unwrap();
            let mut dense = Vec::new();
            for i in 0..shape.n_elements() {
                let mut rest = i;
                let mut at = start as isize;
                for (&dim, stride) in dims.iter().zip(strides).rev() {
                    at += (rest % dim) as isize * stride;
                    rest /= dim;
                }
                dense.extend_from_slice(&bytes[at as usize * 4..][..4]);
            }
            let layout = Layout::Nd;
            let dtype = DType::F32;
            let view = TensorView {
                dtype,
                shape: &shape,
                layout,
                bytes: &dense,
            };
            let found = stats_strided(dtype, &shape, strides, start, &bytes).unwrap();
            assert_eq!(
                format!("{found:?}"),
                format!("{:?}", stats(view).unwrap()),
                "{dims:?}"
            );
        }
    }

    #[test]
    fn refuses_what_lies_outside() {
        let shape = Shape::new([3, 4]).unwrap();
        let of = |dtype, strides: &[isize], start| {
            stats_strided(dtype, &shape, strides, start, &[0; 48])
        };
        assert!(of(DType::F32, &[4, 1], 0).is_ok());
        for (strides, start) in [
            (&[4, 1][..], 1),
            (&[4, 2], 0),
            (&[-1, 1], 1),
            (&[isize::MAX, 1], 0),
            (&[isize::MIN, 1], 0),
            (&[1, 1], usize::MAX),
        ] {
            let found = of(DType::F32, strides, start);
            assert!(
                matches!(found, Err(StridedError::Outside { .. })),
                "{strides:?}"
            );
        }
        assert!(matches!(
            of(DType::F32, &[1], 0),
            Err(StridedError::Strides { .. })
        ));
        assert!(matches!(
            of(DType::I4, &[4, 1], 0),
            Err(StridedError::Packed(_))
        ));
        assert!(matches!(
            of(DType::C64, &[4, 1], 0),
            Err(StridedError::Stats(_))
        ));
    }
}
