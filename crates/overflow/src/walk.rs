//! Walks several tensors at once, each with separate strides.

/// A nest of loops. Each axis has a size and, for every operand, a stride: 0 where the operand is
/// repeated or summed into.
#[derive(Clone, Debug)]
pub(super) struct OperandWalk {
    dims: Vec<usize>,
    /// `strides[axis][operand]`.
    strides: Vec<Vec<usize>>,
    n_operands: usize,
}

impl OperandWalk {
    /// A nest from its axes, outermost first.
    pub(super) fn new(
        n_operands: usize,
        axes: impl IntoIterator<Item = (usize, Vec<usize>)>,
    ) -> OperandWalk {
        let mut walk = OperandWalk {
            dims: Vec::new(),
            strides: Vec::new(),
            n_operands,
        };
        for (dim, strides) in axes {
            if dim == 1 {
                continue;
            }
            // Merges two loops that step evenly through all operands: tensors of one shape, or a
            // tensor with a scalar, end up with a single inner loop.
            match (walk.dims.last_mut(), walk.strides.last_mut()) {
                (Some(outer_dim), Some(outer)) if dim > 0 && is_continued(outer, &strides, dim) => {
                    *outer_dim *= dim;
                    *outer = strides;
                }
                _ => {
                    walk.dims.push(dim);
                    walk.strides.push(strides);
                }
            }
        }
        walk
    }

    /// The nest that broadcasts dense operands against each other as numpy does; `None` if their
    /// shapes are incompatible.
    pub(super) fn broadcast(shapes: &[&[usize]]) -> Option<OperandWalk> {
        let dims = broadcast_dims(shapes)?;
        let strides: Vec<Vec<usize>> = shapes
            .iter()
            .map(|shape| broadcast_strides(shape, dims.len()))
            .collect();
        let axes = (0..dims.len()).map(|axis| {
            let of_axis = strides.iter().map(|strides| strides[axis]).collect();
            (dims[axis], of_axis)
        });
        Some(OperandWalk::new(shapes.len(), axes))
    }

    /// Number of elements that the nest visits.
    pub(super) fn n_elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Calls `f` for each run of the innermost loop with its length, the operands' offsets at its
    /// start and their strides within it.
    pub(super) fn each_run(&self, mut f: impl FnMut(usize, &[usize], &[usize])) {
        if self.dims.contains(&0) {
            return;
        }
        let (Some((&len, outer_dims)), Some((inner, outer))) =
            (self.dims.split_last(), self.strides.split_last())
        else {
            let zeros = vec![0; self.n_operands];
            f(1, &zeros, &zeros);
            return;
        };
        let mut index = vec![0; outer_dims.len()];
        let mut offsets = vec![0; self.n_operands];
        loop {
            f(len, &offsets, inner);
            if !advance(&mut index, &mut offsets, outer_dims, outer) {
                return;
            }
        }
    }
}

/// Whether, for every operand, the outer loop's step equals the inner loop's whole length.
fn is_continued(outer: &[usize], inner: &[usize], inner_dim: usize) -> bool {
    let mut pairs = outer.iter().zip(inner);
    pairs.all(|(&outer, &inner)| Some(outer) == inner.checked_mul(inner_dim))
}

/// Steps to the next position of the outer loops; `false` after the last.
fn advance(
    index: &mut [usize],
    offsets: &mut [usize],
    dims: &[usize],
    strides: &[Vec<usize>],
) -> bool {
    for axis in (0..dims.len()).rev() {
        index[axis] += 1;
        if index[axis] < dims[axis] {
            for (offset, stride) in offsets.iter_mut().zip(&strides[axis]) {
                *offset += stride;
            }
            return true;
        }
        index[axis] = 0;
        for (offset, stride) in offsets.iter_mut().zip(&strides[axis]) {
            *offset -= stride * (dims[axis] - 1);
        }
    }
    false
}

/// The broadcast shape of the operands.
pub(super) fn broadcast_dims(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let n_axes = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut dims = vec![1; n_axes];
    for shape in shapes {
        let tail = dims[n_axes - shape.len()..].iter_mut();
        for (dim, &extent) in tail.zip(*shape) {
            match (*dim, extent) {
                (_, 1) => {}
                (1, _) => *dim = extent,
                (known, extent) if known == extent => {}
                _ => return None,
            }
        }
    }
    Some(dims)
}

/// The strides of a dense tensor broadcast to `n_axes` axes.
pub(super) fn broadcast_strides(dims: &[usize], n_axes: usize) -> Vec<usize> {
    // numpy aligns shapes at the last axis, so missing axes are in front and repeat everything.
    let mut strides = vec![0; n_axes.saturating_sub(dims.len())];
    let own = dense_strides(dims);
    strides.extend(
        own.iter()
            .zip(dims)
            .map(|(&stride, &dim)| if dim == 1 { 0 } else { stride }),
    );
    strides
}

/// The strides of a dense tensor.
pub(super) fn dense_strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; dims.len()];
    for axis in (1..dims.len()).rev() {
        // Next to an axis without elements, sizes may have any product.
        strides[axis - 1] = strides[axis].saturating_mul(dims[axis]);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every position of the two operands, in the order of the walk.
    fn positions(shapes: [&[usize]; 2]) -> Option<Vec<(usize, usize)>> {
        let mut found = Vec::new();
        OperandWalk::broadcast(&shapes)?.each_run(|len, offsets, strides| {
            found.extend(
                (0..len).map(|i| (offsets[0] + i * strides[0], offsets[1] + i * strides[1])),
            );
        });
        Some(found)
    }

    #[test]
    fn broadcasting() {
        let rows = vec![(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)];
        type Pairs = Option<Vec<(usize, usize)>>;
        let cases: [(&[usize], &[usize], Pairs); 8] = [
            (&[], &[], Some(vec![(0, 0)])),
            (&[2], &[2], Some(vec![(0, 0), (1, 1)])),
            (&[2], &[], Some(vec![(0, 0), (1, 0)])),
            (&[2, 3], &[3], Some(rows)),
            (&[2, 1], &[1, 2], Some(vec![(0, 0), (0, 1), (1, 0), (1, 1)])),
            (&[0, 3], &[3], Some(vec![])),
            (&[0], &[1], Some(vec![])),
            (&[2], &[3], None),
        ];
        for (a, b, expected) in cases {
            assert_eq!(positions([a, b]), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn even_loops_become_one() {
        let count = |shapes: [&[usize]; 2]| {
            let mut n_runs = 0;
            let walk = OperandWalk::broadcast(&shapes).unwrap();
            walk.each_run(|_, _, _| n_runs += 1);
            n_runs
        };
        assert_eq!(count([&[4, 5, 6], &[4, 5, 6]]), 1);
        assert_eq!(count([&[4, 5, 6], &[1]]), 1);
        assert_eq!(count([&[4, 5, 6], &[6]]), 20);
        assert_eq!(count([&[4, 5, 6], &[4, 1, 1]]), 4);
    }
}
