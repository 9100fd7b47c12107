//! Sums of products of integers: the exact accumulator behind matrix products and convolutions.

use opscope_store::file_format::op_debug::StatusCause;
use opscope_store::record::Record;

use super::OutputOverflow;
use super::integers::{IntegerBounds, IntegerTensor};
use super::tally::Tally;
use super::walk::OperandWalk;

/// The accumulator of quantised operators and of those with `Integer` in their name.
pub(super) const I32: IntegerBounds = IntegerBounds {
    min: i32::MIN as i128,
    max: i32::MAX as i128,
};

/// Whether no sum of `n_products` products of factors of these magnitudes, plus a start of
/// magnitude up to `start`, can leave the accumulator. Nearly every operator ends here, having read
/// its inputs once.
pub(super) fn always_fits(
    bounds: IntegerBounds,
    n_products: usize,
    factors: &[u128],
    start: u128,
) -> bool {
    let factors = factors.iter().copied();
    let sum = factors.fold(n_products as u128, u128::saturating_mul);
    bounds.hold_magnitude(sum.saturating_add(start))
}

/// Products to be summed.
pub(super) struct ProductSum {
    /// The accumulator.
    pub(super) bounds: IntegerBounds,
    /// The loops over the factors and, last, the result.
    pub(super) walk: OperandWalk,
    /// Initial values of the results: zeros or a bias.
    pub(super) results: Vec<i128>,
}

impl ProductSum {
    /// Sums that do not fit the accumulator. Only the final sum counts, so the order does not
    /// matter.
    pub(super) fn place(mut self, factors: &[&[i128]]) -> Option<OutputOverflow> {
        let results = &mut self.results;
        self.walk.each_run(|len, offsets, strides| match factors {
            [a, b] => {
                let (a, b, to) = (
                    &a[offsets[0]..],
                    &b[offsets[1]..],
                    &mut results[offsets[2]..],
                );
                for i in 0..len {
                    let total = &mut to[i * strides[2]];
                    // Saturating is safe: so large a sum stays outside the accumulator's bounds.
                    let product = a[i * strides[0]].saturating_mul(b[i * strides[1]]);
                    *total = total.saturating_add(product);
                }
            }
            _ => {
                for i in 0..len {
                    // The general case: strided results, or more than two factors.
                    let at = |operand: usize| offsets[operand] + i * strides[operand];
                    let values = factors.iter().enumerate();
                    let product = values.map(|(operand, values)| values[at(operand)]);
                    let product = product.fold(1, i128::saturating_mul);
                    let total = &mut results[at(factors.len())];
                    *total = total.saturating_add(product);
                }
            }
        });
        let bad = results.iter().enumerate();
        let tally: Tally = bad
            .filter(|(_, total)| !self.bounds.contains(**total))
            .map(|(i, _)| i)
            .collect();
        tally.place(StatusCause::CubeAccumulate, 0)
    }
}

/// One zero for each element of a result of this shape. `None` unless the recorded result has as
/// many elements, so that no description can ask for more memory than the engine had.
pub(super) fn zeros(record: &Record, dims: &[usize]) -> Option<Vec<i128>> {
    let n_elements = dims
        .iter()
        .try_fold(1_usize, |n, &dim| n.checked_mul(dim))?;
    // The shape comes from attributes and inputs, which a damaged model may have made up.
    let recorded = &record.outputs.iter().find(|(i, _)| *i == 0)?.1;
    (recorded.shape().n_elements() == n_elements).then(|| vec![0; n_elements])
}

/// The elements of a quantised tensor minus its zero point. `zero_dims` is the shape in which the
/// zero points are broadcast against the elements.
pub(super) fn centred(
    elements: &IntegerTensor,
    zero: Option<&IntegerTensor>,
    zero_dims: &[usize],
) -> Option<Vec<i128>> {
    let mut values = elements.to_wide();
    let Some(zero) = zero else {
        return Some(values);
    };
    let zeros = zero.to_wide();
    if zero_dims.iter().product::<usize>() != zeros.len() {
        return None;
    }
    let mut start = 0;
    OperandWalk::broadcast(&[elements.dims, zero_dims])?.each_run(|len, offsets, strides| {
        for i in 0..len {
            if let Some(value) = values.get_mut(start + i) {
                *value -= zeros[offsets[1] + i * strides[1]];
            }
        }
        start += len;
    });
    // Zero points with more axes than the elements would have made it longer.
    (start == values.len()).then_some(values)
}
