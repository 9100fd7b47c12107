//! Sums over the elements of one side.
//!
//! Element `i` of a block goes to lane `i % 16`; lanes are added in pairs, and blocks in their
//! order with what rounding took away. Nothing here depends on the machine.

use super::SideSummary;
use super::wide::{WideNumber, WideSum, power_of_two};
use crate::cpu::{LANES, LaneMachine};

/// Sums of one block of finite elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideBlock {
    n: usize,
    /// `+inf` if there are no elements.
    pub(super) min: f64,
    /// `-inf` if there are no elements.
    pub(super) max: f64,
    /// The binary exponent of what elements are multiplied by before they are added or squared.
    pub(super) scale: i32,
    sum: f64,
    squares: f64,
    /// Sum of the squared distances from the mean.
    deviation: f64,
}

/// The binary exponent that keeps squares of numbers of this magnitude in range.
#[inline(always)]
pub(super) fn scale_of(magnitude: f64) -> i32 {
    if magnitude >= power_of_two(500) {
        -600
    } else if magnitude <= power_of_two(-500) && magnitude > 0.0 {
        600
    } else {
        0
    }
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

/// The last elements of a block, followed by zeros.
#[inline(always)]
pub(super) fn padded(rest: &[f64]) -> [f64; LANES] {
    let mut lanes = [0.0; LANES];
    lanes[..rest.len()].copy_from_slice(rest);
    lanes
}

impl SideBlock {
    /// A block without elements.
    pub(super) const EMPTY: SideBlock = SideBlock {
        n: 0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        scale: 0,
        sum: 0.0,
        squares: 0.0,
        deviation: 0.0,
    };

    /// Accumulates finite elements.
    #[inline(always)]
    pub(super) fn from_values<M: LaneMachine>(m: M, values: &[f64]) -> SideBlock {
        let mut block = sums(m, values, 0);
        let scale = scale_of(block.min.abs().max(block.max.abs()));
        // Seldom: squares at the ends of the exponents would overflow or vanish.
        if scale != 0 && !values.is_empty() {
            block = sums(m, values, scale);
        }
        let mean = block.sum / values.len() as f64;
        block.deviation = if block.min >= block.max {
            0.0
        } else {
            let quick = block.squares - block.sum * mean;
            // At most four bits cancel, which the sums have to spare.
            if block.scale == 0 && quick >= block.squares / 16.0 {
                quick
            } else {
                deviation(m, values, mean, block.scale)
            }
        };
        block
    }

    /// The sum of squares.
    pub(super) fn squares(&self) -> WideNumber {
        WideNumber::new(self.squares, -2 * self.scale)
    }
}

#[inline(always)]
fn sums<M: LaneMachine>(m: M, values: &[f64], scale: i32) -> SideBlock {
    let factor = m.splat(power_of_two(scale));
    let (groups, rest) = values.as_chunks::<LANES>();
    // An element, not infinity: idle lanes then need no special rule.
    let first = m.splat(values.first().copied().unwrap_or(0.0));
    let (mut sum, mut squares) = (m.reals(), m.reals());
    let (mut min, mut max) = (first, first);
    for group in groups {
        let x = m.reals_from_array(group);
        min = m.min_reals(min, x);
        max = m.max_reals(max, x);
        let x = m.multiply(x, factor);
        sum = m.add(sum, x);
        squares = m.add(squares, m.multiply(x, x));
    }
    let x = m.multiply(m.reals_from_array(&padded(rest)), factor);
    sum = m.add(sum, x);
    squares = m.add(squares, m.multiply(x, x));
    let ends = |lanes: [f64; LANES], start: f64, pick: fn(f64, f64) -> f64| {
        if values.is_empty() {
            return start;
        }
        let lanes = lanes.into_iter().fold(start, pick);
        rest.iter().copied().fold(lanes, pick)
    };
    SideBlock {
        n: values.len(),
        min: ends(m.array(min), f64::INFINITY, f64::min),
        max: ends(m.array(max), f64::NEG_INFINITY, f64::max),
        scale,
        sum: fold(m.array(sum)),
        squares: fold(m.array(squares)),
        deviation: 0.0,
    }
}

/// `mean` is that of the scaled elements.
#[inline(always)]
fn deviation<M: LaneMachine>(m: M, values: &[f64], mean: f64, scale: i32) -> f64 {
    let factor = m.splat(power_of_two(scale));
    let lanes_of_mean = m.splat(mean);
    let (groups, rest) = values.as_chunks::<LANES>();
    let mut sum = m.reals();
    for group in groups {
        let x = m.multiply(m.reals_from_array(group), factor);
        let x = m.subtract(x, lanes_of_mean);
        sum = m.add(sum, m.multiply(x, x));
    }
    let mut lanes = m.array(sum);
    for (lane, x) in lanes.iter_mut().zip(rest) {
        let x = x * power_of_two(scale) - mean;
        *lane += x * x;
    }
    fold(lanes)
}

/// The sums of all blocks of a side.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideSums {
    n: u64,
    sum: WideSum,
    squares: WideSum,
    deviation: WideSum,
    min: f64,
    max: f64,
    pub(super) n_nan: u64,
    pub(super) n_positive_inf: u64,
    pub(super) n_negative_inf: u64,
    pub(super) n_zero: u64,
}

impl SideSums {
    pub(super) const EMPTY: SideSums = SideSums {
        n: 0,
        sum: WideSum::ZERO,
        squares: WideSum::ZERO,
        deviation: WideSum::ZERO,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        n_nan: 0,
        n_positive_inf: 0,
        n_negative_inf: 0,
        n_zero: 0,
    };

    pub(super) fn add(&mut self, block: &SideBlock) {
        if block.n == 0 {
            return;
        }
        let sum = WideNumber::new(block.sum, -block.scale);
        let n = |n: u64| WideNumber::new(n as f64, 0);
        let n_block = block.n as u64;
        if self.n > 0 {
            // The contribution of the block's mean to the deviations from the overall mean.
            let apart = sum.over(n(n_block)).minus(self.sum.value().over(n(self.n)));
            let weight = n(self.n).times(n(n_block)).over(n(self.n + n_block));
            self.deviation.add(apart.times(apart).times(weight));
        }
        self.n += n_block;
        self.sum.add(sum);
        self.squares.add(block.squares());
        self.deviation
            .add(WideNumber::new(block.deviation, -2 * block.scale));
        self.min = self.min.min(block.min);
        self.max = self.max.max(block.max);
    }

    /// Counts an element that is not finite.
    pub(super) fn count(&mut self, value: f64) {
        self.n_nan += u64::from(value.is_nan());
        self.n_positive_inf += u64::from(value == f64::INFINITY);
        self.n_negative_inf += u64::from(value == f64::NEG_INFINITY);
    }

    pub(super) fn summary(&self) -> SideSummary {
        let n = WideNumber::new(self.n as f64, 0);
        let or_nan = |value: f64| if self.n == 0 { f64::NAN } else { value };
        SideSummary {
            min: or_nan(self.min),
            max: or_nan(self.max),
            // Rounding takes no mean beyond the elements.
            mean: or_nan(quotient(self.sum.value(), n).max(self.min).min(self.max)),
            std: or_nan(if self.min < self.max {
                self.deviation.value().over(n).sqrt().to_f64()
            } else {
                0.0
            }),
            l2_norm: self.squares.value().sqrt().to_f64(),
            n_nan: self.n_nan,
            n_positive_inf: self.n_positive_inf,
            n_negative_inf: self.n_negative_inf,
            n_zero: self.n_zero,
        }
    }
}

/// `sum / n`, or 0 of nothing.
pub(super) fn quotient(sum: WideNumber, n: WideNumber) -> f64 {
    if n.is_zero() {
        0.0
    } else {
        sum.over(n).to_f64()
    }
}
