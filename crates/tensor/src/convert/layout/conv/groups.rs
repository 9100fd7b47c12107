//! Weights of grouped convolutions in `FRACTAL_Z` and `FRACTAL_Z_3D`.
//!
//! A group's channels rarely fill a block, so the device puts `E` groups side by side along both
//! channel axes: group `g` of such a bundle starts at input channel `g % E * c` and output channel
//! `g % E * n`. The result is block-diagonal, with padding off the diagonal.

use super::place::{ConvBlockSizes, ConvExtents, ConvPlacement, place, place_device};
use crate::convert::layout::nest::{AxisWalk, AxisWalks, CopyRegion};
use crate::convert::layout::{LayoutConversion, LayoutError, LayoutFamily, family};
use crate::{Layout, Shape};

/// Larger blocks could ask for millions of regions, and no device has them.
const C0_MAX: usize = 256;

/// Whether groups make a difference in this layout.
pub(super) fn applies(layout: Layout) -> bool {
    matches!(layout, Layout::FractalZ | Layout::FractalZ3d)
}

/// Plans the conversion of a grouped weight. `whole` has all output channels, and the input
/// channels of one group.
pub(super) fn regions(
    c: &LayoutConversion<'_>,
    blocks: ConvBlockSizes,
    order: &str,
    whole: ConvExtents,
) -> Result<(Shape, Vec<CopyRegion>), LayoutError> {
    let (device, plain, is_to_device) = if applies(c.to) {
        (c.to, c.from, true)
    } else {
        (c.from, c.to, false)
    };
    if family(plain) != LayoutFamily::Plain {
        return Err(c.unsupported());
    }
    let (n, groups, c0) = (whole.n, c.groups, blocks.c0);
    if !n.is_multiple_of(groups) || c0 > C0_MAX || blocks.n0 > C0_MAX {
        let text = format!("{n} output channels in blocks of {c0} cannot form {groups} groups");
        return Err(LayoutError::Unfit(text));
    }
    let group = ConvExtents {
        n: n / groups,
        ..whole
    };
    // The device packs groups diagonally, until both channel axes end at a whole block.
    let bundle = bundle_size(group, blocks, groups);
    let bundled = ConvExtents {
        n: group
            .n
            .checked_mul(bundle)
            .ok_or_else(LayoutError::too_large)?,
        c: group
            .c
            .checked_mul(bundle)
            .ok_or_else(LayoutError::too_large)?,
        ..group
    };
    let mut weight = place_device(device, bundled, blocks)?;
    let bundle_shape = Shape::new(weight.shape.clone())?;
    // Bundles are contiguous, so only the outermost dimension grows with their number.
    weight.shape[0] = weight.shape[0]
        .checked_mul(groups.div_ceil(bundle))
        .ok_or_else(LayoutError::too_large)?;
    let device_shape = Shape::new(weight.shape.clone())?;
    let image = place(plain, order, whole, blocks)?;
    let plain_shape = Shape::new(image.shape.clone())?;
    let (expected, out_shape) = if is_to_device {
        (plain_shape, device_shape)
    } else {
        (device_shape, plain_shape)
    };
    c.expect_shape(&expected)?;
    if expected.n_elements() == 0 || out_shape.n_elements() == 0 {
        return Ok((out_shape, vec![]));
    }
    let bundle_step = bundle_shape.n_elements();
    let regions = (0..bundle)
        .map(|place_in_bundle| GroupMember {
            place_in_bundle,
            bundle,
            groups,
            bundle_step,
        })
        .map(|member| member.region(&image, &weight, group, is_to_device))
        .collect();
    Ok((out_shape, regions))
}

/// How many groups fill whole blocks along both channel axes, but not more than there are.
fn bundle_size(
    group: ConvExtents,
    ConvBlockSizes { c0, n0 }: ConvBlockSizes,
    groups: usize,
) -> usize {
    if group.n == 0 || group.c == 0 {
        return 1;
    }
    let (a, b) = (c0 / gcd(group.c, c0), n0 / gcd(group.n, n0));
    (a / gcd(a, b) * b).min(groups)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The groups at the same place of every bundle.
struct GroupMember {
    place_in_bundle: usize,
    bundle: usize,
    groups: usize,
    bundle_step: usize,
}

impl GroupMember {
    fn region(
        &self,
        image: &ConvPlacement,
        weight: &ConvPlacement,
        e: ConvExtents,
        to_device: bool,
    ) -> CopyRegion {
        let at = self.place_in_bundle;
        let group_step = even_step(image.n) * e.n;
        let channel = match weight.c {
            AxisWalk::Blocked {
                block,
                outer,
                inner,
                ..
            } => AxisWalk::Blocked {
                block,
                // Each group begins where the one before it in the bundle ends, often within a
                // block.
                shift: at * e.c,
                outer,
                inner,
            },
            even => even,
        };
        // The last bundle may be short, so that places at its end have one group less.
        let n_bundles = (self.groups - at).div_ceil(self.bundle);
        let across = (
            AxisWalk::Even(self.bundle * group_step),
            AxisWalk::Even(self.bundle_step),
        );
        let (plain_base, device_base) = (at * group_step, at * e.n * even_step(weight.n));
        let (src_base, dst_base) = if to_device {
            (plain_base, device_base)
        } else {
            (device_base, plain_base)
        };
        let axes = [
            (n_bundles, across),
            (e.n, (image.n, weight.n)),
            (e.c, (image.c, channel)),
            (e.d, (image.d, weight.d)),
            (e.h, (image.h, weight.h)),
            (e.w, (image.w, weight.w)),
        ];
        let axes = axes.map(|(extent, (plain, device))| {
            let (src, dst) = if to_device {
                (plain, device)
            } else {
                (device, plain)
            };
            AxisWalks { extent, src, dst }
        });
        let axes = axes.to_vec();
        CopyRegion {
            src_base,
            dst_base,
            axes,
        }
    }
}

fn even_step(walk: AxisWalk) -> usize {
    match walk {
        AxisWalk::Even(step) => step,
        AxisWalk::Blocked { .. } => 0,
    }
}
