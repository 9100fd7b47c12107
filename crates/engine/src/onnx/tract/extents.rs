//! Dimensions and positions that tract keeps in 32 bits.
//!
//! Wherever tract turns `int64` into a dimension, it takes the lower 32 bits: `Expand` to 2^32 + 3
//! elements yields three. So dimensions that do not fit are refused, and so is a result that would
//! not fit into memory.

use opscope_store::check_memory;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::internal::*;

/// Operators with an input of dimensions, or of repetition counts or distances; by the input's
/// position.
const WITH_EXTENTS: &[(&str, usize)] = &[
    ("ConstantOfShape", 0),
    ("Expand", 1),
    ("OneHot", 1),
    ("Pad", 1),
    ("Range", 0),
    ("Range", 1),
    ("Range", 2),
    ("Reshape", 1),
    ("Resize", 1),
    ("Resize", 2),
    ("Resize", 3),
    ("Split", 1),
    ("Tile", 1),
    ("TopK", 1),
];
/// Fails for dimensions that tract would truncate, and for a result that does not fit into memory.
pub(super) fn check(op_type: &str, inputs: &TVec<TValue>) -> TractResult<()> {
    for (_, at) in WITH_EXTENTS.iter().filter(|(with, _)| *with == op_type) {
        let value = inputs.get(*at).filter(|value| is_int64(value));
        // The bits that tract would cut off are gone afterwards without a trace.
        let large = value.map(too_large).transpose()?.flatten();
        if let Some(extent) = large {
            bail!("dimension {extent} is too large: the engine has 32 bits for it");
        }
    }
    if let Some(n_bytes) = n_bytes(op_type, inputs)? {
        check_memory(n_bytes).context("the result is too large")?;
    }
    Ok(())
}

fn is_int64(value: &TValue) -> bool {
    value.datum_type() == DatumType::I64
}

fn too_large(value: &TValue) -> TractResult<Option<i64>> {
    let elements = value.try_as_plain_ram()?.as_slice::<i64>()?;
    Ok(elements
        .iter()
        .find(|element| i32::try_from(**element).is_err())
        .copied())
}

/// Bytes of the result, where the inputs say how many there are. [`u64::MAX`] for more.
fn count(extent: i64) -> u64 {
    u64::try_from(extent).unwrap_or(0)
}

fn n_bytes(op_type: &str, inputs: &TVec<TValue>) -> TractResult<Option<u64>> {
    let at = usize::from(op_type != "ConstantOfShape");
    let (Some(data), Some(control)) = (inputs.first(), inputs.get(at)) else {
        return Ok(None);
    };
    if !is_int64(control) {
        return Ok(None);
    }
    let numbers = control.try_as_plain_ram()?.as_slice::<i64>()?;
    let shape = data.shape();
    let n_axes = shape.len();
    let extents: Vec<u64> = match op_type {
        // The shape is all that the input says; the data come from an attribute, and are counted as
        // a byte each.
        "ConstantOfShape" | "Expand" => numbers.iter().copied().map(count).collect(),
        "Tile" if numbers.len() == n_axes => {
            let pairs = shape.iter().zip(numbers);
            pairs
                .map(|(&extent, &times)| (extent as u64).saturating_mul(count(times)))
                .collect()
        }
        "Pad" if numbers.len() == 2 * n_axes => {
            let extents = shape.iter().enumerate();
            extents
                .map(|(axis, &extent)| {
                    let padding =
                        count(numbers[axis]).saturating_add(count(numbers[n_axes + axis]));
                    (extent as u64).saturating_add(padding)
                })
                .collect()
        }
        _ => return Ok(None),
    };
    // An empty result takes no memory, however large its other dimensions are.
    if extents.contains(&0) {
        return Ok(Some(0));
    }
    let size = if at == 0 {
        1
    } else {
        data.datum_type().size_of() as u64
    };
    Ok(Some(extents.iter().fold(size, |product, &extent| {
        product.saturating_mul(extent)
    })))
}
