//! Sums over pairs of finite elements.

use super::relative::RelativeDifferences;
use super::side::{SideBlock, fold, padded, quotient, scale_of};
use super::wide::{WideNumber, WideSum, power_of_two};
use super::{TensorDifference, WorstElement};
use crate::cpu::{LANES, LaneMachine};

/// A block of pairs.
pub(super) struct PairBlock<'a> {
    pub(super) target: &'a [f64],
    pub(super) golden: &'a [f64],
    /// Absolute differences; reordered in place.
    pub(super) distances: &'a mut [f64],
    /// Room for as many relative differences.
    pub(super) relative: &'a mut [f64],
    pub(super) sides: [&'a SideBlock; 2],
}

/// All blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairSums {
    n: u64,
    products: WideSum,
    squares: [WideSum; 2],
    distances: WideSum,
    squared_distances: WideSum,
    relative_sum: WideSum,
    relative: RelativeDifferences,
    max_abs: f64,
    worst: Option<WorstElement>,
    /// Smallest and largest element of each side, of those that are in pairs.
    pub(super) ranges: [(f64, f64); 2],
}

/// Sums of one block.
struct BlockSums {
    products: f64,
    distances: f64,
    squared_distances: f64,
    relative: f64,
}

impl PairSums {
    pub(super) const EMPTY: PairSums = PairSums {
        n: 0,
        products: WideSum::ZERO,
        squares: [WideSum::ZERO; 2],
        distances: WideSum::ZERO,
        squared_distances: WideSum::ZERO,
        relative_sum: WideSum::ZERO,
        relative: RelativeDifferences::EMPTY,
        max_abs: 0.0,
        worst: None,
        ranges: [(f64::INFINITY, f64::NEG_INFINITY); 2],
    };

    /// Takes over a block of elements that are equal on both sides, the first of which is at
    /// `index`.
    pub(super) fn add_equal(&mut self, values: &[f64], side: &SideBlock, index: u64) {
        self.add_sides(values.len(), [side; 2]);
        self.products.add(side.squares());
        self.relative.add_equal(values.len());
        // Where nothing differs the first element is the worst; it never displaces another one.
        if let (Some(&value), None) = (values.first(), self.worst) {
            self.worst = Some(WorstElement {
                index,
                target: value,
                golden: value,
            });
        }
    }

    fn add_sides(&mut self, n: usize, sides: [&SideBlock; 2]) {
        self.n += n as u64;
        for (i, side) in sides.into_iter().enumerate() {
            self.squares[i].add(side.squares());
            let (min, max) = self.ranges[i];
            self.ranges[i] = (min.min(side.min), max.max(side.max));
        }
    }

    /// Accumulates a block, whose pairs are at `index(0)`, `index(1)` and so on.
    #[inline(always)]
    pub(super) fn add<M: LaneMachine>(
        &mut self,
        m: M,
        block: PairBlock<'_>,
        index: impl Fn(usize) -> u64,
    ) {
        let PairBlock {
            target,
            golden,
            distances,
            relative,
            sides,
        } = block;
        if target.is_empty() {
            return;
        }
        self.add_sides(target.len(), sides);
        // Numbers that are not negative are ordered as their bits.
        let bits = distances.iter().map(|d| d.to_bits().cast_signed());
        let largest = f64::from_bits(bits.fold(0, i64::max).cast_unsigned());
        if largest > self.max_abs || self.worst.is_none() {
            let at = distances.iter().position(|&d| d == largest).unwrap_or(0);
            self.max_abs = largest;
            self.worst = Some(WorstElement {
                index: index(at),
                target: target[at],
                golden: golden[at],
            });
        }
        // Before rescaling, because quotients need the distances as they are.
        self.relative.add(target, golden, distances, relative);
        let scale = rescale(distances, target, golden, largest);
        let [a_scale, b_scale] = sides.map(|side| side.scale);
        let factors = [power_of_two(a_scale), power_of_two(b_scale)];
        let sums = sums(m, target, golden, factors, distances, relative);
        self.products
            .add(WideNumber::new(sums.products, -a_scale - b_scale));
        self.distances.add(WideNumber::new(sums.distances, -scale));
        self.squared_distances
            .add(WideNumber::new(sums.squared_distances, -2 * scale));
        // Finite quotients may have a sum that is not; then they are summed again on a smaller
        // scale.
        self.relative_sum.add(if sums.relative < f64::INFINITY {
            WideNumber::new(sums.relative, 0)
        } else {
            let parts = relative.iter().map(|r| r * power_of_two(-64));
            WideNumber::new(parts.sum(), 64)
        });
    }

    pub(super) fn finish(&self, result: &mut TensorDifference) {
        let n = WideNumber::new(self.n as f64, 0);
        let [a, b] = &self.squares;
        let [a, b, distance] =
            [a, b, &self.squared_distances].map(|squares| squares.value().sqrt());
        let rms = if self.n == 0 {
            WideNumber::ZERO
        } else {
            self.squared_distances.value().over(n).sqrt()
        };
        let (min, max) = self.ranges[1];
        let largest = if self.n == 0 {
            WideNumber::ZERO
        } else {
            WideNumber::new(min.abs().max(max.abs()), 0)
        };
        result.n_finite = self.n;
        result.max_abs = self.max_abs;
        result.worst = self.worst;
        // Here and below: rounding must not take a mean beyond the largest of its terms.
        result.mean_abs = quotient(self.distances.value(), n).min(self.max_abs);
        result.rmse = rms.to_f64().min(self.max_abs);
        result.rel_l2 = ratio(distance, b);
        result.cosine = match (a.is_zero(), b.is_zero()) {
            _ if self.n == 0 => None,
            (false, false) => {
                let cosine = self.products.value().over(a.times(b)).to_f64();
                Some(cosine.clamp(-1.0, 1.0))
            }
            (true, true) => Some(1.0),
            _ => None,
        };
        result.snr_db = decibels(distance, b);
        result.psnr_db = decibels(rms, largest);
        let measured = WideNumber::new(self.relative.n_measured as f64, 0);
        result.max_rel = self.relative.max;
        result.accumulated_rel = self.relative_sum.value().to_f64();
        result.mean_rel = quotient(self.relative_sum.value(), measured).min(self.relative.max);
        [result.share_1_1000, result.share_5_1000] = self.relative.shares();
        result.histogram = self.relative.histogram;
    }
}

/// Brings distances, of which the largest is known, where their squares stay in range. The binary
/// exponent of what they were multiplied by.
#[inline(always)]
fn rescale(distances: &mut [f64], target: &[f64], golden: &[f64], largest: f64) -> i32 {
    let scale = scale_of(largest);
    if scale == 0 {
        return 0;
    }
    let factor = power_of_two(scale);
    // A distance that has overflowed is lost, so all are taken again between scaled elements.
    if largest == f64::INFINITY {
        for ((distance, a), b) in distances.iter_mut().zip(target).zip(golden) {
            *distance = (a * factor - b * factor).abs();
        }
    } else {
        for distance in distances {
            *distance *= factor;
        }
    }
    scale
}

#[inline(always)]
fn sums<M: LaneMachine>(
    m: M,
    target: &[f64],
    golden: &[f64],
    factors: [f64; 2],
    distances: &[f64],
    relative: &[f64],
) -> BlockSums {
    let mut lanes = PairLanes {
        factors: [m.splat(factors[0]), m.splat(factors[1])],
        products: m.reals(),
        distances: m.reals(),
        squared_distances: m.reals(),
        relative: m.reals(),
    };
    let (a, a_rest) = target.as_chunks();
    let (b, b_rest) = golden.as_chunks();
    let (d, d_rest) = distances.as_chunks();
    let (r, r_rest) = relative.as_chunks();
    for (((a, b), d), r) in a.iter().zip(b).zip(d).zip(r) {
        lanes.add(m, [a, b, d, r]);
    }
    let [a, b] = [padded(a_rest), padded(b_rest)];
    let [d, r] = [padded(d_rest), padded(r_rest)];
    // Zeros after the last elements add nothing to any of the sums.
    lanes.add(m, [&a, &b, &d, &r]);
    BlockSums {
        products: fold(m.array(lanes.products)),
        distances: fold(m.array(lanes.distances)),
        squared_distances: fold(m.array(lanes.squared_distances)),
        relative: fold(m.array(lanes.relative)),
    }
}

/// [`BlockSums`] in the making.
struct PairLanes<M: LaneMachine> {
    factors: [M::Reals; 2],
    products: M::Reals,
    distances: M::Reals,
    squared_distances: M::Reals,
    relative: M::Reals,
}

impl<M: LaneMachine> PairLanes<M> {
    /// Takes over elements of both sides, distances and relative differences.
    #[inline(always)]
    fn add(&mut self, m: M, [a, b, d, r]: [&[f64; LANES]; 4]) {
        let a = m.multiply(m.reals_from_array(a), self.factors[0]);
        let b = m.multiply(m.reals_from_array(b), self.factors[1]);
        let d = m.reals_from_array(d);
        self.products = m.add(self.products, m.multiply(a, b));
        self.distances = m.add(self.distances, d);
        self.squared_distances = m.add(self.squared_distances, m.multiply(d, d));
        self.relative = m.add(self.relative, m.reals_from_array(r));
    }
}

/// A distance over what it is measured by: none is 0, some over nothing infinite.
fn ratio(distance: WideNumber, by: WideNumber) -> f64 {
    match (distance.is_zero(), by.is_zero()) {
        (true, _) => 0.0,
        (false, true) => f64::INFINITY,
        _ => distance.over(by).to_f64(),
    }
}

/// The ratio of `of` to the distance, in decibels; infinite without a distance.
fn decibels(distance: WideNumber, of: WideNumber) -> f64 {
    match (distance.is_zero(), of.is_zero()) {
        (true, _) => f64::INFINITY,
        (false, true) => f64::NEG_INFINITY,
        _ => 20.0 * of.over(distance).log10(),
    }
}
