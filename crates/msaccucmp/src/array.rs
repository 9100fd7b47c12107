//! Arrays with strides, as far as the reference's use of numpy needs them.
//!
//! Conversions are chains of reshape, transpose and slice. numpy copies only if strides cannot
//! express a reshape, and the final strides decide whether the array is saved in Fortran order. So
//! the same chain of views is followed here.

mod gather;
mod geometry;

use std::borrow::Cow;

use opscope_tensor::DType;

pub(super) use geometry::{Geometry, SaveOrder, count};

/// Maximum number of axes in numpy.
const AXES_MAX: usize = 64;

/// Elements in memory and their order. The first element is always the first in memory.
#[derive(Clone, Debug)]
pub(super) struct ElementArray<'a> {
    dtype: DType,
    bytes: Cow<'a, [u8]>,
    geometry: Geometry,
}

impl<'a> ElementArray<'a> {
    /// All of `bytes` along one axis; an incomplete last element is dropped.
    pub(super) fn flat(dtype: DType, bytes: Cow<'a, [u8]>) -> ElementArray<'a> {
        let n = bytes.len() / width(dtype);
        ElementArray {
            dtype,
            bytes,
            geometry: Geometry::contiguous(&[n]),
        }
    }

    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    pub(super) fn dims(&self) -> &[usize] {
        self.geometry.dims()
    }

    pub(super) fn n_elements(&self) -> usize {
        self.geometry.n_elements()
    }

    /// numpy's `reshape`: a view if strides can express it, else a copy.
    ///
    /// # Errors
    /// numpy's message if the number of elements differs.
    pub(super) fn reshape(self, dims: &[usize]) -> Result<ElementArray<'a>, String> {
        if dims.len() > AXES_MAX {
            return Err(format!("maximum supported dimension is {AXES_MAX}"));
        }
        if count(dims) != Some(self.n_elements()) {
            let text: Vec<String> = dims.iter().map(usize::to_string).collect();
            let text = text.join(",");
            let n = self.n_elements();
            return Err(format!(
                "cannot reshape array of size {n} into shape ({text})"
            ));
        }
        if let Some(geometry) = self.geometry.try_reshape(dims) {
            return Ok(ElementArray { geometry, ..self });
        }
        let bytes = self.bytes_in_order(SaveOrder::C).into_owned();
        Ok(ElementArray {
            dtype: self.dtype,
            bytes: Cow::Owned(bytes),
            geometry: Geometry::contiguous(dims),
        })
    }

    /// Transposes the array: axis `i` of the result is axis `axes[i]` of this array.
    #[must_use]
    pub(super) fn transpose(self, axes: &[usize]) -> ElementArray<'a> {
        let geometry = self.geometry.transpose(axes);
        ElementArray { geometry, ..self }
    }

    /// The leading part: the first `ends[i]` entries along axis `i`.
    #[must_use]
    pub(super) fn cut(self, ends: &[usize]) -> ElementArray<'a> {
        let geometry = self.geometry.cut(ends);
        ElementArray { geometry, ..self }
    }

    /// The order in which numpy saves the array.
    pub(super) fn saved_order(&self) -> SaveOrder {
        self.geometry.saved_order()
    }

    /// The elements in the given order, without a copy if they are already in that order.
    pub(super) fn bytes_in_order(&self, order: SaveOrder) -> Cow<'_, [u8]> {
        let n_bytes = self.n_elements() * width(self.dtype);
        let is_in_order = match order {
            SaveOrder::C => self.geometry.is_c_contiguous(),
            SaveOrder::Fortran => self.geometry.is_fortran_contiguous(),
        };
        if is_in_order {
            return Cow::Borrowed(self.bytes.get(..n_bytes).unwrap_or_default());
        }
        let geometry = match order {
            SaveOrder::C => self.geometry.clone(),
            SaveOrder::Fortran => self.geometry.reversed(),
        };
        Cow::Owned(gather::gather(&geometry, &self.bytes, width(self.dtype)))
    }
}

/// Bytes of one element; arrays hold numpy dtypes only.
pub(super) fn width(dtype: DType) -> usize {
    dtype.bytes().unwrap_or(1)
}

#[cfg(test)]
mod tests;
