//! The specification of the statistics of a block: plain code, one element after the other.
//!
//! Nothing runs this but tests. The code that does run must give the same bits on every input.

use crate::cpu::LANES;
use crate::stats::block::{SquareScale, StatsBlock, deviation_from_sums, fold};

/// One element.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainElement {
    /// Its value; integers of 64 bits are rounded.
    pub(super) value: f64,
    /// Whether it is at an end of the range of its dtype.
    pub(super) is_saturated: bool,
}

/// The statistics of a block. Magnitudes below `smallest_normal` are subnormal.
pub(super) fn block(elements: &[PlainElement], smallest_normal: f64) -> StatsBlock {
    let mut block = StatsBlock::EMPTY;
    for element in elements {
        let value = element.value;
        block.counts.n_elements += 1;
        block.counts.n_nan += u64::from(value.is_nan());
        block.counts.n_pos_inf += u64::from(value == f64::INFINITY);
        block.counts.n_neg_inf += u64::from(value == f64::NEG_INFINITY);
        block.counts.n_zero += u64::from(value == 0.0);
        block.counts.n_neg_zero += u64::from(value == 0.0 && value.is_sign_negative());
        block.counts.n_negative += u64::from(value < 0.0);
        block.counts.n_subnormal += u64::from(value != 0.0 && value.abs() < smallest_normal);
        block.counts.n_saturated += u64::from(element.is_saturated);
        if value.is_finite() {
            // In the total order -0 is below +0.
            if value.total_cmp(&block.min).is_lt() {
                block.min = value;
            }
            if value.total_cmp(&block.max).is_gt() {
                block.max = value;
            }
        }
    }
    block.scale = SquareScale::for_range(block.min, block.max);
    let factor = block.scale.factor();
    block.sum = sum(elements, |value| value);
    block.sum_of_magnitudes = sum(elements, f64::abs);
    block.sum_of_squares = sum(elements, |value| (value * factor) * (value * factor));
    block.deviation = deviation_from_sums(&block).unwrap_or_else(|| {
        let mean = block.sum / block.counts.n_finite() as f64;
        sum(elements, |value| (value - mean) * (value - mean))
    });
    block
}

/// Sums something of the finite elements, in lanes.
fn sum(elements: &[PlainElement], term: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    for (i, element) in elements.iter().enumerate() {
        if element.value.is_finite() {
            lanes[i % LANES] += term(element.value);
        }
    }
    fold(lanes)
}
