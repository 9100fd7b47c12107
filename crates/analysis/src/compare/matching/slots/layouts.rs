//! The layout in which two slots can be compared.

use opscope_tensor::Layout;

use crate::compare::matching::LayoutHint;
use crate::compare::side::ExecutionSlot;

/// Axes of an image.
const IMAGE_AXES: usize = 4;
/// Axes of a volume.
const VOLUME_AXES: usize = 5;

/// Whether a layout is that of a framework, without padding.
pub(crate) fn is_plain(layout: Layout) -> bool {
    layout == Layout::Nd || layout.n_named_axes().is_some()
}

/// Returns the layout of a slot's axes. A name with another number of axes than the tensor says
/// nothing, as with biases of one axis in a network of images.
fn layout_of(slot: &ExecutionSlot) -> Layout {
    let layout = slot.layout.unwrap_or(Layout::Nd);
    let n_axes = slot.shape.as_ref().map(Vec::len);
    match layout.n_named_axes() {
        Some(n) if n_axes.is_some_and(|n_axes| n_axes != n) => Layout::Nd,
        _ => layout,
    }
}

/// The plain layout that both slots are brought to; none if they are compared as they are.
pub(super) fn common(a: &ExecutionSlot, b: &ExecutionSlot) -> Option<Layout> {
    let layouts = [layout_of(a), layout_of(b)];
    let [of_a, of_b] = layouts;
    if is_plain(of_a) && is_plain(of_b) {
        // Of `ND` nothing is known that could be turned.
        let is_other = of_a != of_b && of_a != Layout::Nd && of_b != Layout::Nd;
        return is_other.then_some(of_b);
    }
    // Equal blocks compare as they are, without the cost of turning both.
    let is_same = of_a == of_b && a.shape == b.shape && a.original_shape == b.original_shape;
    if is_same {
        return None;
    }
    let n_axes = [a, b].into_iter().find_map(n_original_axes);
    let has = |layout: Layout| layouts.contains(&layout);
    let has_image_blocks = has(Layout::Nc1hwc0) || has(Layout::Nc1hwc0C04);
    Some(match n_axes {
        // `FRACTAL_NZ` puts matrices into blocks, whatever the axes before the last two mean.
        Some(VOLUME_AXES) if !has(Layout::FractalNz) => Layout::Ncdhw,
        Some(IMAGE_AXES) if !has(Layout::FractalNz) => Layout::Nchw,
        // The blocks of an image are those of four axes, however many were there before.
        _ if has_image_blocks => Layout::Nchw,
        Some(_) => Layout::Nd,
        None if has(Layout::FractalZ) => Layout::Nchw,
        None if has(Layout::Ndc1hwc0) || has(Layout::FractalZ3d) => Layout::Ncdhw,
        None => Layout::Nd,
    })
}

/// Axes before the device changed the layout.
fn n_original_axes(slot: &ExecutionSlot) -> Option<usize> {
    let stored = slot.shape.as_ref().filter(|_| is_plain(layout_of(slot)));
    Some(slot.original_shape.as_ref().or(stored)?.len())
}

/// Image layouts that would map a target's shape to golden's.
const TURNS: [(Layout, Layout, &[usize]); 6] = [
    (Layout::Nhwc, Layout::Nchw, &[0, 3, 1, 2]),
    (Layout::Nchw, Layout::Nhwc, &[0, 2, 3, 1]),
    (Layout::Hwcn, Layout::Nchw, &[3, 2, 0, 1]),
    (Layout::Nchw, Layout::Hwcn, &[2, 3, 1, 0]),
    (Layout::Ndhwc, Layout::Ncdhw, &[0, 4, 1, 2, 3]),
    (Layout::Ncdhw, Layout::Ndhwc, &[0, 2, 3, 4, 1]),
];

/// Layouts that would explain different shapes, if the real layouts are unknown.
pub(super) fn hint(
    a: &ExecutionSlot,
    b: &ExecutionSlot,
    layout: Option<Layout>,
) -> Option<LayoutHint> {
    if layout.is_some() || !(is_plain(layout_of(a)) && is_plain(layout_of(b))) {
        return None;
    }
    let (from, to) = (a.shape.as_ref()?, b.shape.as_ref()?);
    if from == to {
        return None;
    }
    let turned = |axes: &[usize]| -> Option<Vec<u64>> {
        (axes.len() == from.len())
            .then(|| axes.iter().map(|&axis| from.get(axis).copied()).collect())?
    };
    // A hint and no more: axes of equal length fit several turns, and a wrong one would compare
    // other elements.
    let (target, golden, _) = TURNS
        .into_iter()
        .find(|(_, _, axes)| turned(axes).as_ref() == Some(to))?;
    Some(LayoutHint::Layouts { target, golden })
}
