//! Turning a grid of narrow elements: consecutive elements of the source go to different rows of
//! the target and the other way round.
//!
//! The grid is taken in squares as wide as a 64-bit word. Rows of the source are read as words,
//! turned with shifts and masks, and written as words. The last square of a row or column is moved
//! back to overlap the one before, so that only grids narrower than a square take the plain loop.

use super::kernel::Cursor;
use super::nest::Loop;

/// Elements of the target written one behind the other before the next row gets its share.
const LINE_BYTES: usize = 64;

/// Turns a grid of elements of `WIDTH` bytes. Along `a` the source is dense, along `b` the target.
pub(super) fn grid<const WIDTH: usize>(cursor: &mut Cursor<'_>, a: Loop, b: Loop) {
    let side = 8 / WIDTH;
    if a.extent < side || b.extent < side {
        plain::<WIDTH>(cursor, a, b);
        return;
    }
    let line = LINE_BYTES / WIDTH;
    for line_start in (0..b.extent).step_by(line) {
        for i in (0..a.extent).step_by(side) {
            let i = i.min(a.extent - side);
            for j in (line_start..b.extent.min(line_start + line)).step_by(side) {
                let j = j.min(b.extent - side);
                square::<WIDTH>(cursor, a.dst, b.src, i, j);
            }
        }
    }
}

/// The specification of [`grid`]: one element after the other.
fn plain<const WIDTH: usize>(cursor: &mut Cursor<'_>, a: Loop, b: Loop) {
    for i in 0..a.extent {
        for j in 0..b.extent {
            let src_at = cursor.src_at + i * WIDTH + j * b.src;
            let dst_at = cursor.dst_at + i * a.dst + j * WIDTH;
            cursor.dst[dst_at..dst_at + WIDTH].copy_from_slice(&cursor.src[src_at..src_at + WIDTH]);
        }
    }
}

/// Turns the square whose first element is at `i` along `a` and `j` along `b`.
#[inline(always)]
fn square<const WIDTH: usize>(
    cursor: &mut Cursor<'_>,
    a_dst: usize,
    b_src: usize,
    i: usize,
    j: usize,
) {
    let side = 8 / WIDTH;
    let src_at = cursor.src_at + i * WIDTH + j * b_src;
    let dst_at = cursor.dst_at + i * a_dst + j * WIDTH;
    let mut words = [0_u64; 8];
    for (row, word) in words.iter_mut().enumerate().take(side) {
        let at = src_at + row * b_src;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&cursor.src[at..at + 8]);
        *word = u64::from_le_bytes(bytes);
    }
    turn_words(&mut words, WIDTH);
    for (row, word) in words.iter().enumerate().take(side) {
        let at = dst_at + row * a_dst;
        cursor.dst[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

/// Turns a square of `8 / width` words: exchanges the off-diagonal halves, then those of each
/// half, down to single elements.
#[inline(always)]
fn turn_words(words: &mut [u64; 8], width: usize) {
    match width {
        4 => exchange(words, 2, 1, 32, 0x0000_0000_ffff_ffff),
        2 => {
            exchange(words, 4, 2, 32, 0x0000_0000_ffff_ffff);
            exchange(words, 4, 1, 16, 0x0000_ffff_0000_ffff);
        }
        _ => {
            exchange(words, 8, 4, 32, 0x0000_0000_ffff_ffff);
            exchange(words, 8, 2, 16, 0x0000_ffff_0000_ffff);
            exchange(words, 8, 1, 8, 0x00ff_00ff_00ff_00ff);
        }
    }
}

/// For each pair of rows `distance` apart: the upper halves of the first against the lower halves
/// of the second.
#[inline(always)]
fn exchange(words: &mut [u64; 8], side: usize, distance: usize, shift: u32, lower: u64) {
    for row in 0..side {
        if row & distance == 0 {
            let (first, second) = (words[row], words[row + distance]);
            words[row] = first & lower | (second & lower) << shift;
            words[row + distance] = first >> shift & lower | second & !lower;
        }
    }
}
