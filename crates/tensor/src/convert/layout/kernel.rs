//! Copies nests.
//!
//! Two loops decide the speed: the one with the smallest step in the source and the one with the
//! smallest step in the target. Where they are the same loop, runs are copied one after the other.
//! Where they differ, the two form a grid that must be turned, and it is turned tile by tile.

use super::nest::{Loop, Nest};
use super::turn;

/// Runs of the source that a tile of the grid takes side by side.
const TILE: usize = 8;

/// The slices and the offsets that the remaining loops start from.
pub(super) struct Cursor<'a> {
    pub src: &'a [u8],
    pub dst: &'a mut [u8],
    pub src_at: usize,
    pub dst_at: usize,
}

/// Copies the runs of one nest.
///
/// The plan has checked that `nest.ends()` lie within both slices.
pub(super) fn copy(nest: &Nest, src: &[u8], dst: &mut [u8]) {
    let mut cursor = Cursor {
        src,
        dst,
        src_at: nest.src_base,
        dst_at: nest.dst_base,
    };
    let nearest =
        |step: fn(&Loop) -> usize| (0..nest.loops.len()).min_by_key(|&i| step(&nest.loops[i]));
    let (Some(a), Some(b)) = (nearest(|l| l.src), nearest(|l| l.dst)) else {
        copy_run(&mut cursor, nest.run, 0, 0);
        return;
    };
    let outer: Vec<Loop> = nest
        .loops
        .iter()
        .enumerate()
        .filter(|&(i, _)| i != a && i != b)
        .map(|(_, &l)| l)
        .collect();
    let (run, a, b) = (nest.run, nest.loops[a], (a != b).then(|| nest.loops[b]));
    let inner = select(run, a, b);
    for_each(&outer, &mut cursor, &mut |cursor| inner(cursor, run, a, b));
}

type Inner = fn(&mut Cursor<'_>, usize, Loop, Option<Loop>);

/// The inner loops for this length of run.
fn select(run: usize, a: Loop, b: Option<Loop>) -> Inner {
    if let Some(b) = b
        && a.src == run
        && b.dst == run
    {
        match run {
            1 => return |cursor, _, a, b| turn::grid::<1>(cursor, a, b.unwrap_or(a)),
            2 => return |cursor, _, a, b| turn::grid::<2>(cursor, a, b.unwrap_or(a)),
            4 => return |cursor, _, a, b| turn::grid::<4>(cursor, a, b.unwrap_or(a)),
            _ => {}
        }
    }
    match run {
        1 => |cursor, _, a, b| runs::<1>(cursor, a, b),
        2 => |cursor, _, a, b| runs::<2>(cursor, a, b),
        4 => |cursor, _, a, b| runs::<4>(cursor, a, b),
        8 => |cursor, _, a, b| runs::<8>(cursor, a, b),
        16 => |cursor, _, a, b| runs::<16>(cursor, a, b),
        32 => |cursor, _, a, b| runs::<32>(cursor, a, b),
        64 => |cursor, _, a, b| runs::<64>(cursor, a, b),
        _ => any_runs,
    }
}

/// Runs of a length known to the compiler.
fn runs<const RUN: usize>(cursor: &mut Cursor<'_>, a: Loop, b: Option<Loop>) {
    tiles(a, b, |src_at, dst_at| {
        let (src_at, dst_at) = (cursor.src_at + src_at, cursor.dst_at + dst_at);
        cursor.dst[dst_at..dst_at + RUN].copy_from_slice(&cursor.src[src_at..src_at + RUN]);
    });
}

fn any_runs(cursor: &mut Cursor<'_>, run: usize, a: Loop, b: Option<Loop>) {
    tiles(a, b, |src_at, dst_at| copy_run(cursor, run, src_at, dst_at));
}

fn copy_run(cursor: &mut Cursor<'_>, run: usize, src_at: usize, dst_at: usize) {
    let (src_at, dst_at) = (cursor.src_at + src_at, cursor.dst_at + dst_at);
    cursor.dst[dst_at..dst_at + run].copy_from_slice(&cursor.src[src_at..src_at + run]);
}

/// Visits every point of one or two loops, a few of `a` at a time for each of `b`.
#[inline(always)]
fn tiles(a: Loop, b: Option<Loop>, mut visit: impl FnMut(usize, usize)) {
    let Some(b) = b else {
        for i in 0..a.extent {
            visit(i * a.src, i * a.dst);
        }
        return;
    };
    for first in (0..a.extent).step_by(TILE) {
        for j in 0..b.extent {
            for i in first..a.extent.min(first + TILE) {
                visit(i * a.src + j * b.src, i * a.dst + j * b.dst);
            }
        }
    }
}

/// Calls `visit` with the cursor at every combination of `loops`.
fn for_each(loops: &[Loop], cursor: &mut Cursor<'_>, visit: &mut dyn FnMut(&mut Cursor<'_>)) {
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
    (cursor.src_at, cursor.dst_at) = (src_at, dst_at);
}
