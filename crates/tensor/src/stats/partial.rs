//! Statistics of a part of a tensor, which can be combined in order.

use super::block::{BLOCK, SquareScale, StatsBlock, power_of_two};
use super::histogram::Histogram;
use super::kind::StatsKind;
use super::{Stats, StatsAndWeight, StatsError};
use crate::DType;
use crate::cpu::{self, LaneMachine, LaneTask};
use crate::pieces::{PIECE_BYTES, PieceReader};

/// Elements in a chunk: the unit that threads may share out.
pub const CHUNK_ELEMENTS: usize = 1 << 20;

/// The statistics of consecutive elements, before the last divisions and roots.
///
/// A tensor's chunks ([`chunks`]) can be processed on any threads, in any order; appending their
/// results in the order of the chunks equals [`stats`](crate::stats()), bit for bit.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialStats {
    block: StatsBlock,
    sum: ExactSum,
    sum_of_magnitudes: ExactSum,
    /// By [`SquareScale`].
    sums_of_squares: [ExactSum; 3],
    deviation: f64,
    prefix_weight: f64,
    histogram: Option<Box<Histogram>>,
}

/// A sum with what its roundings have lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ExactSum {
    total: f64,
    lost: f64,
}

impl ExactSum {
    fn add(&mut self, term: f64) {
        let total = self.total + term;
        // The exact rounding error of the addition, whichever of the two is larger.
        let term_in_total = total - self.total;
        let lost = (self.total - (total - term_in_total)) + (term - term_in_total);
        self.lost += lost;
        self.total = total;
    }

    fn append(&mut self, next: ExactSum) {
        self.add(next.total);
        self.lost += next.lost;
    }

    fn value(self) -> f64 {
        // Once the sum has overflowed, the rounding error is not a number.
        if self.total.is_finite() {
            self.total + self.lost
        } else {
            self.total
        }
    }
}

impl Default for PartialStats {
    fn default() -> PartialStats {
        PartialStats {
            block: StatsBlock::EMPTY,
            sum: ExactSum::default(),
            sum_of_magnitudes: ExactSum::default(),
            sums_of_squares: [ExactSum::default(); 3],
            deviation: 0.0,
            prefix_weight: 0.0,
            histogram: None,
        }
    }
}

impl PartialStats {
    /// Appends the elements that follow.
    pub fn append(&mut self, next: &PartialStats) {
        // First of all, because it needs count and sum of this part alone.
        let deviation =
            self.joint_deviation(next.block.counts.n_finite(), next.sum, next.deviation);
        self.deviation = deviation;
        self.prefix_weight += next.prefix_weight + self.weight_before(next.block.counts.n_elements);
        self.count(&next.block);
        self.sum.append(next.sum);
        self.sum_of_magnitudes.append(next.sum_of_magnitudes);
        for (sum, next) in self.sums_of_squares.iter_mut().zip(next.sums_of_squares) {
            sum.append(next);
        }
        if let Some(next) = &next.histogram {
            self.histogram.get_or_insert_default().append(next);
        }
    }

    pub(super) fn push(&mut self, block: &StatsBlock) {
        let sum = ExactSum {
            total: block.sum,
            lost: 0.0,
        };
        self.deviation = self.joint_deviation(block.counts.n_finite(), sum, block.deviation);
        // No sum of some first elements of a block exceeds the sum of all its magnitudes, and each
        // of them is added to the sum before the block.
        self.prefix_weight += block.counts.n_elements as f64 * block.sum_of_magnitudes
            + self.weight_before(block.counts.n_elements);
        self.count(block);
        self.sum.add(block.sum);
        self.sum_of_magnitudes.add(block.sum_of_magnitudes);
        self.sums_of_squares[block.scale as usize].add(block.sum_of_squares);
    }

    fn count(&mut self, next: &StatsBlock) {
        let all = &mut self.block;
        all.counts.add(&next.counts);
        // `total_cmp`, because -0 is smaller than +0 here.
        if next.min.total_cmp(&all.min).is_lt() {
            all.min = next.min;
        }
        if next.max.total_cmp(&all.max).is_gt() {
            all.max = next.max;
        }
    }

    /// The sum of squared distances from the common mean, of this part and one with the given
    /// count, sum and deviation.
    fn joint_deviation(&self, n_next: u64, sum: ExactSum, deviation: f64) -> f64 {
        let n = self.block.counts.n_finite();
        if n == 0 || n_next == 0 {
            return self.deviation + deviation;
        }
        let (n, n_next) = (n as f64, n_next as f64);
        // The pairwise update by Chan, Golub and LeVeque: no subtraction of large sums.
        let distance = sum.value() / n_next - self.sum.value() / n;
        self.deviation + deviation + distance * distance * (n * (n_next / (n + n_next)))
    }

    /// Returns the amount that the sum so far adds to the weight of `n` elements that follow.
    fn weight_before(&self, n: u64) -> f64 {
        n as f64 * self.sum.value().abs()
    }

    /// A bound from above of the magnitudes of the sums of the first one, two, three and so on
    /// finite elements, added up.
    pub fn prefix_weight(&self) -> f64 {
        self.prefix_weight
    }

    /// The histogram, if requested.
    pub fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_deref()
    }

    /// The statistics of all elements so far.
    pub fn finish(&self) -> Stats {
        let c = &self.block.counts;
        let n_inf = c.n_pos_inf + c.n_neg_inf;
        let n_numbers = c.n_elements - c.n_nan;
        // Infinities were left out of the sums; IEEE arithmetic would have given this.
        let sum = match (c.n_pos_inf > 0, c.n_neg_inf > 0) {
            (true, true) => f64::NAN,
            (true, false) => f64::INFINITY,
            (false, true) => f64::NEG_INFINITY,
            (false, false) => self.sum.value(),
        };
        let or_inf = |value| if n_inf > 0 { f64::INFINITY } else { value };
        Stats {
            counts: *c,
            min: if c.n_neg_inf > 0 {
                f64::NEG_INFINITY
            } else if c.n_finite() == 0 {
                f64::INFINITY
            } else {
                self.block.min
            },
            max: if c.n_pos_inf > 0 {
                f64::INFINITY
            } else if c.n_finite() == 0 {
                f64::NEG_INFINITY
            } else {
                self.block.max
            },
            sum,
            // 0/0 is NaN, which is what an empty tensor's mean is documented to be.
            mean: sum / n_numbers as f64,
            std: if n_inf > 0 {
                f64::NAN
            } else {
                (self.deviation / n_numbers as f64).sqrt()
            },
            l1: or_inf(self.sum_of_magnitudes.value()),
            l2: or_inf(self.root_of_squares()),
        }
    }

    /// [`PartialStats::finish`] and [`PartialStats::prefix_weight`].
    pub(crate) fn weighed(&self) -> StatsAndWeight {
        StatsAndWeight {
            stats: self.finish(),
            prefix_weight: self.prefix_weight,
        }
    }

    /// The square root of the sum of squares, from the sums of each scale.
    fn root_of_squares(&self) -> f64 {
        let [up, none, down] = self.sums_of_squares.map(ExactSum::value);
        let (square_up, square_down) = (power_of_two(600), power_of_two(-600));
        // Squares of one scale count 2^1200 times as much as those of the next.
        if down > 0.0 {
            (down + none * square_down * square_down).sqrt() * square_up
        } else if none > 0.0 || up == 0.0 {
            (none + up * square_down * square_down).sqrt()
        } else {
            up.sqrt() * square_down
        }
    }
}

/// Optional numbers, in addition to the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsOptions {
    /// Whether to count magnitudes by their power of two, which costs several times as much as the
    /// statistics.
    pub has_histogram: bool,
}

/// A section of a tensor of at most [`CHUNK_ELEMENTS`] elements.
#[derive(Clone, Copy, Debug)]
pub struct TensorChunk<'a> {
    pub(super) kind: StatsKind,
    /// Number of elements.
    pub n_elements: usize,
    /// Their bytes, packed elements rounded up to whole bytes.
    pub bytes: &'a [u8],
}

impl TensorChunk<'_> {
    /// The statistics of the chunk alone.
    pub fn look(self, options: StatsOptions) -> PartialStats {
        let mut part = PartialStats::default();
        if options.has_histogram {
            part.histogram = Some(Box::default());
        }
        cpu::run(ChunkTask {
            chunk: self,
            part,
            beside: &mut (),
        })
    }

    /// [`TensorChunk::look`] without options. The reader receives each piece of the bytes
    /// first.
    pub(crate) fn look_beside(self, beside: &mut impl PieceReader) -> PartialStats {
        let part = PartialStats::default();
        cpu::run(ChunkTask {
            chunk: self,
            part,
            beside,
        })
    }
}

/// Cuts `n_elements` elements into chunks. Bytes after the last element are ignored; if there are
/// too few bytes, only complete elements are used.
///
/// # Errors
/// [`StatsError::Dtype`] as for [`stats`](crate::stats()).
pub fn chunks(
    dtype: DType,
    n_elements: usize,
    bytes: &[u8],
) -> Result<impl Iterator<Item = TensorChunk<'_>>, StatsError> {
    let kind = StatsKind::for_dtype(dtype).ok_or(StatsError::Dtype(dtype))?;
    let bits = kind.bits();
    let n_there = bytes
        .len()
        .checked_mul(8)
        .map_or(usize::MAX, |n_bits| n_bits / bits);
    let n_elements = n_elements.min(n_there);
    // A multiple of eight elements, so that chunks of packed elements begin at whole bytes.
    let n_chunk_bytes = CHUNK_ELEMENTS / 8 * bits;
    let n_chunks = n_elements.div_ceil(CHUNK_ELEMENTS);
    Ok(bytes
        .chunks(n_chunk_bytes)
        .take(n_chunks)
        .enumerate()
        .map(move |(i, bytes)| {
            let n_elements = (n_elements - i * CHUNK_ELEMENTS).min(CHUNK_ELEMENTS);
            let bytes = &bytes[..(n_elements * bits).div_ceil(8)];
            TensorChunk {
                kind,
                n_elements,
                bytes,
            }
        }))
}

/// Processes one chunk.
struct ChunkTask<'a, R> {
    chunk: TensorChunk<'a>,
    part: PartialStats,
    beside: &'a mut R,
}

impl<R: PieceReader> LaneTask for ChunkTask<'_, R> {
    type Output = PartialStats;

    #[inline(always)]
    fn run<M: LaneMachine>(self, m: M) -> PartialStats {
        let ChunkTask {
            chunk,
            mut part,
            beside,
        } = self;
        let TensorChunk {
            kind,
            n_elements,
            bytes,
        } = chunk;
        kind.blocks(m, bytes, n_elements, beside, &mut |block| part.push(block));
        if let Some(histogram) = &mut part.histogram {
            kind.each(n_elements, bytes, |value| histogram.add(value));
        }
        part
    }
}

// Blocks and chunks of the narrowest dtypes still end with a piece, or the reader would miss bytes.
const _: () = assert!(BLOCK.is_multiple_of(PIECE_BYTES));
const _: () = assert!((CHUNK_ELEMENTS / 8).is_multiple_of(PIECE_BYTES));

// `root_of_squares` takes the sums of squares apart in this order.
const _: () = assert!(SquareScale::Up as usize == 0 && SquareScale::None as usize == 1);
