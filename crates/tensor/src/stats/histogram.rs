//! Counting magnitudes by their power of two.

/// How many elements of each sign have a magnitude in [2^e, 2^(e+1)), for 64 exponents `e`.
///
/// Magnitudes below the first bin count in the first, magnitudes above the last in the last. Zeros,
/// NaN and infinities are in no bin: their counts are in [`Stats`](crate::Stats).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Of elements above zero, by exponent from [`Histogram::LOWEST_EXPONENT`] on.
    pub positive: [u64; Histogram::N_BINS],
    /// Of elements below zero.
    pub negative: [u64; Histogram::N_BINS],
}

impl Histogram {
    /// Bins for each sign.
    pub const N_BINS: usize = 64;
    /// Exponent of the first bin. The last one begins at 2^23.
    pub const LOWEST_EXPONENT: i32 = -40;

    #[inline(always)]
    pub(super) fn add(&mut self, value: f64) {
        self.add_many(value, 1);
    }

    #[inline(always)]
    pub(super) fn add_many(&mut self, value: f64, n: u64) {
        if value == 0.0 || !value.is_finite() {
            return;
        }
        // Subnormal values of `f64` have the lowest exponent, and belong in the first bin.
        let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        let bin = (exponent - Self::LOWEST_EXPONENT).clamp(0, Self::N_BINS as i32 - 1) as usize;
        let bins = if value > 0.0 {
            &mut self.positive
        } else {
            &mut self.negative
        };
        bins[bin] += n;
    }

    pub(super) fn append(&mut self, next: &Histogram) {
        let positive = self.positive.iter_mut().zip(&next.positive);
        let negative = self.negative.iter_mut().zip(&next.negative);
        positive.chain(negative).for_each(|(to, from)| *to += from);
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            positive: [0; Self::N_BINS],
            negative: [0; Self::N_BINS],
        }
    }
}
