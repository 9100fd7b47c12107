//! How images and weights lie in each layout.

use crate::Layout;
use crate::convert::layout::nest::{AxisWalk, steps_product};
use crate::convert::layout::{LayoutError, LayoutFamily, extent, family};

/// Rows of a block along the output channels, where the source does not say.
pub(super) const N0: usize = 16;

/// Dimensions of images and weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConvExtents {
    pub n: usize,
    pub c: usize,
    pub d: usize,
    pub h: usize,
    pub w: usize,
}

/// The placement of a tensor: the shape of its memory and the walk along each axis.
pub(super) struct ConvPlacement {
    pub shape: Vec<usize>,
    pub n: AxisWalk,
    pub c: AxisWalk,
    pub d: AxisWalk,
    pub h: AxisWalk,
    pub w: AxisWalk,
}

/// Sizes of the blocks.
#[derive(Clone, Copy)]
pub(super) struct ConvBlockSizes {
    pub c0: usize,
    pub n0: usize,
}

/// The order of the axes of a plain layout.
pub(super) fn axis_order(layout: Layout, n_axes: usize) -> Option<&'static str> {
    let order = match (layout, n_axes) {
        // A matrix as a weight: input channels, output channels.
        (Layout::Nd, 2) => "CN",
        (Layout::Nd, 4) => "NCHW",
        (Layout::Nd, 5) => "NCDHW",
        (Layout::Nd, _) => return None,
        _ if family(layout) == LayoutFamily::Plain => layout.name(),
        _ => return None,
    };
    (order.len() == n_axes).then_some(order)
}

/// Dimensions from a shape whose axes are in this order.
pub(super) fn read_extents(order: &str, shape: &[usize]) -> ConvExtents {
    let mut extents = ConvExtents {
        n: 1,
        c: 1,
        d: 1,
        h: 1,
        w: 1,
    };
    for (axis, &dim) in order.chars().zip(shape) {
        *extents.get_mut(axis) = dim;
    }
    extents
}

impl ConvExtents {
    fn get_mut(&mut self, axis: char) -> &mut usize {
        match axis {
            'N' => &mut self.n,
            'C' => &mut self.c,
            'D' => &mut self.d,
            'H' => &mut self.h,
            _ => &mut self.w,
        }
    }

    /// Whether no dimension is larger than in `outer`.
    pub(super) fn fits(&self, outer: &ConvExtents) -> bool {
        let inside = [self.n, self.c, self.d, self.h, self.w];
        let outside = [outer.n, outer.c, outer.d, outer.h, outer.w];
        inside.iter().zip(outside).all(|(&a, b)| a <= b)
    }
}

/// The memory layout of a tensor of this size. Offsets fit because the shape's count does.
pub(super) fn place(
    layout: Layout,
    order: &str,
    extents: ConvExtents,
    blocks: ConvBlockSizes,
) -> Result<ConvPlacement, LayoutError> {
    let order = match layout {
        Layout::Nd => order,
        _ => axis_order(layout, layout.name().len()).unwrap_or(order),
    };
    let has_depth = order.contains('D');
    if family(layout) == LayoutFamily::Plain {
        if !has_depth && extents.d != 1 {
            return Err(LayoutError::depth(layout, extents.d));
        }
        return Ok(place_plain(order, extents));
    }
    place_device(layout, extents, blocks)
}

/// The step from one index of `axis` to the next; 0 if there is no such axis.
fn step(order: &str, dims: &[usize], axis: char) -> usize {
    order
        .find(axis)
        .map_or(0, |at| steps_product(&dims[at + 1..]))
}

fn place_plain(order: &str, mut extents: ConvExtents) -> ConvPlacement {
    let shape: Vec<usize> = order.chars().map(|axis| *extents.get_mut(axis)).collect();
    let [n, c, d, h, w] =
        ['N', 'C', 'D', 'H', 'W'].map(|axis| AxisWalk::Even(step(order, &shape, axis)));
    ConvPlacement {
        shape,
        n,
        c,
        d,
        h,
        w,
    }
}

pub(super) fn place_device(
    layout: Layout,
    extents: ConvExtents,
    ConvBlockSizes { c0, n0 }: ConvBlockSizes,
) -> Result<ConvPlacement, LayoutError> {
    use Layout::{
        C1hwnc0, C1hwncoc0, FractalZ, FractalZ3d, FractalZ3dTranspose, FractalZC04, Ndc1hwc0,
    };
    let ConvExtents { n, c, d, h, w } = extents;
    if d != 1 && !matches!(layout, Ndc1hwc0 | FractalZ3d | FractalZ3dTranspose) {
        return Err(LayoutError::depth(layout, d));
    }
    let (c1, n1) = (c.div_ceil(c0), n.div_ceil(n0));
    // Checked, because block sizes may come from a file.
    let n_padded = extent(&[n1, n0])?;
    // Each layout as its axes, outermost first: `C` blocks of channels, `c` those within a block,
    // `o` the same once more, `n` the output channels with their padding.
    let order = match layout {
        Ndc1hwc0 => "NDCHWc",
        C1hwnc0 => "CHWNc",
        C1hwncoc0 => "CHWNoc",
        FractalZ => "CHWnc",
        FractalZ3d => "DCHWnc",
        FractalZ3dTranspose => return place_transposed(extents, c0),
        FractalZC04 => return place_four_channels(extents, ConvBlockSizes { c0, n0 }),
        _ => "NCHWc",
    };
    let dims: Vec<usize> = order
        .chars()
        .map(|axis| match axis {
            'N' => n,
            'C' => c1,
            'D' => d,
            'H' => h,
            'W' => w,
            'n' => n_padded,
            _ => c0,
        })
        .collect();
    let is_fractal = order.contains('n');
    let [n_step, d_step, h_step, w_step] = [if is_fractal { 'n' } else { 'N' }, 'D', 'H', 'W']
        .map(|axis| AxisWalk::Even(step(order, &dims, axis)));
    // In C1HWNCoC0 only the diagonal of the last two axes is used.
    let inner = if layout == C1hwncoc0 {
        c0.saturating_add(1)
    } else {
        1
    };
    let channel = AxisWalk::Blocked {
        block: c0,
        shift: 0,
        outer: step(order, &dims, 'C'),
        inner,
    };
    let shape = if is_fractal {
        vec![extent(&[d, c1, h, w])?, n1, n0, c0]
    } else {
        dims
    };
    Ok(ConvPlacement {
        shape,
        n: n_step,
        c: channel,
        d: d_step,
        h: h_step,
        w: w_step,
    })
}

/// `FRACTAL_Z_3D_TRANSPOSE`: `FRACTAL_Z_3D` with the channels' roles exchanged.
fn place_transposed(extents: ConvExtents, c0: usize) -> Result<ConvPlacement, LayoutError> {
    let exchanged = ConvExtents {
        n: extents.c,
        c: extents.n,
        ..extents
    };
    let blocks = ConvBlockSizes { c0, n0: N0 };
    let placement = place_device(Layout::FractalZ3d, exchanged, blocks)?;
    Ok(ConvPlacement {
        n: placement.c,
        c: placement.n,
        ..placement
    })
}

/// `FRACTAL_Z_C04`: four channels, then places, in blocks of C0.
fn place_four_channels(
    extents: ConvExtents,
    ConvBlockSizes { c0, n0 }: ConvBlockSizes,
) -> Result<ConvPlacement, LayoutError> {
    let (layout, ConvExtents { n, c, h, w, .. }) = (Layout::FractalZC04, extents);
    if c > 4 {
        let text = format!("`{layout}` holds at most 4 channels, found {c}");
        return Err(LayoutError::Unfit(text));
    }
    if !c0.is_multiple_of(4) {
        return Err(LayoutError::block(layout, c0));
    }
    let n1 = n.div_ceil(n0);
    let shape = vec![extent(&[4, h, w])?.div_ceil(c0), n1, n0, c0];
    let outer = extent(&[n1, n0, c0])?;
    let place = AxisWalk::Blocked {
        block: c0 / 4,
        shift: 0,
        outer,
        inner: 4,
    };
    let [n, c, none] = [c0, 1, 0].map(AxisWalk::Even);
    // Height and width are one axis here; `pair` joins those of the other side.
    Ok(ConvPlacement {
        shape,
        n,
        c,
        d: none,
        h: none,
        w: place,
    })
}
