//! Infers undocumented fusion: composed names, and one operator in place of a chain.

mod prefixes;

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;
use prefixes::SortedPrefixes;

use crate::compare::matching::MatchEvidence;
use crate::compare::matching::board::{Board, PairingGap};
use crate::compare::matching::names::file_name;
use crate::compare::matching::places::PlaceScope;
use crate::compare::matching::slots::{self, OperatorGroup};

/// Maximum number of operators that one replaces without a record of it.
const CHAIN_LENGTH_MAX: usize = 8;
/// Longer names are not split: the time grows with the square of their length.
const N_NAME_BYTES_MAX: usize = 2048;
/// Marks between the names in a name.
const MARKS: [char; 7] = ['_', '+', ',', ';', '&', '-', '|'];
/// Words in a name that say that it is fused.
const WORDS: [&str; 5] = ["fused", "fusion", "fuse", "and", "op"];

/// Pairs operators whose name consists of two or more consecutive names of the other side.
pub(crate) fn by_name(board: &mut Board<'_>, scope: &PlaceScope) {
    for gap in board.gaps(scope) {
        for side in [0, 1] {
            if gap.runs[1 - side].len() >= 2 && !gap.runs[side].is_empty() {
                made_of_names(board, scope, &gap, side);
            }
        }
    }
}

/// The operators of one side of a gap whose names consist of names of its other side.
fn made_of_names(board: &mut Board<'_>, scope: &PlaceScope, gap: &PairingGap, side: usize) {
    let other = 1 - side;
    let names = gap.runs[other].iter().map(|&run| board.name(other, run));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let known = SortedPrefixes::from_words(names.iter().map(String::as_str));
    // A name and the number of its execution are of one run in a place.
    let keyed = names.iter().zip(&gap.runs[other]);
    let of_key: HashMap<(&str, usize), usize> = keyed
        .map(|(name, &run)| ((name.as_str(), board.key(other, run).1), run))
        .collect();
    for &run in &gap.runs[side] {
        let (_, repeat) = board.key(side, run);
        let Some(members) = members(&known, &board.run(side, run).op_name, |name| {
            let member = of_key.get(&(name, repeat)).copied();
            member.filter(|&member| board.is_free(other, member))
        }) else {
            continue;
        };
        let is_rising =
            |&a: &usize, &b: &usize| board.position(other, a) < board.position(other, b);
        let is_chain = !scope.is_ordered || members.is_sorted_by(is_rising);
        let last = members.last().copied().unwrap_or_default();
        if is_chain && board.is_free(side, run) && has_like_ends(board, side, run, last) {
            pair(board, side, run, members);
        }
    }
}

/// The operators whose names, one after the other, are the name; with marks and words of fusion in
/// between. A name below a scope may leave out the scope of all parts but the first.
///
/// Every round takes something off the text: no known name is empty, nor is a word.
fn members(
    known: &SortedPrefixes<'_>,
    op_name: &str,
    pick: impl Fn(&str) -> Option<usize>,
) -> Option<Vec<usize>> {
    if op_name.len() > N_NAME_BYTES_MAX {
        return None;
    }
    let (scope, _) = op_name.rsplit_once(['/', '.']).unwrap_or_default();
    let scope = file_name(scope);
    let whole = file_name(op_name);
    let mut rest = whole.as_str();
    let mut members = Vec::new();
    let mut distinct = HashSet::new();
    while !rest.is_empty() {
        let unmarked = rest.trim_start_matches(MARKS);
        if unmarked.len() < rest.len() {
            rest = unmarked;
            continue;
        }
        if let Some((name, length)) = first_name(known, rest, &scope) {
            let member = pick(name)?;
            // One operator cannot be two parts of another, so a name that has it twice was split
            // wrongly.
            if !distinct.insert(member) {
                return None;
            }
            members.push(member);
            rest = &rest[length..];
            continue;
        }
        let end = rest.find(MARKS).unwrap_or(rest.len());
        let word = &rest[..end];
        let is_number = word.bytes().all(|b| b.is_ascii_digit());
        // Any other word may be the name of a part that the other side does not have, and then
        // nothing is guessed.
        if !(is_number || WORDS.contains(&word)) {
            return None;
        }
        rest = &rest[end..];
    }
    (members.len() >= 2).then_some(members)
}

/// The longest known name that a text begins with, whole or without its scope, and what it takes of
/// the text.
fn first_name<'n>(known: &SortedPrefixes<'n>, text: &str, scope: &str) -> Option<(&'n str, usize)> {
    if let Some(name) = known.longest(text) {
        return Some((name, name.len()));
    }
    if scope.is_empty() {
        return None;
    }
    let name = known.longest(&format!("{scope}_{text}"))?;
    let length = name.len().checked_sub(scope.len() + 1)?;
    (length > 0).then_some((name, length))
}

/// Pairs the only operator between two pairs with the chain between them on the other side, if
/// inputs and outputs agree and it cannot match one operator of the chain.
pub(crate) fn chains(board: &mut Board<'_>, scope: &PlaceScope) {
    for gap in board.gaps(scope) {
        for side in [0, 1] {
            if let Some((run, members)) = chain(board, side, &gap) {
                let is_baseless = match side {
                    0 => board.is_baseless(&[run], &members),
                    _ => board.is_baseless(&members, &[run]),
                };
                if !is_baseless {
                    pair(board, side, run, members);
                }
                break;
            }
        }
    }
}

fn chain(board: &Board<'_>, side: usize, gap: &PairingGap) -> Option<(usize, Vec<usize>)> {
    let other = 1 - side;
    let [run] = gap.runs[side][..] else {
        return None;
    };
    let members = &gap.runs[other];
    let (&first, &last) = (members.first()?, members.last()?);
    let is_length = (2..=CHAIN_LENGTH_MAX).contains(&members.len());
    // A gap without a pair at either end is a whole place, and both sides need not correspond.
    if !is_length || !gap.is_bounded.contains(&true) {
        return None;
    }
    let extents = |side: usize, run: usize, kind: SlotSide| {
        let mut all = board.run(side, run).slots.iter();
        slots::extents(all.find(|slot| slot.side == kind)?)
    };
    let output = extents(side, run, SlotSide::Output)?;
    let input = extents(side, run, SlotSide::Input)?;
    let is_chain = extents(other, last, SlotSide::Output)? == output
        && extents(other, first, SlotSide::Input)? == input;
    let inputs = |side: usize, run: usize| -> Vec<_> {
        let slots = board.run(side, run).slots.iter();
        let inputs = slots.filter(|slot| slot.side == SlotSide::Input);
        inputs.filter_map(slots::extents).collect()
    };
    let own_inputs = inputs(side, run);
    // A bias that only another one of the chain reads.
    let reads_more = |member: usize| {
        let known = inputs(other, member);
        let mut more = own_inputs.iter().filter(|dims| !known.contains(dims));
        more.any(|dims| {
            let mut rest = members.iter().filter(|&&m| m != member);
            rest.any(|&m| inputs(other, m).contains(dims))
        })
    };
    // An operator of the chain with the same input and output shapes may be the match alone.
    let own_type = board.op_type(side, run);
    // A linear layer with a bias is more than a product: what this one does is less than one of the
    // chain.
    let inner: Vec<_> = members
        .iter()
        .filter_map(|&member| extents(other, member, SlotSide::Output))
        .collect();
    let does_more = members.iter().any(|&member| {
        let mut known = inputs(other, member);
        known.retain(|dims| !dims.is_empty() && !inner.contains(dims));
        own_type.is_same(board.op_type(other, member))
            && known.iter().any(|dims| !own_inputs.contains(dims))
    });
    if does_more {
        return None;
    }
    let is_one_alone = members.iter().any(|&member| {
        let member_type = board.op_type(other, member);
        let may_be_same = own_type.is_empty() || own_type.is_same(member_type);
        may_be_same
            && extents(other, member, SlotSide::Output).as_ref() == Some(&output)
            && extents(other, member, SlotSide::Input).as_ref() == Some(&input)
            && !reads_more(member)
    });
    let is_like_one = members
        .iter()
        .any(|&m| own_type.is_same(board.op_type(other, m)));
    // A known type that is absent from the chain is a separate operator.
    let is_possible = is_like_one || own_type.may_be_fused();
    let is_sure = is_possible && !is_one_alone;
    (is_chain && is_sure).then(|| (run, members.clone()))
}

fn has_like_ends(board: &Board<'_>, side: usize, run: usize, last: usize) -> bool {
    if side == 0 {
        board.has_like_outputs(run, last)
    } else {
        board.has_like_outputs(last, run)
    }
}

fn pair(board: &mut Board<'_>, side: usize, run: usize, members: Vec<usize>) {
    let runs = if side == 0 {
        [vec![run], members]
    } else {
        [members, vec![run]]
    };
    let group = OperatorGroup {
        runs,
        given: Vec::new(),
        origins: &|_, _, _| None,
        is_end_shared: true,
    };
    board.pair_group(&group, MatchEvidence::Fusion);
}
