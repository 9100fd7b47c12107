//! Layouts of images and of convolution weights: blocks along the channel axis.

mod groups;
mod place;

use place::{ConvBlockSizes, ConvExtents, ConvPlacement, N0, axis_order, place, read_extents};

use super::nest::{AxisWalk, AxisWalks, CopyRegion};
use super::{LayoutConversion, LayoutError, LayoutFamily, extent, family};
use crate::{Layout, Shape};

/// Plans a conversion where neither side is in blocks along both matrix axes.
pub(super) fn regions(
    conversion: &LayoutConversion<'_>,
) -> Result<(Shape, Vec<CopyRegion>), LayoutError> {
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
    let region = CopyRegion {
        src_base: 0,
        dst_base: 0,
        axes: pair(&src, &dst, extents),
    };
    Ok((out_shape, vec![region]))
}

/// The blocks of source and target.
fn blocks(c: &LayoutConversion<'_>) -> Result<(ConvBlockSizes, ConvBlockSizes), LayoutError> {
    // The last axis of a device layout is its C0, whatever is usual for the dtype.
    let in_source = (family(c.from) == LayoutFamily::Conv).then(|| c.from_shape.last().copied());
    let from_c0 = c.c0.or(in_source.flatten()).unwrap_or(c.usual_c0());
    let to_c0 = match c.to {
        // The layout's name fixes its block, so the blocks of the source say nothing of it.
        Layout::Nc1hwc0C04 => c.c0.unwrap_or(4),
        _ => from_c0,
    };
    let n0 = match (c.from, c.from_shape.dims()) {
        (Layout::FractalZ | Layout::FractalZ3d | Layout::FractalZC04, &[_, _, n0, _]) => n0,
        _ => N0,
    };
    if from_c0 == 0 || to_c0 == 0 || n0 == 0 {
        return Err(LayoutError::empty_block());
    }
    Ok((
        ConvBlockSizes { c0: from_c0, n0 },
        ConvBlockSizes { c0: to_c0, n0 },
    ))
}

/// Order of the axes for an unnamed target, and the dimensions without padding.
fn original(c: &LayoutConversion<'_>) -> Result<(&'static str, ConvExtents), LayoutError> {
    let (layout, shape) = match c.original {
        Some(original) => original,
        None if family(c.from) == LayoutFamily::Plain => (c.from, c.from_shape),
        None => {
            let extents = padded(c, None)?.ok_or_else(|| LayoutError::missing_original(c.from))?;
            return Ok((if extents.d == 1 { "NCHW" } else { "NCDHW" }, extents));
        }
    };
    let order =
        axis_order(layout, shape.n_axes()).ok_or_else(|| LayoutError::axis_count(layout, shape))?;
    Ok((order, read_extents(order, shape)))
}

/// The dimensions of a source with its padding, as far as its shape and the original determine
/// them.
fn padded(
    c: &LayoutConversion<'_>,
    original: Option<ConvExtents>,
) -> Result<Option<ConvExtents>, LayoutError> {
    use Layout::{C1hwnc0, C1hwncoc0, FractalZ, FractalZ3d, Nc1hwc0, Nc1hwc0C04, Ndc1hwc0};
    let shape = c.from_shape;
    let wrong = || LayoutError::axis_count(c.from, shape);
    let extents = match (c.from, shape.dims()) {
        (Nc1hwc0 | Nc1hwc0C04, &[n, c1, h, w, c0]) => ConvExtents {
            n,
            c: extent(&[c1, c0])?,
            d: 1,
            h,
            w,
        },
        (Ndc1hwc0, &[n, d, c1, h, w, c0]) => ConvExtents {
            n,
            c: extent(&[c1, c0])?,
            d,
            h,
            w,
        },
        (C1hwnc0, &[c1, h, w, n, c0]) => ConvExtents {
            n,
            c: extent(&[c1, c0])?,
            d: 1,
            h,
            w,
        },
        (C1hwncoc0, &[c1, h, w, n, _, c0]) => ConvExtents {
            n,
            c: extent(&[c1, c0])?,
            d: 1,
            h,
            w,
        },
        // The first axis joins depth, blocks, height and width, and only the original separates
        // them.
        (FractalZ | FractalZ3d, &[rows, n1, n0, c0]) => {
            let Some(ConvExtents { d, h, w, .. }) = original else {
                return Ok(None);
            };
            // An original without places has no elements either, and nothing to divide by.
            let c1 = rows.checked_div(extent(&[d, h, w])?).unwrap_or(0);
            ConvExtents {
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
            None if family(layout) == LayoutFamily::Plain => return Err(wrong()),
            None => return Ok(None),
        },
    };
    Ok(Some(extents))
}

/// The placement of the source, checked against its shape.
fn source(
    c: &LayoutConversion<'_>,
    blocks: ConvBlockSizes,
    extents: ConvExtents,
) -> Result<ConvPlacement, LayoutError> {
    // Without a prefix the source has to be the original and its padding exactly: nothing is cut
    // off unasked.
    let padded = if c.is_prefix {
        padded(c, Some(extents))?
    } else {
        None
    };
    let order = axis_order(c.from, c.from_shape.n_axes());
    if order.is_none() && family(c.from) == LayoutFamily::Plain {
        return Err(LayoutError::axis_count(c.from, c.from_shape));
    }
    let order = order.unwrap_or_default();
    let placement = place(c.from, order, padded.unwrap_or(extents), blocks)?;
    c.expect_shape(&Shape::new(placement.shape.clone())?)?;
    match (padded, c.original) {
        (Some(padded), Some((_, original))) if !extents.fits(&padded) => {
            Err(LayoutError::too_small(c.from, c.from_shape, original))
        }
        _ => Ok(placement),
    }
}

/// The axes of both sides, where one of them may have height and width in one.
fn pair(src: &ConvPlacement, dst: &ConvPlacement, e: ConvExtents) -> Vec<AxisWalks> {
    // FRACTAL_Z_C04 cuts height times width into blocks, so both are walked as one axis.
    let (h, w) =
        if matches!(src.w, AxisWalk::Blocked { .. }) || matches!(dst.w, AxisWalk::Blocked { .. }) {
            (1, e.h * e.w)
        } else {
            (e.h, e.w)
        };
    let axes = [
        (e.n, src.n, dst.n),
        (e.c, src.c, dst.c),
        (e.d, src.d, dst.d),
        (h, src.h, dst.h),
        (w, src.w, dst.w),
    ];
    let axes = axes.map(|(extent, src, dst)| AxisWalks { extent, src, dst });
    axes.to_vec()
}
