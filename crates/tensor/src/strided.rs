//! Elements that do not lie side by side.

use thiserror::Error;

use crate::stats::StatsError;
use crate::{DType, Shape};

/// Why strided elements cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StridedError {
    /// The dtype has no statistics.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// Elements narrower than a byte are not addressable.
    #[error("elements of type `{0}` are packed and cannot be strided")]
    Packed(DType),
    /// There must be one stride for each axis.
    #[error("shape {shape} has {n_axes} axes, found {n_strides} strides", n_axes = shape.n_axes())]
    Strides {
        /// Dimensions.
        shape: Shape,
        /// Strides given.
        n_strides: usize,
    },
    /// Some element lies outside the bytes.
    #[error(
        "shape {shape} with strides {strides:?} from element {start} leaves the {n_elements} elements that are there"
    )]
    Outside {
        /// Dimensions.
        shape: Shape,
        /// Steps along the axes, in elements.
        strides: Vec<isize>,
        /// Where the first element is, in elements.
        start: usize,
        /// Elements in the bytes.
        n_elements: usize,
    },
    /// There is too little memory for a dense copy.
    #[error("no memory for a dense copy of shape {shape}")]
    Memory {
        /// Dimensions.
        shape: Shape,
    },
}

/// A dense, row-major copy of elements at regular distances: `strides` are steps in elements along
/// each axis of `shape`, which may be negative or zero; `start` is the position of the first
/// element.
///
/// # Errors
/// [`StridedError`] if the dtype is packed or has no size, an element is outside `bytes`, or there
/// is too little memory for the copy.
pub fn dense_copy(
    dtype: DType,
    shape: &Shape,
    strides: &[isize],
    start: usize,
    bytes: &[u8],
) -> Result<Vec<u8>, StridedError> {
    let width = dtype.bytes().ok_or(StridedError::Packed(dtype))?;
    let walk = StridedWalk::new(shape, strides, start, bytes.len() / width)?;
    let n_bytes = shape.n_elements().saturating_mul(width);
    let mut dense = Vec::new();
    dense
        .try_reserve_exact(n_bytes)
        .map_err(|_| StridedError::Memory {
            shape: shape.clone(),
        })?;
    walk.runs(|run| run.copy(0, run.n, width, bytes, &mut dense));
    Ok(dense)
}

/// Elements along the innermost axis.
#[derive(Clone, Copy)]
pub(crate) struct StridedRun {
    at: usize,
    pub(crate) n: usize,
    stride: isize,
}

impl StridedRun {
    /// Appends `n` elements from the `i`th on to `to`.
    pub(crate) fn copy(self, i: usize, n: usize, width: usize, bytes: &[u8], to: &mut Vec<u8>) {
        let position = |i: usize| {
            self.at
                .wrapping_add_signed(self.stride.wrapping_mul(i as isize))
        };
        if self.stride == 1 {
            let at = position(i) * width;
            to.extend_from_slice(&bytes[at..at + n * width]);
            return;
        }
        // Elements are moved one by one, so that a width known to the compiler is several times as
        // fast.
        let positions = (i..i + n).map(position);
        match width {
            1 => append::<1>(positions, bytes, to),
            2 => append::<2>(positions, bytes, to),
            4 => append::<4>(positions, bytes, to),
            8 => append::<8>(positions, bytes, to),
            _ => {
                for at in positions {
                    to.extend_from_slice(&bytes[at * width..][..width]);
                }
            }
        }
    }
}

fn append<const WIDTH: usize>(
    positions: impl Iterator<Item = usize>,
    bytes: &[u8],
    to: &mut Vec<u8>,
) {
    let elements = bytes.as_chunks::<WIDTH>().0;
    for at in positions {
        to.extend_from_slice(&elements[at]);
    }
}

/// Positions in row-major order, all of them within the elements.
pub(crate) struct StridedWalk {
    dims: Vec<usize>,
    strides: Vec<isize>,
    start: usize,
}

impl StridedWalk {
    pub(crate) fn new(
        shape: &Shape,
        strides: &[isize],
        start: usize,
        n_elements: usize,
    ) -> Result<StridedWalk, StridedError> {
        if strides.len() != shape.n_axes() {
            let (shape, n_strides) = (shape.clone(), strides.len());
            return Err(StridedError::Strides { shape, n_strides });
        }
        let is_outside = shape.n_elements() > 0
            && last_position(shape, strides, start).is_none_or(|last| last >= n_elements);
        if is_outside {
            return Err(StridedError::Outside {
                shape: shape.clone(),
                strides: strides.to_vec(),
                start,
                n_elements,
            });
        }
        Ok(StridedWalk {
            dims: shape.to_vec(),
            strides: strides.to_vec(),
            start,
        })
    }

    /// Shows every run, in row-major order.
    pub(crate) fn runs(&self, mut visit: impl FnMut(StridedRun)) {
        if self.dims.contains(&0) {
            return;
        }
        let (n, stride) = match (self.dims.last(), self.strides.last()) {
            (Some(&n), Some(&stride)) => (n, stride),
            _ => (1, 1),
        };
        let outer = self.dims.len().saturating_sub(1);
        let mut index = vec![0; outer];
        let mut at = self.start;
        loop {
            visit(StridedRun { at, n, stride });
            // The next position of the outer axes, as an odometer counts.
            let mut axis = outer;
            loop {
                let Some(next) = axis.checked_sub(1) else {
                    return;
                };
                axis = next;
                index[axis] += 1;
                // This may lead out of the elements, and below zero, until the axis is taken back.
                at = at.wrapping_add_signed(self.strides[axis]);
                if index[axis] < self.dims[axis] {
                    break;
                }
                let back = self.strides[axis].wrapping_mul(index[axis] as isize);
                at = at.wrapping_add_signed(back.wrapping_neg());
                index[axis] = 0;
            }
        }
    }
}

/// The position of the element that is last in memory; `None` if some element lies before the first
/// position, or beyond the range of positions. No dimension is zero.
fn last_position(shape: &Shape, strides: &[isize], start: usize) -> Option<usize> {
    // Checking the two ends is enough: every other element is between them.
    let (mut low, mut high) = (start, start);
    for (&dim, &stride) in shape.iter().zip(strides) {
        let reach = (dim - 1).checked_mul(stride.unsigned_abs())?;
        if stride < 0 {
            low = low.checked_sub(reach)?;
        } else {
            high = high.checked_add(reach)?;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies elements `0, 1, 2, …` and expects these.
    fn check(dims: &[usize], strides: &[isize], start: usize, expected: &[u64]) {
        let shape = Shape::new(dims).unwrap();
        for (dtype, width) in [
            (DType::U8, 1),
            (DType::I16, 2),
            (DType::F32, 4),
            (DType::F64, 8),
            (DType::C128, 16),
        ] {
            let element = |i: u64| (u128::from(i)).to_le_bytes()[..width].to_vec();
            let bytes: Vec<u8> = (0..12).flat_map(element).collect();
            let dense = dense_copy(dtype, &shape, strides, start, &bytes).unwrap();
            let expected: Vec<u8> = expected.iter().flat_map(|&i| element(i)).collect();
            assert_eq!(dense, expected, "{dims:?} {strides:?} {dtype}");
        }
    }

    #[test]
    fn copies_every_element_once_in_order() {
        check(&[], &[], 5, &[5]);
        check(&[0, 3], &[3, 1], 0, &[]);
        check(&[3], &[1], 2, &[2, 3, 4]);
        check(&[2, 3], &[1, 2], 0, &[0, 2, 4, 1, 3, 5]);
        check(&[2, 2], &[0, 1], 7, &[7, 8, 7, 8]);
        check(&[3], &[-4], 11, &[11, 7, 3]);
        check(&[2, 1, 2], &[6, 100, 2], 1, &[1, 3, 7, 9]);
    }

    #[test]
    fn refuses_what_is_not_there() {
        let shape = Shape::new([2, 3]).unwrap();
        let of =
            |dtype, strides: &[isize], start| dense_copy(dtype, &shape, strides, start, &[0; 24]);
        assert!(of(DType::F32, &[3, 1], 0).is_ok());
        assert!(matches!(
            of(DType::I4, &[3, 1], 0),
            Err(StridedError::Packed(_))
        ));
        assert!(matches!(
            of(DType::F32, &[3], 0),
            Err(StridedError::Strides { .. })
        ));
        assert!(matches!(
            of(DType::F32, &[4, 1], 0),
            Err(StridedError::Outside { .. })
        ));
        let huge = Shape::new([1 << 40, 1 << 18]).unwrap();
        let found = dense_copy(DType::F32, &huge, &[0, 0], 0, &[0; 4]);
        assert!(matches!(found, Err(StridedError::Memory { .. })));
    }
}
