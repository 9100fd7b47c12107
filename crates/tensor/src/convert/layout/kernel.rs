//! Copies nests.
//!
//! Two loops decide the speed: the one with the smallest step in the source and the one with the
//! smallest step in the target. Where they are the same loop, runs are copied one after the other.
//! Where they differ, the two form a grid that must be turned, and it is turned tile by tile.

use super::cursor::CopyCursor;
use super::nest::{CopyLoop, LoopNest};
use super::turn;

/// Bytes that a tile of runs spans in the source.
const TILE_SRC_BYTES: usize = 2048;
/// Bytes that a tile of runs spans in the target: rows are written in long pieces.
const TILE_DST_BYTES: usize = 4096;

/// Copies the runs of one nest.
///
/// The plan has checked that `nest.ends()` lie within both slices.
pub(super) fn copy(nest: &LoopNest, src: &[u8], dst: &mut [u8]) {
    let mut cursor = CopyCursor {
        src,
        dst,
        src_at: nest.src_base,
        dst_at: nest.dst_base,
    };
    let once = CopyLoop {
        extent: 1,
        src: 0,
        dst: 0,
    };
    let mut outer = nest.loops.clone();
    let mut take_nearest = |step: fn(&CopyLoop) -> usize| {
        let nearest = (0..outer.len()).min_by_key(|&i| step(&outer[i]));
        nearest.map_or(once, |i| outer.remove(i))
    };
    // Nearest in the source, nearest in the target, and what leads from grid to grid.
    let a = take_nearest(|l| l.src);
    let b_is_nearer = nest.loops.iter().any(|l| l.dst < a.dst);
    // Where one loop is the nearest on both sides, there is nothing to turn.
    let b = if b_is_nearer {
        take_nearest(|l| l.dst)
    } else {
        once
    };
    // The plan has sorted loops by their steps, so that the last one left is the nearest of them.
    let c = outer.pop().unwrap_or(once);
    let inner = select(nest.run, a, b);
    // The outer loops are called through a pointer: they run seldom, and their number varies.
    for_each(&outer, &mut cursor, &mut |cursor| {
        inner(cursor, nest.run, [a, b, c]);
    });
}

type Inner = fn(&mut CopyCursor<'_>, usize, [CopyLoop; 3]);

/// The inner loops for this length of run.
fn select(run: usize, a: CopyLoop, b: CopyLoop) -> Inner {
    if a.src == run && b.dst == run {
        match run {
            1 => return |cursor, _, [a, b, c]| turn::grids::<1, 16, 8>(cursor, a, b, c),
            2 => return |cursor, _, [a, b, c]| turn::grids::<2, 8, 4>(cursor, a, b, c),
            4 => return |cursor, _, [a, b, c]| turn::grids::<4, 4, 2>(cursor, a, b, c),
            8 => return |cursor, _, [a, b, c]| turn::grids::<8, 2, 1>(cursor, a, b, c),
            _ => {}
        }
    }
    // A copy of constant length is a few moves; of any other it is a call of `memcpy`.
    match run {
        1 => runs::<1>,
        2 => runs::<2>,
        4 => runs::<4>,
        8 => runs::<8>,
        16 => runs::<16>,
        32 => runs::<32>,
        64 => runs::<64>,
        _ => any_runs,
    }
}

/// Runs of a length known to the compiler.
fn runs<const RUN: usize>(cursor: &mut CopyCursor<'_>, _: usize, loops: [CopyLoop; 3]) {
    tiles(RUN, loops, |src_at, dst_at| {
        let (src_at, dst_at) = (cursor.src_at + src_at, cursor.dst_at + dst_at);
        // So many streams run side by side that the CPU would not see them as such.
        turn::fetch(cursor.src.as_ptr().wrapping_add(src_at + turn::FETCH_BYTES));
        cursor.dst[dst_at..dst_at + RUN].copy_from_slice(&cursor.src[src_at..src_at + RUN]);
    });
}

fn any_runs(cursor: &mut CopyCursor<'_>, run: usize, loops: [CopyLoop; 3]) {
    tiles(run, loops, |src_at, dst_at| {
        let (src_at, dst_at) = (cursor.src_at + src_at, cursor.dst_at + dst_at);
        cursor.dst[dst_at..dst_at + run].copy_from_slice(&cursor.src[src_at..src_at + run]);
    });
}

/// Visits every point of the loops, in tiles that are near one another in both slices.
#[inline(always)]
fn tiles(run: usize, [a, b, c]: [CopyLoop; 3], mut visit: impl FnMut(usize, usize)) {
    let (a_tile, b_tile) = (TILE_SRC_BYTES.div_ceil(run), TILE_DST_BYTES.div_ceil(run));
    for k in 0..c.extent {
        for a_start in (0..a.extent).step_by(a_tile) {
            let a_end = a.extent.min(a_start + a_tile);
            for b_start in (0..b.extent).step_by(b_tile) {
                let b_end = b.extent.min(b_start + b_tile);
                for i in a_start..a_end {
                    for j in b_start..b_end {
                        let src_at = k * c.src + i * a.src + j * b.src;
                        visit(src_at, k * c.dst + i * a.dst + j * b.dst);
                    }
                }
            }
        }
    }
}

/// Calls `visit` with the cursor at every combination of `loops`.
fn for_each(
    loops: &[CopyLoop],
    cursor: &mut CopyCursor<'_>,
    visit: &mut dyn FnMut(&mut CopyCursor<'_>),
) {
    let [outermost, rest @ ..] = loops else {
        visit(cursor);
        return;
    };
    let (src_at, dst_at) = (cursor.src_at, cursor.dst_at);
    for i in 0..outermost.extent {
        cursor.src_at = src_at + i * outermost.src;
        cursor.dst_at = dst_at + i * outermost.dst;
        for_each(rest, cursor, visit);
    }
    // The loop outside adds its own steps to where the cursor stood.
    (cursor.src_at, cursor.dst_at) = (src_at, dst_at);
}
