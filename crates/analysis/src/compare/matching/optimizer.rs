//! Operators of an optimizer, by the parameter that they update.
//!
//! An optimizer runs the same few operators for each parameter, in the order in which it got the
//! parameters. Their names are counters, so that another order would pair the update of one
//! parameter with that of another.

use std::collections::{BTreeMap, HashMap};

use opscope_store::record::SlotSide;

use super::board::Board;
use super::places::PlaceScope;
use super::{MatchEvidence, SlotRef};
use crate::compare::side::ComparedDump;

/// The phase whose operators are meant.
const PHASE: &str = "optimizer";
/// The phase before the updates of an optimizer that a program has written itself.
const BEFORE: &str = "backward";

/// Operators of one type that update one parameter, in the order of execution.
type Updates<'a> = BTreeMap<(String, &'a str), Vec<usize>>;

/// Pairs the operators that update parameters of one name, where both sides run equally many of a
/// type.
pub(super) fn equal(board: &mut Board<'_>, scope: &PlaceScope) {
    let [targets, goldens] = [0, 1].map(|side| updates(board.sides[side], &scope.runs[side]));
    for (key, target) in &targets {
        let Some(golden) = goldens.get(key) else {
            continue;
        };
        // Another optimizer runs other operators, and no number identifies the matching ones.
        if target.len() != golden.len() {
            continue;
        }
        for (&t, &g) in target.iter().zip(golden) {
            if board.is_free(0, t) && board.is_free(1, g) {
                board.pair(t, g, MatchEvidence::Name);
            }
        }
    }
}

fn updates<'a>(dump: &'a ComparedDump, runs: &[usize]) -> Updates<'a> {
    let mut updates = Updates::new();
    let is_told = runs.iter().any(|&run| dump.phase_of(run) == Some(PHASE));
    let updated = if is_told {
        updated_parameters(dump, runs)
    } else {
        // Nothing tells the updates of a program's own optimizer from its forward pass.
        let last = runs
            .iter()
            .rposition(|&run| dump.phase_of(run) == Some(BEFORE));
        owned(dump, last.map_or(&[], |last| &runs[last + 1..]))
    };
    for (run, parameter) in updated {
        let key = (parameter, dump.runs[run].op_type.as_str());
        updates.entry(key).or_default().push(run);
    }
    updates
}

/// The parameter that each of some executions helps to update, in their order; others are left out.
pub(crate) fn updated_parameters(dump: &ComparedDump, runs: &[usize]) -> Vec<(usize, String)> {
    let runs = runs.iter().copied();
    let runs: Vec<usize> = runs
        .filter(|&run| dump.phase_of(run) == Some(PHASE))
        .collect();
    owned(dump, &runs)
}

/// The one parameter that each execution and those connected with it belong to.
fn owned(dump: &ComparedDump, runs: &[usize]) -> Vec<(usize, String)> {
    let groups = connected(dump, runs);
    let mut names: HashMap<usize, Vec<String>> = HashMap::new();
    for &run in runs {
        let inputs = inputs(dump, run).filter_map(|slot| dump.parameter_of(slot));
        names.entry(groups[&run]).or_default().extend(inputs);
    }
    let owned = runs.iter().filter_map(|run| {
        let parameter = names.get(&groups[run]).and_then(|names| owner(names))?;
        Some((*run, parameter.to_owned()))
    });
    owned.collect()
}

/// The parameter that all names belong to: `w` of `w`, `w.grad` and `w.exp_avg`; none if they are
/// of several, as in an operator that updates all parameters at once.
fn owner(names: &[String]) -> Option<&str> {
    let shortest = names.iter().min_by_key(|name| name.len())?;
    names
        .iter()
        .all(|name| {
            let rest = name.strip_prefix(shortest.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .then_some(shortest.as_str())
}

/// The group of each execution: executions that pass values to each other have the same.
fn connected(dump: &ComparedDump, runs: &[usize]) -> HashMap<usize, usize> {
    let mut groups: HashMap<usize, usize> = HashMap::new();
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for &run in runs {
        groups.insert(run, run);
        members.insert(run, vec![run]);
        for made in inputs(dump, run).filter_map(|slot| dump.producer_of(slot)) {
            let (Some(&other), own) = (groups.get(&made.run), groups[&run]) else {
                continue;
            };
            if other == own {
                continue;
            }
            // The later group joins the earlier one, whose number stays.
            for moved in members.remove(&own).unwrap_or_default() {
                groups.insert(moved, other);
                members.entry(other).or_default().push(moved);
            }
        }
    }
    groups
}

fn inputs(dump: &ComparedDump, run: usize) -> impl Iterator<Item = SlotRef> {
    let slots = dump.runs[run].slots.iter().enumerate();
    let inputs = slots.filter(|(_, slot)| slot.side == SlotSide::Input);
    inputs.map(move |(slot, _)| SlotRef { run, slot })
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn state_belongs_to_its_parameter() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let state = names(&["a.weight.exp_avg", "a.weight", "a.weight.grad"]);
        assert_eq!(owner(&state), Some("a.weight"));
        // `ab` is not a tensor of `a`, and a fused update has several parameters.
        assert_eq!(owner(&names(&["a", "ab"])), None);
        assert_eq!(owner(&names(&["a.weight", "b.weight"])), None);
        assert_eq!(owner(&[]), None);
    }
}
