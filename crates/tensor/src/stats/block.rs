//! The sums of a block of elements, and the rules that every way of computing them follows.
//!
//! The order of summation is part of the definition. A block has [`BLOCK`] elements, the last one
//! of a tensor fewer. Element `i` of a block is added to lane `i % 16`, in ascending order of `i`;
//! then the lanes are added in pairs ([`fold`]). All arithmetic is in `f64`, and no product is
//! fused with a sum unless the product is exact.

use super::counts::ElementCounts;
use crate::cpu::LANES;

/// Elements in a block.
pub(super) const BLOCK: usize = 4096;

/// Sums and counts of one block. Sums, `min` and `max` cover the finite elements only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StatsBlock {
    pub(super) counts: ElementCounts,
    /// `+inf` if no element is finite.
    pub(super) min: f64,
    /// `-inf` if no element is finite.
    pub(super) max: f64,
    pub(super) sum: f64,
    pub(super) sum_of_magnitudes: f64,
    /// Of the elements times [`SquareScale::factor`].
    pub(super) sum_of_squares: f64,
    pub(super) scale: SquareScale,
    /// Sum of the squared distances from the block's mean.
    pub(super) deviation: f64,
}

impl StatsBlock {
    /// A block without elements.
    pub(super) const EMPTY: StatsBlock = StatsBlock {
        counts: ElementCounts::EMPTY,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        sum: 0.0,
        sum_of_magnitudes: 0.0,
        sum_of_squares: 0.0,
        scale: SquareScale::None,
        deviation: 0.0,
    };
}

/// The factor that elements are multiplied by before they are squared, so that no square overflows
/// or vanishes. Only `float64` ever needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SquareScale {
    /// The largest magnitude is 2^-500 or less, and not zero.
    Up,
    /// In between.
    None,
    /// The largest magnitude is 2^500 or more.
    Down,
}

impl SquareScale {
    /// The scale of a block whose finite elements lie between `min` and `max`.
    #[inline(always)]
    pub(super) fn for_range(min: f64, max: f64) -> SquareScale {
        // Of no elements the bounds are infinite, and nothing is scaled.
        let largest = min.abs().max(max.abs());
        if largest >= power_of_two(500) && largest.is_finite() {
            SquareScale::Down
        } else if largest <= power_of_two(-500) && largest > 0.0 {
            SquareScale::Up
        } else {
            SquareScale::None
        }
    }

    /// Returns the factor that elements are multiplied by.
    #[inline(always)]
    pub(super) fn factor(self) -> f64 {
        match self {
            SquareScale::Up => power_of_two(600),
            SquareScale::None => 1.0,
            SquareScale::Down => power_of_two(-600),
        }
    }
}

/// 2^`exponent` for exponents in the normal range.
pub(super) const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Adds up the lanes: those eight apart, then four, two and one.
#[inline(always)]
pub(super) fn fold(mut lanes: [f64; LANES]) -> f64 {
    for distance in [8, 4, 2, 1] {
        for i in 0..distance {
            lanes[i] += lanes[i + distance];
        }
    }
    lanes[0]
}

/// The block's sum of squared distances from its mean, from its sums; or `None` if these have
/// nearly cancelled each other, and the distances must be squared and summed one by one.
#[inline(always)]
pub(super) fn deviation_from_sums(block: &StatsBlock) -> Option<f64> {
    if block.min >= block.max {
        return Some(0.0);
    }
    let mean = block.sum / block.counts.n_finite() as f64;
    let deviation = block.sum_of_squares - block.sum * mean;
    let is_accurate =
        block.scale == SquareScale::None && deviation >= block.sum_of_squares * power_of_two(-12);
    is_accurate.then_some(deviation)
}
