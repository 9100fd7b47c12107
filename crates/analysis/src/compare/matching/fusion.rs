//! One operator that was fused from several.

mod guess;
mod rules;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::MatchEvidence;
use super::board::Board;
use super::names::file_name;
use super::places::PlaceScope;
use super::slots::OperatorGroup;

pub(super) use guess::{by_name, chains};
pub use rules::{FusedOperator, FusionRules, FusionRulesError};

/// The compiler's fusion rules for each side.
type Rules<'a> = [Option<&'a FusionRules>; 2];

/// Names of the operators that a run was fused from; empty if unknown.
fn stated_originals<'b>(
    board: &Board<'b>,
    rules: Rules<'b>,
    side: usize,
    run: usize,
) -> impl Iterator<Item = &'b String> {
    let rule = rules[side].and_then(|rules| rules.get(board.name(side, run)));
    let names = match rule {
        Some(rule) => &rule.originals[..],
        None => &board.run(side, run).original_names,
    };
    names.iter().filter(|name| !name.is_empty())
}

/// The same names as file names have them, each once.
fn originals(board: &Board<'_>, rules: Rules<'_>, side: usize, run: usize) -> Vec<String> {
    let mut seen = HashSet::new();
    stated_originals(board, rules, side, run)
        .map(|name| file_name(name))
        .filter(|name| seen.insert(name.clone()))
        .collect()
}

/// Which operators made the outputs of a fused one, by the rules and else by the dump.
fn origins(
    board: &Board<'_>,
    rules: Rules<'_>,
    side: usize,
    run: usize,
) -> HashMap<(usize, u32), (String, u32)> {
    let rule = rules[side].and_then(|rules| rules.get(board.name(side, run)));
    let mut known = HashMap::new();
    let mut seen = HashSet::new();
    let slots = board.run(side, run).slots.iter();
    for slot in slots.filter(|slot| slot.side == opscope_store::record::SlotSide::Output) {
        // Of several outputs of one position the first counts.
        if !seen.insert(slot.index) {
            continue;
        }
        let position = usize::try_from(slot.index).ok();
        let by_rule = rule.and_then(|rule| rule.outputs.get(position?)?.clone());
        let origin = by_rule.or_else(|| slot.original().cloned());
        known.extend(origin.map(|origin| ((run, slot.index), origin)));
    }
    known
}

/// Pairs operators with those from which they were fused, as recorded.
///
/// One of which the other side has no part but the one with its own name is fused there just as
/// well.
pub(super) fn declared(board: &mut Board<'_>, scope: &PlaceScope, rules: Rules<'_>) {
    for side in [0, 1] {
        let other = 1 - side;
        // Operators that were fused from the same ones, and share them. The map is ordered, since
        // groups may want the same members, and hashing must not decide who gets them.
        let mut groups: BTreeMap<(Vec<String>, usize), Vec<usize>> = BTreeMap::new();
        for &run in scope.runs[side]
            .iter()
            .filter(|&&run| board.is_free(side, run))
        {
            let names = originals(board, rules, side, run);
            if !names.is_empty() {
                let (_, repeat) = board.key(side, run);
                groups.entry((names, repeat)).or_default().push(run);
            }
        }
        if groups.is_empty() {
            continue;
        }
        let own = by_key(board, scope, side);
        let of_key = by_key(board, scope, other);
        for ((names, repeat), runs) in groups {
            let found = |name: &String| of_key.get(&(name.clone(), repeat)).copied();
            let mut members: Vec<usize> = names.iter().filter_map(found).collect();
            members.retain(|&member| {
                board.is_free(other, member)
                    && !is_kept(board, rules, (side, &own), (&runs, member, repeat))
            });
            board.sort(other, &mut members);
            // A fused operator may have the name of its first part, and say what its last one was.
            if let [run] = runs[..]
                && let Some(&namesake) = of_key.get(&(board.name(side, run).to_owned(), repeat))
                && board.is_free(other, namesake)
                && members.first().is_some_and(|&first| {
                    board.position(other, namesake) < board.position(other, first)
                })
            {
                members.insert(0, namesake);
            }
            // Where the other side has fused the same operators into this name, both are whole
            // partners, whom equal names bring together.
            let is_same_fused = runs.iter().any(|&run| {
                let partner = of_key.get(&(board.name(side, run).to_owned(), repeat));
                partner.is_some_and(|&partner| originals(board, rules, other, partner) == names)
            });
            let is_itself = members.len() == 1
                && runs
                    .iter()
                    .any(|&run| board.name(side, run) == board.name(other, members[0]));
            if members.is_empty() || is_itself || is_same_fused {
                continue;
            }
            // If the last part was not dumped, the last member's output is an inner value, not the
            // fused operator's output.
            let is_end_shared = names.last().is_some_and(|last| {
                let end = members.last().map(|&run| board.name(other, run));
                end == Some(last) || names.iter().all(|name| found(name).is_some())
            });
            pair(board, (side, rules), runs, members, is_end_shared);
        }
    }
}

/// Returns the executions without a partner yet, by name and repeat.
fn by_key(board: &Board<'_>, scope: &PlaceScope, side: usize) -> HashMap<(String, usize), usize> {
    let free = scope.runs[side]
        .iter()
        .filter(|&&run| board.is_free(side, run));
    let keyed = free.map(|&run| {
        let (_, repeat) = board.key(side, run);
        ((board.name(side, run).to_owned(), repeat), run)
    });
    keyed.collect()
}

/// Whether an operator of the other side is there on this side too, as it was: others may repeat
/// its work inside of them, as every reader of a dequantised value does.
fn is_kept(
    board: &Board<'_>,
    rules: Rules<'_>,
    (side, own): (usize, &HashMap<(String, usize), usize>),
    (runs, member, repeat): (&[usize], usize, usize),
) -> bool {
    let name = board.name(1 - side, member);
    let twin = own
        .get(&(name.to_owned(), repeat))
        .filter(|twin| !runs.contains(twin));
    twin.is_some_and(|&twin| {
        let mut names = stated_originals(board, rules, side, twin);
        let [t, g] = if side == 0 {
            [twin, member]
        } else {
            [member, twin]
        };
        names.all(|original| file_name(original) == name) && !board.types_clash(t, g)
    })
}

/// Pairs operators that were fused from the same ones and have different names.
pub(super) fn same_originals(board: &mut Board<'_>, scope: &PlaceScope, rules: Rules<'_>) {
    let groups = [0, 1].map(|side| {
        let mut groups: BTreeMap<(Vec<String>, usize), Vec<usize>> = BTreeMap::new();
        for &run in scope.runs[side]
            .iter()
            .filter(|&&run| board.is_free(side, run))
        {
            let names = originals(board, rules, side, run);
            if !names.is_empty() {
                let (_, repeat) = board.key(side, run);
                groups.entry((names, repeat)).or_default().push(run);
            }
        }
        groups
    });
    for (key, targets) in &groups[0] {
        // Several with the same originals are indistinguishable.
        if let Some(goldens) = groups[1].get(key)
            && let ([target], [golden]) = (&targets[..], &goldens[..])
            && !board.types_clash(*target, *golden)
        {
            board.pair(*target, *golden, MatchEvidence::Fusion);
        }
    }
}

fn pair(
    board: &mut Board<'_>,
    (side, rules): (usize, Rules<'_>),
    fused: Vec<usize>,
    members: Vec<usize>,
    is_end_shared: bool,
) {
    let known: HashMap<(usize, u32), (String, u32)> = fused
        .iter()
        .flat_map(|&run| origins(board, rules, side, run))
        .collect();
    let origins = |of: usize, run: usize, index: u32| {
        let origin = known.get(&(run, index)).filter(|_| of == side)?;
        Some(origin.clone())
    };
    let runs = if side == 0 {
        [fused, members]
    } else {
        [members, fused]
    };
    let group = OperatorGroup {
        runs,
        given: Vec::new(),
        origins: &origins,
        is_end_shared,
    };
    board.pair_group(&group, MatchEvidence::Fusion);
}
