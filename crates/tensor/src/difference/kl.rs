//! The Kullback-Leibler divergence, which needs the extremes of both sides before it reads any
//! element.

use super::side::{fold, padded};
use super::source::{BLOCK, BlockSource};
use super::wide::{WideNumber, WideSum, power_of_two};
use crate::cpu::{LANES, LaneMachine, LaneTask};

/// The smallest normalised element, so that it has a logarithm.
pub(super) const SMALLEST: f64 = f32::EPSILON as f64;

/// The second pass over both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct DivergenceTask<'a> {
    pub(super) sources: [BlockSource<'a>; 2],
    /// Of the elements that are finite on both sides, of which there are some.
    pub(super) ranges: [(f64, f64); 2],
    /// Whether all elements of both sides are finite.
    pub(super) are_all_finite: bool,
}

/// Brings elements between 0 and 1, of constants to 1.
#[derive(Clone, Copy, Debug)]
struct UnitRange {
    /// A power of two that keeps the range away from the ends of the exponents.
    scale: f64,
    shift: f64,
    factor: f64,
}

impl UnitRange {
    fn from_range((min, max): (f64, f64)) -> UnitRange {
        // Whatever the value, (value · 0 + 1) · 1 is 1, so that the loop needs no branch for
        // constants.
        if min >= max {
            return UnitRange {
                scale: 0.0,
                shift: -1.0,
                factor: 1.0,
            };
        }
        // Halves, because the difference of the ends may overflow.
        let largest = (max / 2.0 - min / 2.0).max(f64::MIN_POSITIVE);
        let exponent = ((largest.to_bits() >> 52) as i32 - 1023).clamp(-1000, 1000);
        let scale = power_of_two(-exponent);
        UnitRange {
            scale,
            shift: min * scale,
            factor: 1.0 / (max * scale - min * scale),
        }
    }

    #[inline(always)]
    fn apply(self, value: f64) -> f64 {
        let norm = (value * self.scale - self.shift) * self.factor;
        // One instruction; `f64::max` has a rule for NaN, which cannot be here.
        if norm > SMALLEST { norm } else { SMALLEST }
    }
}

impl LaneTask for DivergenceTask<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<M: LaneMachine>(self, m: M) -> f64 {
        let [a_norm, b_norm] = self.ranges.map(UnitRange::from_range);
        let n = self.sources[0].n();
        let mut buffers = [(); 3].map(|()| vec![0.0; n.min(BLOCK)]);
        let mut totals = [WideSum::ZERO; 3];
        for start in (0..n).step_by(BLOCK) {
            let n_block = (n - start).min(BLOCK);
            let [a, b, terms] = &mut buffers;
            let (a, b) = (&mut a[..n_block], &mut b[..n_block]);
            for (source, out) in self.sources.iter().zip([&mut *a, &mut *b]) {
                source.fill(m, start, out);
            }
            let n_pairs = if self.are_all_finite {
                n_block
            } else {
                keep_finite(a, b)
            };
            let (a, b) = (&mut a[..n_pairs], &mut b[..n_pairs]);
            let terms = &mut terms[..n_pairs];
            for ((a, b), term) in a.iter_mut().zip(b.iter_mut()).zip(terms.iter_mut()) {
                (*a, *b) = (a_norm.apply(*a), b_norm.apply(*b));
                *term = *a * log_ratio(*a, *b);
            }
            for (total, values) in totals.iter_mut().zip([&*a, &*b, &*terms]) {
                total.add(WideNumber::new(sum(m, values), 0));
            }
        }
        let [p, q, terms] = totals.map(|total| total.value());
        // The sums of both sides are divided out afterwards, which saves a pass. Rounding may take
        // a divergence of zero a little below zero.
        (terms.over(p).to_f64() + log_ratio(q.to_f64(), p.to_f64())).max(0.0)
    }
}

/// Moves pairs of finite elements to the front; how many there are.
fn keep_finite(a: &mut [f64], b: &mut [f64]) -> usize {
    let mut n = 0;
    for i in 0..a.len() {
        // Written in any case and overwritten if it was not finite: the loop then has no branch.
        (a[n], b[n]) = (a[i], b[i]);
        n += usize::from(a[n].is_finite() && b[n].is_finite());
    }
    n
}

#[inline(always)]
fn sum<M: LaneMachine>(m: M, values: &[f64]) -> f64 {
    let (groups, rest) = values.as_chunks::<LANES>();
    let mut sum = m.reals();
    for group in groups {
        sum = m.add(sum, m.reals_from_array(group));
    }
    fold(m.array(m.add(sum, m.reals_from_array(&padded(rest)))))
}

/// The natural logarithm of `a / b`, both between 1e-8 and 1e300, within 4 units in the last place
/// of the result or 2e-16, whichever is larger. The same bits on every machine.
///
/// With `a / b = 2^k a' / b` and `s = (a' - b) / (a' + b)`,
/// `ln (a' / b) = 2 (s + s^3 / 3 + s^5 / 5 + …)`. The difference of their bits is their logarithm's
/// to base 2 within 0.09, so that `a' / b` lies between 2/3 and 3/2, `s * s` below 0.041, and the
/// terms from `s^23` on below 1e-17 of the first.
#[inline(always)]
fn log_ratio(a: f64, b: f64) -> f64 {
    // The upper digits, so that their product with an exponent is exact, and the rest.
    const LN_2: [f64; 2] = [
        f64::from_bits(0x3fe6_2e42_fee0_0000),
        1.908_214_929_270_587_7e-10,
    ];
    /// A number whose last digit is worth 1, to which integers are added as bits.
    const INTEGERS: f64 = 6_755_399_441_055_744.0;
    /// Added to exponents, so that they are not negative.
    const BIAS: u64 = 1024;
    const HALF: u64 = 1 << 51;

    let bits = a.to_bits();
    let difference = bits.wrapping_sub(b.to_bits());
    let biased = difference.wrapping_add((BIAS << 52) | HALF) >> 52;
    let near = f64::from_bits(bits.wrapping_sub(biased.wrapping_sub(BIAS) << 52));
    let k = f64::from_bits(INTEGERS.to_bits().wrapping_add(biased)) - (INTEGERS + BIAS as f64);
    let s = (near - b) / (near + b);
    let square = s * s;
    // Two sums of every other term, which do not wait for each other.
    let fourth = square * square;
    let odd = 1.0 / 5.0
        + fourth
            * (1.0 / 9.0 + fourth * (1.0 / 13.0 + fourth * (1.0 / 17.0 + fourth * (1.0 / 21.0))));
    let even = 1.0 / 3.0
        + fourth
            * (1.0 / 7.0 + fourth * (1.0 / 11.0 + fourth * (1.0 / 15.0 + fourth * (1.0 / 19.0))));
    let series = square * (even + square * odd);
    k * LN_2[0] + (2.0 * s + (2.0 * s * series + k * LN_2[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_within_their_bound() {
        let mut x = 1e-8f64;
        while x < 1e8 {
            for (a, b) in [(x, 1.0), (1.0, x), (1.0 + (x - 1.0) * 1e-9, 1.0), (0.7, x)] {
                let (found, expected) = (log_ratio(a, b), a.ln() - b.ln());
                let largest = a.ln().abs().max(b.ln().abs());
                let bound = (4.0 * f64::EPSILON * largest).max(2e-16);
                assert!(
                    (found - expected).abs() <= bound,
                    "{a:e} / {b:e}: {found:e}"
                );
            }
            x *= 1.000_37;
        }
        assert_eq!(log_ratio(0.3, 0.3), 0.0);
        // The smallest ratios have all their digits.
        let near = log_ratio(1.0 + f64::EPSILON, 1.0);
        assert!((near / f64::EPSILON - 1.0).abs() < 1e-15);
    }
}
