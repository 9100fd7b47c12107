//! Many inputs side by side, each in a lane of a register.

use super::Block;
use super::steps::{Md5Words, States, sines, take_blocks};
use crate::cpu::{LANES, LaneMachine, LaneTask};

/// Words of inputs by lane, in `GROUPS` groups.
pub(super) type Lanes<T, const GROUPS: usize> = [[T; LANES]; GROUPS];

/// Takes the first `n_blocks` of each input into its state.
#[derive(Clone)]
pub(super) struct BlockAdvance<'a, const GROUPS: usize> {
    pub(super) states: [Lanes<i32, GROUPS>; 4],
    pub(super) ahead: Lanes<&'a [Block], GROUPS>,
    pub(super) n_blocks: usize,
}

impl<const GROUPS: usize> LaneTask for BlockAdvance<'_, GROUPS> {
    /// The new states.
    type Output = [Lanes<i32, GROUPS>; 4];

    #[inline(always)]
    fn run<M: LaneMachine>(mut self, m: M) -> Self::Output {
        let sines = sines();
        let mut states: States<M::Words, GROUPS> = [[m.words(0); GROUPS]; 4];
        for (state, words) in states
            .iter_mut()
            .flatten()
            .zip(self.states.iter().flatten())
        {
            *state = m.words_from_array(words);
        }
        for ahead in self.ahead.iter_mut().flatten() {
            *ahead = &ahead[..self.n_blocks];
        }
        let mut messages = [[m.words(0); 16]; GROUPS];
        for at in 0..self.n_blocks {
            for (message, ahead) in messages.iter_mut().zip(&self.ahead) {
                let mut rows = [&ahead[0][at]; LANES];
                for (row, ahead) in rows.iter_mut().zip(ahead) {
                    *row = &ahead[at];
                }
                *message = m.transpose_words(rows);
            }
            take_blocks(LaneWords(m, &messages), &mut states, sines);
        }
        for (words, state) in self
            .states
            .iter_mut()
            .flatten()
            .zip(states.into_iter().flatten())
        {
            *words = m.word_array(state);
        }
        self.states
    }
}

/// The blocks that are taken in, sixteen words at a time.
#[derive(Clone, Copy)]
struct LaneWords<'a, M: LaneMachine, const GROUPS: usize>(M, &'a [[M::Words; 16]; GROUPS]);

impl<M: LaneMachine, const GROUPS: usize> Md5Words<GROUPS> for LaneWords<'_, M, GROUPS> {
    type Word = M::Words;

    #[inline(always)]
    fn add(self, a: M::Words, b: M::Words) -> M::Words {
        self.0.add_words(a, b)
    }
    #[inline(always)]
    fn rotate(self, a: M::Words, n: u32) -> M::Words {
        self.0.rotate_words(a, n.cast_signed())
    }
    #[inline(always)]
    fn add_message(self, a: M::Words, i: usize, position: usize, sine: u32) -> M::Words {
        let m = self.0;
        let sum = m.add_words(a, self.1[i][position]);
        let sum = m.add_words(sum, m.words(sine.cast_signed()));
        if GROUPS == 1 {
            m.settle_words(sum)
        } else {
            sum
        }
    }
    #[inline(always)]
    fn add_mixed<const ROUND: usize>(
        self,
        sum: M::Words,
        b: M::Words,
        c: M::Words,
        d: M::Words,
    ) -> M::Words {
        let m = self.0;
        let mixed = match ROUND {
            0 => m.xor_words(d, m.and_words(b, m.xor_words(c, d))),
            1 => m.xor_words(c, m.and_words(d, m.xor_words(b, c))),
            2 => m.xor_words(b, m.xor_words(c, d)),
            _ => m.xor_words(c, m.or_words(b, m.xor_words(d, m.words(-1)))),
        };
        m.add_words(sum, mixed)
    }
}
