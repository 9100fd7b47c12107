//! Layouts in blocks along the last two axes, whatever these mean.

use super::nest::{AxisWalk, AxisWalks, CopyRegion, steps_product};
use super::{LayoutConversion, LayoutError, LayoutFamily, extent, family};
use crate::{Layout, Shape};

/// Rows of a block, unless the shape of the source determines them.
const M0: usize = 16;

/// A stack of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatrixStack {
    pub lead: usize,
    pub m: usize,
    pub n: usize,
}

struct MatrixPlacement {
    shape: Vec<usize>,
    lead: AxisWalk,
    m: AxisWalk,
    n: AxisWalk,
}

#[derive(Clone, Copy)]
struct MatrixBlockSizes {
    m0: usize,
    c0: usize,
}

/// Copies all elements unchanged.
pub(super) fn keep(c: &LayoutConversion<'_>) -> Result<(Shape, Vec<CopyRegion>), LayoutError> {
    let walk = AxisWalk::Even(1);
    let axes = vec![AxisWalks {
        extent: c.from_shape.n_elements(),
        src: walk,
        dst: walk,
    }];
    Ok((
        c.from_shape.clone(),
        vec![CopyRegion {
            src_base: 0,
            dst_base: 0,
            axes,
        }],
    ))
}

/// Plans a conversion to or from a layout in blocks along the last two axes.
pub(super) fn regions(c: &LayoutConversion<'_>) -> Result<(Shape, Vec<CopyRegion>), LayoutError> {
    let blocks = blocks(c)?;
    let original = original(c, blocks)?;
    let src = source(c, blocks, &original)?;
    let dst = place(c.to, &original, blocks)?;
    let out_shape = Shape::new(dst.shape)?;
    if out_shape.n_elements() == 0 || c.from_shape.n_elements() == 0 {
        return Ok((out_shape, vec![]));
    }
    let MatrixStack { lead, m, n } = split(&original)?;
    let axes = vec![
        AxisWalks {
            extent: lead,
            src: src.lead,
            dst: dst.lead,
        },
        AxisWalks {
            extent: m,
            src: src.m,
            dst: dst.m,
        },
        AxisWalks {
            extent: n,
            src: src.n,
            dst: dst.n,
        },
    ];
    Ok((
        out_shape,
        vec![CopyRegion {
            src_base: 0,
            dst_base: 0,
            axes,
        }],
    ))
}

/// The last two axes as a matrix, the others as a stack. One axis is one row.
pub(super) fn split(shape: &[usize]) -> Result<MatrixStack, LayoutError> {
    Ok(match shape {
        [] => MatrixStack {
            lead: 1,
            m: 1,
            n: 1,
        },
        &[n] => MatrixStack { lead: 1, m: 1, n },
        &[ref lead @ .., m, n] => MatrixStack {
            lead: extent(lead)?,
            m,
            n,
        },
    })
}

fn blocks(c: &LayoutConversion<'_>) -> Result<MatrixBlockSizes, LayoutError> {
    let (m0, c0) = match c.from_shape.dims() {
        [_, _, .., m0, c0] if family(c.from) == LayoutFamily::Matrix => (Some(*m0), Some(*c0)),
        _ => (None, None),
    };
    let c0 = c.c0.or(c0).unwrap_or(c.usual_c0());
    // FRACTAL_ZZ has square blocks.
    let usual_m0 = if [c.from, c.to].contains(&Layout::FractalZz) {
        c0
    } else {
        M0
    };
    let m0 = m0.unwrap_or(usual_m0);
    if m0 == 0 || c0 == 0 {
        return Err(LayoutError::empty_block());
    }
    Ok(MatrixBlockSizes { m0, c0 })
}

/// The dimensions without padding. The axes keep their order, so a plain target must equal the
/// original layout.
fn original(c: &LayoutConversion<'_>, blocks: MatrixBlockSizes) -> Result<Vec<usize>, LayoutError> {
    match c.original {
        Some((layout, shape)) => {
            let plain = if family(c.to) == LayoutFamily::Plain {
                c.to
            } else {
                c.from
            };
            let is_reordered = family(plain) == LayoutFamily::Plain
                && layout != plain
                && ![layout, plain].contains(&Layout::Nd);
            if is_reordered {
                return Err(c.unsupported());
            }
            Ok(shape.to_vec())
        }
        None if family(c.from) == LayoutFamily::Plain => Ok(c.from_shape.to_vec()),
        None => padded(c, blocks),
    }
}

/// The dimensions of a device source with its padding.
fn padded(
    c: &LayoutConversion<'_>,
    MatrixBlockSizes { m0, c0 }: MatrixBlockSizes,
) -> Result<Vec<usize>, LayoutError> {
    let [lead @ .., outer, inner, _, _] = c.from_shape.dims() else {
        return Err(LayoutError::axis_count(c.from, c.from_shape));
    };
    // The outer two axes are those of blocks: by rows in FRACTAL_ZZ, by columns in FRACTAL_NZ.
    let (m1, n1) = if c.from == Layout::FractalZz {
        (outer, inner)
    } else {
        (inner, outer)
    };
    let mut dims = lead.to_vec();
    dims.extend([extent(&[*m1, m0])?, extent(&[*n1, c0])?]);
    Ok(dims)
}

/// The placement of the source, checked against its shape.
fn source(
    c: &LayoutConversion<'_>,
    blocks: MatrixBlockSizes,
    original: &[usize],
) -> Result<MatrixPlacement, LayoutError> {
    let dims = match (c.is_prefix, family(c.from)) {
        (false, _) => original.to_vec(),
        (true, LayoutFamily::Plain) => c.from_shape.to_vec(),
        (true, _) => padded(c, blocks)?,
    };
    let placement = place(c.from, &dims, blocks)?;
    c.expect_shape(&Shape::new(placement.shape.clone())?)?;
    let (inside, outside) = (split(original)?, split(&dims)?);
    if inside.lead > outside.lead || inside.m > outside.m || inside.n > outside.n {
        let original = Shape::new(original)?;
        return Err(LayoutError::too_small(c.from, c.from_shape, &original));
    }
    Ok(placement)
}

/// The placement of matrices in a layout. Offsets cannot overflow, because the number of elements
/// does not.
fn place(
    layout: Layout,
    dims: &[usize],
    MatrixBlockSizes { m0, c0 }: MatrixBlockSizes,
) -> Result<MatrixPlacement, LayoutError> {
    let MatrixStack { m, n, .. } = split(dims)?;
    let (m1, n1) = (m.div_ceil(m0), n.div_ceil(c0));
    let mut shape = dims[..dims.len().saturating_sub(2)].to_vec();
    let (lead, m, n) = match layout {
        Layout::FractalNz => {
            shape.extend([n1, m1, m0, c0]);
            let outer = steps_product(&[m1, m0, c0]);
            let n = AxisWalk::Blocked {
                block: c0,
                shift: 0,
                outer,
                inner: 1,
            };
            // The blocks of a column follow one another, so that its rows are evenly spaced.
            (steps_product(&[n1, outer]), AxisWalk::Even(c0), n)
        }
        Layout::FractalZz => {
            shape.extend([m1, n1, m0, c0]);
            let outer = steps_product(&[n1, m0, c0]);
            let m = AxisWalk::Blocked {
                block: m0,
                shift: 0,
                outer,
                inner: c0,
            };
            let n = AxisWalk::Blocked {
                block: c0,
                shift: 0,
                outer: steps_product(&[m0, c0]),
                inner: 1,
            };
            (steps_product(&[m1, outer]), m, n)
        }
        _ => {
            shape = dims.to_vec();
            (steps_product(&[m, n]), AxisWalk::Even(n), AxisWalk::Even(1))
        }
    };
    Ok(MatrixPlacement {
        shape,
        lead: AxisWalk::Even(lead),
        m,
        n,
    })
}
