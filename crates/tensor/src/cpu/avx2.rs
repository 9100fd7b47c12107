//! Sixteen lanes in AVX2 registers.
//!
//! Unsafe because intrinsics need the CPU to have them: a machine exists only where it does.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{LANES, LaneMachine};

/// Proof that the CPU has AVX2, fused multiplication and conversion of `float16`.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The machine, if the CPU has it.
    #[inline]
    pub(crate) fn detect() -> Option<Avx2> {
        let has_all = has_features!("avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "popcnt");
        has_all.then_some(Avx2(()))
    }
}

impl LaneMachine for Avx2 {
    type Reals = [__m256d; 4];
    type Words = [__m256i; 2];
    type Longs = [__m256i; 4];
    type Halves = [__m256i; 2];

    array_methods!();

    lane_methods! { Reals:
        reals() = on_machine!([_mm256_setzero_pd(); 4]);
        add(a, b) = registers!(4, I => _mm256_add_pd(a[I], b[I]));
        subtract(a, b) = registers!(4, I => _mm256_sub_pd(a[I], b[I]));
        multiply(a, b) = registers!(4, I => _mm256_mul_pd(a[I], b[I]));
        min_reals(a, b) = registers!(4, I => _mm256_min_pd(a[I], b[I]));
        max_reals(a, b) = registers!(4, I => _mm256_max_pd(a[I], b[I]));
        magnitude(a) =
            registers!(4, I => _mm256_and_pd(a[I], _mm256_castsi256_pd(_mm256_set1_epi64x(i64::MAX))));
        add_exact_square(sum, a) = registers!(4, I => _mm256_fmadd_pd(a[I], a[I], sum[I]));
    }
    lane_methods! { Words:
        min_words(a, b) = registers!(2, I => _mm256_min_epi32(a[I], b[I]));
        max_words(a, b) = registers!(2, I => _mm256_max_epi32(a[I], b[I]));
        and_words(a, b) = registers!(2, I => _mm256_and_si256(a[I], b[I]));
        subtract_words(a, b) = registers!(2, I => _mm256_sub_epi32(a[I], b[I]));
        or_words(a, b) = registers!(2, I => _mm256_or_si256(a[I], b[I]));
        xor_words(a, b) = registers!(2, I => _mm256_xor_si256(a[I], b[I]));
        add_words(a, b) = registers!(2, I => _mm256_add_epi32(a[I], b[I]));
        sign_words(a) = registers!(2, I => _mm256_srai_epi32::<31>(a[I]));
        key_words(a, sign) =
            registers!(2, I => _mm256_xor_si256(a[I], _mm256_and_si256(sign[I], _mm256_set1_epi32(i32::MAX))));
        upper_halves(a) = registers!(2, I => _mm256_srli_epi32::<16>(a[I]));
    }
    lane_methods! { Longs:
        // AVX2 has neither minimum nor maximum of 64-bit integers, so a comparison chooses.
        min_longs(a, b) =
            registers!(4, I => _mm256_blendv_epi8(a[I], b[I], _mm256_cmpgt_epi64(a[I], b[I])));
        max_longs(a, b) =
            registers!(4, I => _mm256_blendv_epi8(b[I], a[I], _mm256_cmpgt_epi64(a[I], b[I])));
        and_longs(a, b) = registers!(4, I => _mm256_and_si256(a[I], b[I]));
        xor_longs(a, b) = registers!(4, I => _mm256_xor_si256(a[I], b[I]));
        add_longs(a, b) = registers!(4, I => _mm256_add_epi64(a[I], b[I]));
        swap_longs(a) = registers!(4, I => _mm256_shuffle_epi32::<0b01_00_11_10>(a[I]));
        multiply_word_halves(a) =
            registers!(4, I => _mm256_mul_epu32(a[I], _mm256_srli_epi64::<32>(a[I])));
        subtract_longs(a, b) = registers!(4, I => _mm256_sub_epi64(a[I], b[I]));
        // AVX2 has no arithmetic shift of 64-bit integers, so a comparison with zero spreads the
        // sign.
        sign_longs(a) = registers!(4, I => _mm256_cmpgt_epi64(_mm256_setzero_si256(), a[I]));
        key_longs(a, sign) =
            registers!(4, I => _mm256_xor_si256(a[I], _mm256_and_si256(sign[I], _mm256_set1_epi64x(i64::MAX))));
    }
    lane_methods! { Halves:
        and_halves(a, b) = registers!(2, I => _mm256_and_si256(a[I], b[I]));
        xor_halves(a, b) = registers!(2, I => _mm256_xor_si256(a[I], b[I]));
        min_halves(a, b) = registers!(2, I => _mm256_min_epi16(a[I], b[I]));
        max_halves(a, b) = registers!(2, I => _mm256_max_epi16(a[I], b[I]));
    }
    lane_methods! {
        splat(value: f64) -> Self::Reals = on_machine!([_mm256_set1_pd(value); 4]);
        words(value: i32) -> Self::Words = on_machine!([_mm256_set1_epi32(value); 2]);
        load_words(bytes: &[u8; 64]) -> Self::Words =
            registers!(2, I => _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I)));
        load_upper_halves(bytes: &[u8; 32]) -> Self::Words =
            registers!(2, I => _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(bytes.as_ptr().cast::<__m128i>().add(I)))));
        load_float16(bytes: &[u8; 32]) -> Self::Words =
            registers!(2, I => _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128(bytes.as_ptr().cast::<__m128i>().add(I)))));
        // AVX2 has no rotation.
        rotate_words(a: Self::Words, n: i32) -> Self::Words =
            registers!(2, I => _mm256_or_si256(_mm256_sllv_epi32(a[I], _mm256_set1_epi32(n)), _mm256_srlv_epi32(a[I], _mm256_set1_epi32(32 - n))));
        longs(value: i64) -> Self::Longs = on_machine!([_mm256_set1_epi64x(value); 4]);
        load_longs(bytes: &[u8; 128]) -> Self::Longs =
            registers!(4, I => _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I)));
        reals_of(a: Self::Longs) -> Self::Reals = registers!(4, I => _mm256_castsi256_pd(a[I]));
        halves(value: i16) -> Self::Halves = on_machine!([_mm256_set1_epi16(value); 2]);
        load_halves(bytes: &[u8; 64]) -> Self::Halves =
            registers!(2, I => _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I)));
        load_signed_bytes(bytes: &[u8; 32]) -> Self::Halves =
            registers!(2, I => _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes.as_ptr().cast::<__m128i>().add(I))));
        load_unsigned_bytes(bytes: &[u8; 32]) -> Self::Halves =
            registers!(2, I => _mm256_cvtepu8_epi16(_mm_loadu_si128(bytes.as_ptr().cast::<__m128i>().add(I))));
        dot_halves(a: Self::Halves, b: Self::Halves) -> Self::Words =
            registers!(2, I => _mm256_madd_epi16(a[I], b[I]));
        count_equal_halves(a: Self::Halves, value: i16) -> u32 =
            registers!(2, I => _mm256_movemask_epi8(_mm256_cmpeq_epi16(a[I], _mm256_set1_epi16(value))).count_ones() / 2).iter().sum();
        count_below_halves(a: Self::Halves, value: i16) -> u32 =
            registers!(2, I => _mm256_movemask_epi8(_mm256_cmpgt_epi16(_mm256_set1_epi16(value), a[I])).count_ones() / 2).iter().sum();
        count_equal_words(a: Self::Words, value: i32) -> u32 =
            registers!(2, I => _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a[I], _mm256_set1_epi32(value)))).count_ones()).iter().sum();
        count_below_words(a: Self::Words, value: i32) -> u32 =
            registers!(2, I => _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(value), a[I]))).count_ones()).iter().sum();
        count_equal_longs(a: Self::Longs, value: i64) -> u32 =
            registers!(4, I => _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(a[I], _mm256_set1_epi64x(value)))).count_ones()).iter().sum();
        count_below_longs(a: Self::Longs, value: i64) -> u32 =
            registers!(4, I => _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_set1_epi64x(value), a[I]))).count_ones()).iter().sum();
    }

    #[inline(always)]
    fn widen_floats(self, [a, b]: Self::Words) -> Self::Reals {
        on_machine!([
            _mm256_cvtps_pd(_mm_castsi128_ps(_mm256_castsi256_si128(a))),
            _mm256_cvtps_pd(_mm_castsi128_ps(_mm256_extracti128_si256::<1>(a))),
            _mm256_cvtps_pd(_mm_castsi128_ps(_mm256_castsi256_si128(b))),
            _mm256_cvtps_pd(_mm_castsi128_ps(_mm256_extracti128_si256::<1>(b))),
        ])
    }
    #[inline(always)]
    fn widen_integers(self, [a, b]: Self::Words) -> Self::Reals {
        on_machine!([
            _mm256_cvtepi32_pd(_mm256_castsi256_si128(a)),
            _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(a)),
            _mm256_cvtepi32_pd(_mm256_castsi256_si128(b)),
            _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(b)),
        ])
    }
    #[inline(always)]
    fn transpose_words(self, rows: [&[u8; 64]; LANES]) -> [Self::Words; LANES] {
        let mut columns = [self.words(0); LANES];
        for (half, rows) in rows.as_chunks::<8>().0.iter().enumerate() {
            for side in 0..2 {
                // By four rows, their columns of each place within four.
                let mut fours = [[self.words(0)[0]; 4]; 2];
                for (four, rows) in fours.iter_mut().zip(rows.as_chunks::<4>().0) {
                    let a = self.load_words(rows[0])[side];
                    let b = self.load_words(rows[1])[side];
                    let c = self.load_words(rows[2])[side];
                    let d = self.load_words(rows[3])[side];
                    *four = on_machine!({
                        let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
                        let (ef, gh) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
                        [
                            _mm256_unpacklo_epi64(ab, cd),
                            _mm256_unpackhi_epi64(ab, cd),
                            _mm256_unpacklo_epi64(ef, gh),
                            _mm256_unpackhi_epi64(ef, gh),
                        ]
                    });
                }
                for i in 0..4 {
                    let (a, b) = (fours[0][i], fours[1][i]);
                    let [first, second] = on_machine!([
                        _mm256_permute2x128_si256::<0x20>(a, b),
                        _mm256_permute2x128_si256::<0x31>(a, b),
                    ]);
                    columns[8 * side + i][half] = first;
                    columns[8 * side + i + 4][half] = second;
                }
            }
        }
        columns
    }
    #[inline(always)]
    fn transpose(self, rows: &[Self::Reals; LANES]) -> [Self::Reals; LANES] {
        let mut columns = [self.reals(); LANES];
        for (quarter, [a, b, c, d]) in rows.as_chunks::<4>().0.iter().enumerate() {
            for (side, columns) in columns.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                // Of two rows, the even or the odd columns side by side.
                let [p, q, r, s] = on_machine!([
                    _mm256_unpacklo_pd(a[side], b[side]),
                    _mm256_unpackhi_pd(a[side], b[side]),
                    _mm256_unpacklo_pd(c[side], d[side]),
                    _mm256_unpackhi_pd(c[side], d[side]),
                ]);
                columns[0][quarter] = on_machine!(_mm256_permute2f128_pd::<0x20>(p, r));
                columns[1][quarter] = on_machine!(_mm256_permute2f128_pd::<0x20>(q, s));
                columns[2][quarter] = on_machine!(_mm256_permute2f128_pd::<0x31>(p, r));
                columns[3][quarter] = on_machine!(_mm256_permute2f128_pd::<0x31>(q, s));
            }
        }
        columns
    }
}
