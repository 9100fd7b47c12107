//! Why the rest has no partner.

use std::collections::HashMap;

use super::UnmatchedReason;
use super::board::Board;
use super::places::PlaceScope;

/// Leaves everything that is still alone, with the reason.
pub(super) fn explain(board: &mut Board<'_>, scope: &PlaceScope) {
    let mut found: Vec<(usize, usize, UnmatchedReason)> = Vec::new();
    for side in [0, 1] {
        let other = 1 - side;
        let runs = scope.runs[side].iter().copied();
        let free = runs.filter(|&run| board.is_free(side, run));
        // Only names of unmatched operators are stored, a small part of the dump's.
        let mut of_name: HashMap<usize, Vec<usize>> = HashMap::new();
        for run in free.clone() {
            of_name.entry(board.key(side, run).0).or_default();
        }
        if of_name.is_empty() {
            continue;
        }
        for &run in &scope.runs[other] {
            if let Some(runs) = of_name.get_mut(&board.key(other, run).0) {
                runs.push(run);
            }
        }
        for run in free {
            let (name, repeat) = board.key(side, run);
            let namesakes = of_name.get(&name).filter(|runs| !runs.is_empty());
            let namesake = namesakes.map(|runs| runs.get(repeat).copied());
            let reason = match namesake {
                Some(None) => UnmatchedReason::NoSuchRepeat,
                Some(Some(namesake)) if clashes(board, side, run, namesake) => {
                    UnmatchedReason::OtherType(board.run(other, namesake).op_type.to_string())
                }
                _ => match board.doubt_of(side, run) {
                    Some((first, second)) => {
                        UnmatchedReason::Ambiguous(first.clone(), second.clone())
                    }
                    None => UnmatchedReason::NoSuchName,
                },
            };
            // Ranks that share a tensor need collectives; with another number of ranks there are
            // others, or none.
            let is_collective =
                board.sides[side].is_whole && board.run(side, run).collective.is_some();
            let reason = match reason {
                UnmatchedReason::NoSuchName | UnmatchedReason::NoSuchRepeat if is_collective => {
                    UnmatchedReason::Collective
                }
                other => other,
            };
            found.push((side, run, reason));
        }
    }
    for (side, run, reason) in found {
        board.leave(side, run, reason);
    }
}

fn clashes(board: &Board<'_>, side: usize, run: usize, namesake: usize) -> bool {
    if side == 0 {
        board.types_clash(run, namesake)
    } else {
        board.types_clash(namesake, run)
    }
}
