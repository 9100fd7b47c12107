//! The difference of tensors that are never in memory as a whole.

use super::source::{BLOCK, BlockSource};
use super::sweep::{DifferenceSweep, SweepResult};
use super::ulp::Ulps;
use super::{DifferenceError, TensorDifference, coarser};
use crate::{DType, TensorView, cpu};

/// Pieces have a multiple of this number of elements, except for the last one.
pub const N_PIECE_STEP: usize = BLOCK;

/// A difference that grows with each piece of both tensors.
///
/// Pieces of a multiple of [`N_PIECE_STEP`] elements yield the same numbers, bit for bit, as
/// [`difference`](super::difference) of both tensors at once, except for `kl`, which needs a second
/// pass and is not available here.
#[derive(Clone, Debug)]
pub struct PiecewiseDifference {
    dtypes: [DType; 2],
    /// `None` while a piece is processed.
    found: Option<SweepResult>,
}

impl PiecewiseDifference {
    /// Nothing compared yet of tensors of these dtypes, the target's first.
    pub fn new(dtypes: [DType; 2]) -> PiecewiseDifference {
        let ulps = coarser(dtypes[0], dtypes[1]).map(Ulps::new);
        PiecewiseDifference {
            dtypes,
            found: Some(SweepResult::new(ulps)),
        }
    }

    /// Compares the elements that follow those before.
    ///
    /// # Errors
    /// As [`difference`](super::difference), after which the piece counts for nothing.
    ///
    /// # Panics
    /// Not for views of the dtypes that this was made for; others would be counted as these.
    pub fn add(
        &mut self,
        target: TensorView<'_>,
        golden: TensorView<'_>,
    ) -> Result<(), DifferenceError> {
        debug_assert_eq!([target.dtype, golden.dtype], self.dtypes);
        let sources = [BlockSource::new(target)?, BlockSource::new(golden)?];
        let [a, b] = sources.map(|source| source.n());
        if a != b {
            return Err(DifferenceError::Size {
                target: a,
                golden: b,
            });
        }
        // Only a panic in the middle would leave nothing to go on with.
        if let Some(found) = self.found.take() {
            self.found = Some(cpu::run(DifferenceSweep { sources, found }));
        }
        Ok(())
    }

    /// The numbers of all pieces.
    pub fn finish(self) -> TensorDifference {
        let Some(found) = self.found else {
            return TensorDifference::default();
        };
        let mut result = found.difference();
        result.n = found.n_before;
        result.is_identical &= self.dtypes[0] == self.dtypes[1];
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;
    use crate::difference::{DifferenceOptions, difference};

    fn view<'a>(shape: &'a Shape, bytes: &'a [u8]) -> TensorView<'a> {
        TensorView::new(DType::F32, shape, bytes)
    }

    /// Pieces of any length of blocks, with equal, differing and non-finite elements.
    #[test]
    fn pieces_give_the_numbers_of_the_whole() {
        for n in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 17] {
            let value = |i: usize| (i as f32 * 0.37).sin() * 3.0;
            let target: Vec<u8> = (0..n)
                .flat_map(|i| {
                    let changed = match i % 5_003 {
                        7 => f32::NAN,
                        8 => f32::INFINITY,
                        k if i > BLOCK && k % 3 == 0 => value(i) * 1.01,
                        _ => value(i),
                    };
                    changed.to_le_bytes()
                })
                .collect();
            let golden: Vec<u8> = (0..n).flat_map(|i| value(i).to_le_bytes()).collect();
            let shape = Shape::new([n]).unwrap();
            let expected = difference(
                view(&shape, &target),
                view(&shape, &golden),
                DifferenceOptions::default(),
            );
            for step in [N_PIECE_STEP, 2 * N_PIECE_STEP] {
                let mut pieces = PiecewiseDifference::new([DType::F32; 2]);
                let chunks = target.chunks(4 * step).zip(golden.chunks(4 * step));
                for (target, golden) in chunks {
                    let shape = Shape::new([target.len() / 4]).unwrap();
                    let both = [target, golden].map(|bytes| view(&shape, bytes));
                    pieces.add(both[0], both[1]).unwrap();
                }
                let (found, expected) = (pieces.finish(), expected.clone().unwrap());
                // NaN is not equal to itself; texts are.
                assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{n} {step}");
            }
        }
    }
}
