//! Equal types in the order of execution.

mod sequence;

use std::collections::HashMap;

use super::board::{Board, PairingGap};
use super::fuzzy::NameTokens;
use super::places::PlaceScope;
use super::{MatchEvidence, slots};

/// Operators of the same kind, on the same side of a match, that might be meant instead.
const N_ALTERNATIVES_MAX: usize = 16;

/// The properties that must agree: the type and the shape of the first output.
type Kind<'a> = (&'a str, Option<Vec<u64>>);

/// Pairs operators of the same type and shape in the same order between pairs: first those that
/// compute, then those that only pass values on, of which one side may have many more.
pub(super) fn align(board: &mut Board<'_>, scope: &PlaceScope) {
    for has_views in [false, true] {
        for gap in board.gaps(scope) {
            if gap.runs.iter().all(|runs| !runs.is_empty()) {
                for [t, g] in matches(board, &gap, has_views) {
                    if !board.is_baseless(&[t], &[g]) {
                        board.pair(t, g, MatchEvidence::Order);
                    }
                }
            }
        }
    }
}

fn matches(board: &Board<'_>, gap: &PairingGap, has_views: bool) -> Vec<[usize; 2]> {
    let mut ids: HashMap<Kind<'_>, u32> = HashMap::new();
    let mut kinds = [0, 1].map(|side| {
        let mut kinds: Vec<(usize, u32)> = Vec::new();
        for &run in &gap.runs[side] {
            let op_type = board.op_type(side, run);
            if op_type.is_view && !has_views {
                continue;
            }
            let kind = (
                op_type.name(),
                slots::first_extents(board.run(side, run), true),
            );
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            kinds.push((run, *ids.entry(kind).or_insert(next)));
        }
        kinds
    });
    // A shape alone is weak evidence: it counts only if everything else agrees too.
    let is_identical = kinds[0]
        .iter()
        .map(|k| k.1)
        .eq(kinds[1].iter().map(|k| k.1));
    if !is_identical {
        for (side, kinds) in kinds.iter_mut().enumerate() {
            kinds.retain(|&(run, _)| !board.op_type(side, run).is_empty());
        }
    }
    let [a, b] = [0, 1].map(|side| kinds[side].iter().map(|k| k.1).collect::<Vec<u32>>());
    let mut found = sequence::common(&a, &b);
    nearest_names(board, &kinds, &mut found);
    found
        .into_iter()
        .map(|[i, j]| [kinds[0][i].0, kinds[1][j].0])
        .collect()
}

/// Where one side has several of a kind in a row and the other fewer, prefers those with the likest
/// names.
fn nearest_names(board: &Board<'_>, kinds: &[Vec<(usize, u32)>; 2], found: &mut [[usize; 2]]) {
    for side in [0, 1] {
        for n in 0..found.len() {
            let [i, j] = found[n];
            let own = [i, j][side];
            let fixed = [i, j][1 - side];
            // The match before may have been moved already, and the order has to hold for what it
            // is now.
            let start = n.checked_sub(1).map_or(0, |before| found[before][side] + 1);
            let end = found
                .get(n + 1)
                .map_or(kinds[side].len(), |after| after[side]);
            if end - start < 2 {
                continue;
            }
            let kind = kinds[side][own].1;
            let others = (start..end).filter(|&k| kinds[side][k].1 == kind && k != own);
            let tokens = NameTokens::split(board.name(1 - side, kinds[1 - side][fixed].0));
            let likeness =
                |k: usize| tokens.likeness(&NameTokens::split(board.name(side, kinds[side][k].0)));
            let mut best = (likeness(own), own);
            for k in others.take(N_ALTERNATIVES_MAX) {
                let found = likeness(k);
                if found > best.0 {
                    best = (found, k);
                }
            }
            found[n][side] = best.1;
        }
    }
}
