//! `FRACTAL_Z`: convolution weights in blocks of N0 and C0 channels.

use std::borrow::Cow;

use opscope_tensor::Layout;

use super::chain::{ConversionResult, ViewChain};
use super::request::{GROUPS_MIN, LayoutRequest, leading, numpy_cut, refuse_groups, times};
use crate::array::{ElementArray, SaveOrder, count, width};

/// Block edge that the reference uses for every dtype when converting to `FRACTAL_Z`.
const BLOCK: usize = 16;
const OUT_OF_MEMORY: &str = "Unable to allocate the array";

/// Converts to `NCHW` or `HWCN`. The wanted shape, in the target's order, has the size of the
/// kernel.
pub(super) fn to_plain<'a>(
    request: LayoutRequest<'a, '_>,
    to: Layout,
) -> Result<ConversionResult<'a>, String> {
    refuse_groups(&request)?;
    let wanted: [usize; 4] = leading(request.wanted)?;
    let [rows, no, ni, c0] = leading(request.dims)?;
    let [n, c, h, w] = match to {
        Layout::Hwcn => [wanted[3], wanted[2], wanted[0], wanted[1]],
        _ => wanted,
    };
    // Rows of blocks cover the kernel's positions for each block of input channels.
    let c1 = rows
        .checked_div(times(h, w))
        .ok_or("integer division or modulo by zero")?;
    let (padded_n, padded_c) = (times(no, ni), times(c1, c0));
    let (cut_n, cut_c) = (numpy_cut(padded_n, n), numpy_cut(padded_c, c));
    let (axes, merged, ends) = match to {
        Layout::Hwcn => (
            [1, 2, 0, 5, 3, 4],
            [h, w, padded_c, padded_n],
            [h, w, cut_c, cut_n],
        ),
        _ => (
            [3, 4, 0, 5, 1, 2],
            [padded_n, padded_c, h, w],
            [cut_n, cut_c, h, w],
        ),
    };
    ViewChain {
        from: Layout::FractalZ,
        from_dims: &[rows, no, ni, c0],
        to,
        split: &[c1, h, w, no, ni, c0],
        axes: &axes,
        merged: &merged,
        ends: &ends,
    }
    .follow(request.array)
}

/// Converts from a plain layout with axes N, C, H, W at `axes`.
///
/// The offset of a group's block lacks the number of blocks in a group, as in the reference, so
/// later groups overwrite earlier ones.
pub(super) fn from_plain<'a>(
    request: LayoutRequest<'a, '_>,
    axes: [usize; 4],
) -> Result<ConversionResult<'a>, String> {
    let dims: [usize; 4] = leading(request.dims)?;
    let groups = if request.groups >= GROUPS_MIN {
        request.groups as usize
    } else {
        1
    };
    let array = request.array.reshape(&dims)?.transpose(&axes);
    let dtype = array.dtype();
    let target = WeightTarget::new(array.dims(), groups)?;
    let n_bytes = count(&target.dims)
        .and_then(|n| n.checked_mul(width(dtype)))
        .filter(|&n| Vec::<u8>::new().try_reserve_exact(n).is_ok())
        .ok_or(OUT_OF_MEMORY)?;
    let mut out = vec![0; n_bytes];
    let elements = array.bytes_in_order(SaveOrder::C);
    target.fill(&elements, &mut out, width(dtype));
    Ok(ElementArray::flat(dtype, Cow::Owned(out))
        .reshape(&target.dims)?
        .into())
}

/// The target positions of an `NCHW` weight.
struct WeightTarget {
    dims: [usize; 4],
    /// Groups that share a block.
    enlarged: usize,
    groups: usize,
    /// The shape of one group: N, C, H, W.
    group: [usize; 4],
}

impl WeightTarget {
    fn new(dims: &[usize], groups: usize) -> Result<WeightTarget, String> {
        let [n_all, c, h, w] = leading(dims)?;
        let n = n_all / groups;
        let by_channels = lcm(c, BLOCK)
            .checked_div(c)
            .ok_or("integer division or modulo by zero")?;
        let by_kernels = lcm(n, BLOCK)
            .checked_div(n)
            .ok_or("integer division or modulo by zero")?;
        let enlarged = lcm(by_channels, by_kernels).min(groups).max(1);
        let blocks = times(
            groups.div_ceil(enlarged),
            times(enlarged, c).div_ceil(BLOCK),
        );
        let rows = times(blocks, times(h, w));
        Ok(WeightTarget {
            dims: [rows, times(enlarged, n).div_ceil(BLOCK), BLOCK, BLOCK],
            enlarged,
            groups,
            group: [n, c, h, w],
        })
    }

    fn fill(&self, elements: &[u8], out: &mut [u8], width: usize) {
        let [n, c, h, w] = self.group;
        let (kernel, n_blocks) = (h * w, self.dims[1]);
        if kernel == 0 {
            return;
        }
        for group in 0..self.groups {
            let (block, part) = (group / self.enlarged, group % self.enlarged);
            for in_n in 0..n {
                let to_n = part * n + in_n;
                for in_c in 0..c {
                    let to_c = part * c + in_c;
                    let first_row = (block * (to_c / BLOCK) + to_c / BLOCK) * kernel;
                    let from = (((group * n + in_n) * c) + in_c) * kernel;
                    for i in 0..kernel {
                        let line = ((first_row + i) * n_blocks + to_n / BLOCK) * BLOCK;
                        let to = (line + to_n % BLOCK) * BLOCK + to_c % BLOCK;
                        let source = &elements[(from + i) * width..][..width];
                        out[to * width..][..width].copy_from_slice(source);
                    }
                }
            }
        }
    }
}

fn lcm(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a.checked_div(x)
        .map_or(0, |quotient| quotient.saturating_mul(b))
}
