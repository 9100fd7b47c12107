//! The elements of a tensor, in the order and form in which others expect them.

use std::ops::Range;

use opscope_tensor::{DType, ElementKind, Shape, dense_copy};

use super::{DenseElements, ElementChanges};
use crate::FormatError;
use crate::file_parts::FileParts;

impl DenseElements {
    /// Elements of a storage.
    ///
    /// # Errors
    /// A sentence if some lie outside of it.
    pub(super) fn new(
        dtype: DType,
        shape: &Shape,
        strides: Vec<isize>,
        start: usize,
        storage: Range<usize>,
    ) -> Result<DenseElements, String> {
        if strides.len() != shape.n_axes() {
            return Err(format!(
                "{} strides of {} axes",
                strides.len(),
                shape.n_axes()
            ));
        }
        let width = dtype.bytes().ok_or("elements of less than a byte")?;
        let n_there = storage.len() / width;
        let n_needed = n_reached(shape, &strides, start);
        // The last element that is reached says it for all: no stride is negative.
        if n_needed.is_none_or(|n| n > n_there) || shape.n_bytes(dtype).is_err() {
            return Err(format!(
                "element {start} of {n_there}, and shape {shape} with strides {strides:?} from there"
            ));
        }
        Ok(DenseElements {
            dtype,
            storage,
            start,
            strides,
            changes: ElementChanges::default(),
        })
    }

    /// How they are seen.
    pub(super) fn changes(&self) -> ElementChanges {
        self.changes
    }

    /// The same elements, seen otherwise.
    pub(super) fn with_changes(self, changes: ElementChanges) -> DenseElements {
        // Numbers of one byte have no order.
        let is_swapped = changes.is_swapped && self.dtype.parts().0.bytes() != Some(1);
        let changes = ElementChanges {
            is_swapped,
            ..changes
        };
        DenseElements { changes, ..self }
    }

    /// Where they are in the file, if they need no conversion.
    pub(super) fn place(&self, shape: &Shape) -> Option<Range<usize>> {
        let n_bytes = shape.n_bytes(self.dtype).ok()?;
        // There are no elements, whatever strides and start are.
        if n_bytes == 0 {
            return Some(self.storage.start..self.storage.start);
        }
        let is_dense = is_row_major(shape, &self.strides);
        if !is_dense || self.changes != ElementChanges::default() {
            return None;
        }
        let start = self.start.checked_mul(self.dtype.bytes()?)?;
        let start = self.storage.start.checked_add(start)?;
        let range = start..start.checked_add(n_bytes)?;
        (range.end <= self.storage.end).then_some(range)
    }

    /// A copy in row-major order.
    pub(super) fn read(&self, shape: &Shape, file: &FileParts) -> Result<Vec<u8>, FormatError> {
        let at = self.storage.start as u64;
        // A small view reads only its range of a large storage.
        let first = if shape.n_elements() == 0 {
            0
        } else {
            self.start
        };
        let end = n_reached(shape, &self.strides, first);
        let reached = self.dtype.bytes().zip(end).and_then(|(width, end)| {
            let start = first.checked_mul(width)?.checked_add(self.storage.start)?;
            let end = end.checked_mul(width)?.checked_add(self.storage.start)?;
            Some(start..end.min(self.storage.end))
        });
        let reached = reached.ok_or_else(|| FormatError::new(at, "a storage", "none"))?;
        let storage = file
            .part(reached)
            .map_err(|error| FormatError::new(at, "elements", error.to_string()))?;
        let mut bytes = dense_copy(self.dtype, shape, &self.strides, 0, storage.as_ref())
            .map_err(|error| FormatError::new(at, "elements", error.to_string()))?;
        self.changes.apply(self.dtype, &mut bytes);
        Ok(bytes)
    }
}

impl ElementChanges {
    fn apply(self, dtype: DType, bytes: &mut [u8]) {
        let (part, n_parts) = dtype.parts();
        let Some(width) = part.bytes() else {
            return;
        };
        for (position, number) in bytes.chunks_exact_mut(width).enumerate() {
            // Each part of a complex number is swapped by itself.
            if self.is_swapped {
                number.reverse();
            }
            let is_imaginary = n_parts == 2 && position % 2 == 1;
            let is_turned = self.is_negative != (self.is_conjugate && is_imaginary);
            // All of them are floats, which have a separate sign bit.
            if let Some(last) = number.last_mut().filter(|_| is_turned) {
                *last ^= 0x80;
            }
        }
    }

    /// Whether elements of this dtype can be seen so.
    pub(super) fn fit(self, dtype: DType) -> bool {
        // PyTorch has such views only of dtypes whose sign is a bit.
        let is_complex = matches!(dtype.kind(), ElementKind::Complex(_));
        (is_complex || !self.is_conjugate) && (is_complex || dtype.is_float() || !self.is_negative)
    }
}

/// Elements up to the last one that is seen; none if that is beyond counting.
fn n_reached(shape: &Shape, strides: &[isize], start: usize) -> Option<usize> {
    if shape.n_elements() == 0 {
        return Some(0);
    }
    let mut last = start;
    for (&dim, &stride) in shape.iter().zip(strides) {
        let stride = usize::try_from(stride).ok()?;
        last = last.checked_add((dim - 1).checked_mul(stride)?)?;
    }
    last.checked_add(1)
}

fn is_row_major(shape: &Shape, strides: &[isize]) -> bool {
    let mut expected = 1_usize;
    for (&dim, &stride) in shape.iter().zip(strides).rev() {
        // The stride of a single element leads nowhere.
        if dim != 1 && usize::try_from(stride) != Ok(expected) {
            return false;
        }
        expected = expected.saturating_mul(dim);
    }
    true
}
