//! Default sizes for dimensions that a model leaves open and the user does not set.

use std::collections::BTreeMap;

use opscope_engine::{DeclaredDim, ModelSignature, ValueInfo};
use opscope_tensor::Shape;

/// The height and width of images: most vision models were trained for it.
const IMAGE_EXTENT: usize = 224;
/// The size of any other dimension, such as a sequence.
const OTHER_EXTENT: usize = 16;

/// A shape for each input with an open dimension: 1 for a batch, 224 for the height and the width
/// of an image, 16 otherwise. Dimensions with the same name get the same size, that of `known`
/// inputs first. Inputs of unknown rank are omitted.
pub fn default_shapes(
    signature: &ModelSignature,
    known: &BTreeMap<String, Shape>,
) -> BTreeMap<String, Shape> {
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for value in &signature.inputs {
        let declared = value.dims.iter().flatten();
        let sizes = known.get(&value.name).into_iter().flat_map(Shape::dims);
        for (dim, size) in declared.zip(sizes) {
            if let DeclaredDim::Named(name) = dim {
                by_name.entry(name).or_insert(*size);
            }
        }
    }
    let mut shapes = BTreeMap::new();
    for value in &signature.inputs {
        let Some(dims) = &value.dims else {
            continue;
        };
        if dims.iter().all(|dim| matches!(dim, DeclaredDim::Fixed(_))) {
            continue;
        }
        let extents = dims.iter().enumerate().map(|(axis, dim)| match dim {
            DeclaredDim::Fixed(n) => *n,
            DeclaredDim::Named(name) => *by_name
                .entry(name)
                .or_insert_with(|| extent(value, axis, name)),
            DeclaredDim::Unknown => extent(value, axis, ""),
        });
        let extents: Vec<usize> = extents.collect();
        if let Ok(shape) = Shape::new(extents) {
            shapes.insert(value.name.clone(), shape);
        }
    }
    shapes
}

fn extent(value: &ValueInfo, axis: usize, name: &str) -> usize {
    let name = name.to_ascii_lowercase();
    // Sequence-first models have the batch second, and name it so.
    let is_batch = name.contains("batch") || axis == 0;
    // Names such as `height` decide; otherwise four axes and few channels mean an image.
    let is_named = ["height", "width"].iter().any(|word| name.contains(word));
    let dims = value.dims.as_deref().unwrap_or_default();
    let has_channels = matches!(dims, [_, DeclaredDim::Fixed(1..=4), _, _]);
    match () {
        () if is_named => IMAGE_EXTENT,
        () if is_batch => 1,
        () if has_channels && axis >= 2 => IMAGE_EXTENT,
        () => OTHER_EXTENT,
    }
}
