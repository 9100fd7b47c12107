//! Blocks of integers.
//!
//! Sums of a block of 8 or 16 bits fit 32 or 64 bits, so they are computed in integers, in any
//! order: every partial sum of the definition is exact, so the result is the same.

use std::slice::ChunksExact;

use super::block::{BLOCK, StatsBlock, deviation_from_sums, fold};
use super::counts::ElementCounts;
use super::float::array;
use crate::cpu::{LANES, LaneMachine};

// How a word of sums accumulates a block: two elements, or two halves of squares, at a time.
const _: () = assert!((BLOCK as u64 / (2 * LANES as u64) + 1) * 0x1_0000 <= i32::MAX as u64);

/// An integer dtype.
pub(super) trait IntegerFormat {
    /// One element.
    type Value: Copy + Ord;
    /// Bytes in an element.
    const WIDTH: usize;
    /// Zero.
    const ZERO: Self::Value;
    /// The lowest value, if it counts as saturated.
    const LOWEST: Option<Self::Value>;
    /// The highest value, if it counts as saturated.
    const HIGHEST: Option<Self::Value>;
    /// Reads an element.
    fn read(bytes: &[u8]) -> Self::Value;
    /// The value, rounded if it has 64 bits.
    fn real(value: Self::Value) -> f64;
    /// The values of [`LANES`] elements.
    fn reals<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Reals;
    /// The statistics of a block that is not empty, but for `n` and `deviation`.
    fn survey<M: LaneMachine>(m: M, bytes: &[u8]) -> StatsBlock;
    /// Thirty-two elements of 8 or 16 bits, as described by [`ShortInteger`]; longer types have
    /// none.
    fn short<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Halves;
    /// How many elements of a block `is_counted` holds for; of 32 or 64 bits only.
    fn count(bytes: &[u8], is_counted: impl Fn(Self::Value) -> bool) -> u64;
}

/// One byte that counts up to one.
pub(super) struct Bool;
pub(super) struct I8;
pub(super) struct U8;
pub(super) struct I16;
pub(super) struct U16;
pub(super) struct I32;
pub(super) struct U32;
pub(super) struct I64;
pub(super) struct U64;

/// The statistics of one block, at most [`BLOCK`] elements.
#[inline(always)]
pub(super) fn block<M: LaneMachine, I: IntegerFormat>(m: M, bytes: &[u8]) -> StatsBlock {
    if bytes.is_empty() {
        return StatsBlock::EMPTY;
    }
    let mut block = I::survey(m, bytes);
    block.counts.n_elements = (bytes.len() / I::WIDTH) as u64;
    block.deviation = deviation_from_sums(&block).unwrap_or_else(|| {
        deviation_in_lanes::<M, I>(m, bytes, block.sum / block.counts.n_elements as f64)
    });
    block
}

/// Everything but the deviation, of elements of 32 or 64 bits.
#[inline(always)]
fn survey_long<M: LaneMachine, I: IntegerFormat>(m: M, bytes: &[u8]) -> StatsBlock {
    let lowest_and_highest =
        |(min, max): (I::Value, I::Value), value: I::Value| (min.min(value), max.max(value));
    let first = I::read(bytes);
    let elements = bytes.chunks_exact(I::WIDTH).map(I::read);
    let (min, max) = elements.fold((first, first), lowest_and_highest);
    let [sum, sum_of_magnitudes, sum_of_squares] = sums_in_lanes::<M, I>(m, bytes);
    let mut block = StatsBlock {
        min: I::real(min),
        max: I::real(max),
        sum,
        sum_of_magnitudes,
        sum_of_squares,
        ..StatsBlock::EMPTY
    };
    // Counting takes a pass for each value, which the extremes make unnecessary most of the time.
    if (min..=max).contains(&I::ZERO) {
        block.counts.n_zero = I::count(bytes, |value| value == I::ZERO);
    }
    if min < I::ZERO {
        block.counts.n_negative = I::count(bytes, |value| value < I::ZERO);
    }
    for end in [I::LOWEST, I::HIGHEST].into_iter().flatten() {
        if (min..=max).contains(&end) {
            block.counts.n_saturated += I::count(bytes, |value| value == end);
        }
    }
    block
}

/// How short integers become signed halfwords.
struct ShortInteger {
    /// The number that was subtracted from them.
    offset: i16,
    /// The ends of the range, as halfwords, if they count as saturated.
    ends: Option<[i16; 2]>,
}

/// Everything but the deviation, of elements of 8 or 16 bits.
#[inline(always)]
fn survey_short<M: LaneMachine, I: IntegerFormat>(
    m: M,
    bytes: &[u8],
    short: &ShortInteger,
) -> StatsBlock {
    // Of each element y = x - offset: sums of y, of y where it is positive, and of y * y in two
    // halves of 16 bits; two elements at a time, as the products come.
    let (one, nought, lower_half) = (m.halves(1), m.halves(0), m.words(0xffff));
    let mut sums = [m.words(0); 4];
    let (mut min, mut max) = (m.halves(i16::MAX), m.halves(i16::MIN));
    let (mut n_zero, mut n_negative, mut n_saturated) = (0, 0, 0);
    // Zero less the offset, wherever that wraps to.
    let zero = short.offset.wrapping_neg();
    let (groups, last, n_behind) = groups::<I>(bytes);
    let last = &last[..2 * LANES * I::WIDTH];
    let n_last = usize::from(n_behind > 0);
    for group in groups.clone().chain(std::iter::repeat_n(last, n_last)) {
        let y = I::short(m, group);
        let squares = m.dot_halves(y, y);
        let positive = m.max_halves(y, nought);
        sums[0] = m.add_words(sums[0], m.dot_halves(y, one));
        sums[1] = m.add_words(sums[1], m.dot_halves(positive, one));
        sums[2] = m.add_words(sums[2], m.and_words(squares, lower_half));
        sums[3] = m.add_words(sums[3], m.upper_halves(squares));
        n_zero += m.count_equal_halves(y, zero);
        n_negative += m.count_below_halves(y, zero);
        if let Some([low, high]) = short.ends {
            n_saturated += m.count_equal_halves(y, low) + m.count_equal_halves(y, high);
        }
        (min, max) = (m.min_halves(min, y), m.max_halves(max, y));
    }
    let lowest = m.half_array(min).into_iter().fold(i16::MAX, Ord::min);
    let highest = m.half_array(max).into_iter().fold(i16::MIN, Ord::max);
    // The last group is filled up with copies of one element, and their share is taken out below:
    // cheaper than a second kind of loop for the rest.
    let filling = m.half_array(I::short(m, last))[2 * LANES - 1];
    let sums = sums.map(|sum| m.word_array(sum).into_iter().map(i64::from).sum());
    let [sum, sum_of_magnitudes, sum_of_squares] = short.sums(
        (bytes.len() / I::WIDTH) as i64,
        sums,
        n_behind as i64,
        filling.into(),
    );
    let without_filling =
        |n: u32, is_counted: bool| u64::from(n) - if is_counted { n_behind } else { 0 };
    StatsBlock {
        min: (i64::from(lowest) + short.offset()) as f64,
        max: (i64::from(highest) + short.offset()) as f64,
        sum,
        sum_of_magnitudes,
        sum_of_squares,
        counts: ElementCounts {
            n_zero: without_filling(n_zero, filling == zero),
            n_negative: without_filling(n_negative, filling < zero),
            n_saturated: without_filling(
                n_saturated,
                short.ends.is_some_and(|ends| ends.contains(&filling)),
            ),
            ..ElementCounts::EMPTY
        },
        ..StatsBlock::EMPTY
    }
}

/// Whole groups of thirty-two elements; the rest, filled up with its first element; and how many
/// times it was used for that, if there is a rest.
#[inline(always)]
fn groups<I: IntegerFormat>(bytes: &[u8]) -> (ChunksExact<'_, u8>, [u8; 4 * LANES], u64) {
    let n_group_bytes = 2 * LANES * I::WIDTH;
    let groups = bytes.chunks_exact(n_group_bytes);
    let tail = groups.remainder();
    let mut last = [0; 4 * LANES];
    if tail.is_empty() {
        return (groups, last, 0);
    }
    for (i, to) in last.chunks_exact_mut(I::WIDTH).enumerate() {
        let from = if i * I::WIDTH < tail.len() {
            i * I::WIDTH
        } else {
            0
        };
        to.copy_from_slice(&tail[from..from + I::WIDTH]);
    }
    (
        groups,
        last,
        ((n_group_bytes - tail.len()) / I::WIDTH) as u64,
    )
}

impl ShortInteger {
    /// [`ShortInteger::offset`] as a number that is added again.
    fn offset(&self) -> i64 {
        i64::from(self.offset).rem_euclid(1 << 16)
    }

    /// Sum, sum of magnitudes and sum of squares of `n` elements, from the four sums of elements
    /// less the offset, which contain `filling` too many times.
    fn sums(&self, n: i64, sums: [i64; 4], n_behind: i64, filling: i64) -> [f64; 3] {
        let [sum, positive, low, high] = sums;
        let sum = sum - n_behind * filling;
        let positive = positive - n_behind * filling.max(0);
        let squares = (high << 16) + low - n_behind * filling * filling;
        let offset = self.offset();
        // Signed integers: the magnitudes are twice the positive ones less the sum. Unsigned ones
        // are their own magnitudes.
        let magnitudes = if offset == 0 {
            2 * positive - sum
        } else {
            sum + n * offset
        };
        // (y + offset)², with the sums of y and y² known exactly.
        let squares = squares + 2 * offset * sum + n * offset * offset;
        [(sum + n * offset) as f64, magnitudes as f64, squares as f64]
    }
}

/// Sums of elements, of their magnitudes and of their squares.
#[inline(always)]
fn sums_in_lanes<M: LaneMachine, I: IntegerFormat>(m: M, bytes: &[u8]) -> [f64; 3] {
    let groups = bytes.chunks_exact(LANES * I::WIDTH);
    let tail = groups.remainder();
    let (mut sum, mut magnitudes, mut squares) = (m.reals(), m.reals(), m.reals());
    for group in groups {
        let value = I::reals(m, group);
        sum = m.add(sum, value);
        magnitudes = m.add(magnitudes, m.magnitude(value));
        squares = m.add(squares, m.multiply(value, value));
    }
    let mut sums = [m.array(sum), m.array(magnitudes), m.array(squares)];
    for (lane, element) in tail.chunks_exact(I::WIDTH).enumerate() {
        let value = I::real(I::read(element));
        sums[0][lane] += value;
        sums[1][lane] += value.abs();
        sums[2][lane] += value * value;
    }
    sums.map(fold)
}

/// The sum of squared distances from the mean.
#[inline(always)]
fn deviation_in_lanes<M: LaneMachine, I: IntegerFormat>(m: M, bytes: &[u8], mean: f64) -> f64 {
    let groups = bytes.chunks_exact(LANES * I::WIDTH);
    let tail = groups.remainder();
    let means = m.splat(mean);
    let mut squares = m.reals();
    for group in groups {
        let distance = m.subtract(I::reals(m, group), means);
        squares = m.add(squares, m.multiply(distance, distance));
    }
    let mut squares = m.array(squares);
    for (lane, element) in squares.iter_mut().zip(tail.chunks_exact(I::WIDTH)) {
        let distance = I::real(I::read(element)) - mean;
        *lane += distance * distance;
    }
    fold(squares)
}

macro_rules! integers {
    ($($name:ident, $value:ty, $is_saturating:expr,
       |$m:ident, $b:ident| $reals:expr, |$survey_m:ident, $survey_b:ident| $survey:expr,
       |$short_m:ident, $short_b:ident| $short:expr;)*) => {$(
        impl IntegerFormat for $name {
            type Value = $value;
            const WIDTH: usize = size_of::<$value>();
            const ZERO: $value = 0;
            const LOWEST: Option<$value> = if $is_saturating { Some(<$value>::MIN) } else { None };
            const HIGHEST: Option<$value> = if $is_saturating { Some(<$value>::MAX) } else { None };
            #[inline(always)]
            fn read(bytes: &[u8]) -> $value {
                <$value>::from_le_bytes(*array(bytes))
            }
            #[inline(always)]
            fn real(value: $value) -> f64 {
                value as f64
            }
            #[inline(always)]
            fn reals<M: LaneMachine>($m: M, $b: &[u8]) -> M::Reals {
                $reals
            }
            #[inline(always)]
            fn survey<M: LaneMachine>($survey_m: M, $survey_b: &[u8]) -> StatsBlock {
                $survey
            }
            #[inline(always)]
            fn short<M: LaneMachine>($short_m: M, $short_b: &[u8]) -> M::Halves {
                $short
            }
            #[inline(always)]
            fn count(bytes: &[u8], is_counted: impl Fn($value) -> bool) -> u64 {
                let elements = bytes.as_chunks().0.iter();
                let counts =
                    elements.map(|&b| <$value>::from(is_counted(<$value>::from_le_bytes(b))));
                counts.fold(0, <$value>::wrapping_add) as u64
            }
        }
    )*};
}

integers! {
    Bool, u8, false, |m, b| each::<_, 1>(m, b, |b| u8::from_le_bytes(b).into()),
        |m, b| survey_short::<M, Self>(m, b, &ShortInteger { offset: 0, ends: None }),
        |m, b| m.load_unsigned_bytes(array(b));
    I8, i8, true, |m, b| each::<_, 1>(m, b, |b| i8::from_le_bytes(b).into()),
        |m, b| survey_short::<M, Self>(m, b, &ShortInteger { offset: 0, ends: Some([-128, 127]) }),
        |m, b| m.load_signed_bytes(array(b));
    U8, u8, true, |m, b| each::<_, 1>(m, b, |b| u8::from_le_bytes(b).into()),
        |m, b| survey_short::<M, Self>(m, b, &ShortInteger { offset: 0, ends: Some([0, 255]) }),
        |m, b| m.load_unsigned_bytes(array(b));
    I16, i16, true, |m, b| each::<_, 2>(m, b, |b| i16::from_le_bytes(b).into()),
        |m, b| survey_short::<M, Self>(m, b, &ShortInteger { offset: 0, ends: ENDS }),
        |m, b| m.load_halves(array(b));
    // Less 2^15, so that they are signed.
    U16, u16, true, |m, b| each::<_, 2>(m, b, |b| u16::from_le_bytes(b).into()),
        |m, b| survey_short::<M, Self>(m, b, &ShortInteger { offset: i16::MIN, ends: ENDS }),
        |m, b| m.xor_halves(m.load_halves(array(b)), m.halves(i16::MIN));
    I32, i32, true, |m, b| m.widen_integers(m.load_words(array(b))),
        |m, b| survey_long::<M, Self>(m, b), |m, _b| m.halves(0);
    U32, u32, true, |m, b| unsigned(m, b),
        |m, b| survey_long::<M, Self>(m, b), |m, _b| m.halves(0);
    I64, i64, true, |m, b| each::<_, 8>(m, b, |b| i64::from_le_bytes(b) as f64),
        |m, b| survey_long::<M, Self>(m, b), |m, _b| m.halves(0);
    U64, u64, true, |m, b| each::<_, 8>(m, b, |b| u64::from_le_bytes(b) as f64),
        |m, b| survey_long::<M, Self>(m, b), |m, _b| m.halves(0);
}

/// The ends of the range of signed halfwords.
const ENDS: Option<[i16; 2]> = Some([i16::MIN, i16::MAX]);

/// [`LANES`] elements, one by one.
#[inline(always)]
fn each<M: LaneMachine, const WIDTH: usize>(
    m: M,
    bytes: &[u8],
    real: impl Fn([u8; WIDTH]) -> f64,
) -> M::Reals {
    let mut values = [0.0; LANES];
    for (value, element) in values.iter_mut().zip(bytes.as_chunks::<WIDTH>().0) {
        *value = real(*element);
    }
    m.reals_from_array(&values)
}

/// Unsigned words as signed ones, 2^31 lower; then both steps are exact.
#[inline(always)]
fn unsigned<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Reals {
    let lower = m.subtract_words(m.load_words(array(bytes)), m.words(i32::MIN));
    m.add(m.widen_integers(lower), m.splat(2_147_483_648.0))
}
