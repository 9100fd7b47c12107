//! Equal names.

use std::collections::HashMap;

use super::MatchEvidence;
use super::board::{Board, Key};
use super::places::PlaceScope;

/// Pairs the n-th execution of a name with the n-th of the other side, unless they are known to be
/// operators of different types, or compute numbers of different kinds.
pub(super) fn equal(board: &mut Board<'_>, scope: &PlaceScope) {
    let mut of_key: HashMap<Key, usize> = HashMap::with_capacity(scope.runs[1].len());
    for &run in &scope.runs[1] {
        of_key.insert(board.key(1, run), run);
    }
    let [n_targets, n_goldens] = [0, 1].map(|side| type_counts(board, scope, side));
    let free = scope.runs[0].iter();
    let free = free
        .filter(|&&run| board.is_free(0, run) && !board.sides[0].uncertain_names.contains(&run));
    let found: Vec<(usize, usize)> = free
        .filter_map(|&run| {
            let partner = *of_key.get(&board.key(0, run))?;
            let is_partner = board.is_free(1, partner)
                && !board.sides[1].uncertain_names.contains(&partner)
                && !board.types_clash(run, partner)
                && !board.kinds_clash(run, partner)
                && !board.views_clash(run, partner);
            // With as many operators of a type on both sides their names are not shifted.
            let op_type = board.run(0, run).op_type.as_str();
            let is_shifted = n_targets.get(op_type) != n_goldens.get(op_type);
            let phases =
                [(0, run), (1, partner)].map(|(side, run)| board.sides[side].phase_of(run));
            let is_partner = is_partner
                && !(is_shifted
                    && (phases[0] != phases[1] || board.logged_views_clash(run, partner)));
            is_partner.then_some((run, partner))
        })
        .collect();
    for (t, g) in found {
        board.pair(t, g, MatchEvidence::Name);
    }
}

/// How many operators of each type there are on a side.
fn type_counts<'a>(board: &Board<'a>, scope: &PlaceScope, side: usize) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for &run in &scope.runs[side] {
        *counts
            .entry(board.run(side, run).op_type.as_str())
            .or_default() += 1;
    }
    counts
}

/// Pairs equal names of different types at the same position: a replaced operator. Elsewhere the
/// names are numbers that were assigned again.
pub(super) fn equal_between_anchors(board: &mut Board<'_>, scope: &PlaceScope) {
    for gap in board.gaps(scope) {
        let [targets, goldens] = [0, 1].map(|side| {
            let (runs, uncertain) = (gap.runs[side].iter(), &board.sides[side].uncertain_names);
            runs.filter(move |run| !uncertain.contains(run))
        });
        let of_key = goldens.map(|&g| (board.key(1, g), g));
        let of_key: HashMap<Key, usize> = of_key.collect();
        let pairs = targets.filter_map(|&t| Some((t, *of_key.get(&board.key(0, t))?)));
        let found: Vec<(usize, usize)> = pairs
            .filter(|&(t, g)| board.has_like_outputs(t, g))
            .collect();
        for (t, g) in found {
            board.pair(t, g, MatchEvidence::Name);
        }
    }
}
