//! reshape, transpose, reshape, cut: the form of all conversions from a blocked layout.

use std::borrow::Cow;

use opscope_tensor::convert::layout::{LayoutConversion, LayoutPlan};
use opscope_tensor::{Layout, Shape};

use crate::array::{ElementArray, Geometry, SaveOrder, count, width};

/// A conversion as a chain of views, with the information for doing it in one kernel.
pub(super) struct ViewChain<'a> {
    pub(super) from: Layout,
    pub(super) from_dims: &'a [usize],
    pub(super) to: Layout,
    /// The shape in memory order with every block axis separate.
    pub(super) split: &'a [usize],
    /// The permutation of these axes.
    pub(super) axes: &'a [usize],
    /// The shape after merging the parts of each axis.
    pub(super) merged: &'a [usize],
    /// The size to keep along each axis.
    pub(super) ends: &'a [usize],
}

/// The result of a conversion, possibly not computed yet, so that a cut costs nothing.
pub(crate) struct ConversionResult<'a> {
    dims: Vec<usize>,
    body: ResultBody<'a>,
}

enum ResultBody<'a> {
    Array(ElementArray<'a>),
    Deferred(DeferredCopy<'a>),
}

/// A deferred copy.
struct DeferredCopy<'a> {
    /// The source, dense.
    flat: ElementArray<'a>,
    axes: Vec<usize>,
    merged: Vec<usize>,
    from: Layout,
    from_dims: Vec<usize>,
    to: Layout,
}

impl<'a> From<ElementArray<'a>> for ConversionResult<'a> {
    fn from(array: ElementArray<'a>) -> ConversionResult<'a> {
        ConversionResult {
            dims: array.dims().to_vec(),
            body: ResultBody::Array(array),
        }
    }
}

impl ViewChain<'_> {
    /// Follows the chain as far as views suffice.
    pub(super) fn follow<'a>(
        &self,
        array: ElementArray<'a>,
    ) -> Result<ConversionResult<'a>, String> {
        let flat = array.reshape(self.split)?;
        let turned = Geometry::contiguous(self.split).transpose(self.axes);
        if turned.try_reshape(self.merged).is_some() {
            let view = flat.transpose(self.axes).reshape(self.merged)?;
            return Ok(view.cut(self.ends).into());
        }
        let cut = Geometry::contiguous(self.merged).cut(self.ends);
        let deferred = DeferredCopy {
            flat,
            axes: self.axes.to_vec(),
            merged: self.merged.to_vec(),
            from: self.from,
            from_dims: self.from_dims.to_vec(),
            to: self.to,
        };
        Ok(ConversionResult {
            dims: cut.dims().to_vec(),
            body: ResultBody::Deferred(deferred),
        })
    }
}

impl<'a> ConversionResult<'a> {
    /// The shape.
    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Takes the leading part along each axis, after a reshape to `dims`.
    pub(crate) fn cut(
        self,
        dims: &[usize],
        ends: &[usize],
    ) -> Result<ConversionResult<'a>, String> {
        let is_same_rank = self.dims == dims;
        match self.body {
            ResultBody::Deferred(deferred) if is_same_rank => Ok(ConversionResult {
                dims: Geometry::contiguous(dims).cut(ends).dims().to_vec(),
                body: ResultBody::Deferred(deferred),
            }),
            _ => Ok(self.into_array()?.reshape(dims)?.cut(ends).into()),
        }
    }

    /// Computes the result.
    pub(crate) fn into_array(self) -> Result<ElementArray<'a>, String> {
        match self.body {
            ResultBody::Array(array) => Ok(array),
            ResultBody::Deferred(deferred) => deferred.resolve(&self.dims),
        }
    }
}

impl<'a> DeferredCopy<'a> {
    fn resolve(self, ends: &[usize]) -> Result<ElementArray<'a>, String> {
        // numpy cuts the copy, and saves it in Fortran order if the cut is contiguous in that
        // order. The kernels produce C order, so this case copies explicitly.
        let cut = Geometry::contiguous(&self.merged).cut(ends);
        if cut.saved_order() == SaveOrder::C
            && count(ends) != Some(0)
            && let Some(bytes) = self.run_kernel(ends)
        {
            return ElementArray::flat(self.flat.dtype(), Cow::Owned(bytes)).reshape(ends);
        }
        let array = self.flat.transpose(&self.axes).reshape(&self.merged)?;
        Ok(array.cut(ends))
    }

    fn run_kernel(&self, ends: &[usize]) -> Option<Vec<u8>> {
        let from_shape = Shape::new(self.from_dims.as_slice()).ok()?;
        let original = Shape::new(ends).ok()?;
        let element_bytes = width(self.flat.dtype());
        let plan = LayoutPlan::new(&LayoutConversion {
            original: Some((self.to, &original)),
            is_prefix: true,
            ..LayoutConversion::new(self.from, &from_shape, self.to, element_bytes)
        })
        .ok()?;
        if plan.out_shape().dims() != ends {
            return None;
        }
        plan.run_to_vec(&self.flat.bytes_in_order(SaveOrder::C))
            .ok()
    }
}
