//! The Kullback-Leibler divergence, which needs the extremes of both sides before it looks at any element.

use super::side::{fold, padded};
use super::source::{BLOCK, Source};
use super::sweep::n_finite;
use super::wide::{Total, Wide, power_of_two};
use crate::cpu::{LANES, Machine, Task};

/// The smallest normalised element, so that it has a logarithm.
pub(super) const SMALLEST: f64 = f32::EPSILON as f64;

/// The second look at both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divergence<'a> {
    pub(super) sources: [Source<'a>; 2],
    /// Of the elements that are finite on both sides, of which there are some.
    pub(super) ranges: [(f64, f64); 2],
}

/// Brings elements between 0 and 1, of constants to 1.
#[derive(Clone, Copy, Debug)]
struct Norm {
    /// A power of two that keeps the range away from the ends of the exponents.
    scale: f64,
    shift: f64,
    factor: f64,
}

impl Norm {
    fn of((min, max): (f64, f64)) -> Norm {
        if min >= max {
            return Norm {
                scale: 0.0,
                shift: -1.0,
                factor: 1.0,
            };
        }
        let largest = (max / 2.0 - min / 2.0).max(f64::MIN_POSITIVE);
        let exponent = ((largest.to_bits() >> 52) as i32 - 1023).clamp(-1000, 1000);
        let scale = power_of_two(-exponent);
        Norm {
            scale,
            shift: min * scale,
            factor: 1.0 / (max * scale - min * scale),
        }
    }

    #[inline(always)]
    fn apply(self, value: f64) -> f64 {
        let norm = (value * self.scale - self.shift) * self.factor;
        if norm > SMALLEST { norm } else { SMALLEST }
    }
}

impl Task for Divergence<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<M: Machine>(self, m: M) -> f64 {
        let [target, golden] = self.sources;
        let [a_norm, b_norm] = self.ranges.map(Norm::of);
        let n = target.n();
        let mut buffers = [(); 3].map(|()| vec![0.0; n.min(BLOCK)]);
        let mut totals = [Total::ZERO; 3];
        for start in (0..n).step_by(BLOCK) {
            let n_block = (n - start).min(BLOCK);
            let [a, b, terms] = &mut buffers;
            let (a, b) = (&mut a[..n_block], &mut b[..n_block]);
            target.fill(m, start, a);
            golden.fill(m, start, b);
            let n_pairs = if n_finite(a, b) == n_block {
                n_block
            } else {
                keep_finite(a, b)
            };
            let (a, b) = (&mut a[..n_pairs], &mut b[..n_pairs]);
            let terms = &mut terms[..n_pairs];
            for ((a, b), term) in a.iter_mut().zip(b.iter_mut()).zip(terms.iter_mut()) {
                (*a, *b) = (a_norm.apply(*a), b_norm.apply(*b));
                *term = *a * ln(*a / *b);
            }
            for (total, values) in totals.iter_mut().zip([&*a, &*b, &*terms]) {
                total.add(Wide::new(sum(m, values), 0));
            }
        }
        let [p, q, terms] = totals.map(|total| total.value());
        (terms.over(p).to_f64() + ln(q.over(p).to_f64())).max(0.0)
    }
}

/// Moves pairs of finite elements to the front; how many there are.
fn keep_finite(a: &mut [f64], b: &mut [f64]) -> usize {
    let mut n = 0;
    for i in 0..a.len() {
        (a[n], b[n]) = (a[i], b[i]);
        n += usize::from(a[n].is_finite() && b[n].is_finite());
    }
    n
}

#[inline(always)]
fn sum<M: Machine>(m: M, values: &[f64]) -> f64 {
    let (groups, rest) = values.as_chunks::<LANES>();
    let mut sum = m.reals();
    for group in groups {
        sum = m.add(sum, m.reals_from_array(group));
    }
    fold(m.array(m.add(sum, m.reals_from_array(&padded(rest)))))
}

/// The natural logarithm of a normal positive number, within 3 units in the last place of the result
/// or 2e-16, whichever is larger. The same bits on every machine.
///
/// With `x = 2^k m` and `s = (m - 1) / (m + 1)`, `ln m = 2 (s + s^3 / 3 + s^5 / 5 + …)`. As `m` lies between
/// the root of 1/2 and that of 2, `s * s` is below 0.0295, and the terms from `s^23` on below 1e-18.
#[inline(always)]
fn ln(x: f64) -> f64 {
    /// Bits of the root of 1/2.
    const LOWEST: u64 = 0x3fe6_a09e_667f_3bcd;
    // The upper digits, so that their product with an exponent is exact, and the rest.
    const LN_2: [f64; 2] = [
        f64::from_bits(0x3fe6_2e42_fee0_0000),
        1.908_214_929_270_587_7e-10,
    ];
    /// A number whose last digit is worth 1, to which integers are added as bits.
    const INTEGERS: f64 = 6_755_399_441_055_744.0;

    let bits = x.to_bits();
    let biased = bits.wrapping_sub(LOWEST).wrapping_add(1023 << 52) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(biased.wrapping_sub(1023) << 52));
    let k = f64::from_bits(INTEGERS.to_bits().wrapping_add(biased)) - (INTEGERS + 1023.0);
    let f = m - 1.0;
    let s = f / (f + 2.0);
    let square = s * s;
    let mut series = 0.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        series = (series + 1.0 / odd) * square;
    }
    // 2 s is f - s f, of which f is exact.
    let small = k * LN_2[1] - s * (f - 2.0 * series);
    k * LN_2[0] + (f + small)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_within_their_bound() {
        let mut x = 1e-8f64;
        while x < 1e8 {
            for y in [x, 1.0 + (x - 1.0) * 1e-9] {
                let bound = (3.0 * f64::EPSILON * y.ln().abs()).max(2e-16);
                assert!((ln(y) - y.ln()).abs() <= bound, "{y:e}");
            }
            x *= 1.000_37;
        }
        assert_eq!(ln(1.0), 0.0);
    }
}
