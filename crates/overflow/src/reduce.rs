//! Sums and products of integers along axes.

use opscope_store::file_format::op_debug::StatusCause;
use opscope_store::record::Record;

use super::OutputOverflow;
use super::integers::{IntegerBounds, IntegerTensor, tensor};
use super::operators::{int, ints};
use super::tally::Tally;
use super::walk::{OperandWalk, dense_strides};

/// How elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    Sum,
    SumOfMagnitudes,
    SumOfSquares,
    RootOfSquares,
    Product,
}

impl Fold {
    /// Combines `total` with one more element, saturating to the range of `i128`. That is safe:
    /// magnitudes only grow from there, and a factor of 0 still yields 0.
    fn put(self, total: i128, element: i128) -> i128 {
        match self {
            Fold::Sum => total + element,
            Fold::SumOfMagnitudes => total + element.abs(),
            Fold::SumOfSquares | Fold::RootOfSquares => {
                total.saturating_add(element.saturating_mul(element))
            }
            Fold::Product => total.saturating_mul(element),
        }
    }

    fn start(self) -> i128 {
        i128::from(self == Fold::Product)
    }

    fn end(self, total: i128) -> i128 {
        if self == Fold::RootOfSquares {
            // The root is truncated like a conversion to an integer; only the root has to fit, not
            // the sum of squares.
            total.isqrt()
        } else {
            total
        }
    }

    /// Whether no `n` elements of that magnitude can leave `bounds`.
    fn always_fits(self, bounds: IntegerBounds, magnitude: u128, n: usize) -> bool {
        let n_wide = n as u128;
        let largest = match self {
            Fold::Sum | Fold::SumOfMagnitudes => magnitude.saturating_mul(n_wide),
            Fold::SumOfSquares | Fold::RootOfSquares => {
                magnitude.saturating_mul(magnitude).saturating_mul(n_wide)
            }
            Fold::Product => magnitude
                .max(1)
                .saturating_pow(u32::try_from(n).unwrap_or(u32::MAX)),
        };
        bounds.hold_magnitude(largest)
    }
}

/// `ReduceSum` and its like.
pub(super) fn reduce(record: &Record, fold: Fold) -> Option<OutputOverflow> {
    let input = IntegerTensor::input(record, 0)?;
    let is_reduced = reduced_axes(record, input.dims.len())?;
    let [n_results, n_each] = [false, true].map(|reduced| {
        let axes = input.dims.iter().zip(&is_reduced);
        let axes = axes.filter(|(_, is_reduced)| **is_reduced == reduced);
        axes.map(|(dim, _)| *dim).product::<usize>()
    });
    if fold.always_fits(input.bounds, input.magnitude_max(), n_each) {
        return None;
    }
    let mut results = vec![fold.start(); n_results];
    let own = dense_strides(input.dims);
    // The result has the same strides without the reduced axes.
    let mut step = 1;
    let mut axes = Vec::new();
    for axis in (0..input.dims.len()).rev() {
        // A stride of 0 adds every element along the axis to the same total.
        let stride = if is_reduced[axis] { 0 } else { step };
        axes.push((input.dims[axis], vec![own[axis], stride]));
        step *= if is_reduced[axis] {
            1
        } else {
            input.dims[axis]
        };
    }
    let elements = input.to_wide();
    OperandWalk::new(2, axes.into_iter().rev()).each_run(|len, offsets, strides| {
        for i in 0..len {
            let total = &mut results[offsets[1] + i * strides[1]];
            *total = fold.put(*total, elements[offsets[0] + i * strides[0]]);
        }
    });
    let results = results.into_iter().map(|total| fold.end(total));
    let bad = results
        .enumerate()
        .filter(|(_, total)| !input.bounds.contains(*total));
    let tally: Tally = bad.map(|(i, _)| i).collect();
    tally.place(StatusCause::Integer, 0)
}

/// Which axes are reduced: those of the second input or of the attribute, or all.
fn reduced_axes(record: &Record, n_axes: usize) -> Option<Vec<bool>> {
    let axes = match tensor(record, 1) {
        Some(axes) => IntegerTensor::read(axes)?.to_wide(),
        // The axes are an input that was not recorded, so they are unknown.
        None if is_named(record, 1) => return None,
        None => {
            let axes = ints(&record.operator, "axes").unwrap_or_default();
            axes.into_iter().map(i128::from).collect()
        }
    };
    if axes.is_empty() {
        // ONNX reduces all axes by default, unless this attribute is set.
        let is_noop = int(&record.operator, "noop_with_empty_axes") == Some(1);
        return Some(vec![!is_noop; n_axes]);
    }
    let mut is_reduced = vec![false; n_axes];
    for axis in axes {
        *is_reduced.get_mut(position(axis, n_axes)?)? = true;
    }
    Some(is_reduced)
}

/// `CumSum` and `CumProd`: every element of the running result.
pub(super) fn cumulate(record: &Record, fold: Fold) -> Option<OutputOverflow> {
    let input = IntegerTensor::input(record, 0)?;
    let axis = *IntegerTensor::input(record, 1)?.to_wide().first()?;
    let axis = position(axis, input.dims.len())?;
    let len = *input.dims.get(axis)?;
    if fold.always_fits(input.bounds, input.magnitude_max(), len) {
        return None;
    }
    let is_exclusive = int(&record.operator, "exclusive") == Some(1);
    let is_reverse = int(&record.operator, "reverse") == Some(1);
    let elements = input.to_wide();
    let n_inner: usize = input.dims[axis + 1..].iter().product();
    let mut tally = Tally::default();
    for first in (0..elements.len()).filter(|i| (i / n_inner).is_multiple_of(len)) {
        let mut total = fold.start();
        for i in 0..len {
            let along = if is_reverse { len - 1 - i } else { i };
            let at = first + along * n_inner;
            // The exclusive result excludes its own element.
            let before = total;
            total = fold.put(total, elements[at]);
            if !input
                .bounds
                .contains(if is_exclusive { before } else { total })
            {
                tally.note(at);
            }
        }
    }
    tally.place(StatusCause::Integer, 0)
}

/// Resolves an axis that may be counted from the end.
fn position(axis: i128, n_axes: usize) -> Option<usize> {
    let n_axes = n_axes as i128;
    let axis = if axis < 0 { axis + n_axes } else { axis };
    usize::try_from(axis)
        .ok()
        .filter(|&axis| (axis as i128) < n_axes)
}

fn is_named(record: &Record, index: usize) -> bool {
    record
        .operator
        .inputs
        .get(index)
        .is_some_and(|name| !name.is_empty())
}
