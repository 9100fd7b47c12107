//! A few inputs side by side in plain registers: faster than lanes of which most are idle.

use super::Block;
use super::steps::{Md5Words, States, sines, take_blocks};

/// The blocks that are taken in, one word at a time.
#[derive(Clone, Copy)]
struct ScalarWords<'a, const N: usize>([&'a Block; N]);

impl<const N: usize> Md5Words<N> for ScalarWords<'_, N> {
    type Word = u32;

    #[inline(always)]
    fn add(self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn rotate(self, a: u32, n: u32) -> u32 {
        a.rotate_left(n)
    }
    #[inline(always)]
    fn add_message(self, a: u32, i: usize, position: usize, sine: u32) -> u32 {
        let word = u32::from_le_bytes(self.0[i].as_chunks().0[position]);
        a.wrapping_add(word).wrapping_add(sine)
    }
    #[inline(always)]
    fn add_mixed<const ROUND: usize>(self, sum: u32, b: u32, c: u32, d: u32) -> u32 {
        match ROUND {
            0 => sum.wrapping_add(d ^ (b & (c ^ d))),
            // No bit is in both parts, so a sum does for `or`, and one part need not wait for `b`.
            1 => sum.wrapping_add(c & !d).wrapping_add(b & d),
            2 => sum.wrapping_add(b ^ (c ^ d)),
            _ => sum.wrapping_add(c ^ (b | !d)),
        }
    }
}

/// Takes the first `n_blocks` of each input into its state.
#[inline(never)]
pub(super) fn advance<const N: usize>(
    states: &mut States<u32, N>,
    ahead: [&[Block]; N],
    n_blocks: usize,
) {
    let sines = sines();
    // A copy, since registers can hold it exclusively.
    let mut working = *states;
    let ahead = ahead.map(|ahead| &ahead[..n_blocks]);
    for at in 0..n_blocks {
        let blocks = ScalarWords(ahead.map(|ahead| &ahead[at]));
        take_blocks(blocks, &mut working, sines);
    }
    *states = working;
}
