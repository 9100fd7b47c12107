//! How the elements of a tensor are distributed: bins of equal width, and percentiles.
//!
//! Only finite elements count. Percentiles are elements of the tensor: of `n` finite elements in
//! ascending order the one at rank `ceil(p / 100 * n)`, counted from 1, and the smallest for 0, as
//! numpy's `percentile(…, method="inverted_cdf")`. No copy is made, and nothing is sorted: each
//! pass counts 16 bits of the keys by which floats are in order.

use crate::DType;
use crate::numbers::Numbers;

/// Bits of a key that one pass covers.
const N_DIGIT_BITS: u32 = 16;
const N_DIGITS: usize = 1 << N_DIGIT_BITS;

/// The smallest and the largest finite element; `None` without finite elements.
pub fn finite_range(numbers: Numbers<'_>) -> Option<(f64, f64)> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    numbers.for_each(0..numbers.len(), |x| {
        if x.is_finite() {
            low = low.min(x);
            high = high.max(x);
        }
    });
    (low <= high).then_some((low, high))
}

/// Counts finite elements in `n_bins` bins of equal width from `low` to `high`. The last bin holds
/// `high` as well; elements outside are in no bin. If `low` and `high` are equal the middle bin has
/// all.
pub fn bins(numbers: Numbers<'_>, low: f64, high: f64, n_bins: usize) -> Vec<u64> {
    let mut counts = vec![0; n_bins];
    if let Some(places) = BinPlaces::new(low, high, n_bins) {
        numbers.for_each(0..numbers.len(), |x| {
            if let Some(place) = places.of_number(x) {
                counts[place] += 1;
            }
        });
    }
    counts
}

/// [`bins`] and [`percentiles`] together, which takes fewer passes: most elements are counted by the
/// first digit of their keys alone, since all that share it are in one bin.
pub fn distribution(
    numbers: Numbers<'_>,
    [low, high]: [f64; 2],
    n_bins: usize,
    percents: &[f64],
) -> (Vec<u64>, Vec<Option<f64>>) {
    let places = BinPlaces::new(low, high, n_bins);
    let (Some(bits), Some(places)) = (numbers.f32_bits(), places) else {
        let counts = bins(numbers, low, high, n_bins);
        return (counts, percentiles(numbers, percents));
    };
    // Equal elements are often neighbours, and two tables spare waiting for each other's sums.
    let mut tables = [vec![0_u64; N_DIGITS], vec![0_u64; N_DIGITS]];
    for (at, bits) in bits.enumerate() {
        tables[at & 1][digit_of_bits(bits)] += 1;
    }
    let [mut first, second] = tables;
    for (count, more) in first.iter_mut().zip(&second) {
        *count += more;
    }
    // Infinities and NaN were counted with the others, which spared a test for each element.
    for (digit, count) in first.iter_mut().enumerate() {
        if !ends_of_digit(digit)[0].is_finite() {
            *count = 0;
        }
    }
    let mut counts = vec![0; n_bins];
    let is_split = count_whole_digits(&first, &places, &mut counts);
    let n: u64 = first.iter().sum();
    let mut searches: Vec<Search> = percents.iter().map(|&p| Search::new(p, n.max(1))).collect();
    for search in &mut searches {
        search.step(&first);
    }
    let mut prefixes = PrefixCounts::new(&searches, N_DIGIT_BITS);
    for bits in numbers.f32_bits().into_iter().flatten() {
        let digit = digit_of_bits(bits);
        if is_split[digit]
            && let Some(place) = places.of_number(f32::from_bits(bits).into())
        {
            counts[place] += 1;
        }
        if prefixes.is_wanted[digit] {
            prefixes.add(narrow_key(f32::from_bits(bits).into()));
        }
    }
    for search in &mut searches {
        search.step(prefixes.of_prefix(search.prefix));
    }
    let found = searches
        .iter()
        .map(|s| (n > 0).then(|| narrow_number(s.prefix)));
    (counts, found.collect())
}

/// Counts the elements of the digits that lie in one bin as a whole. The others are returned, where
/// elements have them.
fn count_whole_digits(first: &[u64], places: &BinPlaces, counts: &mut [u64]) -> Vec<bool> {
    let mut is_split = vec![false; first.len()];
    for (digit, &n) in first.iter().enumerate().filter(|(_, n)| **n > 0) {
        // Bins are in the order of numbers: if both ends are in one bin, so are all numbers
        // between.
        match ends_of_digit(digit).map(|end| places.of_number(end)) {
            [Some(low), Some(high)] if low == high => counts[low] += n,
            _ => is_split[digit] = true,
        }
    }
    is_split
}

/// The bins of equal width from one number to another.
struct BinPlaces {
    low: f64,
    high: f64,
    half_width: f64,
    scale: f64,
    n_bins: usize,
    /// At both ends of the exponents a factor would be infinite, or lose digits.
    has_scale: bool,
}

impl BinPlaces {
    fn new(low: f64, high: f64, n_bins: usize) -> Option<BinPlaces> {
        let is_range = low.is_finite() && high.is_finite() && low <= high;
        // Half of it, as the width itself may be infinite.
        let half_width = high / 2.0 - low / 2.0;
        let scale = n_bins as f64 / 2.0 / half_width;
        (n_bins > 0 && is_range).then_some(BinPlaces {
            low,
            high,
            half_width,
            scale,
            n_bins,
            has_scale: scale.is_normal() && half_width < f64::MAX / 4.0,
        })
    }

    /// The bin of a number; none of NaN and of what is outside.
    #[inline(always)]
    fn of_number(&self, x: f64) -> Option<usize> {
        // False for NaN.
        if !(x >= self.low && x <= self.high) {
            return None;
        }
        if self.half_width == 0.0 {
            return Some(self.n_bins / 2);
        }
        let at = if self.has_scale {
            (x - self.low) * self.scale
        } else {
            (x / 2.0 - self.low / 2.0) / self.half_width * (self.n_bins as f64)
        };
        Some((at as usize).min(self.n_bins - 1))
    }
}

/// The percentiles `percents`, each from 0 to 100; `None` without finite elements.
pub fn percentiles(numbers: Numbers<'_>, percents: &[f64]) -> Vec<Option<f64>> {
    let is_narrow = matches!(
        numbers.dtype(),
        DType::F32 | DType::F16 | DType::I16 | DType::I8 | DType::U16 | DType::U8 | DType::Bool
    );
    // Half the digits, and half the passes, where `f32` has all the values.
    if is_narrow {
        search::<32>(numbers, percents, narrow_key, narrow_number)
    } else {
        search::<64>(numbers, percents, key, number)
    }
}

/// Searches for percentiles by keys of `N_KEY_BITS` bits, one digit in each pass.
fn search<const N_KEY_BITS: u32>(
    numbers: Numbers<'_>,
    percents: &[f64],
    key: impl Fn(f64) -> u64,
    number: impl Fn(u64) -> f64,
) -> Vec<Option<f64>> {
    let mut first = vec![0_u64; N_DIGITS];
    numbers.for_each(0..numbers.len(), |x| {
        if x.is_finite() {
            first[(key(x) >> (N_KEY_BITS - N_DIGIT_BITS)) as usize] += 1;
        }
    });
    let n: u64 = first.iter().sum();
    if n == 0 {
        return vec![None; percents.len()];
    }
    let mut searches: Vec<Search> = percents.iter().map(|&p| Search::new(p, n)).collect();
    for search in &mut searches {
        search.step(&first);
    }
    for n_left_bits in (0..N_KEY_BITS - N_DIGIT_BITS)
        .step_by(N_DIGIT_BITS as usize)
        .rev()
    {
        let mut counts = PrefixCounts::new(&searches, N_KEY_BITS - n_left_bits - N_DIGIT_BITS);
        numbers.for_each(0..numbers.len(), |x| {
            let key = key(x);
            // Nearly all elements have none of the prefixes, which their first digit shows.
            if counts.is_wanted[(key >> (N_KEY_BITS - N_DIGIT_BITS)) as usize] && x.is_finite() {
                counts.add(key >> n_left_bits);
            }
        });
        for search in &mut searches {
            search.step(counts.of_prefix(search.prefix));
        }
    }
    searches.iter().map(|s| Some(number(s.prefix))).collect()
}

/// The search for one element.
struct Search {
    /// Its rank among the elements whose keys begin with the prefix, from 0.
    rank: u64,
    /// The digits that are known.
    prefix: u64,
}

impl Search {
    fn new(percent: f64, n: u64) -> Search {
        let rank = (percent.clamp(0.0, 100.0) / 100.0 * n as f64).ceil() as u64;
        Search {
            rank: rank.clamp(1, n) - 1,
            prefix: 0,
        }
    }

    /// Finds the next digit by how many elements have each.
    fn step(&mut self, counts: &[u64]) {
        for (digit, &count) in counts.iter().enumerate() {
            if self.rank < count {
                self.prefix = self.prefix << N_DIGIT_BITS | digit as u64;
                return;
            }
            self.rank -= count;
        }
    }
}

/// For each searched prefix, the number of elements with each next digit.
struct PrefixCounts {
    /// In ascending order.
    prefixes: Vec<u64>,
    counts: Vec<Vec<u64>>,
    /// By first digit, whether any prefix begins with it.
    is_wanted: Vec<bool>,
}

impl PrefixCounts {
    fn new(searches: &[Search], n_prefix_bits: u32) -> PrefixCounts {
        let mut prefixes: Vec<u64> = searches.iter().map(|search| search.prefix).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let mut is_wanted = vec![false; N_DIGITS];
        for prefix in &prefixes {
            is_wanted[(prefix >> (n_prefix_bits - N_DIGIT_BITS)) as usize] = true;
        }
        PrefixCounts {
            counts: vec![vec![0; N_DIGITS]; prefixes.len()],
            prefixes,
            is_wanted,
        }
    }

    /// Counts a key up to the digit that is searched.
    fn add(&mut self, key: u64) {
        if let Ok(at) = self.prefixes.binary_search(&(key >> N_DIGIT_BITS)) {
            self.counts[at][key as usize & (N_DIGITS - 1)] += 1;
        }
    }

    fn of_prefix(&self, prefix: u64) -> &[u64] {
        let at = self.prefixes.binary_search(&prefix);
        at.map_or(&[], |at| &self.counts[at])
    }
}

/// A number whose order is that of the floats; zeros of both signs are one.
#[inline(always)]
fn key(x: f64) -> u64 {
    let bits = (x + 0.0).to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

fn number(key: u64) -> f64 {
    let bits = if key >> 63 == 1 {
        key & !(1 << 63)
    } else {
        !key
    };
    f64::from_bits(bits)
}

/// The first digit of the key of an `f32`, where both zeros have one.
#[inline(always)]
fn digit_of_bits(bits: u32) -> usize {
    // The sum turns the negative zero into the positive one.
    let bits = (f32::from_bits(bits) + 0.0).to_bits();
    let key = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    (key >> N_DIGIT_BITS) as usize
}

/// The smallest and the largest number of `f32` whose keys have this first digit. Where that is of
/// infinities or NaN, the first is not finite: none of them shares a digit with finite numbers.
fn ends_of_digit(digit: usize) -> [f64; 2] {
    let lowest = (digit as u64) << N_DIGIT_BITS;
    let ends = [lowest, lowest | (N_DIGITS as u64 - 1)].map(narrow_number);
    // Keys of negative numbers that are not finite come before all others, and end with infinity.
    if ends.iter().all(|end| end.is_finite()) {
        ends
    } else {
        [f64::NAN; 2]
    }
}

/// The same of what `f32` holds exactly, in 32 bits.
#[inline(always)]
fn narrow_key(x: f64) -> u64 {
    let bits = (x as f32 + 0.0).to_bits();
    let key = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    key.into()
}

fn narrow_number(key: u64) -> f64 {
    let key = key as u32;
    let bits = if key >> 31 == 1 {
        key & !(1 << 31)
    } else {
        !key
    };
    f32::from_bits(bits).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{bins, distribution, finite_range, percentiles};
    use crate::DType;
    use crate::numbers::Numbers;

    const PERCENTS: &[f64] = &[0.0, 0.1, 1.0, 25.0, 50.0, 75.0, 99.0, 99.9, 100.0];

    fn bytes_of(values: &[f64]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    /// The definition: sort and pick.
    fn sorted_percentiles(values: &[f64]) -> Vec<Option<f64>> {
        let mut finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        finite.sort_by(f64::total_cmp);
        let pick = |p: &f64| {
            let rank = (p / 100.0 * finite.len() as f64).ceil() as usize;
            finite.get(rank.max(1) - 1).copied()
        };
        PERCENTS.iter().map(pick).collect()
    }

    proptest! {
        #[test]
        fn percentiles_are_elements_in_order(
            values in prop::collection::vec(any::<f64>(), 0..300),
        ) {
            let bytes = bytes_of(&values);
            let found = percentiles(Numbers::new(DType::F64, &bytes).unwrap(), PERCENTS);
            prop_assert_eq!(found, sorted_percentiles(&values));
        }

        #[test]
        fn percentiles_of_floats_of_32_bits_too(
            values in prop::collection::vec(any::<f32>(), 0..300),
        ) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let found = percentiles(Numbers::new(DType::F32, &bytes).unwrap(), PERCENTS);
            let wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
            prop_assert_eq!(found, sorted_percentiles(&wide));
        }

        #[test]
        fn both_at_once_are_the_same(
            values in prop::collection::vec(any::<f32>(), 0..300),
            near in prop::collection::vec(-2.0_f32..2.0, 0..300),
            n_bins in 0_usize..70,
            ends in any::<Option<(f64, f64)>>(),
        ) {
            for values in [values, near] {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                let numbers = Numbers::new(DType::F32, &bytes).unwrap();
                let (low, high) = ends.or(finite_range(numbers)).unwrap_or((0.0, 1.0));
                let found = distribution(numbers, [low, high], n_bins, PERCENTS);
                prop_assert_eq!(found.0, bins(numbers, low, high, n_bins));
                prop_assert_eq!(found.1, percentiles(numbers, PERCENTS));
            }
        }

        #[test]
        fn bins_hold_every_finite_element(
            values in prop::collection::vec(any::<f64>(), 1..300), n_bins in 1_usize..70,
        ) {
            let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
            prop_assume!(!finite.is_empty());
            let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
            let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let bytes = bytes_of(&values);
            let counts = bins(Numbers::new(DType::F64, &bytes).unwrap(), low, high, n_bins);
            prop_assert_eq!(counts.iter().sum::<u64>(), finite.len() as u64);
        }
    }

    #[test]
    fn ranges_leave_out_what_is_not_finite() {
        let check = |values: &[f64], expected| {
            let bytes = bytes_of(values);
            let numbers = Numbers::new(DType::F64, &bytes).unwrap();
            assert_eq!(finite_range(numbers), expected, "{values:?}");
        };
        check(&[], None);
        check(&[f64::NAN, f64::INFINITY], None);
        check(
            &[f64::NEG_INFINITY, -91.4, 0.5, f64::NAN],
            Some((-91.4, 0.5)),
        );
    }

    #[test]
    fn bins_are_of_equal_width() {
        let check = |values: &[f64], low, high, expected: &[u64]| {
            let bytes = bytes_of(values);
            let numbers = Numbers::new(DType::F64, &bytes).unwrap();
            assert_eq!(
                bins(numbers, low, high, expected.len()),
                expected,
                "{values:?}"
            );
        };
        check(&[], 0.0, 1.0, &[0, 0]);
        check(&[0.0, 0.5, 1.0], 0.0, 1.0, &[1, 2]);
        check(&[f64::NAN, f64::INFINITY, 3.0], 0.0, 4.0, &[0, 0, 0, 1]);
        check(&[2.0, 2.0], 2.0, 2.0, &[0, 2, 0]);
        check(
            &[-f64::MAX, 0.0, f64::MAX],
            -f64::MAX,
            f64::MAX,
            &[1, 0, 1, 1],
        );
        check(&[1.0], f64::NAN, 1.0, &[0]);
    }
}
