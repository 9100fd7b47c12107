//! Conversion of a tensor to another layout.

use std::borrow::Cow;

use opscope_store::file_format::dump_data::{TensorEntry, layout_from_code};
use opscope_tensor::convert::dtype::DecodeError;
use opscope_tensor::convert::layout::{Conversion, LayoutError, Plan, default_c0};
use opscope_tensor::{DType, Layout, Shape};
use thiserror::Error;

use super::elements::Elements;

/// The numbers of groups from which a header's `sub_format` means groups.
const GROUPS_MIN: i32 = 2;

/// Which layout is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayout {
    /// The layout.
    pub target: Layout,
    /// Extents in the order of the target; larger tensors are cut to their leading part. By default
    /// those that the dump gives as original.
    pub shape: Option<Shape>,
}

/// Why a tensor cannot be converted to a layout.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RelayoutError {
    /// The number of a layout that no version of the format defines.
    #[error("the layout number {0} is unknown")]
    UnknownLayout(u32),
    /// The original shape is not usable.
    #[error("the original shape: {0}")]
    Original(opscope_tensor::ShapeError),
    /// Packed elements cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Layouts and shapes do not fit together.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Extents without padding, with the layout that they are in.
type Original = (Layout, Shape);

impl Relayout {
    /// The elements in the wanted layout. Whole-byte dtypes stay what they are; packed ones are
    /// decoded first.
    pub(crate) fn apply<'a>(
        &self,
        elements: Elements<'a>,
        entry: &TensorEntry,
    ) -> Result<Elements<'a>, RelayoutError> {
        let from = elements.layout.map_err(RelayoutError::UnknownLayout)?;
        let device_dtype = elements.dtype;
        let elements = match elements.dtype.bytes() {
            Some(_) => elements.check_size()?,
            None => elements.decode()?,
        };
        let from = as_stored(from, elements.shape.n_axes());
        let is_renamed = is_plain(from) && [from, self.target].contains(&Layout::Nd);
        let is_kept = from == self.target || (is_renamed && is_plain(self.target));
        if is_kept && self.shape.is_none() {
            return Ok(Elements {
                layout: Ok(self.target),
                ..elements
            });
        }
        let original = match &self.shape {
            Some(shape) => Some((self.target, shape.clone())),
            None if is_plain(from) => None,
            None => original(entry, from, self.target)?,
        };
        let (shape, bytes) = self.run(from, &elements, device_dtype, original.as_ref(), entry)?;
        Ok(Elements {
            dtype: elements.dtype,
            shape,
            layout: Ok(self.target),
            bytes: Cow::Owned(bytes),
        })
    }

    /// Converts at once, or by way of the original layout where there is no direct way.
    fn run(
        &self,
        from: Layout,
        elements: &Elements<'_>,
        device_dtype: DType,
        original: Option<&Original>,
        entry: &TensorEntry,
    ) -> Result<(Shape, Vec<u8>), RelayoutError> {
        let n_groups = usize::try_from(entry.sub_format).unwrap_or(0);
        let direct = Conversion {
            original: original.map(|(layout, shape)| (*layout, shape)),
            groups: if entry.sub_format >= GROUPS_MIN {
                n_groups
            } else {
                1
            },
            c0: self.c0(from, device_dtype),
            is_prefix: self.shape.is_some(),
            // Only dtypes of whole bytes are left.
            ..Conversion::new(
                from,
                &elements.shape,
                self.target,
                elements.dtype.bytes().unwrap_or(0),
            )
        };
        let plan = Plan::new(&direct);
        let (Err(LayoutError::Unsupported { .. }), Some((via, _))) = (&plan, original) else {
            let plan = plan?;
            return Ok((plan.out_shape().clone(), plan.run_to_vec(&elements.bytes)?));
        };
        if [from, self.target].contains(via) {
            return Err(plan
                .err()
                .map_or(RelayoutError::UnknownLayout(entry.format), Into::into));
        }
        let there = Plan::new(&Conversion { to: *via, ..direct })?;
        let plain = there.run_to_vec(&elements.bytes)?;
        let onward = Plan::new(&Conversion {
            from: *via,
            from_shape: there.out_shape(),
            original: None,
            is_prefix: false,
            c0: self.c0(*via, device_dtype),
            ..direct
        })?;
        Ok((onward.out_shape().clone(), onward.run_to_vec(&plain)?))
    }

    /// The block size of a device layout that is made here; one that is left has its own.
    fn c0(&self, from: Layout, device_dtype: DType) -> Option<usize> {
        let is_made = is_plain(from) && self.target != Layout::Nc1hwc0C04;
        is_made.then(|| default_c0(device_dtype))
    }
}

fn is_plain(layout: Layout) -> bool {
    layout == Layout::Nd || layout.n_named_axes().is_some()
}

/// Frameworks call every tensor of an image network by the image's layout, biases of one axis too.
/// With another number of axes than the name has, such a tensor is `ND`.
fn as_stored(layout: Layout, n_axes: usize) -> Layout {
    match layout.n_named_axes() {
        Some(n) if n != n_axes => Layout::Nd,
        _ => layout,
    }
}

/// The extents before the device changed the layout, in the layout that the operator before fusion
/// had where the file says so, else in the target's.
fn original(
    entry: &TensorEntry,
    from: Layout,
    target: Layout,
) -> Result<Option<Original>, RelayoutError> {
    let Some(dims) = entry
        .original_shape
        .as_ref()
        .filter(|dims| !dims.is_empty())
    else {
        return Ok(None);
    };
    let dims: Vec<usize> = dims
        .iter()
        .map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
        .collect();
    let shape = Shape::new(dims).map_err(RelayoutError::Original)?;
    let fits = |layout: &Layout| layout.n_named_axes() == Some(shape.n_axes());
    let of_op = entry.original_op.as_ref();
    let known = of_op
        .and_then(|op| layout_from_code(op.format & 0xff))
        .filter(fits);
    let is_matrix = matches!(from, Layout::FractalNz | Layout::FractalZz);
    let assumed = Some(target).filter(|target| fits(target) && !is_matrix);
    Ok(Some((known.or(assumed).unwrap_or(Layout::Nd), shape)))
}

#[cfg(test)]
mod tests;
