//! One table for each narrow dtype: the decoded elements of a packed byte.

use super::minifloat::{MiniFloat, e8m0_bytes};

/// The bytes that each of the 256 values of a byte expands to.
pub(super) type Table<const N: usize> = [[u8; N]; 256];

pub(super) static E5M2: Table<2> = f16_table(MiniFloat::E5M2);
pub(super) static E4M3FN: Table<2> = f16_table(MiniFloat::E4M3FN);
pub(super) static E4M3FNUZ: Table<2> = f16_table(MiniFloat::E4M3FNUZ);
pub(super) static E5M2FNUZ: Table<2> = f16_table(MiniFloat::E5M2FNUZ);
pub(super) static HIF8: Table<2> = f16_table(MiniFloat::HiF8);
pub(super) static E8M0: Table<4> = {
    let mut table = [[0; 4]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = e8m0_bytes(byte as u8);
        byte += 1;
    }
    table
};
/// Six bits: only the first 64 entries have a meaning.
pub(super) static E3M2: [[u8; 2]; 64] = six_bit_table(MiniFloat::E3M2);
/// Six bits, as [`E3M2`].
pub(super) static E2M3: [[u8; 2]; 64] = six_bit_table(MiniFloat::E2M3);
pub(super) static E2M1: Table<4> = f16_pair_table(MiniFloat::E2M1);
pub(super) static E1M2: Table<4> = f16_pair_table(MiniFloat::E1M2);
pub(super) static I4: Table<2> = bit_field_table::<2>(true, false);
pub(super) static U4: Table<2> = bit_field_table::<2>(false, false);
pub(super) static I2: Table<4> = bit_field_table::<4>(true, false);
pub(super) static U2: Table<4> = bit_field_table::<4>(false, false);
pub(super) static U1: Table<8> = bit_field_table::<8>(false, true);

/// Replaces every byte by its entry and cuts the result to `n_bytes`.
pub(super) fn expand<const N: usize>(bytes: &[u8], table: &Table<N>, n_bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes.len() * N];
    for (to, &from) in out.as_chunks_mut::<N>().0.iter_mut().zip(bytes) {
        *to = table[usize::from(from)];
    }
    out.truncate(n_bytes);
    out
}

/// Expands a stream of six-bit codes, least significant bit first: four codes in three bytes.
pub(super) fn expand_six_bits(bytes: &[u8], table: &[[u8; 2]; 64], n_bytes: usize) -> Vec<u8> {
    // Room for whole groups, so that a short last one needs no separate loop.
    let mut out = vec![0; bytes.len().div_ceil(3) * 8];
    for (to, from) in out.as_chunks_mut::<8>().0.iter_mut().zip(bytes.chunks(3)) {
        let mut word = [0; 4];
        word[..from.len()].copy_from_slice(from);
        let word = u32::from_le_bytes(word);
        for (i, element) in to.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            *element = table[(word >> (6 * i)) as usize & 0x3f];
        }
    }
    out.truncate(n_bytes);
    out
}

const fn f16_table(format: MiniFloat) -> Table<2> {
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = format.f16_bytes(byte as u8);
        byte += 1;
    }
    table
}

const fn six_bit_table(format: MiniFloat) -> [[u8; 2]; 64] {
    let mut table = [[0; 2]; 64];
    let mut code = 0;
    while code < 64 {
        table[code] = format.f16_bytes(code as u8);
        code += 1;
    }
    table
}

const fn f16_pair_table(format: MiniFloat) -> Table<4> {
    let mut table = [[0; 4]; 256];
    let mut byte = 0;
    while byte < 256 {
        let [a, b] = format.f16_bytes(byte as u8 & 0xf);
        let [c, d] = format.f16_bytes(byte as u8 >> 4);
        table[byte] = [a, b, c, d];
        byte += 1;
    }
    table
}

/// `N` integers of `8 / N` bits in each byte.
const fn bit_field_table<const N: usize>(is_signed: bool, is_msb_first: bool) -> Table<N> {
    let n_bits = 8 / N;
    let mut table = [[0; N]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut i = 0;
        while i < N {
            let shift = n_bits * if is_msb_first { N - 1 - i } else { i };
            // Move the field to the top of the byte, then down again: that extends the sign.
            let top = ((byte >> shift) << (8 - n_bits)) as u8;
            table[byte][i] = if is_signed {
                (top as i8 >> (8 - n_bits)) as u8
            } else {
                top >> (8 - n_bits)
            };
            i += 1;
        }
        byte += 1;
    }
    table
}
