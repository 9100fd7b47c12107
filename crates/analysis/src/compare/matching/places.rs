//! Which rank, model and step of one side is which of the other.

mod models;

use std::collections::{BTreeMap, BTreeSet};

use super::{MatchingOptions, UnmatchedExecution, UnmatchedReason};
use crate::compare::result::Party;
use crate::compare::side::{ComparedDump, OperatorExecution};

/// Executions of one place on each side, in order.
#[derive(Debug, PartialEq)]
pub(super) struct PlaceScope {
    /// Those of the target and of the golden side.
    pub runs: [Vec<usize>; 2],
    /// Whether both dumps list operators in execution order.
    pub is_ordered: bool,
}

/// The places whose operators may match.
pub(super) struct PlaceScopes {
    pub scopes: Vec<PlaceScope>,
    /// Executions at a place that the other side does not have.
    pub apart: Vec<UnmatchedExecution>,
}

/// Executions by a part of their place.
type Grouped<K> = BTreeMap<K, Vec<usize>>;

/// Brings ranks together, within them models, within those steps.
pub(super) fn align(
    target: &ComparedDump,
    golden: &ComparedDump,
    options: &MatchingOptions,
) -> PlaceScopes {
    let sides = [target, golden];
    let mut places = PlaceScopes {
        scopes: Vec::new(),
        apart: Vec::new(),
    };
    let all = sides.map(|side| (0..side.runs.len()).collect::<Vec<_>>());
    for ranks in places.level(sides, &all, &options.ranks, |run| run.place.rank) {
        for models in models::align(sides, &ranks, &options.models, &mut places) {
            let shifted = shifted_steps(sides, &models, options.step_offset);
            let steps = shifted.as_ref().unwrap_or(&options.steps);
            for runs in places.level(sides, &models, steps, |run| run.place.step) {
                places.scopes.push(PlaceScope::new(sides, runs));
            }
        }
    }
    places
}

/// Matches steps with different numbers: by the user's offset, or by a constant offset if no number
/// is on both sides. A run may start counting elsewhere, or after warm-up steps.
fn shifted_steps(
    sides: [&ComparedDump; 2],
    runs: &[Vec<usize>; 2],
    offset: Option<i64>,
) -> Option<Vec<(u64, u64)>> {
    let [targets, goldens] = [0, 1].map(|i| {
        let steps = runs[i]
            .iter()
            .filter_map(|&run| sides[i].runs[run].place.step);
        steps.collect::<BTreeSet<u64>>()
    });
    if let Some(offset) = offset {
        let pairs = goldens.iter();
        let pairs = pairs.filter_map(|&golden| Some((golden.checked_add_signed(offset)?, golden)));
        return Some(pairs.collect());
    }
    // A dump that lacks steps in between has other distances.
    let pairs = targets.iter().zip(&goldens);
    let mut distances = pairs.map(|(target, golden)| target.abs_diff(*golden));
    let first = distances.next()?;
    let is_shifted = targets.is_disjoint(&goldens)
        && targets.len() == goldens.len()
        && targets.len() > 1
        && distances.all(|other| other == first);
    is_shifted.then(|| targets.into_iter().zip(goldens).collect())
}

impl PlaceScope {
    fn new(sides: [&ComparedDump; 2], mut runs: [Vec<usize>; 2]) -> PlaceScope {
        let is_ordered = [0, 1].map(|i| put_in_order(sides[i], &mut runs[i]));
        PlaceScope {
            runs,
            is_ordered: is_ordered == [true, true],
        }
    }
}

/// Sorts the executions of a place by the task numbers in their names, else by time. Returns
/// whether the order is known: without distinct numbers or times it is not, as arrays in a
/// directory are listed by name.
fn put_in_order(side: &ComparedDump, runs: &mut [usize]) -> bool {
    let has_tasks = runs.iter().any(|&run| side.runs[run].task_id.is_some());
    if has_tasks || runs.len() < 2 {
        return true;
    }
    let time = |run: usize| side.runs[run].timestamp_us;
    let is_timed = runs.iter().all(|&run| time(run).is_some());
    let is_known = is_timed && runs.iter().any(|&run| time(run) != time(runs[0]));
    if is_known {
        runs.sort_by_key(|&run| time(run));
    }
    is_known
}

impl PlaceScopes {
    /// Ranks or steps: those that are chosen; else the only one of each side; else equal numbers.
    fn level<N: Copy + Ord>(
        &mut self,
        sides: [&ComparedDump; 2],
        runs: &[Vec<usize>; 2],
        chosen: &[(N, N)],
        number: impl Fn(&OperatorExecution) -> Option<N>,
    ) -> Vec<[Vec<usize>; 2]> {
        let mut groups = [0, 1].map(|i| grouped(&runs[i], |run| number(&sides[i].runs[run])));
        let mut pairs: Vec<[Option<N>; 2]> = Vec::new();
        let reason = if chosen.is_empty() {
            match [0, 1].map(|i| only(&groups[i])) {
                // Constants of a graph have no step and stay next to those that have one.
                [Some(t), Some(g)] => pairs.extend([[t, g], [None, None]]),
                _ => {
                    let shared = groups[0].keys().filter(|key| groups[1].contains_key(key));
                    pairs.extend(shared.map(|&key| [key, key]));
                }
            }
            UnmatchedReason::NoSuchPlace
        } else {
            // A side that says no number has one place, which every choice means.
            let key = |i: usize, n: N| {
                let is_unnumbered = groups[i].keys().all(Option::is_none);
                Some(n).filter(|_| !is_unnumbered)
            };
            pairs.extend(chosen.iter().map(|&(t, g)| [key(0, t), key(1, g)]));
            UnmatchedReason::LeftOut
        };
        let mut found = Vec::new();
        for [t, g] in pairs {
            // Both are looked for before either is taken out, as a group without a partner has yet
            // to get its reason.
            let is_there = groups[0].contains_key(&t) && groups[1].contains_key(&g);
            if is_there && let (Some(t), Some(g)) = (groups[0].remove(&t), groups[1].remove(&g)) {
                found.push([t, g]);
            }
        }
        for (i, groups) in groups.into_iter().enumerate() {
            for (key, runs) in groups {
                // The user wanted this one, so that its partner is missing and nothing was left
                // out.
                let is_chosen = chosen.iter().any(|&(t, g)| key == Some([t, g][i]));
                let reason = if is_chosen {
                    UnmatchedReason::NoSuchPlace
                } else {
                    reason.clone()
                };
                self.set_apart(i, &runs, &reason);
            }
        }
        found
    }

    fn set_apart(&mut self, side: usize, runs: &[usize], reason: &UnmatchedReason) {
        self.apart
            .extend(runs.iter().map(|&run| UnmatchedExecution {
                party: Party::BOTH[side],
                run,
                reason: reason.clone(),
            }));
    }
}

/// The only number. Entries without a number are ignored unless there are no others.
fn only<N: Copy + Ord>(groups: &Grouped<Option<N>>) -> Option<Option<N>> {
    let mut numbers = groups.keys().filter(|key| key.is_some());
    match (numbers.next(), numbers.next()) {
        (None, _) if groups.is_empty() => None,
        (first, None) => Some(first.copied().flatten()),
        _ => None,
    }
}

fn grouped<K: Ord>(runs: &[usize], key: impl Fn(usize) -> K) -> Grouped<K> {
    let mut groups = Grouped::new();
    for &run in runs {
        groups.entry(key(run)).or_insert_with(Vec::new).push(run);
    }
    groups
}
