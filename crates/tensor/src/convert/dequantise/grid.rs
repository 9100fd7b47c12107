//! Which scale belongs to which element.

use std::ops::Range;

use crate::Shape;

/// Elements in rows, each of which uses the scales in order.
pub(super) struct Grid {
    /// Number of scales.
    pub(super) n_parameters: usize,
    /// Dimensions outside of a row, with the stride in scales and the length in elements of their
    /// positions.
    outer: Vec<GridAxis>,
    /// Elements of a row.
    n_row: usize,
    /// Scales of a row.
    n_row_parameters: usize,
    /// Elements of a row that follow one another and share a scale; the last few may be fewer.
    n_together: usize,
}

#[derive(Clone, Copy)]
struct GridAxis {
    extent: usize,
    /// Positions along the axis that share a scale.
    block: usize,
    /// How many scales one block is from the next; 0 if all positions share one.
    stride: usize,
}

impl Grid {
    /// `None` if scales of the shape `parameters` do not fit.
    pub(super) fn new(
        shape: &Shape,
        parameters: &Shape,
        axis: i64,
        block_size: usize,
    ) -> Option<Grid> {
        let axes = axes(shape.dims(), parameters, axis, block_size)?;
        // Trailing axes without scales share one, so their elements form one section.
        let n_varied = axes
            .iter()
            .rposition(|axis| axis.stride != 0)
            .map_or(0, |i| i + 1);
        let (outer, inner) = axes.split_at(n_varied.saturating_sub(1));
        let n_row = inner.iter().map(|axis| axis.extent).product();
        let (mut n_row_parameters, mut n_together) = (1, n_row);
        if n_varied > 0
            && let Some((last, shared)) = inner.split_first()
        {
            n_row_parameters = last.extent.div_ceil(last.block);
            n_together = shared.iter().map(|axis| axis.extent).product::<usize>() * last.block;
        }
        Some(Grid {
            n_parameters: parameters.n_elements(),
            outer: outer.to_vec(),
            n_row,
            n_row_parameters,
            n_together,
        })
    }

    /// Shows each row: which elements it has, which scales, and how many elements in turn share
    /// one.
    pub(super) fn rows(&self, mut show: impl FnMut(Range<usize>, Range<usize>, usize)) {
        let n_rows: usize = self.outer.iter().map(|axis| axis.extent).product();
        // An empty row would be shown once for each outer position, of which there may be any
        // number.
        if self.n_row == 0 {
            return;
        }
        let mut position = vec![0; self.outer.len()];
        for row in 0..n_rows {
            let first: usize = self
                .outer
                .iter()
                .zip(&position)
                .map(|(axis, i)| i / axis.block * axis.stride)
                .sum();
            let start = row * self.n_row;
            show(
                start..start + self.n_row,
                first..first + self.n_row_parameters,
                self.n_together,
            );
            for (i, axis) in position.iter_mut().zip(&self.outer).rev() {
                *i += 1;
                if *i < axis.extent {
                    break;
                }
                *i = 0;
            }
        }
    }
}

fn axes(dims: &[usize], parameters: &Shape, axis: i64, block_size: usize) -> Option<Vec<GridAxis>> {
    let mut axes: Vec<GridAxis> = dims
        .iter()
        .map(|&extent| GridAxis {
            extent,
            block: 1,
            stride: 0,
        })
        .collect();
    let given = parameters.dims();
    if parameters.n_elements() == 1 {
        return Some(axes);
    }
    let n_axes = i64::try_from(dims.len()).ok()?;
    let axis = usize::try_from(if axis < 0 {
        axis.checked_add(n_axes)?
    } else {
        axis
    })
    .ok();
    // One axis of scales is along `axis` however many axes the elements have, so this check comes
    // before the axes are counted.
    if let ([n], Some(at)) = (given, axis)
        && dims.get(at) == Some(n)
    {
        axes[at].stride = 1;
        return Some(axes);
    }
    if given.len() != dims.len() {
        return None;
    }
    let mut stride = 1;
    for (i, (&n, along)) in given.iter().zip(&mut axes).enumerate().rev() {
        let is_blocked = block_size > 0 && axis == Some(i);
        if n == along.extent {
            // A stride of 0 lets an axis of size 1 join the section with a common scale.
            along.stride = if n == 1 { 0 } else { stride };
        } else if is_blocked && n == along.extent.div_ceil(block_size) {
            // A block may be said to be longer than the axis.
            along.block = block_size.min(along.extent);
            along.stride = stride;
        } else if n != 1 {
            return None;
        }
        stride *= n;
    }
    Some(axes)
}
