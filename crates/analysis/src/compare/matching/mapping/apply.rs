//! Pairing what a mapping names.

use std::collections::HashMap;

use opscope_store::record::SlotSide;

use super::{Mapping, MappingError, OperatorMapping};
use crate::compare::matching::board::Board;
use crate::compare::matching::names::file_name;
use crate::compare::matching::places::PlaceScope;
use crate::compare::matching::slots::{self, OperatorGroup, Position};
use crate::compare::matching::{MatchEvidence, UnmatchedReason};
use crate::compare::slot_key::SlotKey;
use crate::compare::verdict::is_match;

/// The names of sides.
const SIDES: [&str; 2] = ["target", "golden"];

/// An entry of a mapping, checked: names as file names have them.
pub(crate) struct CheckedMapping {
    names: [Vec<String>; 2],
    runs: [Option<usize>; 2],
    slots: Vec<[(Option<String>, Position); 2]>,
}

/// A name with the execution that is meant.
type Claim = (usize, String, Option<usize>);

/// Executions of a name of a side that are taken, and where in the mapping.
type Claims = HashMap<(usize, String), Vec<(Option<usize>, String)>>;

/// Checks a mapping against both sides, and leaves out what it ignores.
pub(crate) fn resolve(
    mapping: &Mapping,
    board: &mut Board<'_>,
) -> Result<Vec<CheckedMapping>, MappingError> {
    let known = [0, 1].map(|side| {
        let runs = 0..board.sides[side].runs.len();
        let mut known: HashMap<String, usize> = HashMap::new();
        for run in runs {
            *known.entry(board.name(side, run).to_owned()).or_insert(0) += 1;
        }
        known
    });
    let mut claims = Claims::new();
    let mut entries = Vec::new();
    for (index, given) in mapping.operators.iter().enumerate() {
        let place = format!("operators[{index}]");
        if given.target.as_slice().is_empty() && given.golden.as_slice().is_empty() {
            return Err(MappingError::Nothing { place });
        }
        let entry = CheckedMapping::check(given, &place)?;
        for side in [0, 1] {
            let given = [&given.target, &given.golden][side].as_slice();
            for (name, given) in entry.names[side].iter().zip(given) {
                let place = format!("{place}.{}", SIDES[side]);
                if !known[side].contains_key(name) {
                    return Err(MappingError::UnknownName {
                        place,
                        side: SIDES[side],
                        name: given.clone(),
                    });
                }
                claim(&mut claims, (side, name.clone(), entry.runs[side]), &place)?;
            }
        }
        entries.push(entry);
    }
    if !mapping.ignore.is_empty() {
        ignore(&mapping.ignore, board);
    }
    Ok(entries)
}

/// Notes that a name is taken, for one of its executions or for all.
fn claim(claims: &mut Claims, (side, name, run): Claim, place: &str) -> Result<(), MappingError> {
    let known = claims.entry((side, name.clone())).or_default();
    // An entry without a number takes all executions of its name.
    let clash = known
        .iter()
        .find(|(other, _)| run.is_none() || other.is_none() || run == *other);
    if let Some((_, first)) = clash {
        return Err(MappingError::Twice {
            place: place.to_owned(),
            name,
            first: first.clone(),
        });
    }
    known.push((run, place.to_owned()));
    Ok(())
}

fn ignore(patterns: &[String], board: &mut Board<'_>) {
    for side in [0, 1] {
        for run in 0..board.sides[side].runs.len() {
            // Users copy names from a dump or from its files, and those differ in marks.
            let names = [board.run(side, run).op_name.as_str(), board.name(side, run)];
            let is_ignored = patterns
                .iter()
                .any(|pattern| names.iter().any(|name| is_match(pattern, name)));
            // An operator in a place that the other side lacks already has that reason.
            if board.is_free(side, run) && is_ignored {
                board.leave(side, run, UnmatchedReason::LeftOut);
            }
        }
    }
}

impl CheckedMapping {
    fn check(given: &OperatorMapping, place: &str) -> Result<CheckedMapping, MappingError> {
        let names = [&given.target, &given.golden].map(|names| {
            let names = names.as_slice().iter();
            names.map(|name| file_name(name)).collect::<Vec<_>>()
        });
        let mut slots: Vec<[(Option<String>, Position); 2]> = Vec::new();
        for (target, golden) in &given.slots {
            let place = format!("{place}.slots");
            let parsed = [(0, target), (1, golden)].map(|(side, text)| {
                slot(text, &names[side]).ok_or_else(|| MappingError::Slot {
                    place: place.clone(),
                    text: text.clone(),
                })
            });
            let [target_slot, golden_slot] = parsed;
            let pair = [target_slot?, golden_slot?];
            for (i, text) in [target, golden].into_iter().enumerate() {
                if slots.iter().any(|known| known[i] == pair[i]) {
                    return Err(MappingError::Twice {
                        place: place.clone(),
                        name: text.clone(),
                        first: place,
                    });
                }
            }
            slots.push(pair);
        }
        Ok(CheckedMapping {
            names,
            runs: [given.target_run, given.golden_run],
            slots,
        })
    }
}

/// `output.1`, or `relu1:output.1`.
fn slot(text: &str, names: &[String]) -> Option<(Option<String>, Position)> {
    // Names may hold colons, as `aten::add` does, and slots never do.
    let (name, slot) = match text.rsplit_once(':') {
        Some((name, slot)) => {
            let name = file_name(name);
            let is_known = names.contains(&name);
            (Some(is_known.then_some(name)?), slot)
        }
        None => (None, text),
    };
    let key = SlotKey::parse(slot)?;
    Some((name, (key.side, key.index)))
}

/// Pairs what a mapping names within a place.
pub(crate) fn apply(entries: &[CheckedMapping], board: &mut Board<'_>, scope: &PlaceScope) {
    if entries.is_empty() {
        return;
    }
    let runs_of = [0, 1].map(|side| {
        let mut of_name: HashMap<String, Vec<usize>> = HashMap::new();
        for &run in scope.runs[side]
            .iter()
            .filter(|&&run| board.is_free(side, run))
        {
            of_name
                .entry(board.name(side, run).to_owned())
                .or_default()
                .push(run);
        }
        of_name
    });
    for entry in entries {
        // Executions of an entry: the n-th of each of its names.
        let executions =
            [0, 1].map(|side| executions(&runs_of[side], &entry.names[side], entry.runs[side]));
        let [targets, goldens] = &executions;
        let is_left_out = entry.names.iter().any(Vec::is_empty);
        for (t, g) in targets.iter().zip(goldens) {
            if !is_left_out && !t.is_empty() && !g.is_empty() {
                pair(board, entry, [t.clone(), g.clone()]);
            }
        }
        // Operators in an entry are never guessed, not even if the other side ran them less often.
        let reason = if is_left_out {
            UnmatchedReason::LeftOut
        } else {
            UnmatchedReason::NoSuchRepeat
        };
        for side in [0, 1] {
            for &run in executions[side].iter().flatten() {
                if board.is_free(side, run) {
                    board.leave(side, run, reason.clone());
                }
            }
        }
    }
}

fn executions(
    of_name: &HashMap<String, Vec<usize>>,
    names: &[String],
    chosen: Option<usize>,
) -> Vec<Vec<usize>> {
    let lists: Vec<&Vec<usize>> = names.iter().filter_map(|name| of_name.get(name)).collect();
    let n = lists.iter().map(|runs| runs.len()).max().unwrap_or(0);
    let numbers = match chosen {
        Some(run) => run..run.saturating_add(1),
        None => 0..n,
    };
    numbers
        .map(|n| {
            lists
                .iter()
                .filter_map(|runs| runs.get(n).copied())
                .collect()
        })
        .collect()
}

fn pair(board: &mut Board<'_>, entry: &CheckedMapping, mut runs: [Vec<usize>; 2]) {
    for (side, runs) in runs.iter_mut().enumerate() {
        board.sort(side, runs);
    }
    if let ([t], [g]) = (&runs[0][..], &runs[1][..]) {
        let given: Vec<[Position; 2]> = entry.slots.iter().map(|[t, g]| [t.1, g.1]).collect();
        let pair = slots::one_to_one(board.sides, [*t, *g], MatchEvidence::Mapping, &given);
        board.add(pair);
        return;
    }
    let find = |side: usize, (name, position): &(Option<String>, Position)| {
        let run = match name {
            Some(name) => runs[side]
                .iter()
                .find(|&&run| board.name(side, run) == name),
            // Values enter a group at its first operator and leave it at its last.
            None if position.0 == SlotSide::Input => runs[side].first(),
            None => runs[side].last(),
        };
        Some((*run?, *position))
    };
    let given = entry
        .slots
        .iter()
        .filter_map(|[t, g]| Some([find(0, t)?, find(1, g)?]));
    let group = OperatorGroup {
        given: given.collect(),
        runs: runs.clone(),
        origins: &|_, _, _| None,
        is_end_shared: true,
    };
    board.pair_group(&group, MatchEvidence::Mapping);
}
