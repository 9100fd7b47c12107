//! The 64 steps that take a block into the state, for whatever carries the words.

use std::hint::black_box;

/// How far to rotate, by round and step within four.
const SHIFTS: [[u32; 4]; 4] = [
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

/// Words, one at a time or several side by side, and the blocks that `N` states take in.
pub(super) trait Md5Words<const N: usize>: Copy {
    /// Words of 32 bits.
    type Word: Copy;
    /// Wrapping sum.
    fn add(self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Rotates left by 1 to 31 bits.
    fn rotate(self, a: Self::Word, n: u32) -> Self::Word;
    /// Adds `a`, the word at a position of the block of state `i`, and a constant: the part of a
    /// step that does not depend on the previous step.
    fn add_message(self, a: Self::Word, i: usize, position: usize, sine: u32) -> Self::Word;
    /// `sum` and the function of the round (0 to 3). `b` is the last to be known.
    fn add_mixed<const ROUND: usize>(
        self,
        sum: Self::Word,
        b: Self::Word,
        c: Self::Word,
        d: Self::Word,
    ) -> Self::Word;
}

/// The first, second, third and fourth word of `N` states.
pub(super) type States<W, const N: usize> = [[W; N]; 4];

/// The constants, of which the compiler may not know that they are: it would add them last, when
/// all else waits for the sum.
pub(super) fn sines() -> &'static [u32; 64] {
    black_box(&SINES)
}

/// Takes one block into each state. The steps of the states take turns, because each step of a
/// state waits for the one before and leaves the CPU time for others.
#[inline(always)]
pub(super) fn take_blocks<W: Md5Words<N>, const N: usize>(
    words: W,
    states: &mut States<W::Word, N>,
    sines: &[u32; 64],
) {
    let mut after = *states;
    round::<W, N, 0>(words, &mut after, sines);
    round::<W, N, 1>(words, &mut after, sines);
    round::<W, N, 2>(words, &mut after, sines);
    round::<W, N, 3>(words, &mut after, sines);
    // Positions rather than iterators, which here keep the states in memory.
    for word in 0..4 {
        for i in 0..N {
            states[word][i] = words.add(states[word][i], after[word][i]);
        }
    }
}

/// Sixteen steps, spelled out so that every position is a constant.
#[inline(always)]
fn round<W: Md5Words<N>, const N: usize, const ROUND: usize>(
    words: W,
    states: &mut States<W::Word, N>,
    sines: &[u32; 64],
) {
    let [mut a, mut b, mut c, mut d] = *states;
    macro_rules! steps {
        ($($i:literal)*) => {$(
            step::<W, N, ROUND, { 4 * $i }>(words, &mut a, &b, &c, &d, sines);
            step::<W, N, ROUND, { 4 * $i + 1 }>(words, &mut d, &a, &b, &c, sines);
            step::<W, N, ROUND, { 4 * $i + 2 }>(words, &mut c, &d, &a, &b, sines);
            step::<W, N, ROUND, { 4 * $i + 3 }>(words, &mut b, &c, &d, &a, sines);
        )*};
    }
    steps!(0 1 2 3);
    *states = [a, b, c, d];
}

#[inline(always)]
fn step<W: Md5Words<N>, const N: usize, const ROUND: usize, const I: usize>(
    words: W,
    a: &mut [W::Word; N],
    b: &[W::Word; N],
    c: &[W::Word; N],
    d: &[W::Word; N],
    sines: &[u32; 64],
) {
    let position = match ROUND {
        0 => I,
        1 => (5 * I + 1) % 16,
        2 => (3 * I + 5) % 16,
        _ => 7 * I % 16,
    };
    for i in 0..N {
        let sum = words.add_message(a[i], i, position, sines[16 * ROUND + I]);
        let sum = words.add_mixed::<ROUND>(sum, b[i], c[i], d[i]);
        a[i] = words.add(b[i], words.rotate(sum, SHIFTS[ROUND][I % 4]));
    }
}
