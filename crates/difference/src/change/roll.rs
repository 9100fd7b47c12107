//! Rolled along axes, and moved in memory order.

use super::TensorChange;
use super::arrangement::{Arrangement, strides};
use super::elements::ElementPair;

/// Maximum number of combinations of places along two axes that are tried.
const N_PAIRS_MAX: usize = 1 << 16;
/// Maximum number of places in memory that are tried: those where the first sample is.
const N_PLACES_MAX: usize = 1 << 10;
/// The part of a tensor that has to be golden's where what is beyond an end is lost.
const OVERLAP_MIN: f64 = 0.75;

/// Rolled along one axis, or two.
pub(super) fn along_axes(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let dims = pair.dims();
    // Of two indices both orders are one: they are exchanged.
    let axes: Vec<usize> = (0..dims.len()).filter(|&axis| dims[axis] > 2).collect();
    let alone = axes.iter().find_map(|&axis| {
        let mut places = places(dims[axis]);
        places.find_map(|by| checked(pair, &[(axis, by)]))
    });
    alone.or_else(|| {
        let pairs = axes
            .iter()
            .enumerate()
            .flat_map(|(k, &a)| axes[k + 1..].iter().map(move |&b| [a, b]));
        let few = pairs.filter(|[a, b]| dims[*a].saturating_mul(dims[*b]) <= N_PAIRS_MAX);
        few.into_iter().find_map(|[a, b]| {
            places(dims[a])
                .flat_map(|by| places(dims[b]).map(move |other| [(a, by), (b, other)]))
                .find_map(|axes| checked(pair, &axes))
        })
    })
}

/// 1, -1, 2, -2, …: every place but the own one, the nearest first.
fn places(dim: usize) -> impl Iterator<Item = i64> {
    (1..dim).map(move |k| {
        let by = k.div_ceil(2) as i64;
        if k % 2 == 1 { by } else { -by }
    })
}

fn checked(pair: &ElementPair<'_>, axes: &[(usize, i64)]) -> Option<TensorChange> {
    let dims = pair.dims();
    let strides = strides(dims);
    let source = |axis: usize, by: i64, index: usize| {
        (index as i64 - by).rem_euclid(dims[axis] as i64) as usize
    };
    // Without tables: nearly all candidates fail at the first sample.
    let holds = pair.samples_hold(|position| {
        axes.iter().fold(position, |place, &(axis, by)| {
            let index = position / strides[axis] % dims[axis];
            place - index * strides[axis] + source(axis, by, index) * strides[axis]
        })
    });
    if !holds {
        return None;
    }
    let mut arrangement = Arrangement::in_place(dims);
    for &(axis, by) in axes {
        let indices = 0..dims[axis];
        arrangement.tables[axis] = indices
            .map(|index| source(axis, by, index) * strides[axis])
            .collect();
    }
    let axes = axes.to_vec();
    arrangement
        .holds(pair)
        .then_some(TensorChange::Rolled { axes })
}

/// Rolled in memory order.
pub(super) fn in_memory(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let n = pair.len();
    if pair.dims().len() < 2 {
        return None;
    }
    let mut candidates = candidates(pair).into_iter();
    let by = candidates.find(|&by| pair.holds_in(0..n, |i| (i + n - by) % n))?;
    Some(TensorChange::Moved {
        by: nearest(by, n),
        wraps: true,
    })
}

/// Moved in memory order, as by a wrong offset in a file; the elements at one end are new.
pub(super) fn moved(pair: &ElementPair<'_>) -> Option<TensorChange> {
    let n = pair.len();
    let least = (OVERLAP_MIN * n as f64) as usize;
    let mut candidates = candidates(pair).into_iter().map(|by| nearest(by, n));
    let by = candidates.find(|&by| {
        let distance = by.unsigned_abs() as usize;
        let (first, end) = if by > 0 {
            (distance, n)
        } else {
            (0, n - distance)
        };
        end - first >= least && pair.holds_in(first..end, |i| (i as i64 - by) as usize)
    })?;
    Some(TensorChange::Moved { by, wraps: false })
}

/// Distances between a differing element of the target and its equals on the golden side, the
/// nearest first.
fn candidates(pair: &ElementPair<'_>) -> Vec<usize> {
    let n = pair.len();
    // In the middle, as elements near an end may be gone.
    let differing = pair.samples().iter().min_by_key(|&&i| i.abs_diff(n / 2));
    let Some(&anchor) = differing else {
        return Vec::new();
    };
    let equal = (0..n).filter(|&k| k != anchor && pair.is_same(anchor, k));
    let mut candidates: Vec<usize> = equal
        .take(N_PLACES_MAX)
        .map(|k| (anchor + n - k) % n)
        .collect();
    candidates.sort_by_key(|&by| nearest(by, n).unsigned_abs());
    candidates
}

/// The shorter way round.
fn nearest(by: usize, n: usize) -> i64 {
    if by > n / 2 {
        by as i64 - n as i64
    } else {
        by as i64
    }
}
