//! Shapes and strides.

/// Order in which elements are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaveOrder {
    /// The last axis varies fastest.
    C,
    /// The first axis varies fastest.
    Fortran,
}

/// Sizes and strides of the axes, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    dims: Vec<usize>,
    strides: Vec<usize>,
}

/// The number of elements, if it fits the address space.
pub(crate) fn count(dims: &[usize]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim))
        .filter(|&n| n <= isize::MAX as usize / 16)
}

impl Geometry {
    /// Dense, the last axis varying fastest. Overflowing products saturate; arrays are created only
    /// after a check of their element count.
    pub(crate) fn contiguous(dims: &[usize]) -> Geometry {
        let mut strides = vec![1_usize; dims.len()];
        for axis in (1..dims.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(dims[axis].max(1));
        }
        Geometry {
            dims: dims.to_vec(),
            strides,
        }
    }

    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    pub(super) fn strides(&self) -> &[usize] {
        &self.strides
    }

    pub(super) fn n_elements(&self) -> usize {
        count(&self.dims).unwrap_or(0)
    }

    #[must_use]
    pub(crate) fn transpose(&self, axes: &[usize]) -> Geometry {
        Geometry {
            dims: axes.iter().map(|&axis| self.dims[axis]).collect(),
            strides: axes.iter().map(|&axis| self.strides[axis]).collect(),
        }
    }

    /// The axes in reverse order.
    #[must_use]
    pub(super) fn reversed(&self) -> Geometry {
        let axes: Vec<usize> = (0..self.dims.len()).rev().collect();
        self.transpose(&axes)
    }

    #[must_use]
    pub(crate) fn cut(&self, ends: &[usize]) -> Geometry {
        Geometry {
            dims: self
                .dims
                .iter()
                .zip(ends)
                .map(|(&dim, &end)| dim.min(end))
                .collect(),
            strides: self.strides.clone(),
        }
    }

    /// The same elements with another shape, or `None` if no strides express it. The number of
    /// elements must be the same.
    pub(crate) fn try_reshape(&self, dims: &[usize]) -> Option<Geometry> {
        if self.n_elements() == 0 {
            return Some(Geometry::contiguous(dims));
        }
        // Axes of size 1 do not affect the position of elements.
        let old: Vec<(usize, usize)> = self.axes().filter(|&(dim, _)| dim != 1).collect();
        let mut strides = vec![1; dims.len()];
        let (mut old_end, mut new_end) = (0, 0);
        while old_end < old.len() && new_end < dims.len() {
            // Find the smallest groups of old and new axes with the same number of elements.
            let (old_start, new_start) = (old_end, new_end);
            let (mut n_old, mut n_new) = (old[old_end].0, dims[new_end]);
            old_end += 1;
            new_end += 1;
            while n_old != n_new {
                if n_new < n_old {
                    n_new *= dims.get(new_end)?;
                    new_end += 1;
                } else {
                    n_old *= old.get(old_end)?.0;
                    old_end += 1;
                }
            }
            // The old axes of a group must be contiguous.
            let group = &old[old_start..old_end];
            if group
                .windows(2)
                .any(|pair| pair[0].1 != pair[1].0 * pair[1].1)
            {
                return None;
            }
            let mut stride = group.last().map_or(1, |&(_, stride)| stride);
            for axis in (new_start..new_end).rev() {
                strides[axis] = stride;
                stride *= dims[axis];
            }
        }
        let dims = dims.to_vec();
        Some(Geometry { dims, strides })
    }

    pub(super) fn is_c_contiguous(&self) -> bool {
        is_dense(self.axes().rev()) || self.n_elements() == 0
    }

    pub(super) fn is_fortran_contiguous(&self) -> bool {
        is_dense(self.axes()) || self.n_elements() == 0
    }

    /// numpy uses Fortran order for arrays that are contiguous in it but not in C order.
    pub(crate) fn saved_order(&self) -> SaveOrder {
        if self.is_fortran_contiguous() && !self.is_c_contiguous() {
            SaveOrder::Fortran
        } else {
            SaveOrder::C
        }
    }

    pub(super) fn axes(
        &self,
    ) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator + '_ {
        self.dims.iter().copied().zip(self.strides.iter().copied())
    }
}

/// Whether axes, fastest first, are contiguous.
fn is_dense(axes: impl Iterator<Item = (usize, usize)>) -> bool {
    let mut expected = 1;
    for (dim, stride) in axes.filter(|&(dim, _)| dim != 1) {
        if stride != expected {
            return false;
        }
        expected *= dim;
    }
    true
}
