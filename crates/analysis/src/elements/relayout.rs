//! Converts a tensor to another layout.

use std::borrow::Cow;

use opscope_store::reader::StoredTensor;
use opscope_tensor::convert::dtype::DecodeError;
use opscope_tensor::convert::layout::{LayoutConversion, LayoutError, LayoutPlan, default_c0};
use opscope_tensor::{DType, Layout, Shape};
use thiserror::Error;

use super::DumpElements;

/// Number of image axes.
const IMAGE_AXES: usize = 4;

/// A requested layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedLayout {
    /// The layout.
    pub target: Layout,
    /// Shape in the target's axis order; larger tensors are cropped. `None` uses the dump's
    /// original shape.
    pub shape: Option<Shape>,
}

/// Why a tensor cannot be converted to a layout.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RelayoutError {
    /// No version of the format defines this layout number.
    #[error("the layout number {0} is unknown")]
    UnknownLayout(u32),
    /// The original shape is invalid.
    #[error("the original shape: {0}")]
    Original(opscope_tensor::ShapeError),
    /// Packed elements cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Layouts and shapes do not match.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Shape without padding, and the layout of its axes.
type Original = (Layout, Shape);

impl WantedLayout {
    /// Converts the elements to the requested layout. Whole-byte dtypes stay as they are; packed
    /// dtypes are decoded first.
    pub(crate) fn apply<'a>(
        &self,
        elements: DumpElements<'a>,
        stored: &StoredTensor,
    ) -> Result<DumpElements<'a>, RelayoutError> {
        let from = elements.layout.map_err(RelayoutError::UnknownLayout)?;
        let device_dtype = elements.dtype;
        let elements = match elements.dtype.bytes() {
            Some(_) => elements.check_size()?,
            None => elements.decode()?,
        };
        let from = as_stored(from, elements.shape.n_axes());
        // `ND` carries no axis meaning, so converting a plain layout to or from it moves no
        // elements.
        let is_renamed = is_plain(from) && [from, self.target].contains(&Layout::Nd);
        let is_kept = from == self.target || (is_renamed && is_plain(self.target));
        if is_kept && self.shape.is_none() {
            return Ok(DumpElements {
                layout: Ok(self.target),
                ..elements
            });
        }
        let mut originals = match &self.shape {
            Some(shape) => vec![(self.target, shape.clone())],
            None if is_plain(from) => Vec::new(),
            None => originals(stored, from, self.target)?,
        }
        .into_iter();
        let request = RelayoutRequest {
            relayout: self,
            from,
            elements: &elements,
            device_dtype,
            n_groups: stored.n_groups.unwrap_or(1),
        };
        let first = request.plans(originals.next().as_ref());
        let plans = match first {
            // The original layout may be assumed. If it does not match and exactly one other does,
            // that one is used.
            Err(LayoutError::ShapeMismatch { .. }) => {
                let fitting = originals.filter_map(|original| request.plans(Some(&original)).ok());
                let fitting: Vec<Vec<LayoutPlan>> = fitting.collect();
                match <[Vec<LayoutPlan>; 1]>::try_from(fitting) {
                    Ok([plans]) => plans,
                    // The axis order is ambiguous.
                    Err(_) => first?,
                }
            }
            _ => first?,
        };
        let mut bytes = elements.bytes;
        let mut shape = elements.shape;
        for plan in plans {
            bytes = Cow::Owned(plan.run_to_vec(&bytes)?);
            shape = plan.out_shape().clone();
        }
        Ok(DumpElements {
            dtype: elements.dtype,
            shape,
            layout: Ok(self.target),
            bytes,
        })
    }
}

/// A tensor to convert.
struct RelayoutRequest<'a> {
    relayout: &'a WantedLayout,
    from: Layout,
    elements: &'a DumpElements<'a>,
    device_dtype: DType,
    n_groups: usize,
}

impl RelayoutRequest<'_> {
    /// The conversion steps: one, or two by way of the original layout if there is no direct
    /// conversion.
    fn plans(&self, original: Option<&Original>) -> Result<Vec<LayoutPlan>, LayoutError> {
        let (from, to) = (self.from, self.relayout.target);
        // Only whole-byte dtypes remain here.
        let width = self.elements.dtype.bytes().unwrap_or(0);
        let direct = LayoutConversion {
            original: original.map(|(layout, shape)| (*layout, shape)),
            groups: self.n_groups,
            c0: self.c0(from),
            is_prefix: self.relayout.shape.is_some(),
            ..LayoutConversion::new(from, &self.elements.shape, to, width)
        };
        let plan = LayoutPlan::new(&direct);
        let via = original.map_or(to, |(layout, _)| *layout);
        let is_detour = matches!(plan, Err(LayoutError::Unsupported { .. }));
        if !is_detour || [from, to].contains(&via) {
            return Ok(vec![plan?]);
        }
        let there = LayoutPlan::new(&LayoutConversion { to: via, ..direct })?;
        let onward = LayoutPlan::new(&LayoutConversion {
            from: via,
            from_shape: there.out_shape(),
            original: None,
            is_prefix: false,
            c0: self.c0(via),
            ..direct
        })?;
        Ok(vec![there, onward])
    }

    /// The block size of a device layout that is produced; a source layout has its own.
    fn c0(&self, from: Layout) -> Option<usize> {
        let is_made = is_plain(from) && self.relayout.target != Layout::Nc1hwc0C04;
        is_made.then(|| default_c0(self.device_dtype))
    }
}

fn is_plain(layout: Layout) -> bool {
    layout == Layout::Nd || layout.n_named_axes().is_some()
}

/// Frameworks label every tensor of an image network with the image layout, one-axis biases
/// included. If the number of axes does not match the name, the tensor is `ND`.
fn as_stored(layout: Layout, n_axes: usize) -> Layout {
    match layout.n_named_axes() {
        Some(n) if n != n_axes => Layout::Nd,
        _ => layout,
    }
}

/// Candidate original shapes and layouts, from before the device changed the layout: the layout of
/// the operator before fusion if the file records it, else the target's, then every other with as
/// many axes.
fn originals(
    stored: &StoredTensor,
    from: Layout,
    target: Layout,
) -> Result<Vec<Original>, RelayoutError> {
    let dims = stored.original_shape.as_deref().unwrap_or_default();
    if dims.is_empty() {
        return Ok(Vec::new());
    }
    let dims: Vec<usize> = dims
        .iter()
        .map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
        .collect();
    let shape = Shape::new(dims).map_err(RelayoutError::Original)?;
    let fits = |layout: &Layout| layout.n_named_axes() == Some(shape.n_axes());
    if let Some(known) = stored.original_layout.filter(fits) {
        return Ok(vec![(known, shape)]);
    }
    if matches!(from, Layout::FractalNz | Layout::FractalZz) {
        return Ok(vec![(Layout::Nd, shape)]);
    }
    // An image with fewer than four axes lacks the trailing ones.
    let is_image = matches!(from, Layout::Nc1hwc0 | Layout::Nc1hwc0C04);
    if is_image && shape.n_axes() < IMAGE_AXES {
        let mut dims = shape.to_vec();
        dims.resize(IMAGE_AXES, 1);
        let shape = Shape::new(dims).map_err(RelayoutError::Original)?;
        return Ok(vec![(Layout::Nchw, shape)]);
    }
    let assumed = Some(target).filter(fits).unwrap_or(Layout::Nd);
    let others = Layout::ALL.iter().copied();
    let others = others.filter(|layout| fits(layout) && *layout != assumed);
    let layouts = std::iter::once(assumed).chain(others);
    Ok(layouts.map(|layout| (layout, shape.clone())).collect())
}

#[cfg(test)]
mod tests;
