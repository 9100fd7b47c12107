//! Layouts of images and of convolution weights: blocks along the channel axis.

mod groups;

use super::nest::{Axis, Region, Walk};
use super::{Conversion, Family, LayoutError, extent, family};
use crate::{Layout, Shape};

/// Rows of a block along the output channels, where the source does not say.
const N0: usize = 16;
/// Extents of the axes that images and weights have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extents {
    n: usize,
    c: usize,
    d: usize,
    h: usize,
    w: usize,
}

/// Where a tensor lies: the shape of its memory and the walk along each axis.
struct Placement {
    shape: Vec<usize>,
    n: Walk,
    c: Walk,
    d: Walk,
    h: Walk,
    w: Walk,
}

/// Sizes of the blocks.
#[derive(Clone, Copy)]
struct Blocks {
    c0: usize,
    n0: usize,
}

/// Plans a conversion where neither side is in blocks along both matrix axes.
pub(super) fn regions(conversion: &Conversion<'_>) -> Result<(Shape, Vec<Region>), LayoutError> {
    let c = conversion;
    let (from_blocks, to_blocks) = blocks(c)?;
    let (order, extents) = original(c)?;
    if c.groups > 1 && (groups::applies(c.from) || groups::applies(c.to)) {
        return groups::regions(c, to_blocks, order, extents);
    }
    let src = source(c, from_blocks, extents)?;
    let dst = place(c.to, order, extents, to_blocks)?;
    let out_shape = Shape::new(dst.shape.clone())?;
    if out_shape.n_elements() == 0 || c.from_shape.n_elements() == 0 {
        return Ok((out_shape, vec![]));
    }
    let region = Region {
        src_base: 0,
        dst_base: 0,
        axes: pair(&src, &dst, extents),
    };
    Ok((out_shape, vec![region]))
}

/// The order of the axes of a plain layout.
fn axis_order(layout: Layout, n_axes: usize) -> Option<&'static str> {
    let order = match (layout, n_axes) {
        // A matrix as a weight: input channels, output channels.
        (Layout::Nd, 2) => "CN",
        (Layout::Nd, 4) => "NCHW",
        (Layout::Nd, 5) => "NCDHW",
        (Layout::Nd, _) => return None,
        _ if family(layout) == Family::Plain => layout.name(),
        _ => return None,
    };
    (order.len() == n_axes).then_some(order)
}

/// The blocks of source and target.
fn blocks(c: &Conversion<'_>) -> Result<(Blocks, Blocks), LayoutError> {
    let in_source = (family(c.from) == Family::Conv).then(|| c.from_shape.last().copied());
    let from_c0 = c.c0.or(in_source.flatten()).unwrap_or(c.usual_c0());
    let to_c0 = match c.to {
        Layout::Nc1hwc0C04 => c.c0.unwrap_or(4),
        _ => from_c0,
    };
    let n0 = match (c.from, c.from_shape.dims()) {
        (Layout::FractalZ | Layout::FractalZ3d | Layout::FractalZC04, &[_, _, n0, _]) => n0,
        _ => N0,
    };
    if from_c0 == 0 || to_c0 == 0 || n0 == 0 {
        return Err(LayoutError::EmptyBlock);
    }
    Ok((Blocks { c0: from_c0, n0 }, Blocks { c0: to_c0, n0 }))
}

/// Order of the axes for an unnamed target, and the extents without padding.
fn original(c: &Conversion<'_>) -> Result<(&'static str, Extents), LayoutError> {
    let (layout, shape) = match c.original {
        Some(original) => original,
        None if family(c.from) == Family::Plain => (c.from, c.from_shape),
        None => {
            let extents = padded(c, None)?.ok_or(LayoutError::MissingOriginal(c.from))?;
            return Ok((if extents.d == 1 { "NCHW" } else { "NCDHW" }, extents));
        }
    };
    let order = axis_order(layout, shape.n_axes()).ok_or_else(|| LayoutError::AxisCount {
        layout,
        shape: shape.clone(),
    })?;
    Ok((order, read_extents(order, shape)))
}

fn read_extents(order: &str, shape: &[usize]) -> Extents {
    let mut extents = Extents {
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

impl Extents {
    fn get_mut(&mut self, axis: char) -> &mut usize {
        match axis {
            'N' => &mut self.n,
            'C' => &mut self.c,
            'D' => &mut self.d,
            'H' => &mut self.h,
            _ => &mut self.w,
        }
    }

    fn fits(&self, outer: &Extents) -> bool {
        let inside = [self.n, self.c, self.d, self.h, self.w];
        let outside = [outer.n, outer.c, outer.d, outer.h, outer.w];
        inside.iter().zip(outside).all(|(&a, b)| a <= b)
    }
}

/// The extents of a source with its padding, as far as its shape and the original tell them.
fn padded(c: &Conversion<'_>, original: Option<Extents>) -> Result<Option<Extents>, LayoutError> {
    use Layout::{C1hwnc0, C1hwncoc0, FractalZ, FractalZ3d, Nc1hwc0, Nc1hwc0C04, Ndc1hwc0};
    let shape = c.from_shape;
    let wrong = || LayoutError::AxisCount {
        layout: c.from,
        shape: shape.clone(),
    };
    let extents = match (c.from, shape.dims()) {
        (Nc1hwc0 | Nc1hwc0C04, &[n, c1, h, w, c0]) => Extents {
            n,
            c: extent(&[c1, c0])?,
            d: 1,
            h,
            w,
        },
        (Ndc1hwc0, &[n, d, c1, h, w, c0]) => Extents {
            n,
            c: extent(&[c1, c0])?,
            d,
            h,
            w,
        },
        (C1hwnc0, &[c1, h, w, n, c0]) => Extents {
            n,
            c: extent(&[c1, c0])?,
            d: 1,
            h,
            w,
        },
        (C1hwncoc0, &[c1, h, w, n, _, c0]) => Extents {
            n,
            c: extent(&[c1, c0])?,
            d: 1,
            h,
            w,
        },
        (FractalZ | FractalZ3d, &[rows, n1, n0, c0]) => {
            let Some(Extents { d, h, w, .. }) = original else {
                return Ok(None);
            };
            let c1 = rows.checked_div(extent(&[d, h, w])?).unwrap_or(0);
            Extents {
                n: extent(&[n1, n0])?,
                c: extent(&[c1, c0])?,
                d,
                h,
                w,
            }
        }
        (Nc1hwc0 | Nc1hwc0C04 | Ndc1hwc0 | C1hwnc0 | C1hwncoc0 | FractalZ | FractalZ3d, _) => {
            return Err(wrong());
        }
        (layout, dims) => match axis_order(layout, dims.len()) {
            Some(order) => read_extents(order, dims),
            None if family(layout) == Family::Plain => return Err(wrong()),
            None => return Ok(None),
        },
    };
    Ok(Some(extents))
}

/// The placement of the source, checked against its shape.
fn source(c: &Conversion<'_>, blocks: Blocks, extents: Extents) -> Result<Placement, LayoutError> {
    let padded = if c.is_prefix {
        padded(c, Some(extents))?
    } else {
        None
    };
    let order = axis_order(c.from, c.from_shape.n_axes());
    if order.is_none() && family(c.from) == Family::Plain {
        let shape = c.from_shape.clone();
        return Err(LayoutError::AxisCount {
            layout: c.from,
            shape,
        });
    }
    let order = order.unwrap_or_default();
    let placement = place(c.from, order, padded.unwrap_or(extents), blocks)?;
    let expected = Shape::new(placement.shape.clone())?;
    if expected != *c.from_shape {
        let found = c.from_shape.clone();
        return Err(LayoutError::ShapeMismatch {
            layout: c.from,
            expected,
            found,
        });
    }
    match (padded, c.original) {
        (Some(padded), Some((_, original))) if !extents.fits(&padded) => {
            let (found, original) = (c.from_shape.clone(), original.clone());
            Err(LayoutError::TooSmall {
                layout: c.from,
                found,
                original,
            })
        }
        _ => Ok(placement),
    }
}

/// How a tensor of these extents lies in a layout. Offsets fit because the shape's count does.
fn place(
    layout: Layout,
    order: &str,
    extents: Extents,
    blocks: Blocks,
) -> Result<Placement, LayoutError> {
    let order = match layout {
        Layout::Nd => order,
        _ => axis_order(layout, layout.name().len()).unwrap_or(order),
    };
    let has_depth = order.contains('D');
    if family(layout) == Family::Plain {
        if !has_depth && extents.d != 1 {
            return Err(LayoutError::Depth {
                layout,
                depth: extents.d,
            });
        }
        return Ok(place_plain(order, extents));
    }
    place_device(layout, extents, blocks)
}

fn place_plain(order: &str, mut extents: Extents) -> Placement {
    let shape: Vec<usize> = order.chars().map(|axis| *extents.get_mut(axis)).collect();
    let step = |axis: char| match order.find(axis) {
        Some(at) => Walk::Even(shape[at + 1..].iter().fold(1, |a, &b| a.saturating_mul(b))),
        None => Walk::Even(0),
    };
    let (n, c, d, h, w) = (step('N'), step('C'), step('D'), step('H'), step('W'));
    Placement {
        shape,
        n,
        c,
        d,
        h,
        w,
    }
}

fn place_device(
    layout: Layout,
    extents: Extents,
    Blocks { c0, n0 }: Blocks,
) -> Result<Placement, LayoutError> {
    use Layout::{C1hwnc0, C1hwncoc0, FractalZ3d, FractalZ3dTranspose, FractalZC04, Ndc1hwc0};
    let Extents { n, c, d, h, w } = extents;
    let c1 = c.div_ceil(c0);
    let n_padded = extent(&[n.div_ceil(n0), n0])?;
    if d != 1 && !matches!(layout, Ndc1hwc0 | FractalZ3d | FractalZ3dTranspose) {
        return Err(LayoutError::Depth { layout, depth: d });
    }
    // Each layout as its axes, outermost first; adjacent ones may share an axis of the shape.
    let nest: Vec<(char, usize)> = match layout {
        Ndc1hwc0 => vec![('N', n), ('D', d), ('C', c1), ('H', h), ('W', w), ('c', c0)],
        C1hwnc0 => vec![('C', c1), ('H', h), ('W', w), ('N', n), ('c', c0)],
        C1hwncoc0 => vec![
            ('C', c1),
            ('H', h),
            ('W', w),
            ('N', n),
            ('o', c0),
            ('c', c0),
        ],
        Layout::FractalZ => vec![('C', c1), ('H', h), ('W', w), ('N', n_padded), ('c', c0)],
        FractalZ3d => {
            vec![
                ('D', d),
                ('C', c1),
                ('H', h),
                ('W', w),
                ('N', n_padded),
                ('c', c0),
            ]
        }
        FractalZ3dTranspose => return place_transposed(extents, c0),
        FractalZC04 => return place_four_channels(extents, Blocks { c0, n0 }),
        _ => vec![('N', n), ('C', c1), ('H', h), ('W', w), ('c', c0)],
    };
    let dims: Vec<usize> = nest.iter().map(|&(_, dim)| dim).collect();
    let step = |axis: char| match nest.iter().position(|&(name, _)| name == axis) {
        Some(at) => dims[at + 1..]
            .iter()
            .fold(1_usize, |a, &b| a.saturating_mul(b)),
        None => 0,
    };
    let shape = match layout {
        Layout::FractalZ | FractalZ3d => vec![extent(&[d, c1, h, w])?, n.div_ceil(n0), n0, c0],
        _ => dims.clone(),
    };
    // In C1HWNCoC0 only the diagonal of the last two axes is used.
    let inner = if layout == C1hwncoc0 {
        c0.saturating_add(1)
    } else {
        1
    };
    let channel = Walk::Blocked {
        block: c0,
        shift: 0,
        outer: step('C'),
        inner,
    };
    let [n, d, h, w] = ['N', 'D', 'H', 'W'].map(|axis| Walk::Even(step(axis)));
    Ok(Placement {
        shape,
        n,
        c: channel,
        d,
        h,
        w,
    })
}

/// `FRACTAL_Z_3D_TRANSPOSE`: `FRACTAL_Z_3D` with the channels' roles exchanged.
fn place_transposed(extents: Extents, c0: usize) -> Result<Placement, LayoutError> {
    let exchanged = Extents {
        n: extents.c,
        c: extents.n,
        ..extents
    };
    let blocks = Blocks { c0, n0: N0 };
    let placement = place_device(Layout::FractalZ3d, exchanged, blocks)?;
    Ok(Placement {
        n: placement.c,
        c: placement.n,
        ..placement
    })
}

/// `FRACTAL_Z_C04`: four channels, then places, in blocks of C0.
fn place_four_channels(
    extents: Extents,
    Blocks { c0, n0 }: Blocks,
) -> Result<Placement, LayoutError> {
    let (layout, Extents { n, c, h, w, .. }) = (Layout::FractalZC04, extents);
    if c > 4 {
        return Err(LayoutError::Channels { layout, found: c });
    }
    if !c0.is_multiple_of(4) {
        return Err(LayoutError::Block { layout, c0 });
    }
    let n1 = n.div_ceil(n0);
    let shape = vec![extent(&[4, h, w])?.div_ceil(c0), n1, n0, c0];
    let outer = extent(&[n1, n0, c0])?;
    let place = Walk::Blocked {
        block: c0 / 4,
        shift: 0,
        outer,
        inner: 4,
    };
    let [n, c, none] = [c0, 1, 0].map(Walk::Even);
    // Height and width are one axis here; `pair` joins those of the other side.
    Ok(Placement {
        shape,
        n,
        c,
        d: none,
        h: none,
        w: place,
    })
}

fn pair(src: &Placement, dst: &Placement, e: Extents) -> Vec<Axis> {
    let are_joined = |p: &Placement| matches!(p.w, Walk::Blocked { .. });
    let (h, w) = if are_joined(src) || are_joined(dst) {
        (1, e.h * e.w)
    } else {
        (e.h, e.w)
    };
    let axis = |extent, src, dst| Axis { extent, src, dst };
    vec![
        axis(e.n, src.n, dst.n),
        axis(e.c, src.c, dst.c),
        axis(e.d, src.d, dst.d),
        axis(h, src.h, dst.h),
        axis(w, src.w, dst.w),
    ]
}
