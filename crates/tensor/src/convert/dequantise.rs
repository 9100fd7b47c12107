//! The numbers that quantised elements represent.
//!
//! `(q - zero_point) · scale`, where scale and zero point are one for the whole tensor, one for
//! each position of an axis, or one for each block.

mod grid;

use std::borrow::Cow;

use half::f16;
use thiserror::Error;

use self::grid::Grid;
use super::dtype::{DecodeError, decode, numpy_dtype};
use crate::{DType, Shape, ShapeError, TensorView};

/// The scale, zero point and blocks that are needed to read quantised elements.
#[derive(Clone, Copy)]
pub struct Quantisation<'a> {
    /// The distance between two neighbouring codes: floats.
    pub scale: TensorView<'a>,
    /// The code of zero, in the dtype of the elements; zero by default.
    pub zero_point: Option<TensorView<'a>>,
    /// The axis that a scale with one axis runs along, and that blocks lie on; negative ones count
    /// from the end.
    pub axis: i64,
    /// Elements that share a scale along that axis; 0 without blocks.
    pub block_size: usize,
}

/// Why elements cannot be read as quantised ones.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DequantiseError {
    /// A dtype or a shape does not fit, or there is too little memory for the result.
    #[error("{0}")]
    Unfit(String),
    /// The bytes do not fit their description.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The result is larger than memory can be.
    #[error(transparent)]
    Size(#[from] ShapeError),
}

/// Whether elements of this type and shape can be dequantised, without reading any.
///
/// # Errors
/// As [`dequantise`], but for [`DequantiseError::Decode`] and a lack of memory.
pub fn check(
    dtype: DType,
    shape: &Shape,
    quantisation: &Quantisation<'_>,
) -> Result<(), DequantiseError> {
    // The floats take up to eight times the memory of their codes, so they may not fit although the
    // codes do.
    shape.n_bytes(DType::F32)?;
    plan(dtype, shape, quantisation).map(drop)
}

/// The elements as float32, little-endian and in the same order.
///
/// The difference of element and zero point is exact and is rounded to float32 once, the product
/// with the scale, itself in float32, once more. NaN and infinities of the scale propagate as in
/// any product; a float16 or bfloat16 scale counts as the float32 of the same value. Packed
/// elements are taken apart. A scale or zero point of one element, whatever its shape, holds for
/// all elements; else both have the same shape: one axis as long as [`Quantisation::axis`], or as
/// many axes as the elements, each of the same size, of size 1, or, along that axis, one for each
/// block. The last block may be shorter.
///
/// # Errors
/// [`DequantiseError`] if a dtype, a shape or a size does not fit, or memory is short.
pub fn dequantise(
    elements: TensorView<'_>,
    quantisation: &Quantisation<'_>,
) -> Result<Vec<u8>, DequantiseError> {
    let (dtype, shape) = (elements.dtype, elements.shape);
    let grid = plan(dtype, shape, quantisation)?;
    let n_bytes = shape.n_bytes(DType::F32)?;
    let scale = floats(quantisation.scale)?;
    let codes = decode(dtype, shape, elements.bytes)?;
    let mut out = Vec::new();
    out.try_reserve_exact(n_bytes)
        .map_err(|_| DequantiseError::Unfit(format!("no memory for {n_bytes} bytes of float32")))?;
    out.resize(n_bytes, 0);
    let work = DequantiseTask {
        grid: &grid,
        bytes: &codes.bytes,
        scale: &scale,
    };
    let zero = quantisation.zero_point;
    let to = out.as_chunks_mut::<4>().0;
    match codes.dtype {
        DType::I8 => work.narrow(to, zero, |[byte]: [u8; 1]| i32::from(byte.cast_signed()))?,
        DType::U8 => work.narrow(to, zero, |[byte]: [u8; 1]| i32::from(byte))?,
        DType::I16 => work.narrow(to, zero, |bytes| i32::from(i16::from_le_bytes(bytes)))?,
        DType::U16 => work.narrow(to, zero, |bytes| i32::from(u16::from_le_bytes(bytes)))?,
        // The difference of two 32-bit codes takes 33 bits, so it is taken in 64 and rounded once.
        DType::I32 => {
            let code = |bytes| i64::from(i32::from_le_bytes(bytes));
            let zero = work.zeros(zero, code)?;
            work.fill(to, &zero, |bytes, zero| (code(bytes) - zero) as f32);
        }
        _ => {
            let code = |bytes| f16::from_le_bytes(bytes).to_f32();
            let zero = work.zeros(zero, code)?;
            work.fill(to, &zero, |bytes, zero| code(bytes) - zero);
        }
    }
    Ok(out)
}

/// Checks dtypes, and finds which scale belongs to which element.
fn plan(
    dtype: DType,
    shape: &Shape,
    quantisation: &Quantisation<'_>,
) -> Result<Grid, DequantiseError> {
    use DType::*;
    let is_code = match numpy_dtype(dtype) {
        // Opaque dtypes decode to bytes as well, but have no width.
        Some(I8 | U8 | I16 | U16 | I32) => dtype.bits().is_some(),
        // Every float of at most 8 bits decodes to `float16`.
        Some(F16) => dtype != F16,
        _ => false,
    };
    if !is_code {
        return Err(DequantiseError::Unfit(format!(
            "elements of type `{dtype}` are not quantised ones: expected integers of at most 32 \
             bits or floats of at most 8"
        )));
    }
    let Quantisation {
        scale,
        zero_point,
        axis,
        block_size,
    } = *quantisation;
    if !matches!(numpy_dtype(scale.dtype), Some(F16 | F32 | F64)) {
        let text = format!("the scale is of type `{}`, expected a float", scale.dtype);
        return Err(DequantiseError::Unfit(text));
    }
    let misfit = |found: &Shape| {
        DequantiseError::Unfit(format!(
            "scale or zero point of shape {found} do not fit elements of shape {shape} (axis \
             {axis}, blocks of {block_size})"
        ))
    };
    let mut common = scale.shape;
    if let Some(zero) = zero_point {
        if zero.dtype != dtype {
            let found = zero.dtype;
            return Err(DequantiseError::Unfit(format!(
                "the zero point is of type `{found}`, expected `{dtype}` as the elements"
            )));
        }
        // A single number holds for all elements, so the other of the two decides the grid.
        if common.n_elements() == 1 {
            common = zero.shape;
        } else if zero.shape.n_elements() != 1 && zero.shape != common {
            return Err(misfit(zero.shape));
        }
    }
    Grid::new(shape, common, axis, block_size).ok_or_else(|| misfit(common))
}

/// The numbers of a scale.
fn floats(scale: TensorView<'_>) -> Result<Vec<f32>, DequantiseError> {
    let decoded = decode(scale.dtype, scale.shape, scale.bytes)?;
    let bytes = &*decoded.bytes;
    Ok(match decoded.dtype {
        DType::F16 => numbers(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
        DType::F64 => numbers(bytes, |bytes| f64::from_le_bytes(bytes) as f32),
        _ => numbers(bytes, f32::from_le_bytes),
    })
}

fn numbers<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|b| number(*b))
        .collect()
}

/// Elements on their way.
struct DequantiseTask<'a> {
    grid: &'a Grid,
    /// Elements as numpy can hold them.
    bytes: &'a [u8],
    scale: &'a [f32],
}

impl DequantiseTask<'_> {
    /// Codes whose differences fit 32 bits.
    fn narrow<const N: usize>(
        &self,
        to: &mut [[u8; 4]],
        zero: Option<TensorView<'_>>,
        code: impl Fn([u8; N]) -> i32 + Copy,
    ) -> Result<(), DequantiseError> {
        let zero = self.zeros(zero, code)?;
        self.fill(to, &zero, |bytes, zero| (code(bytes) - zero) as f32);
        Ok(())
    }

    /// The zero points, one at least.
    fn zeros<const N: usize, Z: Default>(
        &self,
        zero: Option<TensorView<'_>>,
        code: impl Fn([u8; N]) -> Z,
    ) -> Result<Vec<Z>, DequantiseError> {
        let Some(zero) = zero else {
            return Ok(vec![Z::default()]);
        };
        let decoded = decode(zero.dtype, zero.shape, zero.bytes)?;
        Ok(numbers(&decoded.bytes, code))
    }

    /// Writes every element; `difference` is that of a code and its zero point.
    fn fill<const N: usize, Z: Copy>(
        &self,
        to: &mut [[u8; 4]],
        zero: &[Z],
        difference: impl Fn([u8; N], Z) -> f32 + Copy,
    ) {
        let n = self.grid.n_parameters;
        // One of the two may be a single number where the other has many. Repeated, both are found
        // at the same positions.
        let (scale, zero) = (repeated(self.scale, n), repeated(zero, n));
        let codes = self.bytes.as_chunks::<N>().0;
        self.grid.rows(|elements, parameters, n_together| {
            let (codes, to) = (&codes[elements.clone()], &mut to[elements]);
            let (scale, zero) = (&scale[parameters.clone()], &zero[parameters]);
            // Each element has a separate scale, and chunks of one would only add a loop around it.
            if n_together == 1 {
                let parameters = scale.iter().zip(zero);
                for ((to, code), (scale, zero)) in to.iter_mut().zip(codes).zip(parameters) {
                    *to = (difference(*code, *zero) * scale).to_le_bytes();
                }
                return;
            }
            let parts = to.chunks_mut(n_together).zip(codes.chunks(n_together));
            for ((to, codes), (&scale, &zero)) in parts.zip(scale.iter().zip(zero)) {
                for (to, code) in to.iter_mut().zip(codes) {
                    *to = (difference(*code, zero) * scale).to_le_bytes();
                }
            }
        });
    }
}

/// A single number `n` times; any other count stays.
fn repeated<T: Copy>(numbers: &[T], n: usize) -> Cow<'_, [T]> {
    match numbers {
        [one] if n != 1 => Cow::Owned(vec![*one; n]),
        _ => Cow::Borrowed(numbers),
    }
}

#[cfg(test)]
mod tests;
