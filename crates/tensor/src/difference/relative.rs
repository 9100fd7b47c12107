//! Relative differences of a block, and how they spread over the powers of ten.

use super::N_BINS;

/// Where the bins of the histogram begin, apart from the first.
pub(super) const DECADES: [f64; N_BINS - 1] = [
    1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3,
];
/// The smaller of the limits of small differences is [`DECADES`]`[9]`.
pub(super) const SMALL: [f64; 2] = [DECADES[9], 5e-3];
/// Bins that lie below [`SMALL`]`[0]`.
const N_BINS_SMALL: usize = 10;

/// Relative differences of all blocks, but for their sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct RelativeDifferences {
    n: u64,
    /// Elements whose difference is finite.
    pub(super) n_measured: u64,
    pub(super) max: f64,
    pub(super) histogram: [u64; N_BINS],
    n_below_5_1000: u64,
}

/// The relative difference of two finite elements, of which `distance` is the absolute one;
/// infinite if it cannot be measured.
#[inline(always)]
pub(super) fn relative(a: f64, b: f64, distance: f64) -> f64 {
    if distance == 0.0 {
        0.0
    } else if distance == f64::INFINITY {
        // Both are so large here that their quarters are exact, and the difference of these is
        // finite.
        (a / 4.0 - b / 4.0).abs() / (b / 4.0).abs()
    } else {
        distance / b.abs()
    }
}

/// How many decades a difference reaches.
pub(super) fn bin(relative: f64) -> usize {
    DECADES.iter().filter(|&&limit| relative >= limit).count()
}

impl RelativeDifferences {
    pub(super) const EMPTY: RelativeDifferences = RelativeDifferences {
        n: 0,
        n_measured: 0,
        max: 0.0,
        histogram: [0; N_BINS],
        n_below_5_1000: 0,
    };

    /// Takes over `n` elements without any difference.
    pub(super) fn add_equal(&mut self, n: usize) {
        let n = n as u64;
        self.n += n;
        self.n_measured += n;
        self.n_below_5_1000 += n;
        self.histogram[0] += n;
    }

    /// Writes the differences of a block's finite elements to `out`, with zeros in place of
    /// infinite ones.
    #[inline(always)]
    pub(super) fn add(&mut self, a: &[f64], b: &[f64], distances: &[f64], out: &mut [f64]) {
        let (mut n_zero, mut largest) = (0u64, 0i64);
        let mut smallest = i64::MAX;
        for ((out, b), distance) in out.iter_mut().zip(b).zip(distances) {
            let quotient = distance / b.abs();
            *out = if *distance == 0.0 { 0.0 } else { quotient };
            // Numbers that are not negative are ordered as their bits.
            let bits = out.to_bits().cast_signed();
            largest = largest.max(bits);
            smallest = smallest.min(if *out == 0.0 { i64::MAX } else { bits });
            n_zero += u64::from(*out == 0.0);
        }
        // Only doubles have distances that overflow.
        if largest == f64::INFINITY.to_bits().cast_signed() && distances.contains(&f64::INFINITY) {
            return self.add_far(a, b, distances, out);
        }
        self.count(n_zero, smallest, largest, out);
    }

    /// Elements so far apart that their distance overflows a double.
    #[cold]
    fn add_far(&mut self, a: &[f64], b: &[f64], distances: &[f64], out: &mut [f64]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = relative(a[i], b[i], distances[i]);
        }
        let bits = || out.iter().map(|r| r.to_bits().cast_signed());
        let n_zero = bits().filter(|&bits| bits == 0).count() as u64;
        let smallest = bits().filter(|&bits| bits > 0).min().unwrap_or(i64::MAX);
        let largest = bits().max().unwrap_or(0);
        self.count(n_zero, smallest, largest, out);
    }

    /// Counts differences, of which the extremes are known: only decades between these are looked
    /// for.
    #[inline(always)]
    fn count(&mut self, n_zero: u64, smallest: i64, largest: i64, out: &mut [f64]) {
        let n = out.len() as u64;
        let [smallest_value, largest_value] =
            [smallest, largest].map(|bits| f64::from_bits(bits.cast_unsigned()));
        let lowest = if smallest == i64::MAX {
            0
        } else {
            bin(smallest_value)
        };
        let highest = bin(largest_value);
        self.n += n;
        let mut n_reaching = n;
        for (at, count) in self.histogram[..=highest].iter_mut().enumerate() {
            // Below the smallest difference every element but the zeros reaches a decade, so that
            // only the decades between the extremes take a pass.
            let n_next = if at == highest {
                0
            } else if at < lowest {
                n - n_zero
            } else {
                n_at_least(out, DECADES[at])
            };
            *count += n_reaching - n_next;
            n_reaching = n_next;
        }
        // If nothing reaches 1/1000, nothing reaches 5/1000.
        self.n_below_5_1000 += if highest < N_BINS_SMALL {
            n
        } else {
            n - n_at_least(out, SMALL[1])
        };
        if largest_value < f64::INFINITY {
            self.n_measured += n;
            self.max = self.max.max(largest_value);
            return;
        }
        for out in out {
            let is_measured = *out < f64::INFINITY;
            *out = if is_measured { *out } else { 0.0 };
            self.max = self.max.max(*out);
            self.n_measured += u64::from(is_measured);
        }
    }

    /// Shares of the elements below 1/1000 and 5/1000; 1 of no elements.
    pub(super) fn shares(&self) -> [f64; 2] {
        let n_below_1_1000: u64 = self.histogram[..N_BINS_SMALL].iter().sum();
        [n_below_1_1000, self.n_below_5_1000].map(|n| {
            if self.n == 0 {
                1.0
            } else {
                n as f64 / self.n as f64
            }
        })
    }
}

#[inline(always)]
fn n_at_least(values: &[f64], limit: f64) -> u64 {
    values.iter().map(|&value| u64::from(value >= limit)).sum()
}
