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

    lane_methods! { Reals:
        reals() = on_machine!([_mm512_setzero_pd(); 2]);
        add(a, b) = registers!(2, I => _mm512_add_pd(a[I], b[I]));
        subtract(a, b) = registers!(2, I => _mm512_sub_pd(a[I], b[I]));
        multiply(a, b) = registers!(2, I => _mm512_mul_pd(a[I], b[I]));
        min_reals(a, b) = registers!(2, I => _mm512_min_pd(a[I], b[I]));
        max_reals(a, b) = registers!(2, I => _mm512_max_pd(a[I], b[I]));
        magnitude(a) = registers!(2, I => _mm512_abs_pd(a[I]));
        add_exact_square(sum, a) = registers!(2, I => _mm512_fmadd_pd(a[I], a[I], sum[I]));
    }
    lane_methods! { Words:
        min_words(a, b) = registers!(1, I => _mm512_min_epi32(a[I], b[I]));
        max_words(a, b) = registers!(1, I => _mm512_max_epi32(a[I], b[I]));
        and_words(a, b) = registers!(1, I => _mm512_and_si512(a[I], b[I]));
        subtract_words(a, b) = registers!(1, I => _mm512_sub_epi32(a[I], b[I]));
        or_words(a, b) = registers!(1, I => _mm512_or_si512(a[I], b[I]));
        xor_words(a, b) = registers!(1, I => _mm512_xor_si512(a[I], b[I]));
        add_words(a, b) = registers!(1, I => _mm512_add_epi32(a[I], b[I]));
        settle_words(a) = std::hint::black_box(a);
        sign_words(a) = registers!(1, I => _mm512_srai_epi32::<31>(a[I]));
        // 0x78 is the truth table of `a ^ (sign & MAX)`, which other machines compute in two steps.
        key_words(a, sign) =
            registers!(1, I => _mm512_ternarylogic_epi32::<0x78>(a[I], sign[I], _mm512_set1_epi32(i32::MAX)));
        upper_halves(a) = registers!(1, I => _mm512_srli_epi32::<16>(a[I]));
    }
    lane_methods! { Longs:
        min_longs(a, b) = registers!(2, I => _mm512_min_epi64(a[I], b[I]));
        max_longs(a, b) = registers!(2, I => _mm512_max_epi64(a[I], b[I]));
        and_longs(a, b) = registers!(2, I => _mm512_and_si512(a[I], b[I]));
        xor_longs(a, b) = registers!(2, I => _mm512_xor_si512(a[I], b[I]));
        add_longs(a, b) = registers!(2, I => _mm512_add_epi64(a[I], b[I]));
        swap_longs(a) = registers!(2, I => _mm512_shuffle_epi32::<0b01_00_11_10>(a[I]));
        multiply_word_halves(a) =
            registers!(2, I => _mm512_mul_epu32(a[I], _mm512_srli_epi64::<32>(a[I])));
        subtract_longs(a, b) = registers!(2, I => _mm512_sub_epi64(a[I], b[I]));
        sign_longs(a) = registers!(2, I => _mm512_srai_epi64::<63>(a[I]));
        key_longs(a, sign) =
            registers!(2, I => _mm512_ternarylogic_epi64::<0x78>(a[I], sign[I], _mm512_set1_epi64(i64::MAX)));
    }
    lane_methods! { Halves:
        and_halves(a, b) = registers!(1, I => _mm512_and_si512(a[I], b[I]));
        xor_halves(a, b) = registers!(1, I => _mm512_xor_si512(a[I], b[I]));
        min_halves(a, b) = registers!(1, I => _mm512_min_epi16(a[I], b[I]));
        max_halves(a, b) = registers!(1, I => _mm512_max_epi16(a[I], b[I]));
    }
    lane_methods! {
        splat(value: f64) -> Self::Reals = on_machine!([_mm512_set1_pd(value); 2]);
        words(value: i32) -> Self::Words = on_machine!([_mm512_set1_epi32(value); 1]);
        load_words(bytes: &[u8; 64]) -> Self::Words =
            registers!(1, I => _mm512_loadu_si512(bytes.as_ptr().cast::<__m512i>().add(I)));
        load_upper_halves(bytes: &[u8; 32]) -> Self::Words =
            registers!(1, I => _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I)))));
        load_float16(bytes: &[u8; 32]) -> Self::Words =
            registers!(1, I => _mm512_castps_si512(_mm512_cvtph_ps(_mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I)))));
        rotate_words(a: Self::Words, n: i32) -> Self::Words =
            registers!(1, I => _mm512_rolv_epi32(a[I], _mm512_set1_epi32(n)));
        longs(value: i64) -> Self::Longs = on_machine!([_mm512_set1_epi64(value); 2]);
        load_longs(bytes: &[u8; 128]) -> Self::Longs =
            registers!(2, I => _mm512_loadu_si512(bytes.as_ptr().cast::<__m512i>().add(I)));
        reals_of(a: Self::Longs) -> Self::Reals = registers!(2, I => _mm512_castsi512_pd(a[I]));
        halves(value: i16) -> Self::Halves = on_machine!([_mm512_set1_epi16(value); 1]);
        load_halves(bytes: &[u8; 64]) -> Self::Halves =
            registers!(1, I => _mm512_loadu_si512(bytes.as_ptr().cast::<__m512i>().add(I)));
        load_signed_bytes(bytes: &[u8; 32]) -> Self::Halves =
            registers!(1, I => _mm512_cvtepi8_epi16(_mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I))));
        load_unsigned_bytes(bytes: &[u8; 32]) -> Self::Halves =
            registers!(1, I => _mm512_cvtepu8_epi16(_mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(I))));
        dot_halves(a: Self::Halves, b: Self::Halves) -> Self::Words =
            registers!(1, I => _mm512_madd_epi16(a[I], b[I]));
        count_equal_halves(a: Self::Halves, value: i16) -> u32 =
            registers!(1, I => _mm512_cmpeq_epi16_mask(a[I], _mm512_set1_epi16(value)).count_ones()).iter().sum();
        count_below_halves(a: Self::Halves, value: i16) -> u32 =
            registers!(1, I => _mm512_cmplt_epi16_mask(a[I], _mm512_set1_epi16(value)).count_ones()).iter().sum();
        count_equal_words(a: Self::Words, value: i32) -> u32 =
            registers!(1, I => _mm512_cmpeq_epi32_mask(a[I], _mm512_set1_epi32(value)).count_ones()).iter().sum();
        count_below_words(a: Self::Words, value: i32) -> u32 =
            registers!(1, I => _mm512_cmplt_epi32_mask(a[I], _mm512_set1_epi32(value)).count_ones()).iter().sum();
        count_equal_longs(a: Self::Longs, value: i64) -> u32 =
            registers!(2, I => _mm512_cmpeq_epi64_mask(a[I], _mm512_set1_epi64(value)).count_ones()).iter().sum();
        count_below_longs(a: Self::Longs, value: i64) -> u32 =
            registers!(2, I => _mm512_cmplt_epi64_mask(a[I], _mm512_set1_epi64(value)).count_ones()).iter().sum();
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
