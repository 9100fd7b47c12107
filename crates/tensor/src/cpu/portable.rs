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
fn count<A, const N: usize>(a: [A; N], holds: impl Fn(A) -> bool) -> u32 {
    a.into_iter().map(|a| u32::from(holds(a))).sum()
}

#[inline(always)]
fn load<const WIDTH: usize, const N: usize, T>(
    bytes: &[u8],
    decode: impl Fn([u8; WIDTH]) -> T,
) -> [T; N] {
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

    lane_methods! { Reals:
        reals() = [0.0; LANES];
        add(a, b) = zip(a, b, |a, b| a + b);
        subtract(a, b) = zip(a, b, |a, b| a - b);
        multiply(a, b) = zip(a, b, |a, b| a * b);
        min_reals(a, b) = zip(a, b, |a, b| if a < b { a } else { b });
        max_reals(a, b) = zip(a, b, |a, b| if a > b { a } else { b });
        magnitude(a) = map(a, f64::abs);
        add_exact_square(sum, a) = zip(sum, a, |sum, a| sum + a * a);
    }
    lane_methods! { Words:
        min_words(a, b) = zip(a, b, Ord::min);
        max_words(a, b) = zip(a, b, Ord::max);
        and_words(a, b) = zip(a, b, |a, b| a & b);
        or_words(a, b) = zip(a, b, |a, b| a | b);
        xor_words(a, b) = zip(a, b, |a, b| a ^ b);
        add_words(a, b) = zip(a, b, i32::wrapping_add);
        subtract_words(a, b) = zip(a, b, i32::wrapping_sub);
        sign_words(a) = map(a, |a| a >> 31);
        key_words(a, sign) = zip(a, sign, |a, sign| a ^ (sign & i32::MAX));
        upper_halves(a) = map(a, |a| (a.cast_unsigned() >> 16).cast_signed());
    }
    lane_methods! { Longs:
        min_longs(a, b) = zip(a, b, Ord::min);
        max_longs(a, b) = zip(a, b, Ord::max);
        and_longs(a, b) = zip(a, b, |a, b| a & b);
        xor_longs(a, b) = zip(a, b, |a, b| a ^ b);
        add_longs(a, b) = zip(a, b, i64::wrapping_add);
        swap_longs(a) = std::array::from_fn(|i| a[i ^ 1]);
        multiply_word_halves(a) = map(a, |a| (a & 0xffff_ffff).wrapping_mul(a >> 32 & 0xffff_ffff));
        subtract_longs(a, b) = zip(a, b, i64::wrapping_sub);
        sign_longs(a) = map(a, |a| a >> 63);
        key_longs(a, sign) = zip(a, sign, |a, sign| a ^ (sign & i64::MAX));
    }
    lane_methods! { Halves:
        and_halves(a, b) = std::array::from_fn(|i| a[i] & b[i]);
        xor_halves(a, b) = std::array::from_fn(|i| a[i] ^ b[i]);
        min_halves(a, b) = std::array::from_fn(|i| a[i].min(b[i]));
        max_halves(a, b) = std::array::from_fn(|i| a[i].max(b[i]));
    }
    lane_methods! {
        array(a: Self::Reals) -> [f64; LANES] = a;
        reals_from_array(a: &[f64; LANES]) -> Self::Reals = *a;
        splat(value: f64) -> Self::Reals = [value; LANES];
        words(value: i32) -> Self::Words = [value; LANES];
        words_from_array(a: &[i32; LANES]) -> Self::Words = *a;
        word_array(a: Self::Words) -> [i32; LANES] = a;
        load_words(bytes: &[u8; 64]) -> Self::Words = load(bytes, i32::from_le_bytes);
        load_upper_halves(bytes: &[u8; 32]) -> Self::Words =
            load(bytes, |b| i32::from(i16::from_le_bytes(b)) << 16);
        rotate_words(a: Self::Words, n: i32) -> Self::Words =
            map(a, |a| a.rotate_left(n.cast_unsigned()));
        widen_floats(a: Self::Words) -> Self::Reals =
            map(a, |a| f64::from(f32::from_bits(a.cast_unsigned())));
        widen_integers(a: Self::Words) -> Self::Reals = map(a, f64::from);
        longs(value: i64) -> Self::Longs = [value; LANES];
        long_array(a: Self::Longs) -> [i64; LANES] = a;
        load_longs(bytes: &[u8; 128]) -> Self::Longs = load(bytes, i64::from_le_bytes);
        reals_of(a: Self::Longs) -> Self::Reals = map(a, |a| f64::from_bits(a.cast_unsigned()));
        transpose(rows: &[Self::Reals; LANES]) -> [Self::Reals; LANES] =
            std::array::from_fn(|i| std::array::from_fn(|row| rows[row][i]));
        load_float16(bytes: &[u8; 32]) -> Self::Words =
            load(bytes, |b| float16_to_float32(u16::from_le_bytes(b)).cast_signed());
        halves(value: i16) -> Self::Halves = [value; 2 * LANES];
        half_array(a: Self::Halves) -> [i16; 2 * LANES] = a;
        load_halves(bytes: &[u8; 64]) -> Self::Halves = load(bytes, i16::from_le_bytes);
        load_signed_bytes(bytes: &[u8; 32]) -> Self::Halves =
            std::array::from_fn(|i| i16::from(bytes[i].cast_signed()));
        load_unsigned_bytes(bytes: &[u8; 32]) -> Self::Halves =
            std::array::from_fn(|i| i16::from(bytes[i]));
        count_equal_halves(a: Self::Halves, value: i16) -> u32 = count(a, |a| a == value);
        count_below_halves(a: Self::Halves, value: i16) -> u32 = count(a, |a| a < value);
        count_equal_words(a: Self::Words, value: i32) -> u32 = count(a, |a| a == value);
        count_below_words(a: Self::Words, value: i32) -> u32 = count(a, |a| a < value);
        count_equal_longs(a: Self::Longs, value: i64) -> u32 = count(a, |a| a == value);
        count_below_longs(a: Self::Longs, value: i64) -> u32 = count(a, |a| a < value);
    }

    #[inline(always)]
    fn dot_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Words {
        let products: [i32; 2 * LANES] = std::array::from_fn(|i| i32::from(a[i]) * i32::from(b[i]));
        std::array::from_fn(|i| products[2 * i].wrapping_add(products[2 * i + 1]))
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
