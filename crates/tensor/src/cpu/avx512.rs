//! Sixteen lanes in AVX-512 registers.
//!
//! Unsafe because intrinsics need the CPU to have them: a machine exists only where it does.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{LANES, LaneMachine};

/// Proof that the CPU has AVX-512 with the extensions for bytes, doublewords and shorter
/// vectors.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The machine, if the CPU has it.
    #[inline]
    pub(crate) fn detect() -> Option<Avx512> {
        let has_all = has_features!(
            "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "bmi1", "bmi2",
            "lzcnt", "popcnt"
        );
        has_all.then_some(Avx512(()))
    }
}

impl LaneMachine for Avx512 {
    type Reals = [__m512d; 2];
    type Words = [__m512i; 1];
    type Longs = [__m512i; 2];
    type Halves = [__m512i; 1];

    array_methods!();

    #[inline(always)]
    fn reals(self) -> Self::Reals {
        on_machine!([_mm512_setzero_pd(); 2])
    }
    #[inline(always)]
    fn splat(self, value: f64) -> Self::Reals {
        on_machine!([_mm512_set1_pd(value); 2])
    }
    #[inline(always)]
    fn add(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        registers!(2, I => _mm512_add_pd(a[I], b[I]))
    }
    #[inline(always)]
    fn subtract(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        registers!(2, I => _mm512_sub_pd(a[I], b[I]))
    }
    #[inline(always)]
    fn multiply(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        registers!(2, I => _mm512_mul_pd(a[I], b[I]))
    }
    #[inline(always)]
    fn min_reals(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        registers!(2, I => _mm512_min_pd(a[I], b[I]))
    }
    #[inline(always)]
    fn max_reals(self, a: Self::Reals, b: Self::Reals) -> Self::Reals {
        registers!(2, I => _mm512_max_pd(a[I], b[I]))
    }
    #[inline(always)]
    fn magnitude(self, a: Self::Reals) -> Self::Reals {
        registers!(2, I => _mm512_abs_pd(a[I]))
    }
    #[inline(always)]
    fn add_exact_square(self, sum: Self::Reals, a: Self::Reals) -> Self::Reals {
        registers!(2, I => _mm512_fmadd_pd(a[I], a[I], sum[I]))
    }

    #[inline(always)]
    fn words(self, value: i32) -> Self::Words {
        on_machine!([_mm512_set1_epi32(value); 1])
    }
    #[inline(always)]
    fn load_words(self, bytes: &[u8; 64]) -> Self::Words {
        registers!(1, I => _mm512_loadu_si512(bytes.as_ptr().cast::<__m512i>().add(I)))
    }
    #[inline(always)]
    fn load_upper_halves(self, bytes: &[u8; 32]) -> Self::Words {
        registers!(1, I => _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I)))))
    }
    #[inline(always)]
    fn load_float16(self, bytes: &[u8; 32]) -> Self::Words {
        registers!(1, I => _mm512_castps_si512(_mm512_cvtph_ps(_mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I)))))
    }
    #[inline(always)]
    fn min_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_min_epi32(a[I], b[I]))
    }
    #[inline(always)]
    fn max_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_max_epi32(a[I], b[I]))
    }
    #[inline(always)]
    fn and_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_and_si512(a[I], b[I]))
    }
    #[inline(always)]
    fn subtract_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_sub_epi32(a[I], b[I]))
    }
    #[inline(always)]
    fn or_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_or_si512(a[I], b[I]))
    }
    #[inline(always)]
    fn xor_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_xor_si512(a[I], b[I]))
    }
    #[inline(always)]
    fn add_words(self, a: Self::Words, b: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_add_epi32(a[I], b[I]))
    }
    #[inline(always)]
    fn settle_words(self, a: Self::Words) -> Self::Words {
        std::hint::black_box(a)
    }
    #[inline(always)]
    fn rotate_words(self, a: Self::Words, n: i32) -> Self::Words {
        registers!(1, I => _mm512_rolv_epi32(a[I], _mm512_set1_epi32(n)))
    }
    #[inline(always)]
    fn sign_words(self, a: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_srai_epi32::<31>(a[I]))
    }
    #[inline(always)]
    fn key_words(self, a: Self::Words, sign: Self::Words) -> Self::Words {
        // 0x78 is the truth table of `a ^ (sign & MAX)`, which other machines compute in two steps.
        registers!(1, I => _mm512_ternarylogic_epi32::<0x78>(a[I], sign[I], _mm512_set1_epi32(i32::MAX)))
    }
    #[inline(always)]
    fn widen_floats(self, [a]: Self::Words) -> Self::Reals {
        on_machine!([
            _mm512_cvtps_pd(_mm256_castsi256_ps(_mm512_castsi512_si256(a))),
            _mm512_cvtps_pd(_mm256_castsi256_ps(_mm512_extracti64x4_epi64::<1>(a))),
        ])
    }
    #[inline(always)]
    fn widen_integers(self, [a]: Self::Words) -> Self::Reals {
        on_machine!([
            _mm512_cvtepi32_pd(_mm512_castsi512_si256(a)),
            _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64::<1>(a)),
        ])
    }

    #[inline(always)]
    fn longs(self, value: i64) -> Self::Longs {
        on_machine!([_mm512_set1_epi64(value); 2])
    }
    #[inline(always)]
    fn load_longs(self, bytes: &[u8; 128]) -> Self::Longs {
        registers!(2, I => _mm512_loadu_si512(bytes.as_ptr().cast::<__m512i>().add(I)))
    }
    #[inline(always)]
    fn min_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_min_epi64(a[I], b[I]))
    }
    #[inline(always)]
    fn max_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_max_epi64(a[I], b[I]))
    }
    #[inline(always)]
    fn and_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_and_si512(a[I], b[I]))
    }
    #[inline(always)]
    fn xor_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_xor_si512(a[I], b[I]))
    }
    #[inline(always)]
    fn add_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_add_epi64(a[I], b[I]))
    }
    #[inline(always)]
    fn swap_longs(self, a: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_shuffle_epi32::<0b01_00_11_10>(a[I]))
    }
    #[inline(always)]
    fn multiply_word_halves(self, a: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_mul_epu32(a[I], _mm512_srli_epi64::<32>(a[I])))
    }
    #[inline(always)]
    fn subtract_longs(self, a: Self::Longs, b: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_sub_epi64(a[I], b[I]))
    }
    #[inline(always)]
    fn sign_longs(self, a: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_srai_epi64::<63>(a[I]))
    }
    #[inline(always)]
    fn key_longs(self, a: Self::Longs, sign: Self::Longs) -> Self::Longs {
        registers!(2, I => _mm512_ternarylogic_epi64::<0x78>(a[I], sign[I], _mm512_set1_epi64(i64::MAX)))
    }
    #[inline(always)]
    fn reals_of(self, a: Self::Longs) -> Self::Reals {
        registers!(2, I => _mm512_castsi512_pd(a[I]))
    }

    #[inline(always)]
    fn halves(self, value: i16) -> Self::Halves {
        on_machine!([_mm512_set1_epi16(value); 1])
    }
    #[inline(always)]
    fn load_halves(self, bytes: &[u8; 64]) -> Self::Halves {
        registers!(1, I => _mm512_loadu_si512(bytes.as_ptr().cast::<__m512i>().add(I)))
    }
    #[inline(always)]
    fn load_signed_bytes(self, bytes: &[u8; 32]) -> Self::Halves {
        registers!(1, I => _mm512_cvtepi8_epi16(_mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I))))
    }
    #[inline(always)]
    fn load_unsigned_bytes(self, bytes: &[u8; 32]) -> Self::Halves {
        registers!(1, I => _mm512_cvtepu8_epi16(_mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I))))
    }
    #[inline(always)]
    fn and_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves {
        registers!(1, I => _mm512_and_si512(a[I], b[I]))
    }
    #[inline(always)]
    fn xor_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves {
        registers!(1, I => _mm512_xor_si512(a[I], b[I]))
    }
    #[inline(always)]
    fn min_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves {
        registers!(1, I => _mm512_min_epi16(a[I], b[I]))
    }
    #[inline(always)]
    fn max_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Halves {
        registers!(1, I => _mm512_max_epi16(a[I], b[I]))
    }
    #[inline(always)]
    fn dot_halves(self, a: Self::Halves, b: Self::Halves) -> Self::Words {
        registers!(1, I => _mm512_madd_epi16(a[I], b[I]))
    }
    #[inline(always)]
    fn upper_halves(self, a: Self::Words) -> Self::Words {
        registers!(1, I => _mm512_srli_epi32::<16>(a[I]))
    }
    #[inline(always)]
    fn count_equal_halves(self, a: Self::Halves, value: i16) -> u32 {
        on_machine!(_mm512_cmpeq_epi16_mask(a[0], _mm512_set1_epi16(value)).count_ones())
    }
    #[inline(always)]
    fn count_below_halves(self, a: Self::Halves, value: i16) -> u32 {
        on_machine!(_mm512_cmplt_epi16_mask(a[0], _mm512_set1_epi16(value)).count_ones())
    }
    #[inline(always)]
    fn count_equal_words(self, a: Self::Words, value: i32) -> u32 {
        on_machine!(_mm512_cmpeq_epi32_mask(a[0], _mm512_set1_epi32(value)).count_ones())
    }
    #[inline(always)]
    fn count_below_words(self, a: Self::Words, value: i32) -> u32 {
        on_machine!(_mm512_cmplt_epi32_mask(a[0], _mm512_set1_epi32(value)).count_ones())
    }
    #[inline(always)]
    fn count_equal_longs(self, a: Self::Longs, value: i64) -> u32 {
        on_machine!(
            _mm512_cmpeq_epi64_mask(a[0], _mm512_set1_epi64(value)).count_ones()
                + _mm512_cmpeq_epi64_mask(a[1], _mm512_set1_epi64(value)).count_ones()
        )
    }
    #[inline(always)]
    fn count_below_longs(self, a: Self::Longs, value: i64) -> u32 {
        on_machine!(
            _mm512_cmplt_epi64_mask(a[0], _mm512_set1_epi64(value)).count_ones()
                + _mm512_cmplt_epi64_mask(a[1], _mm512_set1_epi64(value)).count_ones()
        )
    }
    #[inline(always)]
    fn transpose_words(self, rows: [&[u8; 64]; LANES]) -> [Self::Words; LANES] {
        let mut columns = [self.words(0); LANES];
        // By four rows, their columns of each place within four.
        let mut fours = [[self.words(0)[0]; 4]; 4];
        for (four, rows) in fours.iter_mut().zip(rows.as_chunks::<4>().0) {
            let ([a], [b]) = (self.load_words(rows[0]), self.load_words(rows[1]));
            let ([c], [d]) = (self.load_words(rows[2]), self.load_words(rows[3]));
            *four = on_machine!({
                let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
                let (ef, gh) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
                [
                    _mm512_unpacklo_epi64(ab, cd),
                    _mm512_unpackhi_epi64(ab, cd),
                    _mm512_unpacklo_epi64(ef, gh),
                    _mm512_unpackhi_epi64(ef, gh),
                ]
            });
        }
        let [p, q, r, s] = fours;
        for i in 0..4 {
            // Quarters of the registers, transposed.
            let [a, b, c, d] = on_machine!([
                _mm512_shuffle_i32x4::<0x44>(p[i], q[i]),
                _mm512_shuffle_i32x4::<0x44>(r[i], s[i]),
                _mm512_shuffle_i32x4::<0xee>(p[i], q[i]),
                _mm512_shuffle_i32x4::<0xee>(r[i], s[i]),
            ]);
            columns[i] = on_machine!([_mm512_shuffle_i32x4::<0x88>(a, b)]);
            columns[i + 4] = on_machine!([_mm512_shuffle_i32x4::<0xdd>(a, b)]);
            columns[i + 8] = on_machine!([_mm512_shuffle_i32x4::<0x88>(c, d)]);
            columns[i + 12] = on_machine!([_mm512_shuffle_i32x4::<0xdd>(c, d)]);
        }
        columns
    }
    #[inline(always)]
    fn transpose(self, rows: &[Self::Reals; LANES]) -> [Self::Reals; LANES] {
        let mut columns = [self.reals(); LANES];
        for (half, rows) in rows.as_chunks::<8>().0.iter().enumerate() {
            for (side, columns) in columns.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                for parity in 0..2 {
                    // Of two rows, the even or the odd columns side by side.
                    let mut pairs = [on_machine!(_mm512_setzero_pd()); 4];
                    for (pair, rows) in pairs.iter_mut().zip(rows.as_chunks::<2>().0) {
                        let (a, b) = (rows[0][side], rows[1][side]);
                        *pair = if parity == 0 {
                            on_machine!(_mm512_unpacklo_pd(a, b))
                        } else {
                            on_machine!(_mm512_unpackhi_pd(a, b))
                        };
                    }
                    let [p, q, r, s] = pairs;
                    // Quarters of the registers, transposed.
                    let [a, b, c, d] = on_machine!([
                        _mm512_shuffle_f64x2::<0x44>(p, q),
                        _mm512_shuffle_f64x2::<0x44>(r, s),
                        _mm512_shuffle_f64x2::<0xee>(p, q),
                        _mm512_shuffle_f64x2::<0xee>(r, s),
                    ]);
                    columns[parity][half] = on_machine!(_mm512_shuffle_f64x2::<0x88>(a, b));
                    columns[parity + 2][half] = on_machine!(_mm512_shuffle_f64x2::<0xdd>(a, b));
                    columns[parity + 4][half] = on_machine!(_mm512_shuffle_f64x2::<0x88>(c, d));
                    columns[parity + 6][half] = on_machine!(_mm512_shuffle_f64x2::<0xdd>(c, d));
                }
            }
        }
        columns
    }
}
