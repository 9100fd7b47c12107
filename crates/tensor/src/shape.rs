//! The shape of a tensor.

use std::fmt;
use std::ops::Deref;

use thiserror::Error;

use crate::DType;

/// The dimensions of a tensor, outermost first.
///
/// No axes means a scalar: one element. A dimension of 0 means an empty tensor. (The number of axes
/// is called `n_axes` throughout; *rank* is the number of a process.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape(Vec<usize>);

/// A shape that describes more data than can exist, or too many axes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// The product of the dimensions does not fit the address space.
    #[error("shape {0} has more elements than memory can hold")]
    TooLarge(Shape),
    /// More axes than [`Shape::N_AXES_MAX`].
    #[error("shape has {0} axes; at most {max} are supported", max = Shape::N_AXES_MAX)]
    TooManyAxes(usize),
    /// The dtype has no fixed width, so the size follows from the data only.
    #[error("elements of type `{0}` have no fixed size")]
    Unsized(DType),
}

impl Shape {
    /// Maximum number of axes that a tensor may have. Ascend's headers allow 25, numpy 64.
    pub const N_AXES_MAX: usize = 64;

    /// Checks that the element count fits the address space.
    ///
    /// # Errors
    /// [`ShapeError::TooManyAxes`] or [`ShapeError::TooLarge`]. A dimension of 0 makes the count 0
    /// whatever the other dimensions are.
    pub fn new(dims: impl Into<Vec<usize>>) -> Result<Shape, ShapeError> {
        let shape = Shape(dims.into());
        if shape.0.len() > Self::N_AXES_MAX {
            return Err(ShapeError::TooManyAxes(shape.0.len()));
        }
        match count(&shape.0) {
            Some(_) => Ok(shape),
            None => Err(ShapeError::TooLarge(shape)),
        }
    }

    /// The shape of a scalar.
    pub fn scalar() -> Shape {
        Shape(Vec::new())
    }

    /// Number of elements; 1 for a scalar.
    pub fn n_elements(&self) -> usize {
        // `new` has checked that the product fits.
        count(&self.0).unwrap_or(0)
    }

    /// Number of axes.
    pub fn n_axes(&self) -> usize {
        self.0.len()
    }

    /// The dimensions as a slice.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// Bytes that a dense tensor of `dtype` takes, packed types rounded up to whole bytes.
    ///
    /// # Errors
    /// [`ShapeError::Unsized`] for text and the like, [`ShapeError::TooLarge`] on overflow.
    pub fn n_bytes(&self, dtype: DType) -> Result<usize, ShapeError> {
        let bits = dtype.bits().ok_or(ShapeError::Unsized(dtype))?;
        self.n_elements()
            .checked_mul(bits as usize)
            .map(|n_bits| n_bits.div_ceil(8))
            .ok_or_else(|| ShapeError::TooLarge(self.clone()))
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self
            .0
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(",");
        f.pad(&format!("[{text}]"))
    }
}

fn count(dims: &[usize]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    // Sizes in bytes go through `isize` in many interfaces, and the widest element has 16 bytes.
    let limit = isize::MAX as usize / 16;
    dims.iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim))
        .filter(|&product| product <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let cases: &[(&[usize], usize)] = &[
            (&[], 1),
            (&[0], 0),
            (&[2, 3], 6),
            (&[usize::MAX, usize::MAX, 0], 0),
        ];
        for (dims, n_elements) in cases {
            assert_eq!(
                Shape::new(*dims).unwrap().n_elements(),
                *n_elements,
                "{dims:?}"
            );
        }
    }

    #[test]
    fn refuses_what_memory_cannot_hold() {
        assert!(matches!(
            Shape::new([usize::MAX, 2]),
            Err(ShapeError::TooLarge(_))
        ));
        assert!(matches!(
            Shape::new([usize::MAX]),
            Err(ShapeError::TooLarge(_))
        ));
        assert!(matches!(
            Shape::new(vec![1; 65]),
            Err(ShapeError::TooManyAxes(65))
        ));
    }

    #[test]
    fn packed_types_round_up() {
        let shape = Shape::new([3, 3]).unwrap();
        assert_eq!(shape.n_bytes(DType::I4), Ok(5));
        assert_eq!(shape.n_bytes(DType::U1), Ok(2));
        assert_eq!(shape.n_bytes(DType::F16), Ok(18));
        assert_eq!(
            shape.n_bytes(DType::String),
            Err(ShapeError::Unsized(DType::String))
        );
    }
}
