//! MD5 of several inputs side by side, a block of 64 bytes of each at a time.
//!
//! MD5 cannot be sped up within one input, since every step needs the one before. The longest
//! inputs go first, and one that ends makes room for the next. While there are many they lie in the
//! lanes of registers; the last few, in plain registers, where one input alone goes faster.

mod scalar;
mod steps;
mod vector;

use vector::BlockAdvance;

use crate::cpu::{self, LANES};

/// The bytes that one step of the state takes in.
type Block = [u8; 64];
const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// Number of inputs that are under way at a time in lanes: so many that none of the CPU's time is
/// lost to waiting. More push each other's bytes out of the nearest cache.
const N_IN_LANES: usize = 2 * LANES;
/// How many are under way at a time in plain registers. Lanes take four in the same time.
const N_IN_REGISTERS: usize = 3;

/// The MD5 digests of inputs of any lengths, in the same order.
pub fn md5_many(inputs: &[&[u8]]) -> Vec<[u8; 16]> {
    // Lanes made of short vectors are slower than plain registers.
    let n_active = if cpu::is_wide() {
        N_IN_LANES
    } else {
        N_IN_REGISTERS
    };
    digests(inputs, n_active)
}

fn digests(inputs: &[&[u8]], n_active: usize) -> Vec<[u8; 16]> {
    let mut states = vec![INITIAL; inputs.len()];
    let whole = inputs.iter().map(|input| input.as_chunks().0);
    take_all(&mut states, whole, n_active);
    // All ends take one or two blocks, so they go best side by side.
    let ends: Vec<InputEnd> = inputs.iter().map(|input| InputEnd::new(input)).collect();
    take_all(&mut states, ends.iter().map(InputEnd::blocks), n_active);
    states.into_iter().map(digest).collect()
}

fn digest(state: [u32; 4]) -> [u8; 16] {
    let mut digest = [0; 16];
    for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = word.to_le_bytes();
    }
    digest
}

/// The last bytes of an input, a bit that ends them, and the length of all: one or two blocks.
struct InputEnd([Block; 2], usize);

impl InputEnd {
    fn new(input: &[u8]) -> InputEnd {
        let rest = input.as_chunks::<64>().1;
        let mut blocks = [[0; 64]; 2];
        blocks[0][..rest.len()].copy_from_slice(rest);
        blocks[0][rest.len()] = 0x80;
        // The end takes one byte for the mark and eight for the length.
        let n_blocks = if rest.len() + 9 <= 64 { 1 } else { 2 };
        // MD5 counts bits modulo 2^64.
        let n_bits = (input.len() as u64).wrapping_mul(8);
        blocks[n_blocks - 1][56..].copy_from_slice(&n_bits.to_le_bytes());
        InputEnd(blocks, n_blocks)
    }

    fn blocks(&self) -> &[Block] {
        &self.0[..self.1]
    }
}

/// An input on its way.
struct InputStream<'a> {
    /// Position among the inputs.
    index: usize,
    /// Blocks that are left.
    ahead: &'a [Block],
}

/// Takes blocks into the state of each input, of `n_active` inputs at most at a time.
fn take_all<'a>(
    states: &mut [[u32; 4]],
    blocks: impl Iterator<Item = &'a [Block]>,
    n_active: usize,
) {
    let mut waiting: Vec<InputStream<'a>> = blocks
        .enumerate()
        .map(|(index, ahead)| InputStream { index, ahead })
        .filter(|stream| !stream.ahead.is_empty())
        .collect();
    // Longest last, as they are taken from the end.
    waiting.sort_by_key(|stream| stream.ahead.len());
    let mut active: Vec<InputStream<'a>> = Vec::with_capacity(n_active);
    loop {
        // An input that ends makes room for the next, so that no lane waits for the longest.
        let n_staying = waiting.len().saturating_sub(n_active - active.len());
        active.extend(waiting.drain(n_staying..));
        let Some(n_blocks) = active.iter().map(|stream| stream.ahead.len()).min() else {
            return;
        };
        match *active.as_slice() {
            [ref a] => advance_few([a], states, n_blocks),
            [ref a, ref b] => advance_few([a, b], states, n_blocks),
            [ref a, ref b, ref c] => advance_few([a, b, c], states, n_blocks),
            // Two groups hide the latency of each other's steps, but half of them idle is slower
            // than one.
            ref many if many.len() <= LANES => advance_many::<1>(many, states, n_blocks),
            ref many => advance_many::<2>(many, states, n_blocks),
        }
        for stream in &mut active {
            stream.ahead = &stream.ahead[n_blocks..];
        }
        active.retain(|stream| !stream.ahead.is_empty());
    }
}

fn advance_few<const N: usize>(
    streams: [&InputStream<'_>; N],
    states: &mut [[u32; 4]],
    n_blocks: usize,
) {
    let mut words = [[0; N]; 4];
    for (i, stream) in streams.iter().enumerate() {
        for (words, word) in words.iter_mut().zip(states[stream.index]) {
            words[i] = word;
        }
    }
    scalar::advance(&mut words, streams.map(|stream| stream.ahead), n_blocks);
    for (i, stream) in streams.iter().enumerate() {
        states[stream.index] = words.map(|words| words[i]);
    }
}

/// For one stream at least and as many as there are lanes.
fn advance_many<const GROUPS: usize>(
    streams: &[InputStream<'_>],
    states: &mut [[u32; 4]],
    n_blocks: usize,
) {
    let mut task = BlockAdvance::<GROUPS> {
        states: [[[0; LANES]; GROUPS]; 4],
        // Idle lanes take what the first one takes.
        ahead: [[streams[0].ahead; LANES]; GROUPS],
        n_blocks,
    };
    for (i, stream) in streams.iter().enumerate() {
        let (group, lane) = (i / LANES, i % LANES);
        task.ahead[group][lane] = stream.ahead;
        for (words, word) in task.states.iter_mut().zip(states[stream.index]) {
            words[group][lane] = word.cast_signed();
        }
    }
    let words = cpu::run(task);
    for (i, stream) in streams.iter().enumerate() {
        let (group, lane) = (i / LANES, i % LANES);
        states[stream.index] = words
            .each_ref()
            .map(|words| words[group][lane].cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::md5;

    fn bytes(n: usize) -> Vec<u8> {
        (0..n as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect()
    }

    /// Every length round the ends of blocks, from few inputs to more than are under way at a time.
    #[test]
    fn agrees_with_one_input_at_a_time() {
        let bytes = bytes(40_000);
        let lengths = (0..=200).chain([1000, 40_000, 4096, 30_000, 4999, 4095, 0, 3]);
        let inputs: Vec<&[u8]> = lengths.map(|n| &bytes[..n]).collect();
        for n in (0..70).chain([inputs.len()]) {
            let inputs = &inputs[inputs.len() - n..];
            let expected: Vec<_> = inputs.iter().map(|input| md5(input)).collect();
            assert_eq!(md5_many(inputs), expected, "{n} inputs");
            assert_eq!(digests(inputs, N_IN_REGISTERS), expected, "{n} inputs");
        }
        // Odd addresses, unequal lengths.
        let inputs: Vec<&[u8]> = (0..80).map(|i| &bytes[i..i + 6 * i * i]).collect();
        let expected: Vec<_> = inputs.iter().map(|input| md5(input)).collect();
        assert_eq!(md5_many(&inputs), expected);
    }

    #[test]
    fn every_machine_agrees_with_plain_registers() {
        check_machines::<1>();
        check_machines::<2>();
    }

    fn check_machines<const GROUPS: usize>() {
        let bytes = bytes(20_000);
        for n_blocks in [0, 1, 2, 5] {
            // Another address, and other states, in each lane.
            let ahead = std::array::from_fn(|group| {
                std::array::from_fn(|lane| bytes[group * 9000 + 321 * lane..].as_chunks().0)
            });
            let states = std::array::from_fn(|word| {
                std::array::from_fn(|group| {
                    std::array::from_fn(|lane| {
                        (word * 77 + group * 1000 + lane * 123_456_789) as i32
                    })
                })
            });
            let task = BlockAdvance::<GROUPS> {
                states,
                ahead,
                n_blocks,
            };
            for found in cpu::run_everywhere(&task) {
                for (group, lane) in (0..GROUPS).flat_map(|g| (0..LANES).map(move |l| (g, l))) {
                    let mut expected = states.map(|words| [words[group][lane].cast_unsigned()]);
                    scalar::advance(&mut expected, [ahead[group][lane]], n_blocks);
                    let found = found.map(|words| [words[group][lane].cast_unsigned()]);
                    assert_eq!(found, expected, "lane {lane} of {group}, {n_blocks} blocks");
                }
            }
        }
    }
}
