//! Sixteen lanes as plain arrays, for which the compiler chooses the target's instructions.

use super::{LANES, LaneMachine};

/// The machine that every CPU can run.
#[derive(Clone, Copy)]
pub(crate) struct PortableMachine;

#[inline(always)]
fn map<A: Copy, B>(a: [A; LANES], f: impl Fn(A) -> B) -> [B; LANES] {
    std::array::from_fn(|i| f(a[i]))
}

#[inline(always)]
fn zip<A: Copy, B: Copy, C>(a: [A; LANES], b: [B; LANES], f: impl Fn(A, B) -> C) -> [C; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn load<const WIDTH: usize, T>(bytes: &[u8], decode: impl Fn([u8; WIDTH]) -> T) -> [T; LANES] {
    let elements = bytes.as_chunks::<WIDTH>().0;
    std::array::from_fn(|i| decode(elements[i]))
}

/// The bits of the `float32` of the same value, without a branch.
#[inline(always)]
pub(crate) fn float16_to_float32(bits: u16) -> u32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let sign = u32::from(bits & 0x8000) << 16;
    let rebias = (127 - 15) << 23;
    let normal = magnitude + rebias;
    // Infinity and NaN have the largest exponent of either type: 31 becomes 255.
    let special = normal + rebias;
    // A normal number with the smallest exponent, minus its implied leading one.
    let one = 0x3880_0000;
    let subnormal = (f32::from_bits(magnitude + one) - f32::from_bits(one)).to_bits();
    let finite = if bits & 0x7c00 == 0 {
        subnormal
    } else {
        normal
    };
    sign | if bits & 0x7c00 == 0x7c00 {
        special
    } else {
        finite
    }
}

impl LaneMachine for PortableMachine {
    type Reals = [f64; LANES];
    type Words = [i32; LANES];
    type Longs = [i64; LANES];
    type Halves = [i16; 2 * LANES];

    #[inline(always)]
    fn reals(self) -> Self::Reals {
        [0.0; LANES]
    }
    #[inline(always)]
    fn array(self, a: Self::Reals) -> [f64; LANES] {
        a
    }
    #[inline(always)]
    fn reals_from_array(self, a: &[f64; LANES]) -> Self::Reals {
        *a
    }
    #[inline(always)]
    fn splat(self, value: f64) -> Self::Reals {
        [value; LANES]
    }
    #[inline(always)]
    fn add(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn subtract(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn multiply(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn min_reals(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max_reals(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn magnitude(self, a: Self::Reals) -> Self::Reals {
        map(a, f64::abs)
    }
    #[inline(always)]
    fn add_exact_square(self, sum: Self::Reals, a: Self::Reals) -> Self::Reals {
        zip(sum, a, |sum, a| sum + a * a)
    }

    #[inline(always)]
    fn words(self, value: i32) -> Self::Words {
        [value; LANES]
    }
    #[inline(always)]
    fn words_from_array(self, a: &[i32; LANES]) -> Self::Words {
        *a
    }
    #[inline(always)]
    fn word_array(self, a: Self::Words) -> [i32; LANES] {
        a
    }
    #[inline(always)]
    fn load_words(self, bytes: &[u8; 64]) -> Self::Words {
        load(bytes, i32::from_le_bytes)
    }
    #[inline(always)]
    fn load_upper_halves(self, bytes: &[u8; 32]) -> Self::Words {
        load(bytes, |b| i32::from(i16::from_le_bytes(b)) << 16)
    }
    #[inline(always)]
    fn load_float16(self, bytes: &[u8; 32]) -> Self::Words {
        load(bytes, |b| {
            float16_to_float32(u16::from_le_bytes(b)).cast_signed()
        })
    }
    #[inline(always)]
    fn min_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, Ord::min)
    }
    #[inline(always)]
    fn max_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, Ord::max)
    }
    #[inline(always)]
    fn and_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn or_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn xor_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn rotate_words(self, a: Self::Words, n: i32) -> Self::Words {
        map(a, |a| a.rotate_left(n.cast_unsigned()))
    }
    #[inline(always)]
    fn add_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, i32::wrapping_add)
    }
    #[inline(always)]
    fn subtract_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        zip(a, b, i32::wrapping_sub)
    }
    #[inline(always)]
    fn sign_words(self, a: Self::Words) -> Self::Words {
        map(a, |a| a >> 31)
    }
    #[inline(always)]
    fn key_words(self, a: Self::Words, sign: Self::Words) -> Self::Words {
        zip(a, sign, |a, sign| a ^ (sign & i32::MAX))
    }
    #[inline(always)]
    fn widen_floats(self, a: Self::Words) -> Self::Reals {
        map(a, |a| f64::from(f32::from_bits(a.cast_unsigned())))
    }
    #[inline(always)]
    fn widen_integers(self, a: Self::Words) -> Self::Reals {
        map(a, f64::from)
    }

    #[inline(always)]
    fn longs(self, value: i64) -> Self::Longs {
        [value; LANES]
    }
    #[inline(always)]
    fn long_array(self, a: Self::Longs) -> [i64; LANES] {
        a
    }
    #[inline(always)]
    fn load_longs(self, bytes: &[u8; 128]) -> Self::Longs {
        load(bytes, i64::from_le_bytes)
    }
    #[inline(always)]
    fn min_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        zip(a, b, Ord::min)
    }
    #[inline(always)]
    fn max_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        zip(a, b, Ord::max)
    }
    #[inline(always)]
    fn and_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn xor_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        zip(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn add_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        zip(a, b, i64::wrapping_add)
    }
    #[inline(always)]
    fn swap_longs(self, a: Self::Longs) -> Self::Longs {
        std::array::from_fn(|i| a[i ^ 1])
    }
    #[inline(always)]
    fn multiply_word_halves(self, a: Self::Longs) -> Self::Longs {
        map(a, |a| (a & 0xffff_ffff).wrapping_mul(a >> 32 & 0xffff_ffff))
    }
    #[inline(always)]
    fn subtract_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        zip(a, b, i64::wrapping_sub)
    }
    #[inline(always)]
    fn sign_longs(self, a: Self::Longs) -> Self::Longs {
        map(a, |a| a >> 63)
    }
    #[inline(always)]
    fn key_longs(self, a: Self::Longs, sign: Self::Longs) -> Self::Longs {
        zip(a, sign, |a, sign| a ^ (sign & i64::MAX))
    }
    #[inline(always)]
    fn reals_of(self, a: Self::Longs) -> Self::Reals {
        map(a, |a| f64::from_bits(a.cast_unsigned()))
    }

    #[inline(always)]
    fn transpose(self, rows: &[Self::Reals; LANES]) -> [Self::Reals; LANES] {
        std::array::from_fn(|i| std::array::from_fn(|row| rows[row][i]))
    }

    #[inline(always)]
    fn halves(self, value: i16) -> Self::Halves {
        [value; 2 * LANES]
    }
    #[inline(always)]
    fn half_array(self, a: Self::Halves) -> [i16; 2 * LANES] {
        a
    }
    #[inline(always)]
    fn load_halves(self, bytes: &[u8; 64]) -> Self::Halves {
        let elements = bytes.as_chunks().0;
        std::array::from_fn(|i| i16::from_le_bytes(elements[i]))
    }
    #[inline(always)]
    fn load_signed_bytes(self, bytes: &[u8; 32]) -> Self::Halves {
        std::array::from_fn(|i| i16::from(bytes[i].cast_signed()))
    }
    #[inline(always)]
    fn load_unsigned_bytes(self, bytes: &[u8; 32]) -> Self::Halves {
        std::array::from_fn(|i| i16::from(bytes[i]))
    }
    #[inline(always)]
    fn and_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves {
        std::array::from_fn(|i| a[i] & b[i])
    }
    #[inline(always)]
    fn xor_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves {
        std::array::from_fn(|i| a[i] ^ b[i])
    }
    #[inline(always)]
    fn min_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves {
        std::array::from_fn(|i| a[i].min(b[i]))
    }
    #[inline(always)]
    fn max_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves {
        std::array::from_fn(|i| a[i].max(b[i]))
    }
    #[inline(always)]
    fn dot_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Words {
        std::array::from_fn(|i| {
            let product = |at: usize| i32::from(a[at]) * i32::from(b[at]);
            product(2 * i).wrapping_add(product(2 * i + 1))
        })
    }
    #[inline(always)]
    fn upper_halves(self, a: Self::Words) -> Self::Words {
        map(a, |a| (a.cast_unsigned() >> 16).cast_signed())
    }
    #[inline(always)]
    fn count_equal_halves(self, a: Self::Halves, value: i16) -> u32 {
        a.into_iter().map(|a| u32::from(a == value)).sum()
    }
    #[inline(always)]
    fn count_below_halves(self, a: Self::Halves, value: i16) -> u32 {
        a.into_iter().map(|a| u32::from(a < value)).sum()
    }
    #[inline(always)]
    fn count_equal_words(self, a: Self::Words, value: i32) -> u32 {
        a.into_iter().map(|a| u32::from(a == value)).sum()
    }
    #[inline(always)]
    fn count_below_words(self, a: Self::Words, value: i32) -> u32 {
        a.into_iter().map(|a| u32::from(a < value)).sum()
    }
    #[inline(always)]
    fn count_equal_longs(self, a: Self::Longs, value: i64) -> u32 {
        a.into_iter().map(|a| u32::from(a == value)).sum()
    }
    #[inline(always)]
    fn count_below_longs(self, a: Self::Longs, value: i64) -> u32 {
        a.into_iter().map(|a| u32::from(a < value)).sum()
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::float16_to_float32;

    #[test]
    fn every_float16_becomes_the_float32_of_the_same_value() {
        for bits in 0..=u16::MAX {
            let expected = f16::from_bits(bits).to_f32();
            let found = f32::from_bits(float16_to_float32(bits));
            let is_same = found.to_bits() == expected.to_bits();
            assert!(is_same || found.is_nan() && expected.is_nan(), "{bits:#x}");
        }
    }
}
