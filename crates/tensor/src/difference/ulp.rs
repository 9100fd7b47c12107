//! Distances in units in the last place.
//!
//! The floats of a dtype in their order are numbered from zero on, and numbers subtracted. Values
//! of a finer dtype are rounded to the nearest float of the coarser one first, to the even one of
//! two.

use half::{bf16, f16};

use super::source::BLOCK;
use super::wide::power_of_two;
use crate::DType;
use crate::convert::dtype::numpy_dtype;

/// Distances below have a bucket each; above, each sixteenth of a power of two has.
const N_EXACT: usize = 256;
const N_BUCKETS: usize = N_EXACT + (64 - 8) * 16;
/// Tables that take turns, because the same counter cannot be counted up every cycle.
const N_TABLES: usize = 4;

/// The float dtype with fewer digits of two, if both are floats.
pub(super) fn coarser(a: DType, b: DType) -> Option<DType> {
    let (a, b) = (steps(a)?, steps(b)?);
    Some(if a.n_digits() <= b.n_digits() { a } else { b })
}

/// The dtype in whose steps elements of a float dtype are counted: one of `float64`, `float32`,
/// `float16` and `bfloat16`.
fn steps(dtype: DType) -> Option<DType> {
    let (part, _) = dtype.parts();
    part.n_digits()?;
    match numpy_dtype(part)? {
        // Values of 8 bits that need the exponents of float32 are all values of bfloat16 too.
        DType::F32 if part != DType::F32 => Some(DType::BF16),
        wide => Some(wide),
    }
}

/// A float dtype narrower than a double.
#[derive(Clone, Copy, Debug)]
struct NarrowFormat {
    /// Digits after the first one.
    digits: u32,
    /// The binary exponent of the smallest normal number.
    min_exponent: i32,
    /// The number of infinity.
    infinity: i64,
}

impl NarrowFormat {
    /// `None` for doubles.
    fn for_dtype(dtype: DType) -> Option<NarrowFormat> {
        let (digits, min_exponent, infinity) = match dtype {
            DType::F32 => (23, -126, f32::INFINITY.to_bits()),
            DType::F16 => (10, -14, f16::INFINITY.to_bits().into()),
            DType::BF16 => (7, -126, bf16::INFINITY.to_bits().into()),
            _ => return None,
        };
        Some(NarrowFormat {
            digits,
            min_exponent,
            infinity: infinity.into(),
        })
    }

    /// The number of the float that is nearest to a finite value.
    #[inline(always)]
    fn step(self, value: f64) -> i64 {
        let bits = value.to_bits().cast_signed();
        let magnitude = bits & i64::MAX;
        let dropped = 52 - self.digits;
        // Half of the last place less one, and one more if the last kept bit is set: ties go to
        // even.
        let half = (1 << (dropped - 1)) - 1 + ((magnitude >> dropped) & 1);
        let smallest_normal = i64::from(self.min_exponent + 1023) << 52;
        // The exponent of subnormal numbers, 0, means the same power of two as 1.
        let bias = i64::from(self.min_exponent + 1022) << self.digits;
        let normal = (((magnitude + half) >> dropped) - bias).min(self.infinity);
        // Added to 2^52, a number is rounded to an integer, which is in its lower bits.
        let unit = power_of_two(self.digits.cast_signed() - self.min_exponent);
        let integer = (value.abs() * unit + power_of_two(52)).to_bits();
        let subnormal = (integer & ((1 << 52) - 1)).cast_signed();
        let step = if magnitude < smallest_normal {
            subnormal
        } else {
            normal
        };
        if bits < 0 { -step } else { step }
    }
}

/// Bits of a double as a number that counts the doubles from zero.
#[inline(always)]
fn order(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    let magnitude = bits & i64::MAX;
    if bits < 0 { -magnitude } else { magnitude }
}

/// Distances of all elements so far.
#[derive(Clone, Debug)]
pub(super) struct Ulps {
    narrow: Option<NarrowFormat>,
    max: u64,
    counts: Box<[[u64; N_TABLES]]>,
    /// One block's.
    distances: Box<[u32]>,
}

impl Ulps {
    /// `dtype` is what [`coarser`] gave.
    pub(super) fn new(dtype: DType) -> Ulps {
        Ulps {
            narrow: NarrowFormat::for_dtype(dtype),
            max: 0,
            counts: vec![[0; N_TABLES]; N_BUCKETS].into(),
            distances: vec![0; BLOCK].into(),
        }
    }

    /// Takes over `n` equal elements.
    pub(super) fn add_equal(&mut self, n: usize) {
        self.counts[0][0] += n as u64;
    }

    /// Takes over a block of finite elements.
    #[inline(always)]
    pub(super) fn add(&mut self, a: &[f64], b: &[f64]) {
        let Some(narrow) = self.narrow else {
            return self.add_doubles(a, b);
        };
        let distances = &mut self.distances[..a.len()];
        for ((out, a), b) in distances.iter_mut().zip(a).zip(b) {
            // Both are below 2^31.
            *out = (narrow.step(*a) - narrow.step(*b)).unsigned_abs() as u32;
        }
        self.count(a.len());
    }

    /// Takes over a block of finite elements of `dtype` on both sides, from their bytes; false if
    /// there is no short way.
    #[inline(always)]
    pub(super) fn add_bytes(&mut self, dtype: DType, [a, b]: [&[u8]; 2]) -> bool {
        macro_rules! subtract {
            ($type:ty, $wide:ty) => {{
                let step = |bytes: &[u8; size_of::<$type>()]| {
                    let bits = <$type>::from_le_bytes(*bytes);
                    let magnitude = <$wide>::from(bits & <$type>::MAX);
                    if bits < 0 { -magnitude } else { magnitude }
                };
                let (a, b) = (a.as_chunks().0, b.as_chunks().0);
                let distances = &mut self.distances[..a.len()];
                for ((out, a), b) in distances.iter_mut().zip(a).zip(b) {
                    *out = step(a).wrapping_sub(step(b)).unsigned_abs() as u32;
                }
                self.count(a.len());
            }};
        }
        // Other dtypes may be counted in the same steps.
        match dtype {
            DType::F16 | DType::BF16 => subtract!(i16, i32),
            DType::F32 => subtract!(i32, i64),
            _ => return false,
        }
        true
    }

    /// Counts the first of [`Ulps::distances`].
    #[inline(always)]
    fn count(&mut self, n: usize) {
        let distances = &self.distances[..n];
        let max = distances.iter().copied().fold(0, u32::max);
        self.max = self.max.max(max.into());
        if max < N_EXACT as u32 {
            for (i, distance) in distances.iter().enumerate() {
                self.counts[*distance as usize][i % N_TABLES] += 1;
            }
            return;
        }
        let distances = &mut self.distances[..n];
        for distance in &mut *distances {
            *distance = bucket(*distance);
        }
        for (i, bucket) in distances.iter().enumerate() {
            self.counts[*bucket as usize][i % N_TABLES] += 1;
        }
    }

    #[inline(always)]
    fn add_doubles(&mut self, a: &[f64], b: &[f64]) {
        for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
            let distance = order(a).abs_diff(order(b));
            self.max = self.max.max(distance);
            self.counts[bucket_of_long(distance)][i % N_TABLES] += 1;
        }
    }

    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// The end of the bucket that 99 % of the elements lie in or below; 0 of no elements.
    pub(super) fn p99(&self) -> u64 {
        let counts = self.counts.iter();
        let mut counts = counts.map(|tables| tables.iter().sum::<u64>());
        let n: u64 = counts.clone().sum();
        // In 128 bits, as a product of any number of elements.
        let wanted = (u128::from(n) * 99).div_ceil(100);
        let mut n_below = 0u128;
        let at = counts.position(|count| {
            n_below += u128::from(count);
            n_below >= wanted
        });
        at.map_or(0, end)
    }
}

/// The bucket of a distance.
#[inline(always)]
fn bucket(distance: u32) -> u32 {
    // Exponent and four digits of 256 / 2.
    const FIRST: u32 = (127 + 7) << 4;
    // The ninth digit is gone, so that rounding to a float leaves those before it alone; and half
    // of it is a signed number, which more machines can convert.
    let short = (distance & !(distance >> 8)) >> 1;
    let leading = (short.cast_signed() as f32).to_bits() >> 19;
    if distance < N_EXACT as u32 {
        distance
    } else {
        leading.wrapping_sub(FIRST - N_EXACT as u32)
    }
}

/// The same of distances of doubles.
#[inline(always)]
fn bucket_of_long(distance: u64) -> usize {
    if distance < N_EXACT as u64 {
        return distance as usize;
    }
    let power = distance.ilog2();
    // The digits after the first one.
    let digits = (distance >> (power - 4)) as usize % 16;
    N_EXACT + (power as usize - 8) * 16 + digits
}

/// The largest distance in a bucket.
fn end(bucket: usize) -> u64 {
    let Some(above) = bucket.checked_sub(N_EXACT) else {
        return bucket as u64;
    };
    let below = above / 16 + 8 - 4;
    // The last bucket ends at 2^64 - 1: the shift leaves 0, from which the subtraction wraps.
    ((above as u64 % 16 + 17) << below).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_where_the_specification_rounds_to() {
        let near =
            |power: u32| (0..=64).map(move |i| (1u64 << power).wrapping_add(i).wrapping_sub(32));
        let distances = (0..5000).chain((8..64).flat_map(near)).chain([u64::MAX]);
        for distance in distances {
            let expected = crate::difference::tests::specification::rounded_up(distance);
            assert_eq!(end(bucket_of_long(distance)), expected, "{distance}");
            if let Ok(short) = u32::try_from(distance) {
                assert_eq!(end(bucket(short) as usize), expected, "{distance}");
            }
        }
    }

    #[test]
    fn steps_are_those_of_the_nearest_float() {
        let f32_narrow = NarrowFormat::for_dtype(DType::F32).unwrap();
        let f16_narrow = NarrowFormat::for_dtype(DType::F16).unwrap();
        let bf16_narrow = NarrowFormat::for_dtype(DType::BF16).unwrap();
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            let number = i64::from(bits & 0x7fff) * if bits >> 15 == 0 { 1 } else { -1 };
            if half.is_finite() {
                assert_eq!(f16_narrow.step(half.to_f64()), number);
            }
            if brain.is_finite() {
                assert_eq!(bf16_narrow.step(brain.to_f64()), number);
                // Half of the way to the next one, and a little further or less.
                for (more, up) in [(0x7fff, 0), (0x8000, i64::from(bits & 1)), (0x8001, 1)] {
                    let between = f32::from_bits((u32::from(bits) << 16) + more);
                    let expected = number + number.signum() * up;
                    if number != 0 && between.is_finite() {
                        assert_eq!(bf16_narrow.step(between.into()), expected, "{between:e}");
                    }
                }
            }
        }
        let mut bits = 1u64;
        for _ in 0..100_000 {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Exponents that floats have, and some beyond.
            let exponent = 1023 - 160 + (bits >> 40) % 300;
            let value = f64::from_bits((bits & !(0x7ff << 52)) | (exponent << 52));
            let float = value as f32;
            let number = i64::from(float.to_bits() & 0x7fff_ffff);
            let expected = if float.is_sign_negative() {
                -number
            } else {
                number
            };
            assert_eq!(f32_narrow.step(value), expected, "{value:e}");
        }
        assert_eq!(f16_narrow.step(f64::MAX), 0x7c00);
        assert_eq!(f16_narrow.step(-5e-324), 0);
        // Rounding twice would give the even neighbour.
        assert_eq!(
            f16_narrow.step(1.0 + power_of_two(-11) + power_of_two(-40)),
            0x3c01
        );
    }
}
