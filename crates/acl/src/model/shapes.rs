//! The shapes of one execution's inputs.
//!
//! An input's shape comes from, in this order: the program's tensor description; the file; the open
//! dimensions set by the program; dimensions with the same name in other inputs; and, if one
//! dimension is left, the size of the buffer.

use std::collections::HashMap;

use opscope_engine::{DeclaredDim, ValueInfo};
use opscope_tensor::Shape;

use crate::data::GearChoice;

/// The buffer and description of an input, from the program.
pub(crate) struct InputBuffer {
    /// Bytes of its buffer.
    pub(crate) n_bytes: usize,
    /// The shape in its tensor description.
    pub(crate) dims: Option<Vec<i64>>,
}

/// The shape of every input.
///
/// # Errors
/// The first input without a shape, and the reason.
pub(crate) fn resolve(
    inputs: &[ValueInfo],
    given: &[InputBuffer],
    gear: Option<&GearChoice>,
) -> Result<Vec<Shape>, String> {
    let geared = gear_extents(inputs, gear)?;
    let mut named: HashMap<&str, usize> = HashMap::new();
    let mut known: Vec<Vec<Option<usize>>> = Vec::new();
    for ((value, given), geared) in inputs.iter().zip(given).zip(geared) {
        let extents = known_extents(value, given, geared)?;
        for (dim, extent) in value.dims.iter().flatten().zip(&extents) {
            if let (DeclaredDim::Named(name), Some(extent)) = (dim, extent) {
                named.entry(name).or_insert(*extent);
            }
        }
        known.push(extents);
    }
    let mut shapes = Vec::new();
    for ((value, given), mut extents) in inputs.iter().zip(given).zip(known) {
        let dims = value.dims.as_deref().unwrap_or_default();
        for (dim, extent) in dims.iter().zip(&mut extents) {
            if let DeclaredDim::Named(name) = dim {
                *extent = extent.or(named.get(name.as_str()).copied());
            }
        }
        let shape = complete(value, given.n_bytes, &extents)?;
        // A dimension derived from a buffer's size also applies to later inputs.
        for (dim, extent) in dims.iter().zip(shape.iter()) {
            if let DeclaredDim::Named(name) = dim {
                named.entry(name).or_insert(*extent);
            }
        }
        shapes.push(shape);
    }
    Ok(shapes)
}

/// The shape in the interface's type.
pub(crate) fn extents(shape: &Shape) -> Vec<i64> {
    let extents = shape.iter();
    extents
        .map(|&n| i64::try_from(n).unwrap_or(i64::MAX))
        .collect()
}

/// Returns the dimensions of an input that are known without other inputs and its buffer.
fn known_extents(
    value: &ValueInfo,
    given: &InputBuffer,
    geared: Vec<Option<usize>>,
) -> Result<Vec<Option<usize>>, String> {
    let name = &value.name;
    if let Some(dims) = &given.dims {
        let described: Option<Vec<usize>> = dims.iter().map(|&n| usize::try_from(n).ok()).collect();
        let described = described.ok_or_else(|| {
            format!(
                "the description of input `{name}` has the shape {dims:?}: a dimension is unknown"
            )
        })?;
        if !value.admits(&described) {
            let shape = value.shape_text();
            return Err(format!(
                "input `{name}` takes shape {shape}, described as {dims:?}"
            ));
        }
        return Ok(described.into_iter().map(Some).collect());
    }
    let dims = value
        .dims
        .as_ref()
        .ok_or_else(|| format!("input `{name}` may have any shape: set a tensor description"))?;
    let dims = dims.iter().zip(geared);
    Ok(dims
        .map(|(dim, geared)| match dim {
            DeclaredDim::Fixed(n) => Some(*n),
            DeclaredDim::Named(_) | DeclaredDim::Unknown => geared,
        })
        .collect())
}

/// Returns the dimensions that a gear sets for every axis of every input; `None` for axes that it
/// leaves open.
fn gear_extents(
    inputs: &[ValueInfo],
    gear: Option<&GearChoice>,
) -> Result<Vec<Vec<Option<usize>>>, String> {
    let mut extents: Vec<Vec<Option<usize>>> = inputs
        .iter()
        .map(|value| vec![None; n_axes(value)])
        .collect();
    match gear {
        None => {}
        Some(GearChoice::Batch(n)) => {
            for first in extents.iter_mut().filter_map(|axes| axes.first_mut()) {
                *first = usize::try_from(*n).ok();
            }
        }
        Some(GearChoice::Size { height, width }) => {
            // Only images have a height and a width, the last two axes in ONNX's order.
            for axes in extents.iter_mut().filter(|axes| axes.len() == 4) {
                axes[2] = usize::try_from(*height).ok();
                axes[3] = usize::try_from(*width).ok();
            }
        }
        Some(GearChoice::Dims(dims)) => {
            let n: usize = inputs.iter().map(n_axes).sum();
            if n != dims.len() {
                let found = dims.len();
                return Err(format!(
                    "the inputs have {n} axes together, {found} were set"
                ));
            }
            let mut dims = dims.iter();
            for (value, axes) in inputs.iter().zip(&mut extents) {
                for (declared, (axis, &n)) in value
                    .dims
                    .iter()
                    .flatten()
                    .zip(axes.iter_mut().zip(&mut dims))
                {
                    *axis = usize::try_from(n).ok();
                    if matches!(declared, DeclaredDim::Fixed(fixed) if Some(*fixed) != *axis) {
                        let (name, shape) = (&value.name, value.shape_text());
                        return Err(format!("input `{name}` takes shape {shape}, not {n} there"));
                    }
                }
            }
        }
    }
    Ok(extents)
}

fn n_axes(value: &ValueInfo) -> usize {
    value.dims.as_ref().map_or(0, Vec::len)
}

/// Derives the one open dimension, if any, from the number of bytes.
fn complete(value: &ValueInfo, n_bytes: usize, extents: &[Option<usize>]) -> Result<Shape, String> {
    let name = &value.name;
    let n_open = extents.iter().filter(|extent| extent.is_none()).count();
    let too_large = |error: opscope_tensor::ShapeError| format!("input `{name}`: {error}");
    let with = |open: usize| {
        let dims: Vec<usize> = extents
            .iter()
            .map(|extent| extent.unwrap_or(open))
            .collect();
        Shape::new(dims).map_err(too_large)
    };
    if n_open == 0 {
        return with(0);
    }
    let shape = value.shape_text();
    if n_open > 1 {
        return Err(format!(
            "input `{name}` has the shape {shape}: set its open dimensions"
        ));
    }
    // With 1 for the open dimension the shape is one slice along it.
    let slice_bytes = with(1)?.n_bytes(value.dtype).map_err(too_large)?;
    // Any number of empty slices fits, so the buffer does not determine the dimension.
    if slice_bytes == 0 || n_bytes == 0 || !n_bytes.is_multiple_of(slice_bytes) {
        return Err(format!(
            "input `{name}` has the shape {shape}, which {n_bytes} bytes do not fill: set its open \
             extent"
        ));
    }
    with(n_bytes / slice_bytes)
}

#[cfg(test)]
mod tests;
