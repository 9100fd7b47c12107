//! Choosing code for the current CPU.
//!
//! A [`LaneTask`] is written once, over a [`LaneMachine`] that carries sixteen numbers at a time.
//! [`run`] compiles it three times, for AVX-512, for AVX2 and for whatever the target has, and
//! picks one when it is called. Everything in a task must be inlined into it (`#[inline(always)]`):
//! only then is it compiled for the CPU that was found, loops without any intrinsics included.
//!
//! Unsafe because code for one CPU does not run on another. A machine can only be had from
//! [`Avx512::detect`] and the like, which ask the CPU.

#![allow(unsafe_code)]

/// Methods of a machine, a row each. After a type, its rows have operands and results of that type.
macro_rules! lane_methods {
    ($type:ident: $($name:ident($($operand:ident),*) = $body:expr;)+) => {
        lane_methods! { $($name($($operand: Self::$type),*) -> Self::$type = $body;)+ }
    };
    ($($name:ident($($operand:ident: $from:ty),*) -> $to:ty = $body:expr;)+) => {$(
        #[inline(always)]
        fn $name(self, $($operand: $from),*) -> $to {
            $body
        }
    )+};
}

// Macros are seen by the modules that follow.
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod registers;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

pub(crate) use portable::{PortableMachine, float16_to_float32};

#[cfg(target_arch = "x86_64")]
use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use avx512::Avx512;

/// Numbers that a machine carries at a time.
pub(crate) const LANES: usize = 16;

/// Sixteen lanes of arithmetic. Every machine computes the same bits.
///
/// Words are 32 bits wide. Slices that are loaded hold exactly [`LANES`] elements.
pub(crate) trait LaneMachine: Copy {
    /// Sixteen `f64`.
    type Reals: Copy;
    /// Sixteen words of 32 bits.
    type Words: Copy;
    /// Sixteen words of 64 bits.
    type Longs: Copy;
    /// Thirty-two halfwords of 16 bits.
    type Halves: Copy;

    /// Sixteen zeros.
    fn reals(self) -> Self::Reals;
    /// The sixteen numbers.
    fn array(self, a: Self::Reals) -> [f64; LANES];
    /// Sixteen numbers.
    fn reals_from_array(self, a: &[f64; LANES]) -> Self::Reals;
    /// One number, sixteen times.
    fn splat(self, value: f64) -> Self::Reals;
    /// `a + b`.
    fn add(self, a: Self::Reals, b: Self::Reals) -> Self::Reals;
    /// `a - b`.
    fn subtract(self, a: Self::Reals, b: Self::Reals) -> Self::Reals;
    /// `a * b`.
    fn multiply(self, a: Self::Reals, b: Self::Reals) -> Self::Reals;
    /// `a` where it is below `b`, otherwise `b`, also where either is NaN.
    fn min_reals(self, a: Self::Reals, b: Self::Reals) -> Self::Reals;
    /// `a` where it is above `b`, otherwise `b`, also where either is NaN.
    fn max_reals(self, a: Self::Reals, b: Self::Reals) -> Self::Reals;
    /// `a` without its sign.
    fn magnitude(self, a: Self::Reals) -> Self::Reals;
    /// `sum + a * a` for an `a` whose square is exact, so that it does not matter whether it is
    /// rounded before the addition.
    fn add_exact_square(self, sum: Self::Reals, a: Self::Reals) -> Self::Reals;

    /// One word, sixteen times.
    fn words(self, value: i32) -> Self::Words;
    /// Sixteen words.
    fn words_from_array(self, a: &[i32; LANES]) -> Self::Words;
    /// The sixteen words.
    fn word_array(self, a: Self::Words) -> [i32; LANES];
    /// Loads words.
    fn load_words(self, bytes: &[u8; 64]) -> Self::Words;
    /// Loads halfwords as the upper half of words: `bfloat16` to `float32`.
    fn load_upper_halves(self, bytes: &[u8; 32]) -> Self::Words;
    /// Loads `float16` as the bits of `float32`. Signalling NaN may become quiet.
    fn load_float16(self, bytes: &[u8; 32]) -> Self::Words;
    /// Smaller of signed words.
    fn min_words(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Larger of signed words.
    fn max_words(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Bitwise and.
    fn and_words(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Bitwise or.
    fn or_words(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Bitwise exclusive or.
    fn xor_words(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Rotates left by 1 to 31 bits.
    fn rotate_words(self, a: Self::Words, n: i32) -> Self::Words;
    /// Wrapping sum.
    fn add_words(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// `a`, which the compiler has to have before it does what uses it. It reorders long sums so
    /// that all of them waits for the last part; where that costs more than a detour through
    /// memory, this is one.
    #[inline(always)]
    fn settle_words(self, a: Self::Words) -> Self::Words {
        a
    }
    /// Wrapping difference.
    fn subtract_words(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// -1 where the sign bit is set, otherwise 0.
    fn sign_words(self, a: Self::Words) -> Self::Words;
    /// Bits of `float32` to integers in the same order, -0 below +0. `sign` is
    /// [`Self::sign_words`].
    fn key_words(self, a: Self::Words, sign: Self::Words) -> Self::Words;
    /// `float32` to `f64`.
    fn widen_floats(self, a: Self::Words) -> Self::Reals;
    /// `int32` to `f64`.
    fn widen_integers(self, a: Self::Words) -> Self::Reals;

    /// From sixteen rows of words, the first of each row, the second of each row, and so on.
    #[inline(always)]
    fn transpose_words(self, rows: [&[u8; 64]; LANES]) -> [Self::Words; LANES] {
        std::array::from_fn(|i| {
            self.words_from_array(&std::array::from_fn(|row| {
                i32::from_le_bytes(rows[row].as_chunks().0[i])
            }))
        })
    }
    /// From sixteen rows, the first of each row, the second of each row, and so on.
    fn transpose(self, rows: &[Self::Reals; LANES]) -> [Self::Reals; LANES];

    /// One halfword, thirty-two times.
    fn halves(self, value: i16) -> Self::Halves;
    /// The thirty-two halfwords.
    fn half_array(self, a: Self::Halves) -> [i16; 2 * LANES];
    /// Loads halfwords.
    fn load_halves(self, bytes: &[u8; 64]) -> Self::Halves;
    /// Loads signed bytes.
    fn load_signed_bytes(self, bytes: &[u8; 32]) -> Self::Halves;
    /// Loads unsigned bytes.
    fn load_unsigned_bytes(self, bytes: &[u8; 32]) -> Self::Halves;
    /// Bitwise and.
    fn and_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves;
    /// Bitwise exclusive or.
    fn xor_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves;
    /// Smaller of signed halfwords.
    fn min_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves;
    /// Larger of signed halfwords.
    fn max_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves;
    /// `a[0] * b[0] + a[1] * b[1]` and so on, wrapping.
    fn dot_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Words;
    /// Words shifted right by 16 bits, with zeros.
    fn upper_halves(self, a: Self::Words) -> Self::Words;

    /// Number of halfwords that equal `value`.
    fn count_equal_halves(self, a: Self::Halves, value: i16) -> u32;
    /// Number of signed halfwords that are below `value`.
    fn count_below_halves(self, a: Self::Halves, value: i16) -> u32;
    /// Number of words that equal `value`.
    fn count_equal_words(self, a: Self::Words, value: i32) -> u32;
    /// Number of signed words that are below `value`.
    fn count_below_words(self, a: Self::Words, value: i32) -> u32;
    /// Number of words that equal `value`.
    fn count_equal_longs(self, a: Self::Longs, value: i64) -> u32;
    /// Number of signed words that are below `value`.
    fn count_below_longs(self, a: Self::Longs, value: i64) -> u32;

    /// One word, sixteen times.
    fn longs(self, value: i64) -> Self::Longs;
    /// The sixteen words.
    fn long_array(self, a: Self::Longs) -> [i64; LANES];
    /// Loads words.
    fn load_longs(self, bytes: &[u8; 128]) -> Self::Longs;
    /// Smaller of signed words.
    fn min_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs;
    /// Larger of signed words.
    fn max_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs;
    /// Bitwise and.
    fn and_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs;
    /// Bitwise exclusive or.
    fn xor_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs;
    /// Wrapping sum.
    fn add_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs;
    /// The second word, the first, the fourth, the third and so on.
    fn swap_longs(self, a: Self::Longs) -> Self::Longs;
    /// The lower half of each word times its upper half, both unsigned.
    fn multiply_word_halves(self, a: Self::Longs) -> Self::Longs;
    /// Wrapping difference.
    fn subtract_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs;
    /// -1 where the sign bit is set, otherwise 0.
    fn sign_longs(self, a: Self::Longs) -> Self::Longs;
    /// As [`Self::key_words`], for the bits of `f64`.
    fn key_longs(self, a: Self::Longs, sign: Self::Longs) -> Self::Longs;
    /// The bits of `f64` as numbers.
    fn reals_of(self, a: Self::Longs) -> Self::Reals;
}

/// Work that can be done on any machine.
pub(crate) trait LaneTask {
    /// The result of the task.
    type Output;
    /// Does it; to be marked `#[inline(always)]`.
    fn run<M: LaneMachine>(self, machine: M) -> Self::Output;
}

/// Whether a machine has instructions for lanes, instead of what every CPU has.
pub(crate) fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    if Avx512::detect().is_some() || Avx2::detect().is_some() {
        return true;
    }
    false
}

/// Does the work with the widest machine that the CPU has.
pub(crate) fn run<T: LaneTask>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(machine) = Avx512::detect() {
            // SAFETY: the CPU has these features, or there were no machine.
            return unsafe { run_avx512(machine, task) };
        }
        if let Some(machine) = Avx2::detect() {
            // SAFETY: as above.
            return unsafe { run_avx2(machine, task) };
        }
    }
    task.run(PortableMachine)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
)]
fn run_avx512<T: LaneTask>(machine: Avx512, task: T) -> T::Output {
    task.run(machine)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<T: LaneTask>(machine: Avx2, task: T) -> T::Output {
    task.run(machine)
}

/// Does the work once on every machine that the CPU has, for comparing them.
#[cfg(test)]
pub(crate) fn run_everywhere<T: LaneTask + Clone>(task: &T) -> Vec<T::Output> {
    let mut outputs = vec![task.clone().run(PortableMachine)];
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(machine) = Avx512::detect() {
            // SAFETY: the CPU has these features, or there were no machine.
            outputs.push(unsafe { run_avx512(machine, task.clone()) });
        }
        if let Some(machine) = Avx2::detect() {
            // SAFETY: as above.
            outputs.push(unsafe { run_avx2(machine, task.clone()) });
        }
    }
    outputs
}
