//! Extents for inputs that a model leaves open, where nobody says them.

use std::collections::BTreeMap;

use opscope_engine::{DeclaredDim, ModelSignature, ValueInfo};
use opscope_tensor::Shape;

/// An extent of images: what most vision models were trained for.
const IMAGE_EXTENT: usize = 224;
/// An extent of anything else, such as a sequence.
const OTHER_EXTENT: usize = 16;

/// A shape for each input of which an extent is open: 1 for a batch, 224 for the height and the
/// width of an image, 16 for the rest. Axes that the model gives one name get one extent. Inputs
/// whose number of axes is open are left out.
pub fn default_shapes(signature: &ModelSignature) -> BTreeMap<String, Shape> {
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
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
    // Sequence-first models have their batch second, and say so by its name.
    let is_batch = name.contains("batch") || axis == 0;
    // Names such as `height` tell; else images are known by their four axes and few channels.
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
