//! The hash that devices compute together with the statistics of a tensor.
//!
//! It is a sum over parts, which the programs of a device may process in any order, each mixed with
//! its position. `docs/statistics.md` defines it; `_device/kernels.py` of the Python package has
//! the same numbers.

/// Words of four bytes in a line.
const LINE: usize = 512;
/// Lines in a stripe.
const STRIPE_LINES: usize = 16;
/// Lines in a group, each with a separate multiplier.
const GROUP_LINES: usize = 4;

/// The numbers of one half of the hash.
struct HashHalf {
    /// The multiplier of a column between two groups of lines.
    factor: u64,
    /// The multipliers of words, by the place of their line in its group.
    lines: [u64; GROUP_LINES],
    /// The multiplier of the place of a column, and of the number of bytes.
    key: u64,
}

const HALVES: [HashHalf; 2] = [
    HashHalf {
        factor: 0x9e37_79b1,
        lines: [0xc2b2_ae35, 0x27d4_eb2f, 0x1656_67b1, 0xd3a2_646d],
        key: 0x9e37_79b9_7f4a_7c15,
    },
    HashHalf {
        factor: 0x85eb_ca6b,
        lines: [0xcc9e_2d51, 0x1b87_3593, 0xe654_6b65, 0x8f2b_1a2d],
        key: 0xd134_2543_de82_ef95,
    },
];

/// Returns the hash of the bytes of a tensor's elements, dense and in row-major order, as its two
/// halves.
///
/// The same tensor on a device has the same hash. It is not a digest: collisions are easy to
/// construct, and digests of dumps are XXH3 ([`xxh3_128`](super::xxh3_128)).
pub fn stripe_hash(bytes: &[u8]) -> [u64; 2] {
    HALVES.map(|half| half.hash(bytes))
}

impl HashHalf {
    fn hash(&self, bytes: &[u8]) -> u64 {
        let stripes = bytes.chunks(4 * LINE * STRIPE_LINES);
        let sum = (0..).zip(stripes).fold(0_u64, |sum, (i, stripe)| {
            sum.wrapping_add(self.stripe(i, stripe))
        });
        // Bytes after the last one count as zeros, so their number has to be passed.
        mix(sum.wrapping_add(self.key.wrapping_mul(bytes.len() as u64)))
    }

    fn stripe(&self, stripe_idx: u64, bytes: &[u8]) -> u64 {
        let mut columns = [0_u64; LINE];
        let mut lines = bytes.chunks(4 * LINE);
        for line_idx in 0..STRIPE_LINES {
            if line_idx % GROUP_LINES == 0 {
                for column in &mut columns {
                    *column = column.wrapping_mul(self.factor);
                }
            }
            let multiplier = self.lines[line_idx % GROUP_LINES];
            let words = lines.next().unwrap_or_default().chunks(4);
            for (column, word) in columns.iter_mut().zip(words) {
                let mut whole = [0; 4];
                whole[..word.len()].copy_from_slice(word);
                let word = u64::from(u32::from_le_bytes(whole));
                *column = column.wrapping_add(word.wrapping_mul(multiplier));
            }
        }
        let first = stripe_idx.wrapping_mul(LINE as u64).wrapping_add(1);
        (first..).zip(columns).fold(0, |sum, (place, column)| {
            sum.wrapping_add(mix(column.wrapping_add(place.wrapping_mul(self.key))))
        })
    }
}

/// Lets every bit of a word depend on every other one.
fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn pattern(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i * 131 % 251) as u8).collect()
    }

    #[test]
    fn known_answers() {
        // Computed by `torch_form.py` and, in Triton's interpreter, by `kernels.py`; their tests
        // have the same numbers.
        let cases = [
            (0, [0x0000_0000_0000_0000, 0x0000_0000_0000_0000]),
            (1, [0x3a38_2b23_4162_fa22, 0xb23d_e9bb_58c8_8b99]),
            (4, [0x231d_113e_d73b_3361, 0x7e12_547b_e460_af58]),
            (1000, [0xfe04_617b_e88b_037c, 0x7003_793a_9fde_c666]),
            (2048, [0x3626_ad9e_425e_2346, 0x494e_47b5_621b_3f2a]),
            (8197, [0x05c1_1bde_1459_9ca2, 0x3fa1_a51e_2878_5f88]),
            (32768, [0x5dd1_13a3_cd1c_0b3a, 0x972c_a978_7ba9_05b4]),
            (100001, [0x92fd_63fb_4f9b_cdd9, 0x41c2_a9a0_7ac8_726d]),
        ];
        for (n, expected) in cases {
            assert_eq!(stripe_hash(&pattern(n)), expected, "{n} bytes");
        }
    }

    #[test]
    fn every_byte_and_every_place_counts() {
        let bytes = pattern(3 * 4 * LINE * STRIPE_LINES / 2 + 3);
        let mut seen = HashSet::from([stripe_hash(&bytes)]);
        for at in [
            0,
            1,
            4,
            2047,
            2048,
            8191,
            8192,
            32767,
            32768,
            bytes.len() - 1,
        ] {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert!(seen.insert(stripe_hash(&changed)), "byte {at}");
        }
        for (a, b) in [(0, 4), (0, 2048), (2048, 8192), (0, 32768), (4, 40000)] {
            let mut swapped = bytes.clone();
            swapped[a] = 1;
            swapped[b] = 2;
            assert!(seen.insert(stripe_hash(&swapped)), "bytes {a} and {b}");
            swapped.swap(a, b);
            assert!(seen.insert(stripe_hash(&swapped)), "bytes {b} and {a}");
        }
        for n in 0..40 {
            assert!(seen.insert(stripe_hash(&vec![0; n])), "{n} zeros");
        }
    }
}
