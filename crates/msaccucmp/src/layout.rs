//! Conversion from one layout to another, by the reference's rules.
//!
//! Each conversion is the reference's chain of numpy views. If the chain needs a copy, a kernel of
//! `opscope-tensor` makes it together with the cut that follows.

mod chain;
mod fractal_nz;
mod fractal_z;
mod request;

use opscope_tensor::Layout;

pub(super) use chain::ConversionResult;
pub(super) use fractal_nz::check_wanted_shape;
pub(super) use request::LayoutRequest;

use chain::ViewChain;
use request::{leading, numpy_cut, refuse_groups, times};

/// Converts, or returns numpy's or Python's message. `None` if the reference cannot convert between
/// the two layouts.
pub(super) fn convert<'a>(
    from: Layout,
    to: Layout,
    request: LayoutRequest<'a, '_>,
) -> Option<Result<ConversionResult<'a>, String>> {
    use Layout::*;
    let r = request;
    Some(match (from, to) {
        (Nchw, FractalZ) => fractal_z::from_plain(r, [0, 1, 2, 3]),
        (Nhwc, FractalZ) => fractal_z::from_plain(r, [0, 3, 1, 2]),
        (Hwcn, FractalZ) => fractal_z::from_plain(r, [3, 2, 0, 1]),
        (Nchw, Nhwc) => permute(r, [0, 2, 3, 1]),
        (Nhwc, Nchw) => permute(r, [0, 3, 1, 2]),
        (Nhwc, Hwcn) => permute(r, [1, 2, 3, 0]),
        (Hwcn, Nchw) => permute(r, [3, 2, 0, 1]),
        (Hwcn, Nhwc) => permute(r, [3, 0, 1, 2]),
        (Nc1hwc0, Nchw | Nhwc | Hwcn) => from_nc1hwc0(r, to),
        (FractalZ, Nchw | Hwcn) => fractal_z::to_plain(r, to),
        (FractalNz, Nd | Nchw | Nhwc) => fractal_nz::to_plain(r),
        (Ndc1hwc0, Ncdhw | Nd) => from_ndc1hwc0(r, to),
        _ => return None,
    })
}

fn permute<'a>(
    request: LayoutRequest<'a, '_>,
    axes: [usize; 4],
) -> Result<ConversionResult<'a>, String> {
    refuse_groups(&request)?;
    let dims: [usize; 4] = leading(request.dims)?;
    let array = request.array.reshape(&dims)?.transpose(&axes);
    Ok(ConversionResult::from(array))
}

fn from_nc1hwc0<'a>(
    request: LayoutRequest<'a, '_>,
    to: Layout,
) -> Result<ConversionResult<'a>, String> {
    refuse_groups(&request)?;
    let [n, c1, h, w, c0] = leading(request.dims)?;
    let c = times(c1, c0);
    let (axes, merged) = match to {
        Layout::Nhwc => ([0, 2, 3, 1, 4], [n, h, w, c]),
        Layout::Hwcn => ([2, 3, 1, 4, 0], [h, w, c, n]),
        _ => ([0, 1, 4, 2, 3], [n, c, h, w]),
    };
    ViewChain {
        from: Layout::Nc1hwc0,
        from_dims: &[n, c1, h, w, c0],
        to,
        split: &[n, c1, h, w, c0],
        axes: &axes,
        merged: &merged,
        ends: &merged,
    }
    .follow(request.array)
}

fn from_ndc1hwc0<'a>(
    request: LayoutRequest<'a, '_>,
    to: Layout,
) -> Result<ConversionResult<'a>, String> {
    refuse_groups(&request)?;
    let [n, d, c1, h, w, c0] = leading(request.dims)?;
    let c = times(c1, c0);
    let cut_c = match (to, request.wanted) {
        (Layout::Nd, [_, wanted, _, _, _]) => numpy_cut(c, *wanted),
        (Layout::Nd, _) => c,
        (_, [_, wanted, ..]) => numpy_cut(c, *wanted),
        _ => return Err("list index out of range".to_owned()),
    };
    ViewChain {
        from: Layout::Ndc1hwc0,
        from_dims: &[n, d, c1, h, w, c0],
        to: Layout::Ncdhw,
        split: &[n, d, c1, h, w, c0],
        axes: &[0, 2, 5, 1, 3, 4],
        merged: &[n, c, d, h, w],
        ends: &[n, cut_c, d, h, w],
    }
    .follow(request.array)
}

#[cfg(test)]
mod tests;
