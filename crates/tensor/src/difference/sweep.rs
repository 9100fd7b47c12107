//! The pass over both sides, a block at a time.
//!
//! A block with the same bytes on both sides is processed once. In a block with non-finite elements
//! these are counted one by one, and the finite ones moved together.
//!
//! No closure uses the machine: it would be compiled for any CPU, unless it happens to be inlined.

use super::WorstElement;
use super::pairs::{PairBlock, PairSums};
use super::side::{SideBlock, SideSums};
use super::source::{BLOCK, BlockSource, distances};
use super::ulp::Ulps;
use crate::cpu::{LaneMachine, LaneTask};

/// The pass.
#[derive(Clone, Debug)]
pub(super) struct DifferenceSweep<'a> {
    /// Both with the same number of elements.
    pub(super) sources: [BlockSource<'a>; 2],
    /// Findings of the pass before these sources.
    pub(super) found: SweepResult,
}

/// The result of the pass.
#[derive(Clone, Debug)]
pub(super) struct SweepResult {
    /// Elements that earlier sources had: positions count from the first of these.
    pub(super) n_before: u64,
    pub(super) sides: [SideSums; 2],
    pub(super) pairs: PairSums,
    pub(super) ulps: Option<Ulps>,
    pub(super) n_equal: u64,
    pub(super) n_nan_mismatches: u64,
    pub(super) n_inf_mismatches: u64,
    pub(super) n_sign_flips: u64,
    pub(super) first_bad: Option<u64>,
    /// The first element that is NaN or infinite on one side alone.
    pub(super) first_mismatch: Option<WorstElement>,
    /// Whether all blocks have the same bytes.
    pub(super) is_identical: bool,
}

impl SweepResult {
    /// Initial result; `ulps` with zero counts, and `None` if both sides are not floats.
    pub(super) fn new(ulps: Option<Ulps>) -> SweepResult {
        SweepResult {
            n_before: 0,
            sides: [SideSums::EMPTY; 2],
            pairs: PairSums::EMPTY,
            ulps,
            n_equal: 0,
            n_nan_mismatches: 0,
            n_inf_mismatches: 0,
            n_sign_flips: 0,
            first_bad: None,
            first_mismatch: None,
            is_identical: true,
        }
    }
}

/// Room for one block.
struct SweepBuffers {
    target: Vec<f64>,
    golden: Vec<f64>,
    distances: Vec<f64>,
    relative: Vec<f64>,
    /// Where in the block elements stood that were moved together.
    positions: Vec<u16>,
}

impl LaneTask for DifferenceSweep<'_> {
    type Output = SweepResult;

    #[inline(always)]
    fn run<M: LaneMachine>(self, m: M) -> SweepResult {
        let [target, golden] = self.sources;
        let n = target.n();
        let zeros = vec![0.0; n.min(BLOCK)];
        let mut buffers = SweepBuffers {
            target: zeros.clone(),
            golden: zeros.clone(),
            distances: zeros.clone(),
            relative: zeros,
            positions: vec![0; n.min(BLOCK)],
        };
        let mut found = self.found;
        found.is_identical &= target.dtype() == golden.dtype();
        for start in (0..n).step_by(BLOCK) {
            let n_block = (n - start).min(BLOCK);
            let bytes = [&target, &golden].map(|source| source.block(start, n_block));
            let block = [&mut buffers.target, &mut buffers.golden];
            let [a, b] = block.map(|buffer| &mut buffer[..n_block]);
            // A loop, so that there is one copy of what is inlined.
            let mut is_same = false;
            for (source, out) in self.sources.iter().zip([&mut *a, &mut *b]) {
                if !is_same {
                    source.fill(m, start, out);
                    // Comparing bytes costs far less than decoding them a second time.
                    is_same = target.dtype() == golden.dtype() && bytes[0] == bytes[1];
                }
            }
            if is_same {
                found.add_same(m, start, a);
                continue;
            }
            found.is_identical = false;
            distances(
                [&target, &golden],
                start,
                a,
                b,
                &mut buffers.distances[..n_block],
            );
            found.add_apart(m, start, n_block, bytes, &mut buffers, &self.sources);
        }
        found.n_before += n as u64;
        found
    }
}

/// Number of elements that are finite on both sides.
#[inline(always)]
fn n_finite(a: &[f64], b: &[f64]) -> usize {
    // `&`, not `&&`: without a branch the loop becomes vector code.
    a.iter()
        .zip(b)
        .map(|(a, b)| u64::from((a.abs() < f64::INFINITY) & (b.abs() < f64::INFINITY)))
        .sum::<u64>() as usize
}

#[inline(always)]
fn n_zero(values: &[f64]) -> u64 {
    values.iter().map(|&value| u64::from(value == 0.0)).sum()
}

impl SweepResult {
    /// A block that has the same elements on both sides.
    #[inline(always)]
    fn add_same<M: LaneMachine>(&mut self, m: M, start: usize, values: &mut [f64]) {
        let n = values.len();
        self.n_equal += n as u64;
        let n_zero = n_zero(values);
        self.sides.iter_mut().for_each(|side| side.n_zero += n_zero);
        let mut first = 0;
        let mut n_finite = n_finite(values, values);
        if n_finite < n {
            // Looked for now, because moving the finite elements together loses their positions.
            first = values
                .iter()
                .position(|value| value.is_finite())
                .unwrap_or(0);
            let mut counts = SideSums::EMPTY;
            n_finite = keep_finite(values, &mut counts);
            for side in &mut self.sides {
                side.n_nan += counts.n_nan;
                side.n_positive_inf += counts.n_positive_inf;
                side.n_negative_inf += counts.n_negative_inf;
            }
        }
        let values = &values[..n_finite];
        let side = SideBlock::from_values(m, values);
        self.sides.iter_mut().for_each(|sum| sum.add(&side));
        self.pairs
            .add_equal(values, &side, self.n_before + (start + first) as u64);
        if let Some(ulps) = &mut self.ulps {
            ulps.add_equal(n_finite);
        }
    }

    /// A block that has not, decoded, with its distances.
    #[inline(always)]
    fn add_apart<M: LaneMachine>(
        &mut self,
        m: M,
        start: usize,
        n: usize,
        bytes: [&[u8]; 2],
        buffers: &mut SweepBuffers,
        sources: &[BlockSource<'_>; 2],
    ) {
        let block = [&mut buffers.target, &mut buffers.golden];
        let [a, b] = block.map(|buffer| &mut buffer[..n]);
        let d = &mut buffers.distances[..n];
        self.n_equal += n_zero(d);
        for (side, values) in self.sides.iter_mut().zip([&*a, &*b]) {
            side.n_zero += n_zero(values);
        }
        let flips = a
            .iter()
            .zip(&*b)
            .map(|(&a, &b)| u64::from(((a < 0.0) & (b > 0.0)) | ((a > 0.0) & (b < 0.0))));
        self.n_sign_flips += flips.sum::<u64>();
        let are_all_finite = n_finite(a, b) == n;
        let mut n_pairs = n;
        if !are_all_finite {
            // The memory for relative differences is unused until pairs are added.
            let finite = &mut buffers.relative[..n];
            for (side, values) in self.sides.iter_mut().zip([&*a, &*b]) {
                finite.copy_from_slice(values);
                let n_finite = keep_finite(finite, side);
                side.add(&SideBlock::from_values(m, &finite[..n_finite]));
            }
            n_pairs = self.set_apart(start, [&mut *a, &mut *b, &mut *d], &mut buffers.positions);
        }
        let (a, b) = (&a[..n_pairs], &b[..n_pairs]);
        let mut sides = [SideBlock::EMPTY; 2];
        // A loop, so that there is one copy of what is inlined.
        for (side, values) in sides.iter_mut().zip([a, b]) {
            *side = SideBlock::from_values(m, values);
        }
        if are_all_finite {
            self.sides[0].add(&sides[0]);
            self.sides[1].add(&sides[1]);
        }
        if let Some(ulps) = &mut self.ulps {
            // Bits of the same dtype are subtracted as integers, without going through doubles.
            let are_alike = sources[0].dtype() == sources[1].dtype();
            let has_short_way = are_all_finite && are_alike;
            if !(has_short_way && ulps.add_bytes(sources[0].dtype(), bytes)) {
                ulps.add(a, b);
            }
        }
        let block = PairBlock {
            target: a,
            golden: b,
            distances: &mut d[..n_pairs],
            relative: &mut buffers.relative[..n_pairs],
            sides: [&sides[0], &sides[1]],
        };
        let positions = &buffers.positions;
        let n_before = self.n_before;
        self.pairs.add(m, block, |i| {
            let at = if are_all_finite {
                i
            } else {
                positions[i].into()
            };
            n_before + (start + at) as u64
        });
    }

    /// Counts pairs with an element that is not finite, and moves the others to the front. How many
    /// these are.
    fn set_apart(
        &mut self,
        start: usize,
        [a, b, distances]: [&mut [f64]; 3],
        positions: &mut [u16],
    ) -> usize {
        let mut n_pairs = 0;
        for i in 0..a.len() {
            let (x, y) = (a[i], b[i]);
            (a[n_pairs], b[n_pairs]) = (x, y);
            distances[n_pairs] = distances[i];
            // A block has far fewer elements than 16 bits can count.
            positions[n_pairs] = i as u16;
            if x.is_finite() && y.is_finite() {
                n_pairs += 1;
                continue;
            }
            let (is_nan, is_equal) = (x.is_nan() || y.is_nan(), x == y);
            let is_equal = is_equal || (x.is_nan() && y.is_nan());
            // Infinities of the same sign have no distance that was counted.
            self.n_equal += u64::from(is_equal);
            self.n_nan_mismatches += u64::from(x.is_nan() != y.is_nan());
            self.n_inf_mismatches += u64::from(!is_nan && !is_equal);
            let index = self.n_before + (start + i) as u64;
            if !x.is_finite() && !is_equal && self.first_bad.is_none() {
                self.first_bad = Some(index);
            }
            if !is_equal && self.first_mismatch.is_none() {
                self.first_mismatch = Some(WorstElement {
                    index,
                    target: x,
                    golden: y,
                });
            }
        }
        n_pairs
    }
}

/// Counts elements that are not finite, and moves the others to the front. How many these are.
fn keep_finite(values: &mut [f64], side: &mut SideSums) -> usize {
    let mut n = 0;
    for i in 0..values.len() {
        let value = values[i];
        values[n] = value;
        if value.is_finite() {
            n += 1;
        } else {
            side.count(value);
        }
    }
    n
}
