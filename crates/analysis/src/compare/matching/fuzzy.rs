//! Likeness of operators that nothing else brings together.

use std::collections::HashMap;

use opscope_store::record::SlotSide;

use super::board::{Board, PairingGap};
use super::places::PlaceScope;
use super::{MatchEvidence, slots};

/// Weights of name, type, shapes, dtypes and place. They add up to 1.
const WEIGHTS: [f64; 5] = [0.35, 0.25, 0.2, 0.05, 0.15];
/// The least likeness at which an operator is taken for another.
const LIKENESS_MIN: f64 = 0.6;
/// By how much it has to be more like it than any other.
const LEAD_MIN: f64 = 0.1;
/// The likeness of things of which one is unknown.
const UNKNOWN: f64 = 0.5;
/// The likeness of types that differ in words, without any table saying that they are others.
const OTHER_WORD: f64 = 0.2;
/// In larger gaps, only operators this close by position are considered.
const N_NEAR: usize = 32;
/// Maximum number of pairs considered at any distance; larger if the order is unknown, because
/// distance is undefined then.
const N_PAIRS_MAX: usize = 4096;
const N_UNORDERED_PAIRS_MAX: usize = 1 << 20;
/// Maximum number of passes.
const N_ROUNDS_MAX: usize = 32;

/// The parts of a name, sorted.
pub(super) struct NameTokens(Vec<String>);

impl NameTokens {
    /// Words and numbers of a name, in lower case.
    pub(super) fn split(name: &str) -> NameTokens {
        let mut tokens = Vec::new();
        let mut token = String::new();
        let mut before: Option<char> = None;
        for c in name.chars() {
            let is_break = before.is_some_and(|before| {
                let is_hump = before.is_lowercase() && c.is_uppercase();
                is_hump || before.is_ascii_digit() != c.is_ascii_digit()
            });
            if (is_break || !c.is_alphanumeric()) && !token.is_empty() {
                tokens.push(std::mem::take(&mut token));
            }
            if c.is_alphanumeric() {
                token.extend(c.to_lowercase());
            }
            before = Some(c);
        }
        if !token.is_empty() {
            tokens.push(token);
        }
        // Sorted, since `likeness` counts what two names share in one pass over both.
        tokens.sort_unstable();
        NameTokens(tokens)
    }

    /// Twice the shared parts over all parts: 1 if they are the same, 0 if there is nothing in
    /// common.
    pub(super) fn likeness(&self, other: &NameTokens) -> f64 {
        let (a, b) = (&self.0, &other.0);
        // Two names without a word would be divided by nothing.
        if a.is_empty() || b.is_empty() {
            return 0.0;
        }
        let (mut i, mut j, mut n_shared) = (0, 0, 0);
        while i < a.len() && j < b.len() {
            match a[i].cmp(&b[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    n_shared += 1;
                    i += 1;
                    j += 1;
                }
            }
        }
        2.0 * f64::from(n_shared) / (a.len() + b.len()) as f64
    }
}

/// A candidate: likeness, and positions in the gap.
type Candidate = (f64, [usize; 2]);

/// Pairs operators between the same pairs that are enough like each other, and clearly more than
/// any other is like one of them. Where two are about equally like, neither is taken.
pub(super) fn likely(board: &mut Board<'_>, scope: &PlaceScope) {
    for gap in board.gaps(scope) {
        if gap.runs.iter().any(Vec::is_empty) {
            continue;
        }
        // Operators taken earlier no longer compete.
        let mut is_taken = [0, 1].map(|i| vec![false; gap.runs[i].len()]);
        let candidates = candidates(board, &gap, scope.is_ordered);
        // A round may take a single pair, so without a bound a large gap would cost the square of
        // its size.
        for _ in 0..N_ROUNDS_MAX {
            // Operators taken in this round stay rivals until the next, so that the order of
            // candidates does not matter.
            let best = best(&candidates, &is_taken);
            let mut has_new = false;
            for &(likeness, [t, g]) in &candidates {
                let is_best = [(0, t), (1, g)].into_iter().all(|(side, n)| {
                    let found: Option<&[f64; 2]> = best[side].get(&n);
                    found.is_some_and(|&[first, second]| {
                        likeness == first && first - second >= LEAD_MIN
                    })
                });
                if !is_taken[0][t] && !is_taken[1][g] && is_best {
                    is_taken[0][t] = true;
                    is_taken[1][g] = true;
                    has_new = true;
                    let (t, g) = (gap.runs[0][t], gap.runs[1][g]);
                    if !board.is_baseless(&[t], &[g]) {
                        board.pair(t, g, MatchEvidence::Fuzzy(likeness));
                    }
                }
            }
            if !has_new {
                break;
            }
        }
        doubts(board, &gap, &candidates, &is_taken);
    }
}

/// Notes the two likest of each operator that has stayed alone though there are any.
fn doubts(
    board: &mut Board<'_>,
    gap: &PairingGap,
    candidates: &[Candidate],
    is_taken: &[Vec<bool>; 2],
) {
    for side in [0, 1] {
        let mut likest: HashMap<usize, Vec<Candidate>> = HashMap::new();
        for &(likeness, places) in candidates {
            if !is_taken[0][places[0]] && !is_taken[1][places[1]] {
                likest
                    .entry(places[side])
                    .or_default()
                    .push((likeness, places));
            }
        }
        for (n, mut candidates) in likest {
            // Of equals the first in order, so that the same dumps lead to the same words.
            candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            if let [first, second, ..] = candidates[..] {
                let [first, second] = [first, second].map(|candidate| {
                    let run = gap.runs[1 - side][candidate.1[1 - side]];
                    board.run(1 - side, run).op_name.to_string()
                });
                board.doubt(side, gap.runs[side][n], (first, second));
            }
        }
    }
}

/// The best likeness of each that is not taken, and the second best.
fn best(candidates: &[Candidate], is_taken: &[Vec<bool>; 2]) -> [HashMap<usize, [f64; 2]>; 2] {
    let mut best = [HashMap::new(), HashMap::new()];
    for &(likeness, [t, g]) in candidates {
        if is_taken[0][t] || is_taken[1][g] {
            continue;
        }
        for (side, n) in [t, g].into_iter().enumerate() {
            let [first, second] = best[side].entry(n).or_insert([0.0; 2]);
            if likeness > *first {
                (*first, *second) = (likeness, *first);
            } else if likeness > *second {
                *second = likeness;
            }
        }
    }
    best
}

/// Features of an operator that are compared again and again.
struct OperatorFeatures {
    tokens: NameTokens,
    extents: Option<Vec<u64>>,
}

/// Everything that is like enough.
fn candidates(board: &Board<'_>, gap: &PairingGap, is_ordered: bool) -> Vec<Candidate> {
    let features = [0, 1].map(|side| {
        gap.runs[side]
            .iter()
            .map(|&run| OperatorFeatures {
                tokens: NameTokens::split(board.name(side, run)),
                extents: slots::first_extents(board.run(side, run), true),
            })
            .collect::<Vec<_>>()
    });
    let [n, m] = [0, 1].map(|side| gap.runs[side].len());
    let n_pairs_max = if is_ordered {
        N_PAIRS_MAX
    } else {
        N_UNORDERED_PAIRS_MAX
    };
    let is_small = n.saturating_mul(m) <= n_pairs_max;
    let mut candidates = Vec::new();
    for (t, of_target) in features[0].iter().enumerate() {
        let near = if is_small {
            0..m
        } else {
            // Without a pair in between, the same relative position is the most likely one.
            let middle = t * m / n;
            middle.saturating_sub(N_NEAR)..(middle + N_NEAR).min(m)
        };
        for (g, of_golden) in features[1]
            .iter()
            .enumerate()
            .take(near.end)
            .skip(near.start)
        {
            let [a, b] = [gap.runs[0][t], gap.runs[1][g]];
            let has_both = of_target.extents.is_some() && of_golden.extents.is_some();
            if board.types_clash(a, b) || (has_both && of_target.extents != of_golden.extents) {
                continue;
            }
            let distance = (t as f64 + 0.5) / n as f64 - (g as f64 + 0.5) / m as f64;
            let place = if is_ordered {
                1.0 - distance.abs()
            } else {
                UNKNOWN
            };
            let [by_extents, by_dtype] = of_slots(board, a, b);
            let parts = [
                of_target.tokens.likeness(&of_golden.tokens),
                of_types(board, a, b),
                by_extents,
                by_dtype,
                place,
            ];
            let likeness = WEIGHTS
                .iter()
                .zip(parts)
                .map(|(weight, part)| weight * part)
                .sum();
            if likeness >= LIKENESS_MIN {
                candidates.push((likeness, [t, g]));
            }
        }
    }
    candidates
}

fn of_types(board: &Board<'_>, t: usize, g: usize) -> f64 {
    let (a, b) = (board.op_type(0, t), board.op_type(1, g));
    match () {
        () if a.is_same(b) => 1.0,
        () if a.is_empty() || b.is_empty() => UNKNOWN,
        () => OTHER_WORD,
    }
}

/// The shares of common outputs with equal shape, and with equal dtype.
fn of_slots(board: &Board<'_>, t: usize, g: usize) -> [f64; 2] {
    let [targets, goldens] = [board.run(0, t), board.run(1, g)].map(|run| {
        let slots = run.slots.iter();
        slots.filter(|slot| slot.side == SlotSide::Output)
    });
    let (mut n, mut n_extents, mut n_dtypes) = (0.0, 0.0, 0.0);
    for (a, b) in targets.zip(goldens) {
        n += 1.0;
        n_extents += match (slots::extents(a), slots::extents(b)) {
            (Some(a), Some(b)) => f64::from(u8::from(a == b)),
            _ => UNKNOWN,
        };
        n_dtypes += match (a.dtype, b.dtype) {
            (Some(a), Some(b)) => f64::from(u8::from(a == b)),
            _ => UNKNOWN,
        };
    }
    if n == 0.0 {
        return [UNKNOWN; 2];
    }
    [n_extents / n, n_dtypes / n]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_by_their_parts() {
        for (a, b, expected) in [
            ("layer1_conv", "Layer1/Conv", 1.0),
            ("conv1", "conv_1", 1.0),
            ("layerNorm2", "layer_norm_2", 1.0),
            ("conv1", "relu1", 0.5),
            ("conv", "relu", 0.0),
            ("", "relu", 0.0),
            ("a_b_c", "a_b", 0.8),
            ("größe/Ä", "Größe_ä", 1.0),
        ] {
            let found = NameTokens::split(a).likeness(&NameTokens::split(b));
            assert!((found - expected).abs() < 1e-12, "{a} {b}: {found}");
        }
    }
}
