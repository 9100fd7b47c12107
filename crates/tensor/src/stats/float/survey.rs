//! The pass over a block that sums it and finds its extremes.

use super::super::block::fold;
use super::{FloatPattern, FloatSurvey, WordFloat, array};
use crate::cpu::{LANES, LaneMachine};

/// Of elements that are `float32` exactly.
#[inline(always)]
pub(super) fn survey_words<M: LaneMachine, F: WordFloat>(m: M, bytes: &[u8]) -> FloatSurvey {
    let groups = bytes.chunks_exact(LANES * F::WIDTH);
    let tail = groups.remainder();
    let (mut sum, mut magnitudes, mut squares) = (m.reals(), m.reals(), m.reals());
    let (mut min, mut max) = (m.words(i32::MAX), m.words(i32::MIN));
    let (mut smallest, mut n_sign) = (m.words(i32::MAX), m.words(0));
    for group in groups {
        let bits = F::load(m, group);
        let sign = m.sign_words(bits);
        // The key orders floats as integers do: all bits but the sign are flipped in negative
        // ones. So -0 sorts below +0, and NaN and infinities beyond every finite number.
        let key = m.key_words(bits, sign);
        // `sign` is -1 in lanes with a minus sign, so that subtracting it counts them.
        n_sign = m.subtract_words(n_sign, sign);
        min = m.min_words(min, key);
        max = m.max_words(max, key);
        smallest = m.min_words(smallest, m.and_words(bits, m.words(i32::MAX)));
        let value = m.widen_floats(bits);
        sum = m.add(sum, value);
        magnitudes = m.add(magnitudes, m.magnitude(value));
        // The square of a widened `float32` is exact in `f64`, so a fused multiplication gives the
        // same bits as the plain one below.
        squares = m.add_exact_square(squares, value);
    }
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
pub(super) fn survey_longs<M: LaneMachine>(m: M, bytes: &[u8]) -> FloatSurvey {
    let groups = bytes.chunks_exact(LANES * 8);
    let tail = groups.remainder();
    let (mut sum, mut magnitudes, mut squares) = (m.reals(), m.reals(), m.reals());
    let (mut min, mut max) = (m.longs(i64::MAX), m.longs(i64::MIN));
    let (mut smallest, mut n_sign) = (m.longs(i64::MAX), m.longs(0));
    for group in groups {
        let bits = m.load_longs(array(group));
        let sign = m.sign_longs(bits);
        let key = m.key_longs(bits, sign);
        n_sign = m.subtract_longs(n_sign, sign);
        min = m.min_longs(min, key);
        max = m.max_longs(max, key);
        let magnitude = m.and_longs(bits, m.longs(i64::MAX));
        smallest = m.min_longs(smallest, magnitude);
        let value = m.reals_of(bits);
        sum = m.add(sum, value);
        magnitudes = m.add(magnitudes, m.reals_of(magnitude));
        // Not fused: machines without fused multiplication have to give the same bits.
        squares = m.add(squares, m.multiply(value, value));
    }
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
