//! The pass over a block that sums it and finds its extremes.

use super::{FloatPattern, FloatSurvey, WordFloat, array};
use crate::cpu::{LANES, LaneMachine};
use crate::pieces::{PIECE_BYTES, PieceReader};
use crate::stats::block::fold;

/// Of elements that are `float32` exactly.
#[inline(always)]
pub(super) fn survey_words<M: LaneMachine, F: WordFloat>(
    m: M,
    bytes: &[u8],
    beside: &mut impl PieceReader,
) -> FloatSurvey {
    let (pieces, rest) = bytes.as_chunks::<PIECE_BYTES>();
    let groups_of_rest = rest.chunks_exact(LANES * F::WIDTH);
    let tail = groups_of_rest.remainder();
    let mut sums = WordSums::new(m);
    // Side by side in each piece: while one waits for its sums, or for memory, the other goes on.
    for piece in pieces {
        beside.take(m, piece);
        for group in piece.chunks_exact(LANES * F::WIDTH) {
            sums.add::<F>(m, group);
        }
    }
    for group in groups_of_rest {
        sums.add::<F>(m, group);
    }
    let WordSums {
        sum,
        magnitudes,
        squares,
        min,
        max,
        smallest,
        n_sign,
    } = sums;
    let (mut sum, mut magnitudes) = (m.array(sum), m.array(magnitudes));
    let mut squares = m.array(squares);
    let mut min = m.word_array(min).into_iter().fold(i32::MAX, Ord::min);
    let mut max = m.word_array(max).into_iter().fold(i32::MIN, Ord::max);
    let mut smallest = m.word_array(smallest).into_iter().fold(i32::MAX, Ord::min);
    let mut n_sign: i32 = m.word_array(n_sign).into_iter().sum();
    for (lane, element) in tail.chunks_exact(F::WIDTH).enumerate() {
        let value = F::value(F::Bits::read(element));
        let bits = (value as f32).to_bits().cast_signed();
        let key = bits ^ (bits >> 31 & i32::MAX);
        (min, max) = (min.min(key), max.max(key));
        smallest = smallest.min(bits & i32::MAX);
        n_sign += i32::from(bits < 0);
        // Lanes take the rest in turn, as a last group filled up with nothing would.
        sum[lane] += value;
        magnitudes[lane] += value.abs();
        squares[lane] += value * value;
    }
    let infinity = f32::INFINITY.to_bits().cast_signed();
    let value = |key: i32| {
        f64::from(f32::from_bits(
            (key ^ (key >> 31 & i32::MAX)).cast_unsigned(),
        ))
    };
    FloatSurvey {
        sum: fold(sum),
        sum_of_magnitudes: fold(magnitudes),
        sum_of_squares: fold(squares),
        n_sign: u64::from(n_sign.cast_unsigned()),
        min: value(min),
        max: value(max),
        smallest_magnitude: value(smallest),
        // The key of -inf is the one below that of the lowest finite number, and so on down to NaN.
        is_finite: bytes.is_empty() || max < infinity && min > !infinity,
    }
}

/// Of `float64`.
#[inline(always)]
pub(super) fn survey_longs<M: LaneMachine>(
    m: M,
    bytes: &[u8],
    beside: &mut impl PieceReader,
) -> FloatSurvey {
    let (pieces, rest) = bytes.as_chunks::<PIECE_BYTES>();
    let groups_of_rest = rest.chunks_exact(LANES * 8);
    let tail = groups_of_rest.remainder();
    let mut sums = LongSums::new(m);
    // Side by side in each piece: while one waits for its sums, or for memory, the other goes on.
    for piece in pieces {
        beside.take(m, piece);
        for group in piece.chunks_exact(LANES * 8) {
            sums.add(m, group);
        }
    }
    for group in groups_of_rest {
        sums.add(m, group);
    }
    let LongSums {
        sum,
        magnitudes,
        squares,
        min,
        max,
        smallest,
        n_sign,
    } = sums;
    let (mut sum, mut magnitudes) = (m.array(sum), m.array(magnitudes));
    let mut squares = m.array(squares);
    let mut min = m.long_array(min).into_iter().fold(i64::MAX, Ord::min);
    let mut max = m.long_array(max).into_iter().fold(i64::MIN, Ord::max);
    let mut smallest = m.long_array(smallest).into_iter().fold(i64::MAX, Ord::min);
    let mut n_sign: i64 = m.long_array(n_sign).into_iter().sum();
    for (lane, element) in tail.as_chunks().0.iter().enumerate() {
        let bits = i64::from_le_bytes(*element);
        let key = bits ^ (bits >> 63 & i64::MAX);
        (min, max) = (min.min(key), max.max(key));
        smallest = smallest.min(bits & i64::MAX);
        n_sign += i64::from(bits < 0);
        let value = f64::from_le_bytes(*element);
        sum[lane] += value;
        magnitudes[lane] += value.abs();
        squares[lane] += value * value;
    }
    let infinity = f64::INFINITY.to_bits().cast_signed();
    let value = |key: i64| f64::from_bits((key ^ (key >> 63 & i64::MAX)).cast_unsigned());
    FloatSurvey {
        sum: fold(sum),
        sum_of_magnitudes: fold(magnitudes),
        sum_of_squares: fold(squares),
        n_sign: n_sign.cast_unsigned(),
        min: value(min),
        max: value(max),
        smallest_magnitude: value(smallest),
        is_finite: bytes.is_empty() || max < infinity && min > !infinity,
    }
}

/// Sums and extremes in lanes of elements that are `float32` exactly.
struct WordSums<M: LaneMachine> {
    sum: M::Reals,
    magnitudes: M::Reals,
    squares: M::Reals,
    min: M::Words,
    max: M::Words,
    smallest: M::Words,
    n_sign: M::Words,
}

impl<M: LaneMachine> WordSums<M> {
    #[inline(always)]
    fn new(m: M) -> WordSums<M> {
        WordSums {
            sum: m.reals(),
            magnitudes: m.reals(),
            squares: m.reals(),
            min: m.words(i32::MAX),
            max: m.words(i32::MIN),
            smallest: m.words(i32::MAX),
            n_sign: m.words(0),
        }
    }

    /// Takes [`LANES`] elements.
    #[inline(always)]
    fn add<F: WordFloat>(&mut self, m: M, group: &[u8]) {
        let bits = F::load(m, group);
        let sign = m.sign_words(bits);
        // The key orders floats as integers do: all bits but the sign are flipped in negative
        // ones. So -0 sorts below +0, and NaN and infinities beyond every finite number.
        let key = m.key_words(bits, sign);
        // `sign` is -1 in lanes with a minus sign, so that subtracting it counts them.
        self.n_sign = m.subtract_words(self.n_sign, sign);
        self.min = m.min_words(self.min, key);
        self.max = m.max_words(self.max, key);
        self.smallest = m.min_words(self.smallest, m.and_words(bits, m.words(i32::MAX)));
        let value = m.widen_floats(bits);
        self.sum = m.add(self.sum, value);
        self.magnitudes = m.add(self.magnitudes, m.magnitude(value));
        // The square of a widened `float32` is exact in `f64`, so a fused multiplication computes
        // the same bits as the plain one below.
        self.squares = m.add_exact_square(self.squares, value);
    }
}

/// The same of `float64`.
struct LongSums<M: LaneMachine> {
    sum: M::Reals,
    magnitudes: M::Reals,
    squares: M::Reals,
    min: M::Longs,
    max: M::Longs,
    smallest: M::Longs,
    n_sign: M::Longs,
}

impl<M: LaneMachine> LongSums<M> {
    #[inline(always)]
    fn new(m: M) -> LongSums<M> {
        LongSums {
            sum: m.reals(),
            magnitudes: m.reals(),
            squares: m.reals(),
            min: m.longs(i64::MAX),
            max: m.longs(i64::MIN),
            smallest: m.longs(i64::MAX),
            n_sign: m.longs(0),
        }
    }

    /// Takes [`LANES`] elements.
    #[inline(always)]
    fn add(&mut self, m: M, group: &[u8]) {
        let bits = m.load_longs(array(group));
        let sign = m.sign_longs(bits);
        let key = m.key_longs(bits, sign);
        self.n_sign = m.subtract_longs(self.n_sign, sign);
        self.min = m.min_longs(self.min, key);
        self.max = m.max_longs(self.max, key);
        let magnitude = m.and_longs(bits, m.longs(i64::MAX));
        self.smallest = m.min_longs(self.smallest, magnitude);
        let value = m.reals_of(bits);
        self.sum = m.add(self.sum, value);
        self.magnitudes = m.add(self.magnitudes, m.reals_of(magnitude));
        // Not fused: machines without fused multiplication have to give the same bits.
        self.squares = m.add(self.squares, m.multiply(value, value));
    }
}
