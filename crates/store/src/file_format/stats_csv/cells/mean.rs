//! The average of a row.
//!
//! The rule is the running mean `mean += (x - mean) / n` in double precision, element after
//! element. Its rounding shows in the sixth digit only for some tensors, and computing it takes a
//! division that waits for the one before. So the sum is taken in blocks instead, together with a
//! bound on how far the rule can be from the quotient; only where numbers within the bound print
//! differently is the rule itself carried out.
//!
//! The bound. With `u = 2^-53`, `x` finite and at most `M` in magnitude, and `m(k)` the exact mean
//! of the first `k` elements, the rule makes at step `k` an error of at most `u |m(k)| + 4.1 u M /
//! k` plus terms in `u²`, and step `k` multiplies the errors before it by `1 - 1/k`. After `n`
//! steps they total at most `u/n Σ k |m(k)| + 4.1 u M`. Now `k |m(k)|` is the magnitude of a sum of
//! the first `k` elements, which within a block is at most that of the sum before the block and the
//! magnitudes in it. Let `W` be the sum over blocks of their length times that. The sum itself,
//! taken in lanes, is off by at most `2 u W`. All in all `u (3 W/n + 8 M)` with room to spare, and
//! `2 u² n² M` for the terms in `u²`.
//!
//! Of floats the sum and `W` come from the tensor's statistics, whose blocks and lanes are others
//! and within the same bounds.

use opscope_tensor::StatsAndWeight;

use super::LANES;
use crate::file_format::stats_csv::number::general;

/// Half the distance from 1 to the next double.
const U: f64 = f64::EPSILON / 2.0;
/// Magnitudes beyond which differences may overflow, or quotients lose their last bits, are left to
/// the rule.
const MAGNITUDES: std::ops::Range<f64> = 1e-290..1e300;

/// Sums over blocks of elements.
#[derive(Default)]
pub(super) struct MeanSums {
    n: f64,
    sum: f64,
    squares: f64,
    /// Block lengths times what bounds the sums within the block.
    weight: f64,
}

impl MeanSums {
    /// The sums of elements that are finite, of which statistics are known.
    pub(super) fn of_stats(known: &StatsAndWeight) -> MeanSums {
        MeanSums {
            n: known.stats.counts.n_elements as f64,
            sum: known.stats.sum,
            // These are not needed: the norm comes from the statistics as well.
            squares: f64::NAN,
            weight: known.prefix_weight,
        }
    }

    /// Adds the next block.
    #[inline(always)]
    pub(super) fn add<T: Copy>(&mut self, elements: &[T], value: impl Fn(T) -> f64) {
        let n = elements.len() as f64;
        let mut sum = [0.0_f64; LANES];
        let mut magnitudes = [0.0_f64; LANES];
        let mut squares = [0.0_f64; LANES];
        let mut add = |lane: usize, x: f64| {
            sum[lane] += x;
            magnitudes[lane] += x.abs();
            squares[lane] += x * x;
        };
        let (groups, rest) = elements.as_chunks::<LANES>();
        for group in groups {
            for (lane, &x) in group.iter().enumerate() {
                add(lane, value(x));
            }
        }
        for (lane, &x) in rest.iter().enumerate() {
            add(lane, value(x));
        }
        let magnitude: f64 = magnitudes.iter().sum();
        // The bound wants the sum before this block, so the weight is taken first.
        self.weight += n * (self.sum.abs() + magnitude);
        self.n += n;
        self.sum += sum.iter().sum::<f64>();
        self.squares += squares.iter().sum::<f64>();
    }

    pub(super) fn of_squares(&self) -> f64 {
        self.squares
    }

    /// A number that prints like the result of the rule, if the sum determines one. The elements
    /// are finite and at most `magnitude` in magnitude.
    pub(super) fn mean(&self, magnitude: f64) -> Option<f64> {
        if !MAGNITUDES.contains(&magnitude) {
            // Zeros alone have the mean 0, whatever their signs.
            return (magnitude == 0.0).then_some(0.0);
        }
        let mean = self.sum / self.n;
        let first_order = 1.02 * U * (3.0 * self.weight / self.n + 8.0 * magnitude);
        let bound = first_order + 2.0 * U * U * self.n * self.n * magnitude;
        // Printing both ends takes far longer than this arithmetic, which settles nearly every
        // tensor.
        let is_told = bound.is_finite()
            && (is_far_from_ties(mean, bound) || general(mean - bound) == general(mean + bound));
        is_told.then_some(mean)
    }
}

/// Whether six digits of every number within `bound` of `mean` are certainly the same. `false` says
/// nothing: then they have to be printed.
fn is_far_from_ties(mean: f64, bound: f64) -> bool {
    /// Largest bound, as a part of the mean.
    const BOUND_MAX: f64 = 1e-9;
    /// Numbers of six digits, without those next to a power of ten.
    const SIX_DIGITS: std::ops::Range<f64> = 100_001.0..999_999.0;
    /// The bound and the roundings here come to at most a third of this, in units of the sixth
    /// digit.
    const DISTANCE_MIN: f64 = 4e-3;
    let magnitude = mean.abs();
    if !(1e-280..1e280).contains(&magnitude) || bound > magnitude * BOUND_MAX {
        return false;
    }
    let exponent = magnitude.log10().floor() as i32;
    let digits = magnitude * 10.0_f64.powi(5 - exponent);
    SIX_DIGITS.contains(&digits) && (digits.fract() - 0.5).abs() > DISTANCE_MIN
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use opscope_tensor::{DType, Shape, Tensor};

    use super::*;
    use crate::file_format::stats_csv::cells::{BLOCK, running_mean};

    /// The text that the sums of a tensor's statistics give.
    fn by_stats(values: &[f64]) -> Option<String> {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let shape = Shape::new([values.len()]).unwrap();
        let tensor = Tensor::from_vec(DType::F64, shape, bytes).unwrap();
        let known = tensor.observed().weighed_stats().unwrap();
        let magnitude = known.stats.max.abs().max(known.stats.min.abs());
        MeanSums::of_stats(known).mean(magnitude).map(general)
    }

    /// The rule's text, and the one from the sums if they determine it.
    fn both(values: &[f64]) -> (String, Option<String>) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut sums = MeanSums::default();
        for block in values.chunks(BLOCK) {
            sums.add(block, |x| x);
        }
        let magnitude = values.iter().fold(0.0_f64, |max, v| max.max(v.abs()));
        let text = general(running_mean::<f64>(&bytes));
        (text, sums.mean(magnitude).map(general))
    }

    #[test]
    fn sums_tell_for_ordinary_values() {
        let values: Vec<f64> = (0..10_000).map(|i| f64::from(i % 97) - 31.0).collect();
        let (rule, told) = both(&values);
        assert_eq!(told.as_ref(), Some(&rule));
        assert_eq!(by_stats(&values), Some(rule));
    }

    #[test]
    fn sums_do_not_tell_what_rounding_decides() {
        // The mean is 1.234565 but for rounding: a tie in the sixth digit.
        let (_, told) = both(&[1.234_565; 3000]);
        assert_eq!(told, None);
        assert_eq!(by_stats(&[1.234_565; 3000]), None);
        // Beyond all doubles, in either direction, and next to nothing.
        assert_eq!(both(&[1e305, -1e305]).1, None);
        assert_eq!(both(&[1e-300, 3e-300]).1, None);
        let huge: Vec<f64> = (0..4000)
            .map(|i| if i < 2000 { 9e299 } else { -9e299 })
            .collect();
        assert_eq!(both(&huge).1, None);
        assert_eq!(both(&[0.0, -0.0]), ("0".into(), Some("0".into())));
    }

    #[test]
    fn numbers_at_powers_of_ten_and_at_ties_are_printed() {
        let is_far = |mean: f64| is_far_from_ties(mean, mean.abs() * 1e-12);
        assert!(is_far(1.234_56) && is_far(-9.876_542e-200) && is_far(5.000_01e250));
        for mean in [
            1e5,
            1.0,
            0.001,
            999_999.6,
            1.234_565,
            -2.500_005e-7,
            0.0,
            1e-300,
        ] {
            assert!(!is_far(mean), "{mean}");
        }
        assert!(!is_far_from_ties(1.234_56, 1e-8));
    }

    proptest! {
        #[test]
        fn numbers_that_are_far_from_ties_print_alike_within_the_bound(
            digits in 100_000_000_u64..1_000_000_000,
            exponent in -200..200_i32,
            bound in 0.0..1e-9_f64,
        ) {
            let mean = digits as f64 * 10.0_f64.powi(exponent);
            let bound = mean * bound;
            if is_far_from_ties(mean, bound) {
                prop_assert_eq!(general(mean - bound), general(mean + bound));
            }
        }

        #[test]
        fn what_the_sums_tell_is_what_the_rule_prints(
            values in prop::collection::vec(-1.0..1.0_f64, 1..9000),
            offset in prop_oneof![Just(0.0), Just(1.0), Just(1e6), Just(-1e-7), Just(1e12)],
            exponent in 0..4_i32,
            is_sorted in any::<bool>(),
        ) {
            // From even to very uneven magnitudes.
            let mut values: Vec<f64> =
                values.iter().map(|v| offset + v.powi(1 + 4 * exponent)).collect();
            if is_sorted {
                values.sort_by(f64::total_cmp);
            }
            let (rule, told) = both(&values);
            for told in [told, by_stats(&values)] {
                prop_assert!(told.is_none_or(|told| told == rule));
            }
        }
    }
}
