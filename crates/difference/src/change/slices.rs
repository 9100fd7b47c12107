//! Indices of an axis in another order.

use super::TensorChange;
use super::arrangement::{Arrangement, strides};
use super::elements::ElementPair;

/// Number of elements that identify a slice.
const N_SLICE_SAMPLES: usize = 64;
/// Longest axis whose slices are sorted where they need not be equal.
const N_SORTED_MAX: usize = 1 << 14;
/// Maximum number of blocks whose order is listed.
const N_BLOCKS_MAX: usize = 64;

/// The slices along one axis, each as a number.
struct AxisSlices {
    axis: usize,
    target: Vec<f64>,
    golden: Vec<f64>,
    /// The distance up to which slices are the same.
    tolerance: f64,
}

/// The indices of an axis are in another order: the first axis, and the simplest rule that fits.
pub(super) fn reordered(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let dims = pair.dims();
    (0..dims.len()).find_map(|axis| {
        let slices = AxisSlices::collect(pair, axis)?;
        let order = slices.order()?;
        slices.by_rule(pair, &order).or_else(|| {
            slices
                .holds(pair, |i| order[i])
                .then_some(TensorChange::Permuted { axis })
        })
    })
}

/// The same elements in any order.
pub(super) fn any_order(pair: &ElementPair<'_>) -> Option<TensorChange> {
    if pair.sums.t_ends != pair.sums.g_ends {
        return None;
    }
    // Axes that were merged or split have orders without a name; sums of digests need no sorting.
    let all = 0..pair.len();
    let sums = all.fold([0_u128; 2], |[t, g], i| {
        let (a, b) = (digest(pair.target.at(i)), digest(pair.golden.at(i)));
        [t + a, g + b]
    });
    (sums[0] == sums[1]).then_some(TensorChange::Reordered)
}

/// A digest of a number. Zeros are one.
fn digest(element: f64) -> u128 {
    let mixed = (element + 0.0).to_bits();
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    u128::from(mixed ^ mixed >> 32)
}

/// The same for all orders of the numbers.
fn digests(numbers: &[f64]) -> u128 {
    numbers.iter().map(|&number| digest(number)).sum()
}

impl AxisSlices {
    /// `None` of an axis of 1.
    fn collect(pair: &ElementPair<'_>, axis: usize) -> Option<AxisSlices> {
        let dims = pair.dims();
        let (dim, stride) = (dims[axis], strides(dims)[axis]);
        if dim < 2 {
            return None;
        }
        let n_in_slice = pair.len() / dim;
        // Odd, so that samples are not all of one column.
        let step = (n_in_slice / N_SLICE_SAMPLES).max(1) | 1;
        let places: Vec<usize> = (0..n_in_slice)
            .step_by(step)
            .map(|k| k / stride * stride * dim + k % stride)
            .collect();
        let [target, golden]: [Vec<f64>; 2] = [pair.target, pair.golden].map(|side| {
            let numbers = (0..dim).map(|index| {
                let elements = places.iter().map(|place| side.at(place + index * stride));
                let weighed = elements.zip(1_u32..).map(|(element, k)| {
                    // Weights without a pattern, or slices that are each other's mirror image would
                    // be the same.
                    let weight = (f64::from(k) * 0.618_033_988_749_895).fract() + 0.5;
                    if element.is_finite() {
                        element * weight
                    } else {
                        weight * 1e3
                    }
                });
                weighed.sum()
            });
            numbers.collect()
        });
        let largest = golden.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let n = places.len() as f64;
        Some(AxisSlices {
            axis,
            target,
            golden,
            tolerance: pair.same.absolute * n + pair.same.relative * largest,
        })
    }

    fn len(&self) -> usize {
        self.golden.len()
    }

    fn is_same(&self, target: usize, golden: usize) -> bool {
        let (a, b) = (self.target[target], self.golden[golden]);
        a == b || (a - b).abs() <= self.tolerance
    }

    /// For each index of the target one of golden's with the same slice. `None` if one has none.
    fn order(&self) -> Option<Vec<usize>> {
        // Sorting a long axis takes longer than everything else.
        let is_excluded = if self.tolerance == 0.0 {
            digests(&self.target) != digests(&self.golden)
        } else {
            self.len() > N_SORTED_MAX
        };
        if is_excluded {
            return None;
        }
        let [target, golden] = [&self.target, &self.golden].map(|numbers| {
            let mut indices: Vec<usize> = (0..numbers.len()).collect();
            indices.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
            indices
        });
        let mut order = vec![0; self.len()];
        for (t, g) in target.into_iter().zip(golden) {
            if !self.is_same(t, g) {
                return None;
            }
            order[t] = g;
        }
        Some(order)
    }

    /// Whether the target's slices are golden's at `source` of their indices.
    fn holds(&self, pair: &ElementPair<'_>, source: impl Fn(usize) -> usize) -> bool {
        if !(0..self.len()).all(|i| self.is_same(i, source(i))) {
            return false;
        }
        let dims = pair.dims();
        let stride = strides(dims)[self.axis];
        let mut arrangement = Arrangement::in_place(dims);
        arrangement.tables[self.axis] = (0..self.len()).map(|i| source(i) * stride).collect();
        arrangement.holds(pair)
    }

    fn by_rule(&self, pair: &ElementPair<'_>, order: &[usize]) -> Option<TensorChange> {
        self.exchanged(pair)
            .or_else(|| self.blocks(pair, order))
            .or_else(|| self.interleaved(pair))
            .or_else(|| self.mirrored_blocks(pair))
    }

    fn exchanged(&self, pair: &ElementPair<'_>) -> Option<TensorChange> {
        let mut moved = (0..self.len()).filter(|&i| !self.is_same(i, i));
        let (a, b) = (moved.next()?, moved.next()?);
        let axis = self.axis;
        let indices = [a, b];
        (moved.next().is_none()
            && self.holds(pair, |i| match i {
                i if i == a => b,
                i if i == b => a,
                i => i,
            }))
        .then_some(TensorChange::Exchanged { axis, indices })
    }

    /// The largest blocks of one length, in another order.
    fn blocks(&self, pair: &ElementPair<'_>, order: &[usize]) -> Option<TensorChange> {
        let n = self.len();
        let counts = (2..=n.min(N_BLOCKS_MAX)).filter(|&count| n.is_multiple_of(count));
        counts.into_iter().find_map(|count| {
            let size = n / count;
            // Single indices do not count as blocks, unless they are few.
            if size == 1 && count > 8 {
                return None;
            }
            let firsts = order.iter().step_by(size);
            let blocks: Vec<usize> = firsts.map(|first| first / size).collect();
            let mut sorted = blocks.clone();
            sorted.sort_unstable();
            let is_order = sorted.into_iter().eq(0..count);
            (is_order && self.holds(pair, |i| blocks[i / size] * size + i % size)).then_some(
                TensorChange::Blocks {
                    axis: self.axis,
                    size,
                    order: blocks,
                },
            )
        })
    }

    /// Parts that are interleaved, in the whole axis or in blocks.
    fn interleaved(&self, pair: &ElementPair<'_>) -> Option<TensorChange> {
        let n = self.len();
        let blocks = (4..=n).rev().filter(|&block| n.is_multiple_of(block));
        blocks.into_iter().find_map(|block| {
            let counts = (2..=block / 2).filter(|&n_parts| block.is_multiple_of(n_parts));
            let n_parts = counts.into_iter().find(|&n_parts| {
                let length = block / n_parts;
                self.holds(pair, |i| {
                    let (start, k) = (i / block * block, i % block);
                    start + k % n_parts * length + k / n_parts
                })
            })?;
            Some(TensorChange::Interleaved {
                axis: self.axis,
                n_parts,
                block,
            })
        })
    }

    fn mirrored_blocks(&self, pair: &ElementPair<'_>) -> Option<TensorChange> {
        let n = self.len();
        let mut blocks = (2..n).rev().filter(|&block| n.is_multiple_of(block));
        let block = blocks
            .find(|&block| self.holds(pair, |i| i / block * block + (block - 1 - i % block)))?;
        Some(TensorChange::Mirrored {
            axes: vec![self.axis],
            block,
        })
    }
}
