//! MD5 of several inputs side by side: each in a lane of its own, a block of 64 bytes at a time.
//!
//! MD5 cannot be sped up within one input, since every step needs the one before. A lane whose input
//! ends takes the next one, longest first, so that few lanes are idle at the end.

use crate::cpu::{self, LANES, Machine, Task};

/// Bytes that one step of the state takes in.
const BLOCK: usize = 64;
const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// How far to rotate, by round and step within four.
const SHIFTS: [[i32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];
/// The integer parts of 2^32 |sin(i + 1)|.
const SINES: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

/// The MD5 digests of inputs of any lengths, in the same order.
pub fn md5_many(inputs: &[&[u8]]) -> Vec<[u8; 16]> {
    cpu::run(Many { inputs })
}

#[derive(Clone)]
struct Many<'a> {
    inputs: &'a [&'a [u8]],
}

/// An input on its way through a lane.
struct Stream<'a> {
    /// Position among the inputs.
    index: usize,
    /// Whole blocks that are left.
    whole: &'a [u8],
    /// The last bytes, a bit that ends them, and the length: one or two blocks.
    tail: [u8; 2 * BLOCK],
    /// Blocks of `tail` still to come.
    tail_at: usize,
    tail_end: usize,
}

impl<'a> Stream<'a> {
    fn new(index: usize, input: &'a [u8]) -> Stream<'a> {
        let (whole, rest) = input.split_at(input.len() / BLOCK * BLOCK);
        let mut tail = [0; 2 * BLOCK];
        tail[..rest.len()].copy_from_slice(rest);
        tail[rest.len()] = 0x80;
        let tail_end = if rest.len() + 9 <= BLOCK {
            BLOCK
        } else {
            2 * BLOCK
        };
        let n_bits = (input.len() as u64).wrapping_mul(8);
        tail[tail_end - 8..tail_end].copy_from_slice(&n_bits.to_le_bytes());
        Stream {
            index,
            whole,
            tail,
            tail_at: 0,
            tail_end,
        }
    }

    /// The blocks that lie side by side now.
    fn ahead(&self) -> &[u8] {
        if self.whole.is_empty() {
            &self.tail[self.tail_at..self.tail_end]
        } else {
            self.whole
        }
    }

    fn advance(&mut self, n_bytes: usize) {
        match self.whole.get(n_bytes..) {
            Some(rest) if !self.whole.is_empty() => self.whole = rest,
            _ => self.tail_at += n_bytes,
        }
    }
}

impl Task for Many<'_> {
    type Output = Vec<[u8; 16]>;

    #[inline(always)]
    fn run<M: Machine>(self, m: M) -> Vec<[u8; 16]> {
        let mut digests = vec![[0; 16]; self.inputs.len()];
        // Longest last, as they are taken from the end.
        let mut waiting: Vec<usize> = (0..self.inputs.len()).collect();
        waiting.sort_by_key(|&i| self.inputs[i].len());
        let mut state = INITIAL.map(|word| [word.cast_signed(); LANES]);
        let mut lanes: [Option<Stream<'_>>; LANES] = std::array::from_fn(|_| None);
        loop {
            for (i, lane) in lanes.iter_mut().enumerate() {
                if lane.is_none() {
                    *lane = waiting
                        .pop()
                        .map(|index| Stream::new(index, self.inputs[index]));
                    for (words, word) in state.iter_mut().zip(INITIAL) {
                        words[i] = word.cast_signed();
                    }
                }
            }
            let ahead = lanes.iter().flatten().map(|stream| stream.ahead().len());
            let Some(n_bytes) = ahead.min() else {
                return digests;
            };
            let blocks = lanes
                .each_ref()
                .map(|lane| lane.as_ref().map(Stream::ahead));
            compress(m, &mut state, blocks, n_bytes);
            for (i, lane) in lanes.iter_mut().enumerate() {
                if let Some(stream) = lane {
                    stream.advance(n_bytes);
                    if stream.whole.is_empty() && stream.tail_at == stream.tail_end {
                        let digest = digests[stream.index].as_chunks_mut::<4>().0;
                        for (bytes, words) in digest.iter_mut().zip(&state) {
                            *bytes = words[i].to_le_bytes();
                        }
                        *lane = None;
                    }
                }
            }
        }
    }
}

/// Takes the first `n_bytes`, whole blocks, of every lane into the state. Lanes without data take in
/// zeros.
#[inline(always)]
fn compress<M: Machine>(
    m: M,
    state: &mut [[i32; LANES]; 4],
    blocks: [Option<&[u8]>; LANES],
    n_bytes: usize,
) {
    let mut sums = state.each_ref().map(|words| m.words_from_array(words));
    for at in (0..n_bytes).step_by(BLOCK) {
        let mut rows = [[0; BLOCK]; LANES];
        for (row, block) in rows.iter_mut().zip(blocks) {
            if let Some(block) = block {
                row.copy_from_slice(&block[at..at + BLOCK]);
            }
        }
        let message = m.transpose_words(&rows);
        let mut working = sums;
        round::<M, 0>(m, &mut working, &message);
        round::<M, 1>(m, &mut working, &message);
        round::<M, 2>(m, &mut working, &message);
        round::<M, 3>(m, &mut working, &message);
        for (sum, word) in sums.iter_mut().zip(working) {
            *sum = m.add_words(*sum, word);
        }
    }
    *state = sums.map(|words| m.word_array(words));
}

/// Sixteen steps.
#[inline(always)]
fn round<M: Machine, const ROUND: usize>(
    m: M,
    state: &mut [M::Words; 4],
    message: &[M::Words; 16],
) {
    let [mut a, mut b, mut c, mut d] = *state;
    for i in 0..16 {
        let (mixed, at) = match ROUND {
            0 => (m.xor_words(d, m.and_words(b, m.xor_words(c, d))), i),
            1 => (
                m.xor_words(c, m.and_words(d, m.xor_words(b, c))),
                (5 * i + 1) % 16,
            ),
            2 => (m.xor_words(b, m.xor_words(c, d)), (3 * i + 5) % 16),
            _ => {
                let not_d = m.xor_words(d, m.words(-1));
                (m.xor_words(c, m.or_words(b, not_d)), 7 * i % 16)
            }
        };
        let sine = m.words(SINES[16 * ROUND + i].cast_signed());
        let sum = m.add_words(m.add_words(a, m.add_words(message[at], sine)), mixed);
        let rotated = m.rotate_words(sum, SHIFTS[ROUND][i % 4]);
        (a, d, c, b) = (d, c, b, m.add_words(b, rotated));
    }
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::md5;

    /// Every length round the ends of blocks, few and many inputs, on every machine.
    #[test]
    fn agrees_with_one_input_at_a_time() {
        let bytes: Vec<u8> = (0..5000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let lengths = (0..=200).chain([1000, 4095, 4096, 4999, 0, 3]);
        let inputs: Vec<&[u8]> = lengths.map(|n| &bytes[..n]).collect();
        for n in [0, 1, 2, 15, 16, 17, 64, inputs.len()] {
            let inputs = &inputs[inputs.len() - n..];
            let expected: Vec<_> = inputs.iter().map(|input| md5(input)).collect();
            for found in cpu::run_everywhere(&Many { inputs }) {
                assert_eq!(found, expected, "{n} inputs");
            }
        }
        // Odd addresses, unequal lengths.
        let inputs: Vec<&[u8]> = (0..40).map(|i| &bytes[i..i + i * i]).collect();
        let expected: Vec<_> = inputs.iter().map(|input| md5(input)).collect();
        assert_eq!(md5_many(&inputs), expected);
    }
}
