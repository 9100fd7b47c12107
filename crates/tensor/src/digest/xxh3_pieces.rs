//! XXH3 of long inputs, a piece of 1 KiB at a time.
//!
//! A library would read the bytes from memory by itself. Here a pass that reads the bytes for
//! another reason digests them on the way: the registers of both fit one core, and while one waits
//! for memory the other computes. The algorithm is that of xxHash 0.8, with its own secret and seed
//! 0.

use crate::cpu::{self, LaneMachine, LaneTask};
use crate::pieces::{PIECE_BYTES, PieceReader, read_pieces};

/// Bytes that are mixed at a time.
const STRIPE_BYTES: usize = 64;
/// Two stripes fill the lanes of a machine.
const PAIR_BYTES: usize = 2 * STRIPE_BYTES;
/// Inputs of no more bytes than this follow other rules.
const SHORT_MAX: usize = 240;

const PRIME32: [u64; 3] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d];
const PRIME64: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];
const PRIME_AVALANCHE: u64 = 0x1656_6791_9e37_79f9;

const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];
/// Where parts of the secret begin that scramble a piece, that the last stripe is mixed with, and
/// that the two halves of the result are.
const SCRAMBLE_AT: usize = 128;
const LAST_AT: usize = 121;
const LOW_AT: usize = 11;
const HIGH_AT: usize = 117;

/// The keys that pairs of stripes of a piece are mixed with: the secret from eight bytes further on
/// for each stripe.
const KEYS: [[u8; PAIR_BYTES]; PIECE_BYTES / PAIR_BYTES] = keys();

const fn keys() -> [[u8; PAIR_BYTES]; PIECE_BYTES / PAIR_BYTES] {
    let mut keys = [[0; PAIR_BYTES]; PIECE_BYTES / PAIR_BYTES];
    let mut i = 0;
    while i < PIECE_BYTES {
        let (stripe, byte) = (i / STRIPE_BYTES, i % STRIPE_BYTES);
        keys[i / PAIR_BYTES][i % PAIR_BYTES] = SECRET[8 * stripe + byte];
        i += 1;
    }
    keys
}

/// A digest whose pieces are taken in order, from the first one on.
pub(crate) struct Xxh3Pieces {
    sums: [u64; 8],
    n_taken: usize,
    /// The last piece is none of them, whole or not: its last stripe is mixed in another way.
    n_pieces: usize,
}

impl Xxh3Pieces {
    /// Begins the digest of an input of `n_bytes`; `None` if it is too short for pieces.
    pub(crate) fn new(n_bytes: usize) -> Option<Xxh3Pieces> {
        (n_bytes > SHORT_MAX).then(|| Xxh3Pieces {
            sums: [
                PRIME32[2], PRIME64[0], PRIME64[1], PRIME64[2], PRIME64[3], PRIME32[1], PRIME64[4],
                PRIME32[0],
            ],
            n_taken: 0,
            n_pieces: (n_bytes - 1) / PIECE_BYTES,
        })
    }

    /// The digest of `bytes`, the whole input, in the byte order in which it is written. It
    /// processes the pieces that are left.
    pub(crate) fn finish(mut self, bytes: &[u8]) -> [u8; 16] {
        let rest = &bytes[self.n_taken * PIECE_BYTES..];
        cpu::run(PiecesTask(&mut self, rest));
        let rest = &bytes[self.n_pieces * PIECE_BYTES..];
        let stripes = rest[..rest.len() - 1].as_chunks().0.iter();
        for (nth, stripe) in stripes.enumerate() {
            self.mix(stripe, 8 * nth);
        }
        if let Some(last) = bytes.last_chunk() {
            self.mix(last, LAST_AT);
        }
        let n_bytes = bytes.len() as u64;
        let low = self.merge(LOW_AT, n_bytes.wrapping_mul(PRIME64[0]));
        let high = self.merge(HIGH_AT, !n_bytes.wrapping_mul(PRIME64[1]));
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    /// Mixes one stripe with the secret from `at` on.
    fn mix(&mut self, stripe: &[u8; STRIPE_BYTES], at: usize) {
        for (i, word) in stripe.as_chunks().0.iter().enumerate() {
            let data = u64::from_le_bytes(*word);
            let key = data ^ secret_word(at + 8 * i);
            let neighbour = &mut self.sums[i ^ 1];
            *neighbour = neighbour.wrapping_add(data);
            let product = (key & 0xffff_ffff) * (key >> 32);
            self.sums[i] = self.sums[i].wrapping_add(product);
        }
    }

    /// Half of the result.
    fn merge(&self, at: usize, start: u64) -> u64 {
        let mut merged = start;
        for (i, [a, b]) in self.sums.as_chunks().0.iter().enumerate() {
            let (a, b) = (
                a ^ secret_word(at + 16 * i),
                b ^ secret_word(at + 16 * i + 8),
            );
            let product = u128::from(a) * u128::from(b);
            merged = merged.wrapping_add(product as u64 ^ (product >> 64) as u64);
        }
        merged ^= merged >> 37;
        merged = merged.wrapping_mul(PRIME_AVALANCHE);
        merged ^ merged >> 32
    }
}

impl PieceReader for Xxh3Pieces {
    #[inline(always)]
    fn take<M: LaneMachine>(&mut self, m: M, piece: &[u8; PIECE_BYTES]) {
        if self.n_taken == self.n_pieces {
            return;
        }
        self.n_taken += 1;
        // Stripes of a piece only add to the sums, so that two of them may go side by side.
        let mut lanes = m.longs(0);
        for (pair, keys) in piece.as_chunks().0.iter().zip(&KEYS) {
            let data = m.load_longs(pair);
            let key = m.xor_longs(data, m.load_longs(keys));
            lanes = m.add_longs(lanes, m.swap_longs(data));
            lanes = m.add_longs(lanes, m.multiply_word_halves(key));
        }
        let lanes = m.long_array(lanes).map(i64::cast_unsigned);
        for (i, sum) in self.sums.iter_mut().enumerate() {
            let mixed = sum.wrapping_add(lanes[i]).wrapping_add(lanes[i + 8]);
            let scrambled = mixed ^ mixed >> 47 ^ secret_word(SCRAMBLE_AT + 8 * i);
            *sum = scrambled.wrapping_mul(PRIME32[0]);
        }
    }
}

/// Digests pieces that no other pass reads.
struct PiecesTask<'a>(&'a mut Xxh3Pieces, &'a [u8]);

impl LaneTask for PiecesTask<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: LaneMachine>(self, m: M) {
        read_pieces(m, self.1, self.0);
    }
}

#[inline(always)]
fn secret_word(at: usize) -> u64 {
    SECRET[at..]
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::PortableMachine;
    use crate::digest::xxh3_128;

    #[test]
    fn agrees_with_the_library_for_every_length_and_number_of_pieces() {
        let bytes: Vec<u8> = (0..9000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8)
            .collect();
        assert!(Xxh3Pieces::new(SHORT_MAX).is_none());
        for n_bytes in SHORT_MAX + 1..bytes.len() {
            let bytes = &bytes[..n_bytes];
            let expected = xxh3_128(bytes);
            // None, some and all pieces are taken before the end.
            for n_pieces in [0, n_bytes / 2 / PIECE_BYTES, n_bytes / PIECE_BYTES] {
                let mut pieces = Xxh3Pieces::new(n_bytes).unwrap();
                read_pieces(
                    PortableMachine,
                    &bytes[..n_pieces * PIECE_BYTES],
                    &mut pieces,
                );
                assert_eq!(
                    pieces.finish(bytes),
                    expected,
                    "{n_bytes} bytes, {n_pieces} pieces"
                );
            }
        }
    }
}
