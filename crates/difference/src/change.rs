//! The difference between two tensors, as one operation: axes exchanged, rolled, scaled, clipped, …
//!
//! [`explain`] returns an operation only if it turns golden's elements into the target's, all of
//! them. Rearranged elements have to be equal, computed ones equal up to rounding of the dtype. A
//! tensor for which two simple operations do equally well gets none.
//!
//! | module | operations |
//! | --- | --- |
//! | `elements` | both tensors, and what is equal |
//! | `map` | a function of each element: scaled, shifted, `a·x + b`, absolute, reciprocal |
//! | `arrangement` | elements in other places: axes exchanged, mirrored |
//! | `roll` | rolled along axes, or in memory order |
//! | `slices` | indices of an axis in another order: blocks, interleaved, exchanged |
//! | `rounding` | rounded to a format, to integers, to steps |
//! | `bounds` | clipped, masked, cut off, NaN or infinite |
//! | `channels` | scaled or shifted by channel |
//! | `part` | a part of the tensor alone |
//! | `tensor_change` | the result |

mod arrangement;
mod bounds;
mod channels;
mod elements;
mod map;
mod part;
mod roll;
mod rounding;
mod slices;
mod tensor_change;

pub use self::elements::ComparedElements;
use self::elements::ElementPair;
pub use self::tensor_change::{
    AxisPart, ElementFunction, RoundedFormat, RoundingMode, TensorChange,
};

/// Maximum number of elements of an examined tensor. Larger tensors get no explanation.
pub const N_ELEMENTS_MAX: usize = 1 << 26;
/// Golden tensors with fewer distinct elements fit several operations by chance.
const N_DISTINCT_MIN: usize = 4;

/// Looks for the operation that turns golden's elements into the target's. `tolerance` is the
/// absolute difference that the limits of the slot leave to an element.
///
/// `None` for tensors that are equal or differ by no more than rounding, for those without elements
/// or with more than [`N_ELEMENTS_MAX`], and where no single operation explains the difference. NaN
/// equals NaN.
pub fn explain(
    target: &ComparedElements<'_>,
    golden: &ComparedElements<'_>,
    tolerance: f64,
) -> Option<TensorChange> {
    if target.len() > N_ELEMENTS_MAX || golden.len() > N_ELEMENTS_MAX {
        return None;
    }
    if target.shape() != golden.shape() {
        return arrangement::of_other_shape(target, golden);
    }
    if let Some(overflow) = bounds::overflow(target, golden, tolerance) {
        return Some(overflow);
    }
    let pair = ElementPair::new(target, golden)?;
    // An exact statement about a part is worth more than a loose one about the whole, and one with
    // a free choice for each channel or element explains too much to come before either.
    let exact = operation(&pair).or_else(|| part::only(&pair, tolerance));
    let exact = exact.or_else(|| last_resort(&pair));
    exact.or_else(|| operation_within(&pair.within(tolerance)?))
}

/// An operation on the whole tensor.
fn operation(pair: &ElementPair<'_>) -> Option<TensorChange> {
    if let Some(constant) = map::constant(pair) {
        return Some(constant);
    }
    // Two values are each other's negatives, mirrored and rolled, all at once.
    if pair.n_distinct < N_DISTINCT_MIN {
        return unambiguous(pair);
    }
    // The fewest free parameters first: a scaled tensor is not a permutation.
    map::scaled_or_shifted(pair)
        .or_else(|| arrangement::axes(pair))
        .or_else(|| arrangement::mirrored(pair))
        .or_else(|| roll::along_axes(pair))
        .or_else(|| roll::in_memory(pair))
        .or_else(|| slices::reordered(pair))
        .or_else(|| bounds::non_finite(pair))
        .or_else(|| limited(pair))
        .or_else(|| {
            // The target may have what golden lost.
            let change = Box::new(limited(&pair.swapped())?);
            Some(TensorChange::Missing { change })
        })
        .or_else(|| bounds::cut_off(pair))
}

/// Operations that lose information, so that it matters which side has them.
fn limited(pair: &ElementPair<'_>) -> Option<TensorChange> {
    rounding::to_format(pair)
        .or_else(|| rounding::to_steps(pair))
        .or_else(|| bounds::clipped(pair))
        .or_else(|| bounds::triangle(pair))
}

/// Operations with more freedom, which a simpler statement about a part is preferred to.
fn last_resort(pair: &ElementPair<'_>) -> Option<TensorChange> {
    if pair.n_distinct < N_DISTINCT_MIN {
        return None;
    }
    map::affine(pair)
        .or_else(|| map::function(pair))
        .or_else(|| channels::scaled_or_shifted(pair))
        .or_else(|| roll::moved(pair))
        .or_else(|| bounds::byte_order(pair))
        .or_else(|| slices::any_order(pair))
}

/// Operations that are recognised although both sides were computed with other rounding errors.
fn operation_within(pair: &ElementPair<'_>) -> Option<TensorChange> {
    if pair.n_distinct < N_DISTINCT_MIN {
        return None;
    }
    // Rounding to a format is left out: within a tolerance everything is rounded to something.
    map::scaled_or_shifted(pair)
        .or_else(|| arrangement::axes(pair))
        .or_else(|| arrangement::mirrored(pair))
        .or_else(|| roll::along_axes(pair))
        .or_else(|| slices::reordered(pair))
        .or_else(|| bounds::clipped(pair))
        .or_else(|| {
            let change = Box::new(bounds::clipped(&pair.swapped())?);
            Some(TensorChange::Missing { change })
        })
        .or_else(|| map::affine(pair))
        .or_else(|| channels::scaled_or_shifted(pair))
}

/// The only operation that fits a tensor of a few distinct elements.
fn unambiguous(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let finders = [
        map::scaled_or_shifted,
        arrangement::axes,
        arrangement::mirrored,
        roll::along_axes,
        slices::reordered,
        bounds::non_finite,
        bounds::triangle,
    ];
    let mut fitting = finders.iter().filter_map(|find| find(pair));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests;
