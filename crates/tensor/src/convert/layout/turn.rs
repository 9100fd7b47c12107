//! Turning a grid of narrow elements: consecutive elements of the source go to different rows of
//! the target and the other way round.
//!
//! The grid is taken in squares as wide as a register, or half that for narrow grids. The last
//! square of a row or column is moved back to overlap the one before, so that only grids narrower
//! than the smallest square take the plain loop, [`plain`], which is the specification of the
//! others.
//!
//! Unsafe because rows of a square are read and written without a check for each:
//! [`TurnGrids::new`] has checked the furthest byte of all of them.

#![allow(unsafe_code)]

use super::cursor::CopyCursor;
use super::nest::CopyLoop;

/// Consecutive bytes copied along the longer side of the grid. Several cache lines at a time,
/// because steps that are multiples of a page make short visits expensive.
const LONG_BYTES: usize = 512;
/// Bytes that a tile has along the other side.
const SHORT_BYTES: usize = LINE_BYTES;
/// A cache line.
const LINE_BYTES: usize = 64;
/// How far ahead of copying to fetch.
pub(super) const FETCH_BYTES: usize = 512;
/// Grids up to this span are fetched whole, so many ahead.
const SMALL_GRID_BYTES: usize = 2048;
/// See [`SMALL_GRID_BYTES`].
const N_GRIDS_AHEAD: usize = 8;
/// Of larger grids with rows of one line, up to this many rows are fetched.
const NARROW_GRID_ROWS: usize = 64;

/// Turns grids of elements of `WIDTH` bytes. Along `a` the source is dense, along `b` the target;
/// `c` leads from grid to grid.
///
/// Squares have a side of `SIDE` elements, which are 16 bytes, or of `HALF`, which are 8.
pub(super) fn grids<const WIDTH: usize, const SIDE: usize, const HALF: usize>(
    cursor: &mut CopyCursor<'_>,
    a: CopyLoop,
    b: CopyLoop,
    c: CopyLoop,
) {
    const { assert!(WIDTH * SIDE == 16 && WIDTH * HALF == 8) };
    let narrowest = a.extent.min(b.extent);
    let grids = match TurnGrids::<WIDTH>::new(cursor, a, b, c) {
        // With elements of 8 bytes half a square is a single element, and there is nothing to turn.
        Some(grids) if narrowest >= HALF && (HALF > 1 || narrowest >= SIDE) => grids,
        _ => return plain::<WIDTH>(cursor, a, b, c),
    };
    if cfg!(target_arch = "x86_64") && narrowest >= SIDE {
        grids.in_squares::<SIDE>(|src, src_step, dst, dst_step| {
            // SAFETY: `in_squares` promises `SIDE` rows of 16 bytes at both pointers.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                vector_square::<WIDTH, SIDE>(src, src_step, dst, dst_step);
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = (src, src_step, dst, dst_step);
        });
    } else {
        grids.in_squares::<HALF>(|src, src_step, dst, dst_step| {
            // SAFETY: `in_squares` promises `HALF` rows of 8 bytes at both pointers.
            unsafe { word_square::<WIDTH, HALF>(src, src_step, dst, dst_step) };
        });
    }
}

/// The specification: one element after the other.
fn plain<const WIDTH: usize>(cursor: &mut CopyCursor<'_>, a: CopyLoop, b: CopyLoop, c: CopyLoop) {
    for k in 0..c.extent {
        for i in 0..a.extent {
            for j in 0..b.extent {
                let src_at = cursor.src_at + k * c.src + i * WIDTH + j * b.src;
                let dst_at = cursor.dst_at + k * c.dst + i * a.dst + j * WIDTH;
                cursor.dst[dst_at..dst_at + WIDTH]
                    .copy_from_slice(&cursor.src[src_at..src_at + WIDTH]);
            }
        }
    }
}

/// Grids that lie within their slices.
struct TurnGrids<'a, const WIDTH: usize> {
    src: &'a [u8],
    dst: &'a mut [u8],
    a: CopyLoop,
    b: CopyLoop,
    c: CopyLoop,
}

impl<'a, const WIDTH: usize> TurnGrids<'a, WIDTH> {
    /// Cuts the slices to the grids; `None` if these do not lie within them.
    fn new(cursor: &'a mut CopyCursor<'_>, a: CopyLoop, b: CopyLoop, c: CopyLoop) -> Option<Self> {
        let n_src = span(
            a.extent.checked_mul(WIDTH)?,
            [(b.extent, b.src), (c.extent, c.src)],
        )?;
        let n_dst = span(
            b.extent.checked_mul(WIDTH)?,
            [(a.extent, a.dst), (c.extent, c.dst)],
        )?;
        Some(TurnGrids {
            src: cursor.src.get(cursor.src_at..)?.get(..n_src)?,
            dst: cursor.dst.get_mut(cursor.dst_at..)?.get_mut(..n_dst)?,
            a,
            b,
            c,
        })
    }

    /// Calls `turn` for squares that cover the grids, with the first row of the square in source
    /// and target and the steps from row to row. From both pointers on, `SIDE` rows of `SIDE`
    /// elements are within the slices. Does nothing if a dimension is less than `SIDE`.
    #[inline(always)]
    fn in_squares<const SIDE: usize>(self, turn: impl Fn(*const u8, usize, *mut u8, usize)) {
        let TurnGrids { src, dst, a, b, c } = self;
        let (src, dst) = (src.as_ptr(), dst.as_mut_ptr());
        let (Some(last_i), Some(last_j)) = (a.extent.checked_sub(SIDE), b.extent.checked_sub(SIDE))
        else {
            return;
        };
        // Long visits go along the longer side, so that fewer of them begin on a new page.
        let is_b_long = a.extent <= b.extent;
        let (short, long) = if is_b_long {
            (a.extent, b.extent)
        } else {
            (b.extent, a.extent)
        };
        for k in 0..c.extent {
            fetch_grid(src, k, c.src, [b.extent, b.src, a.extent * WIDTH]);
            fetch_grid(dst, k, c.dst, [a.extent, a.dst, b.extent * WIDTH]);
            fetch_rows(src, k, c.src, [b.extent, b.src, a.extent * WIDTH]);
            tiles::<WIDTH, SIDE>(short, long, |short_at, long_at| {
                let (i, j) = if is_b_long {
                    (short_at, long_at)
                } else {
                    (long_at, short_at)
                };
                let (i, j) = (i.min(last_i), j.min(last_j));
                // SAFETY: `i` and `j` are at least `SIDE` below their sizes and `k` is below its
                // size, so the square lies within a grid, and `new` has cut the slices to the
                // grids.
                let (src, dst) = unsafe {
                    (
                        src.add(k * c.src + j * b.src + i * WIDTH),
                        dst.add(k * c.dst + i * a.dst + j * WIDTH),
                    )
                };
                turn(src, b.src, dst, a.dst);
            });
        }
    }
}

/// Bytes from the first to the last of rows of `n_bytes`, at every combination of the loops, each a
/// size and a step. `None` if there are none or no memory could hold them.
fn span(n_bytes: usize, loops: [(usize, usize); 2]) -> Option<usize> {
    loops.iter().try_fold(n_bytes, |span, &(extent, step)| {
        span.checked_add(extent.checked_sub(1)?.checked_mul(step)?)
    })
}

/// Visits the squares of a grid in tiles, along the long side first.
#[inline(always)]
fn tiles<const WIDTH: usize, const SIDE: usize>(
    short: usize,
    long: usize,
    visit: impl Fn(usize, usize),
) {
    let (short_step, long_step) = (SHORT_BYTES / WIDTH, LONG_BYTES / WIDTH);
    for long_start in (0..long).step_by(long_step) {
        for short_start in (0..short).step_by(short_step) {
            for i in (short_start..short.min(short_start + short_step)).step_by(SIDE) {
                for j in (long_start..long.min(long_start + long_step)).step_by(SIDE) {
                    visit(i, j);
                }
            }
        }
    }
}

/// Turns a square of 64-bit words: exchanges the off-diagonal halves, then those of each half,
/// down to single elements.
///
/// # Safety
/// `SIDE` words must be readable from `src` on and writable from `dst` on, at these steps.
#[inline(always)]
unsafe fn word_square<const WIDTH: usize, const SIDE: usize>(
    src: *const u8,
    src_step: usize,
    dst: *mut u8,
    dst_step: usize,
) {
    let mut words = [0_u64; SIDE];
    for (row, word) in words.iter_mut().enumerate() {
        // SAFETY: the caller promises this word.
        *word = u64::from_le(unsafe { src.add(row * src_step).cast::<u64>().read_unaligned() });
    }
    if SIDE >= 8 {
        exchange(&mut words, 4, 32, 0x0000_0000_ffff_ffff);
        exchange(&mut words, 2, 16, 0x0000_ffff_0000_ffff);
        exchange(&mut words, 1, 8, 0x00ff_00ff_00ff_00ff);
    } else if SIDE >= 4 {
        exchange(&mut words, 2, 32, 0x0000_0000_ffff_ffff);
        exchange(&mut words, 1, 16, 0x0000_ffff_0000_ffff);
    } else if SIDE >= 2 {
        exchange(&mut words, 1, 32, 0x0000_0000_ffff_ffff);
    }
    for (row, word) in words.iter().enumerate() {
        // SAFETY: the caller promises this word.
        unsafe {
            dst.add(row * dst_step)
                .cast::<u64>()
                .write_unaligned(word.to_le());
        };
    }
}

/// For each pair of rows `distance` apart: the upper halves of the first against the lower halves
/// of the second.
#[inline(always)]
fn exchange<const SIDE: usize>(words: &mut [u64; SIDE], distance: usize, shift: u32, lower: u64) {
    for row in (0..SIDE).filter(|row| row & distance == 0) {
        let (first, second) = (words[row], words[row + distance]);
        words[row] = first & lower | (second & lower) << shift;
        words[row + distance] = first >> shift & lower | second & !lower;
    }
}

/// Turns a square of 16-byte rows: log2(SIDE) rounds, each a perfect shuffle of all its elements.
///
/// # Safety
/// `SIDE` rows of 16 bytes must be readable from `src` on and writable from `dst` on, at these
/// steps.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn vector_square<const WIDTH: usize, const SIDE: usize>(
    src: *const u8,
    src_step: usize,
    dst: *mut u8,
    dst_step: usize,
) {
    use std::arch::x86_64::*;

    // SAFETY: the instructions belong to SSE2, which every x86-64 CPU has; the caller promises the
    // rows.
    unsafe {
        let mut rows = [_mm_setzero_si128(); SIDE];
        for (k, row) in rows.iter_mut().enumerate() {
            *row = _mm_loadu_si128(src.add(k * src_step).cast());
        }
        for _ in 0..SIDE.ilog2() {
            let old = rows;
            for k in 0..SIDE / 2 {
                let (first, second) = (old[k], old[k + SIDE / 2]);
                (rows[2 * k], rows[2 * k + 1]) = match WIDTH {
                    1 => (
                        _mm_unpacklo_epi8(first, second),
                        _mm_unpackhi_epi8(first, second),
                    ),
                    2 => (
                        _mm_unpacklo_epi16(first, second),
                        _mm_unpackhi_epi16(first, second),
                    ),
                    4 => (
                        _mm_unpacklo_epi32(first, second),
                        _mm_unpackhi_epi32(first, second),
                    ),
                    _ => (
                        _mm_unpacklo_epi64(first, second),
                        _mm_unpackhi_epi64(first, second),
                    ),
                };
            }
        }
        for (k, row) in rows.iter().enumerate() {
            _mm_storeu_si128(dst.add(k * dst_step).cast(), *row);
        }
    }
}

/// Fetches the grid some way behind number `k` if it is small and does not follow the one before,
/// which the CPU would not guess. Rows are given by their number, their step and their length.
#[inline(always)]
fn fetch_grid(bytes: *const u8, k: usize, grid_step: usize, rows: [usize; 3]) {
    let [n_rows, row_step, n_row_bytes] = rows;
    let span = (n_rows - 1) * row_step + n_row_bytes;
    if span <= SMALL_GRID_BYTES && span < grid_step {
        // The last grids have no successor, so the address may leave the slice.
        let grid = bytes.wrapping_add((k + N_GRIDS_AHEAD).wrapping_mul(grid_step));
        (0..span)
            .step_by(LINE_BYTES)
            .for_each(|at| fetch(grid.wrapping_add(at)));
    }
}

/// Prefetches short, distant rows of the grid some way after number `k`: they are parallel streams,
/// too many for the CPU's own prefetcher.
#[inline(always)]
fn fetch_rows(bytes: *const u8, k: usize, grid_step: usize, rows: [usize; 3]) {
    let [n_rows, row_step, n_row_bytes] = rows;
    let is_narrow = n_rows <= NARROW_GRID_ROWS && n_row_bytes <= LINE_BYTES;
    if is_narrow && n_rows * row_step > SMALL_GRID_BYTES {
        let n_grids = (2 * FETCH_BYTES / grid_step.max(1)).clamp(4, 16);
        let grid = bytes.wrapping_add((k + n_grids).wrapping_mul(grid_step));
        (0..n_rows).for_each(|row| fetch(grid.wrapping_add(row * row_step)));
    }
}

/// Asks the CPU to bring in the cache line at an address, which need not be valid.
#[inline(always)]
pub(super) fn fetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads and writes nothing that the program can see, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests;
