//! Statistics whose sums run through the elements one after the other.
//!
//! This is the definition of MindSpore's `statistic.csv`. Every element is converted to `f64`.
//! Elements are taken in chunks of [`CHUNK`]; within a chunk they are added from the first to the
//! last, and the results of the chunks are combined in order. Partial sums within a chunk are not
//! allowed, so sixteen chunks are added in parallel, each in a separate lane. `docs/statistics.md`
//! has the definition in full.

use super::block::{BLOCK, StatsBlock};
use super::kind::{ElementReader, StatsKind, by_kind};
use super::{StatsError, codes};
use crate::convert::dtype::CodeValues;
use crate::cpu::{self, LANES, LaneMachine, LaneTask};
use crate::{DType, TensorView, convert, digest};

/// Elements whose sum is taken on its own.
pub const CHUNK: usize = 20_480;
/// Elements of each chunk that are processed before going on to the next, so that all of them
/// together stay in the nearer caches.
const TILE: usize = 1024;
/// Fewer chunks than this are added one after the other.
const SIDE_BY_SIDE_MIN: usize = 4;

const _: () = assert!(CHUNK.is_multiple_of(TILE) && TILE.is_multiple_of(LANES));

/// Statistics with sequential sums. NaN propagates to everything but the counts.
///
/// Of an empty tensor `max` is `-inf`, `min` is `+inf`, `mean` is NaN and the rest is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequentialStats {
    /// All elements.
    pub n_elements: u64,
    /// NaN elements.
    pub n_nan: u64,
    /// Elements that are `-inf`.
    pub n_neg_inf: u64,
    /// Elements that are `+inf`.
    pub n_pos_inf: u64,
    /// Zeros of both signs.
    pub n_zero: u64,
    /// Elements below zero, `-inf` included.
    pub n_negative: u64,
    /// Elements above zero, `+inf` included.
    pub n_positive: u64,
    /// The largest element, the earlier one of equal zeros; the last NaN if there is any.
    pub max: f64,
    /// The smallest element, the earlier one of equal zeros; the last NaN if there is any.
    pub min: f64,
    /// The mean. Of several chunks, the sum of their means times their lengths, over the number of
    /// all elements.
    pub mean: f64,
    /// The square root of the sum of squares, which may overflow.
    pub l2: f64,
}

/// Computes statistics with sequential sums.
///
/// # Errors
/// [`StatsError::Dtype`] as for [`stats`](crate::stats()).
pub fn sequential_stats(tensor: TensorView<'_>) -> Result<SequentialStats, StatsError> {
    let kind = StatsKind::for_dtype(tensor.dtype).ok_or(StatsError::Dtype(tensor.dtype))?;
    let n_there = tensor.bytes.len().saturating_mul(8) / kind.bits();
    let n_elements = tensor.shape.n_elements().min(n_there);
    let bytes = &tensor.bytes[..(n_elements * kind.bits()).div_ceil(8)];
    Ok(cpu::run(SequentialTask {
        kind,
        n_elements,
        bytes,
    }))
}

/// MindSpore's MD5 digest of a tensor, with its peculiarity for `int4`: the first bytes of the
/// elements unpacked to `int8`, as many as there are packed bytes.
pub fn sequential_md5(tensor: TensorView<'_>) -> [u8; 16] {
    let bytes = unpacked(tensor);
    digest::md5(bytes.get(..tensor.bytes.len()).unwrap_or(&bytes))
}

/// MindSpore's SHA-1 digest of a tensor: for up to [`CHUNK`] elements, of their bytes (`int4`
/// unpacked); for more, of the hexadecimal digests of the chunks.
pub fn sequential_sha1(tensor: TensorView<'_>) -> [u8; 20] {
    let width = tensor.dtype.bytes().unwrap_or(1);
    let bytes = unpacked(tensor);
    if bytes.len() <= CHUNK * width {
        return digest::sha1(&bytes);
    }
    digest::sha1(
        bytes
            .chunks(CHUNK * width)
            .map(|chunk| digest::hex(&digest::sha1(chunk)))
            .collect::<String>()
            .as_bytes(),
    )
}

fn unpacked(tensor: TensorView<'_>) -> std::borrow::Cow<'_, [u8]> {
    if tensor.dtype == DType::I4
        && let Ok(decoded) = convert::dtype::decode(tensor.dtype, tensor.shape, tensor.bytes)
    {
        return decoded.bytes;
    }
    tensor.bytes.into()
}

/// The numbers of one chunk or of several.
#[derive(Clone, Copy)]
struct SequentialSums {
    n: u64,
    max: f64,
    min: f64,
    sum: f64,
    sum_of_squares: f64,
}

impl SequentialSums {
    const NONE: SequentialSums = SequentialSums {
        n: 0,
        max: f64::NEG_INFINITY,
        min: f64::INFINITY,
        sum: 0.0,
        sum_of_squares: 0.0,
    };

    /// Adds the next element, as an x86 CPU does it, signs of NaN included.
    #[inline(always)]
    fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum = add(self.sum, value);
        // Rust does not define the sign of a product with NaN, so NaN is propagated explicitly.
        let square = if value.is_nan() { value } else { value * value };
        self.sum_of_squares = add(self.sum_of_squares, square);
        if value.is_nan() {
            (self.max, self.min) = (value, value);
        } else {
            self.max = if self.max < value { value } else { self.max };
            self.min = if value < self.min { value } else { self.min };
        }
    }

    /// Appends a chunk that is one of several.
    fn append(&mut self, next: &SequentialSums) {
        let n = next.n as f64;
        let mean = quotient(next.sum, n);
        let sum = if mean.is_nan() { mean } else { mean * n };
        self.n += next.n;
        self.sum = add(self.sum, sum);
        self.sum_of_squares = add(self.sum_of_squares, next.sum_of_squares);
        if next.max.is_nan() {
            (self.max, self.min) = (next.max, next.min);
        } else {
            self.max = if self.max < next.max {
                next.max
            } else {
                self.max
            };
            self.min = if next.min < self.min {
                next.min
            } else {
                self.min
            };
        }
    }
}

/// `a + b`; of NaN the first, and NaN with a minus sign where infinities of both signs meet.
#[inline(always)]
fn add(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_nan() {
        sum
    } else if a.is_nan() {
        a
    } else if b.is_nan() {
        b
    } else {
        f64::NAN.copysign(-1.0)
    }
}

/// `a / n`; NaN propagates.
fn quotient(a: f64, n: f64) -> f64 {
    if a.is_nan() { a } else { a / n }
}

struct SequentialTask<'a> {
    kind: StatsKind,
    n_elements: usize,
    bytes: &'a [u8],
}

impl LaneTask for SequentialTask<'_> {
    type Output = SequentialStats;

    #[inline(always)]
    fn run<M: LaneMachine>(self, m: M) -> SequentialStats {
        let SequentialTask {
            kind,
            n_elements,
            bytes,
        } = self;
        // Every partial sum of short integers is exact, so their order cannot matter.
        let is_short_integer = matches!(
            kind,
            StatsKind::Bool | StatsKind::I8 | StatsKind::U8 | StatsKind::I16 | StatsKind::U16
        );
        by_kind!(kind,
            E => if is_short_integer { short_integers::<M, E>(m, bytes) } else { elements::<M, E>(m, bytes) },
            values => of_codes(&values, n_elements, bytes))
    }
}

/// Any elements of whole bytes.
#[inline(always)]
fn elements<M: LaneMachine, E: ElementReader>(m: M, bytes: &[u8]) -> SequentialStats {
    let mut total = SequentialTotal::new(bytes.len() / E::WIDTH);
    let (groups, rest) = bytes.split_at(bytes.len() / (CHUNK * E::WIDTH) * (CHUNK * E::WIDTH));
    for group in groups.chunks(LANES * CHUNK * E::WIDTH) {
        if group.len() >= SIDE_BY_SIDE_MIN * CHUNK * E::WIDTH {
            side_by_side::<M, E>(m, group, &mut total);
            continue;
        }
        for chunk in group.chunks(CHUNK * E::WIDTH) {
            let chunk = total.look_at_each(chunk.chunks_exact(E::WIDTH).map(E::value));
            total.append(&chunk);
        }
    }
    if !rest.is_empty() {
        let chunk = total.look_at_each(rest.chunks_exact(E::WIDTH).map(E::value));
        total.append(&chunk);
    }
    total.finish()
}

/// Integers for which every partial sum of a chunk is exact.
#[inline(always)]
fn short_integers<M: LaneMachine, E: ElementReader>(m: M, bytes: &[u8]) -> SequentialStats {
    let mut total = SequentialTotal::new(bytes.len() / E::WIDTH);
    for chunk in bytes.chunks(CHUNK * E::WIDTH) {
        let mut sums = SequentialSums::NONE;
        for bytes in chunk.chunks(BLOCK * E::WIDTH) {
            let block = E::block(m, bytes, &mut ());
            total.count(&block);
            sums.n += block.counts.n_elements;
            sums.max = sums.max.max(block.max);
            sums.min = sums.min.min(block.min);
            sums.sum += block.sum;
            sums.sum_of_squares += block.sum_of_squares;
        }
        total.append(&sums);
    }
    total.finish()
}

/// Elements that may be narrower than a byte.
fn of_codes(values: &CodeValues, n_elements: usize, bytes: &[u8]) -> SequentialStats {
    let mut total = SequentialTotal::new(n_elements);
    let mut n_left = n_elements;
    let table: [f64; 256] = std::array::from_fn(|code| (values.value)(code as u8 & values.mask()));
    for chunk in bytes.chunks(CHUNK / 8 * values.n_bits) {
        let n = n_left.min(CHUNK);
        n_left -= n;
        if values.is_integer() {
            let block = codes::block(values, n, chunk);
            total.count(&block);
            total.append(&SequentialSums {
                n: block.counts.n_elements,
                max: block.max,
                min: block.min,
                sum: block.sum,
                sum_of_squares: block.sum_of_squares,
            });
            continue;
        }
        let mut decoded = Vec::with_capacity(n);
        codes::each(values, n, chunk, |code| {
            decoded.push(table[usize::from(code)]);
        });
        let chunk = total.look_at_each(decoded.into_iter());
        total.append(&chunk);
    }
    total.finish()
}

/// Counts, which need no order, and sums.
struct SequentialTotal {
    has_chunks: bool,
    n_nan: u64,
    n_neg_inf: u64,
    n_pos_inf: u64,
    n_zero: u64,
    n_negative: u64,
    sums: SequentialSums,
}

impl SequentialTotal {
    fn new(n_elements: usize) -> SequentialTotal {
        SequentialTotal {
            has_chunks: n_elements > CHUNK,
            n_nan: 0,
            n_neg_inf: 0,
            n_pos_inf: 0,
            n_zero: 0,
            n_negative: 0,
            sums: SequentialSums::NONE,
        }
    }

    /// Appends the next chunk; a single one is the result itself.
    fn append(&mut self, chunk: &SequentialSums) {
        // Appending multiplies a mean by a length, which rounds. A single chunk keeps its own sum.
        if self.has_chunks {
            self.sums.append(chunk);
        } else {
            self.sums = *chunk;
        }
    }

    /// Adds the elements of a chunk one after the other, and counts them.
    #[inline(always)]
    fn look_at_each(&mut self, values: impl Iterator<Item = f64>) -> SequentialSums {
        let mut sums = SequentialSums::NONE;
        for value in values {
            self.n_nan += u64::from(value.is_nan());
            self.n_neg_inf += u64::from(value == f64::NEG_INFINITY);
            self.n_pos_inf += u64::from(value == f64::INFINITY);
            self.n_zero += u64::from(value == 0.0);
            self.n_negative += u64::from(value < 0.0);
            sums.add(value);
        }
        sums
    }

    #[inline(always)]
    fn count(&mut self, block: &StatsBlock) {
        self.n_nan += block.counts.n_nan;
        self.n_neg_inf += block.counts.n_neg_inf;
        self.n_pos_inf += block.counts.n_pos_inf;
        self.n_zero += block.counts.n_zero;
        self.n_negative += block.counts.n_negative;
    }

    fn finish(&self) -> SequentialStats {
        let sums = &self.sums;
        SequentialStats {
            n_elements: sums.n,
            n_nan: self.n_nan,
            n_neg_inf: self.n_neg_inf,
            n_pos_inf: self.n_pos_inf,
            n_zero: self.n_zero,
            n_negative: self.n_negative,
            n_positive: sums.n - self.n_nan - self.n_zero - self.n_negative,
            max: sums.max,
            min: sums.min,
            mean: quotient(sums.sum, sums.n as f64),
            l2: if sums.sum_of_squares.is_nan() {
                sums.sum_of_squares
            } else {
                sums.sum_of_squares.sqrt()
            },
        }
    }
}

/// The state of a chunk while its blocks are added.
#[derive(Clone, Copy)]
struct ChunkLane {
    min: f64,
    max: f64,
    n_zero: u64,
    n_neg_zero: u64,
    is_mixed: bool,
}

impl ChunkLane {
    #[inline(always)]
    fn add(&mut self, block: &StatsBlock) {
        self.min = self.min.min(block.min);
        self.max = self.max.max(block.max);
        self.n_zero += block.counts.n_zero;
        self.n_neg_zero += block.counts.n_neg_zero;
        self.is_mixed |= block.counts.n_finite() < block.counts.n_elements;
    }
}

/// Whole chunks, each in a lane.
#[inline(always)]
fn side_by_side<M: LaneMachine, E: ElementReader>(m: M, bytes: &[u8], total: &mut SequentialTotal) {
    let chunks = || bytes.chunks_exact(CHUNK * E::WIDTH);
    let none = ChunkLane {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        n_zero: 0,
        n_neg_zero: 0,
        is_mixed: false,
    };
    let mut lanes = [none; LANES];
    let (mut sum, mut squares) = (m.reals(), m.reals());
    for tile_at in (0..CHUNK * E::WIDTH).step_by(TILE * E::WIDTH) {
        let tile_end = tile_at + TILE * E::WIDTH;
        // Every chunk is summed in order in a separate lane, so that sixteen sums, each waiting for
        // its last addition, run at once.
        for (chunk, lane) in chunks().zip(&mut lanes) {
            let block = E::block(m, &chunk[tile_at..tile_end], &mut ());
            total.count(&block);
            lane.add(&block);
        }
        for at in (tile_at..tile_end).step_by(LANES * E::WIDTH) {
            // Lanes without a chunk add zeros.
            let mut square = [m.reals(); LANES];
            for (row, chunk) in square.iter_mut().zip(chunks()) {
                *row = E::reals(m, &chunk[at..at + LANES * E::WIDTH]);
            }
            // Rows are chunks; after turning, a register has the next element of each chunk.
            for value in m.transpose(&square) {
                sum = m.add(sum, value);
                squares = m.add(squares, m.multiply(value, value));
            }
        }
    }
    let (sum, squares) = (m.array(sum), m.array(squares));
    for (i, (chunk, lane)) in chunks().zip(lanes).enumerate() {
        let mut sums = SequentialSums {
            n: CHUNK as u64,
            max: lane.max,
            min: lane.min,
            sum: sum[i],
            sum_of_squares: squares[i],
        };
        // Only the plain way determines signs of NaN, and which of several zeros came first.
        let is_plain = lane.is_mixed
            || !(sums.sum.is_finite() && sums.sum_of_squares.is_finite())
            || (1..lane.n_zero).contains(&lane.n_neg_zero);
        if is_plain {
            sums = SequentialSums::NONE;
            chunk
                .chunks_exact(E::WIDTH)
                .for_each(|element| sums.add(E::value(element)));
        }
        total.append(&sums);
    }
}
