//! Blocks of `float16`, `bfloat16`, `float32` and `float64`.
//!
//! One pass computes sums, and extremes of integers that are ordered as the elements are. The
//! extremes show whether anything was not finite, zero, subnormal or at the end of the range; only
//! then is the block, which is in the nearest cache by now, read again.

mod survey;

use survey::{survey_longs, survey_words};

use super::block::{BLOCK, SquareScale, StatsBlock, deviation_from_sums, fold};
use super::counts::ElementCounts;
use crate::cpu::{LANES, LaneMachine};
use crate::pieces::PieceReader;

/// Bytes of the widest block.
const BLOCK_BYTES: usize = BLOCK * 8;
/// Bytes of the widest group of [`FloatFormat::count_small`].
const GROUP_BYTES_MAX: usize = LANES * 8;

/// The bits of one element.
pub(super) trait FloatPattern: Copy + Ord {
    /// Sign, and nothing else.
    const SIGN: Self;
    /// Zero.
    const ZERO: Self;
    /// From little-endian bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Copies elements with zeros in place of what is not finite; how many are NaN, infinite, and
    /// `infinity` itself.
    fn set_apart(bytes: &[u8], clean: &mut [u8], infinity: Self) -> [Self; 3];
    /// Without the sign.
    fn magnitude(self) -> Self;
    /// 0 or 1.
    fn count(is_so: bool) -> Self;
    /// Wrapping sum.
    fn add(self, other: Self) -> Self;
    /// As a number.
    fn number(self) -> u64;
}

macro_rules! bits {
    ($($uint:ty),*) => {$(
        impl FloatPattern for $uint {
            const SIGN: Self = 1 << (<$uint>::BITS - 1);
            const ZERO: Self = 0;
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut array = [0; size_of::<$uint>()];
                array.copy_from_slice(bytes);
                <$uint>::from_le_bytes(array)
            }
            #[inline(always)]
            fn set_apart(bytes: &[u8], clean: &mut [u8], infinity: Self) -> [Self; 3] {
                let (mut n_nan, mut n_inf, mut n_pos_inf): (Self, Self, Self) = (0, 0, 0);
                for (from, to) in bytes.as_chunks().0.iter().zip(clean.as_chunks_mut().0) {
                    let bits = <$uint>::from_le_bytes(*from);
                    let magnitude = bits & !Self::SIGN;
                    *to = if magnitude < infinity { bits } else { 0 }.to_le_bytes();
                    n_nan = n_nan.wrapping_add(Self::from(magnitude > infinity));
                    n_inf = n_inf.wrapping_add(Self::from(magnitude == infinity));
                    n_pos_inf = n_pos_inf.wrapping_add(Self::from(bits == infinity));
                }
                [n_nan, n_inf, n_pos_inf]
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self & !Self::SIGN
            }
            #[inline(always)]
            fn count(is_so: bool) -> Self {
                Self::from(is_so)
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn number(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}
bits!(u16, u32, u64);

/// A floating-point dtype.
pub(super) trait FloatFormat {
    /// Its bits.
    type Bits: FloatPattern;
    /// Bytes in an element.
    const WIDTH: usize;
    /// Bits of the smallest normal number.
    const SMALLEST_NORMAL: Self::Bits;
    /// Bits of the largest finite number.
    const LARGEST: Self::Bits;
    /// Bits of infinity.
    const INFINITY: Self::Bits;
    /// The value.
    fn value(bits: Self::Bits) -> f64;
    /// The values of [`LANES`] elements.
    fn reals<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Reals;
    /// Bytes that [`FloatFormat::count_small`] reads.
    const GROUP_BYTES: usize;
    /// Numbers of elements that are zero, negative zero, and smaller than normal numbers, zeros
    /// included.
    fn count_small<M: LaneMachine>(m: M, group: &[u8]) -> [u32; 3];
    /// Number of elements that have the largest magnitude.
    fn count_largest<M: LaneMachine>(m: M, group: &[u8]) -> u32;
    /// Sums and extremes of elements that are assumed to be finite. The reader receives the
    /// pieces.
    fn survey<M: LaneMachine>(m: M, bytes: &[u8], beside: &mut impl PieceReader) -> FloatSurvey;
}

/// The result of one pass over a block. The sums mean something only if all elements are finite.
pub(super) struct FloatSurvey {
    sum: f64,
    sum_of_magnitudes: f64,
    sum_of_squares: f64,
    n_sign: u64,
    min: f64,
    max: f64,
    /// Of all elements, as a value.
    smallest_magnitude: f64,
    is_finite: bool,
}

/// `float32`.
pub(super) struct F32;
/// `float16`.
pub(super) struct F16;
/// `bfloat16`.
pub(super) struct BF16;
/// `float64`.
pub(super) struct F64;

/// The float dtypes: their bits, the number of bytes of a group, the bits of the smallest normal
/// number, of the largest finite one and of infinity, the value of some bits, the values of
/// [`LANES`] elements, and the functions of a [`LaneMachine`] for lanes of this width.
macro_rules! float_formats {
    ($($float:ident: $bits:ident, $group_bytes:literal, [$smallest:literal, $largest:literal, $infinity:literal],
        $value:expr, $reals:expr,
        $load:ident $and:ident $lanes:ident($max:expr, $min:expr) $n_equal:ident $n_below:ident, $survey:expr;)+) => {$(
        impl FloatFormat for $float {
            type Bits = $bits;
            const WIDTH: usize = size_of::<$bits>();
            const SMALLEST_NORMAL: $bits = $smallest;
            const LARGEST: $bits = $largest;
            const INFINITY: $bits = $infinity;
            const GROUP_BYTES: usize = $group_bytes;

            #[inline(always)]
            fn value(bits: $bits) -> f64 {
                $value(bits).into()
            }
            #[inline(always)]
            fn reals<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Reals {
                $reals(m, bytes)
            }
            #[inline(always)]
            fn count_small<M: LaneMachine>(m: M, group: &[u8]) -> [u32; 3] {
                let bits = m.$load(array(group));
                let magnitude = m.$and(bits, m.$lanes($max));
                [
                    m.$n_equal(magnitude, 0),
                    m.$n_equal(bits, $min),
                    m.$n_below(magnitude, Self::SMALLEST_NORMAL.cast_signed()),
                ]
            }
            #[inline(always)]
            fn count_largest<M: LaneMachine>(m: M, group: &[u8]) -> u32 {
                let magnitude = m.$and(m.$load(array(group)), m.$lanes($max));
                m.$n_equal(magnitude, Self::LARGEST.cast_signed())
            }
            #[inline(always)]
            fn survey<M: LaneMachine>(m: M, bytes: &[u8], beside: &mut impl PieceReader) -> FloatSurvey {
                $survey(m, bytes, beside)
            }
        }
    )+};
}

float_formats! {
    F32: u32, 64, [0x0080_0000, 0x7f7f_ffff, 0x7f80_0000],
        f32::from_bits, reals_of_words::<M, F32>,
        load_words and_words words(i32::MAX, i32::MIN) count_equal_words count_below_words, survey_words::<M, F32>;
    F16: u16, 64, [0x0400, 0x7bff, 0x7c00],
        float16_value, reals_of_words::<M, F16>,
        load_halves and_halves halves(i16::MAX, i16::MIN) count_equal_halves count_below_halves, survey_words::<M, F16>;
    BF16: u16, 64, [0x0080, 0x7f7f, 0x7f80],
        bfloat16_value, reals_of_words::<M, BF16>,
        load_halves and_halves halves(i16::MAX, i16::MIN) count_equal_halves count_below_halves, survey_words::<M, BF16>;
    F64: u64, 128, [0x0010_0000_0000_0000, 0x7fef_ffff_ffff_ffff, 0x7ff0_0000_0000_0000],
        f64::from_bits, reals_of_longs,
        load_longs and_longs longs(i64::MAX, i64::MIN) count_equal_longs count_below_longs, survey_longs;
}

#[inline(always)]
fn float16_value(bits: u16) -> f32 {
    f32::from_bits(crate::cpu::float16_to_float32(bits))
}

/// The upper half of a `float32` is a `bfloat16`.
#[inline(always)]
fn bfloat16_value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline(always)]
fn reals_of_words<M: LaneMachine, F: WordFloat>(m: M, bytes: &[u8]) -> M::Reals {
    m.widen_floats(F::load(m, bytes))
}

#[inline(always)]
fn reals_of_longs<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Reals {
    m.reals_of(m.load_longs(array(bytes)))
}

/// Dtypes whose values are `float32` exactly.
trait WordFloat: FloatFormat {
    /// Loads [`LANES`] elements as the bits of `float32`.
    fn load<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Words;
}

/// The load of each such dtype.
macro_rules! word_floats {
    ($($float:ident: $load:ident;)+) => {$(
        impl WordFloat for $float {
            #[inline(always)]
            fn load<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Words {
                m.$load(array(bytes))
            }
        }
    )+};
}

word_floats! {
    F32: load_words;
    F16: load_float16;
    BF16: load_upper_halves;
}

/// The bytes of [`LANES`] elements.
#[inline(always)]
pub(super) fn array<const N: usize>(bytes: &[u8]) -> &[u8; N] {
    bytes.as_chunks::<N>().0.first().unwrap_or(&[0; N])
}

/// The statistics of one block, at most [`BLOCK`] elements.
#[inline(always)]
pub(super) fn block<M: LaneMachine, F: FloatFormat>(
    m: M,
    bytes: &[u8],
    beside: &mut impl PieceReader,
) -> StatsBlock {
    let n = bytes.len() / F::WIDTH;
    let survey = F::survey(m, bytes, beside);
    if survey.is_finite {
        return finish::<M, F>(
            m,
            bytes,
            &survey,
            StatsBlock {
                counts: ElementCounts {
                    n_elements: n as u64,
                    ..ElementCounts::EMPTY
                },
                ..StatsBlock::EMPTY
            },
        );
    }
    // The pass has no branches for NaN and infinities, because hardly any block has one. The few
    // that do are copied without them and processed again.
    let mut clean = [0; BLOCK_BYTES];
    let clean = &mut clean[..bytes.len()];
    let block = set_apart::<F>(bytes, clean);
    // The reader in the same pass got the bytes unchanged.
    let survey = F::survey(m, clean, &mut ());
    finish_mixed::<M, F>(m, bytes, &survey, block)
}

/// Completes a block whose elements are all finite.
#[inline(always)]
fn finish<M: LaneMachine, F: FloatFormat>(
    m: M,
    bytes: &[u8],
    survey: &FloatSurvey,
    mut block: StatsBlock,
) -> StatsBlock {
    (block.min, block.max) = (survey.min, survey.max);
    block.sum = survey.sum;
    block.sum_of_magnitudes = survey.sum_of_magnitudes;
    block.sum_of_squares = survey.sum_of_squares;
    count::<M, F>(m, bytes, survey, &mut block);
    // A minus sign belongs to a negative number or to a zero.
    block.counts.n_negative = survey.n_sign - block.counts.n_neg_zero;
    // Squares of narrower floats neither overflow nor vanish in `f64`.
    if F::WIDTH == 8 {
        block.scale = SquareScale::for_range(block.min, block.max);
        if block.scale != SquareScale::None {
            let factor = block.scale.factor();
            block.sum_of_squares = sum_of_squares::<M, F>(m, bytes, 0.0, factor);
        }
    }
    // Subtracting sums is only trusted where few digits cancel; otherwise a second pass sums the
    // distances from the mean.
    block.deviation = deviation_from_sums(&block).unwrap_or_else(|| {
        sum_of_squares::<M, F>(m, bytes, block.sum / block.counts.n_elements as f64, 1.0)
    });
    block
}

/// Completes a block of which some elements are not finite. `survey` is of the same elements with
/// zeros in their place, which changes no sum.
#[inline(always)]
fn finish_mixed<M: LaneMachine, F: FloatFormat>(
    m: M,
    bytes: &[u8],
    survey: &FloatSurvey,
    mut block: StatsBlock,
) -> StatsBlock {
    (block.min, block.max) = extremes_without_zeros::<F>(bytes, survey);
    block.sum = survey.sum;
    block.sum_of_magnitudes = survey.sum_of_magnitudes;
    block.sum_of_squares = survey.sum_of_squares;
    // Something may be there of everything.
    let everything = FloatSurvey {
        smallest_magnitude: 0.0,
        min: f64::NEG_INFINITY,
        ..*survey
    };
    count::<M, F>(m, bytes, &everything, &mut block);
    block.counts.n_negative = survey.n_sign - block.counts.n_neg_zero + block.counts.n_neg_inf;
    block.scale = SquareScale::for_range(block.min, block.max);
    if block.scale != SquareScale::None {
        let factor = block.scale.factor();
        block.sum_of_squares = sum_of_finite_squares::<F>(bytes, |value| value * factor);
    }
    block.deviation = deviation_from_sums(&block).unwrap_or_else(|| {
        let mean = block.sum / block.counts.n_finite() as f64;
        sum_of_finite_squares::<F>(bytes, |value| value - mean)
    });
    block
}

/// Counts only what may exist according to `survey`.
#[inline(always)]
fn count<M: LaneMachine, F: FloatFormat>(
    m: M,
    bytes: &[u8],
    survey: &FloatSurvey,
    block: &mut StatsBlock,
) {
    let groups = bytes.chunks_exact(F::GROUP_BYTES);
    let mut last = [0; GROUP_BYTES_MAX];
    let last = &mut last[..F::GROUP_BYTES];
    let tail = groups.remainder();
    last[..tail.len()].copy_from_slice(tail);
    // Most blocks have neither zeros nor subnormal numbers, and the minimum of magnitudes shows it.
    if survey.smallest_magnitude < F::value(F::SMALLEST_NORMAL) {
        let [mut n_zero, mut n_neg_zero, mut n_small] = F::count_small(m, last);
        // Not a chain with the last group: its loop asks for each group which of the two it is in.
        for group in groups.clone() {
            let [zero, neg_zero, small] = F::count_small(m, group);
            (n_zero, n_neg_zero, n_small) = (n_zero + zero, n_neg_zero + neg_zero, n_small + small);
        }
        // The zeros after the tail do not belong to the block.
        let n_behind = ((F::GROUP_BYTES - tail.len()) / F::WIDTH) as u64;
        block.counts.n_zero = u64::from(n_zero) - n_behind;
        block.counts.n_neg_zero = n_neg_zero.into();
        block.counts.n_subnormal = u64::from(n_small - n_zero);
    }
    let largest = F::value(F::LARGEST);
    if survey.max >= largest || survey.min <= -largest {
        let mut n_largest = F::count_largest(m, last);
        for group in groups {
            n_largest += F::count_largest(m, group);
        }
        block.counts.n_saturated = n_largest.into();
    }
}

/// Copies a block with zeros in place of what is not finite, and counts that.
#[inline(always)]
fn set_apart<F: FloatFormat>(bytes: &[u8], clean: &mut [u8]) -> StatsBlock {
    let [n_nan, n_inf, n_pos_inf] = F::Bits::set_apart(bytes, clean, F::INFINITY);
    StatsBlock {
        counts: ElementCounts {
            n_elements: (bytes.len() / F::WIDTH) as u64,
            n_nan: n_nan.number(),
            n_pos_inf: n_pos_inf.number(),
            n_neg_inf: n_inf.number() - n_pos_inf.number(),
            ..ElementCounts::EMPTY
        },
        ..StatsBlock::EMPTY
    }
}

/// The extremes of the finite elements, from those that zeros have been added to.
#[inline(always)]
fn extremes_without_zeros<F: FloatFormat>(bytes: &[u8], survey: &FloatSurvey) -> (f64, f64) {
    // Zeros that replace other elements are extremes only if all elements have one sign.
    if survey.min < 0.0 && survey.max > 0.0 {
        return (survey.min, survey.max);
    }
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for bits in bytes.chunks_exact(F::WIDTH).map(F::Bits::read) {
        if bits.magnitude() < F::INFINITY {
            let value = F::value(bits);
            // `total_cmp`, because `<` takes -0 and +0 for equal.
            min = if value.total_cmp(&min).is_lt() {
                value
            } else {
                min
            };
            max = if value.total_cmp(&max).is_gt() {
                value
            } else {
                max
            };
        }
    }
    (min, max)
}

/// Sums the squares of the elements, less `shift` and times `factor`, in lanes.
///
/// One of the two must be neutral: a `shift` of 0 or a `factor` of 1.
#[inline(always)]
fn sum_of_squares<M: LaneMachine, F: FloatFormat>(
    m: M,
    bytes: &[u8],
    shift: f64,
    factor: f64,
) -> f64 {
    let groups = bytes.chunks_exact(LANES * F::WIDTH);
    let tail = groups.remainder();
    let (shifts, factors) = (m.splat(shift), m.splat(factor));
    let mut lanes = m.reals();
    for group in groups {
        let value = m.multiply(m.subtract(F::reals(m, group), shifts), factors);
        lanes = m.add(lanes, m.multiply(value, value));
    }
    let mut lanes = m.array(lanes);
    for (lane, element) in lanes.iter_mut().zip(tail.chunks_exact(F::WIDTH)) {
        let value = (F::value(F::Bits::read(element)) - shift) * factor;
        // The same lane as in a whole group, or the order of summation would depend on the length.
        *lane += value * value;
    }
    fold(lanes)
}

/// The same over the finite elements, one by one.
#[inline(always)]
fn sum_of_finite_squares<F: FloatFormat>(bytes: &[u8], term: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let elements = bytes.chunks_exact(F::WIDTH).map(F::Bits::read);
    for (i, bits) in elements.enumerate() {
        if bits.magnitude() < F::INFINITY {
            let value = term(F::value(bits));
            lanes[i % LANES] += value * value;
        }
    }
    fold(lanes)
}
