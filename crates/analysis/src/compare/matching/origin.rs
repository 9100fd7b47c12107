//! Operators that one call of the program made: in a module of one path, or at one line.

use std::collections::{BTreeMap, HashMap};

use opscope_store::record::SlotSide;

use super::board::{Board, PairingGap};
use super::places::PlaceScope;
use super::slots::Position;
use super::{MatchEvidence, SlotRef};

/// Maximum number of pairs that are asked whether a place means the same on both sides.
const N_ASKED_MAX: usize = 256;
/// One in this many of them may be of another place on either side.
const OTHER_ONE_IN: usize = 10;

/// A place of a call in the program, as both sides may know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Module,
    Line,
}

/// An operator of one side by where it comes from and its type, as all frameworks say it.
type OriginKey<'a> = (&'a str, &'a str);

/// Pairs operators of one type from one place in the program, if both sides have equally many of
/// them between two pairs, or one each in a module. Does nothing if the execution order is unknown, or if neither dumps nor
/// graphs have source places.
pub(super) fn equal(board: &mut Board<'_>, scope: &PlaceScope) {
    let has_free = [0, 1].map(|side| scope.runs[side].iter().any(|&run| board.is_free(side, run)));
    if !scope.is_ordered || has_free != [true, true] {
        return;
    }
    for origin in [Origin::Module, Origin::Line] {
        if let Some(places) = common_places(board, scope, origin) {
            for gap in board.gaps(scope) {
                pair_alike(board, &gap, &places);
            }
        }
    }
    // Independent branches may run in another order.
    if let Some(modules) = common_places(board, scope, Origin::Module) {
        let alone = alone(board, scope, &modules);
        pair_alike(board, &alone, &modules);
    }
}

/// The places of the operators of both sides; `None` if a side has none, or if pairs that exist come
/// from other places.
fn common_places(
    board: &Board<'_>,
    scope: &PlaceScope,
    origin: Origin,
) -> Option<[HashMap<usize, String>; 2]> {
    let places = [0, 1].map(|side| {
        let runs = scope.runs[side].iter();
        let places = runs.filter_map(|&run| Some((run, place_of(board, side, run, origin)?)));
        places.collect::<HashMap<usize, String>>()
    });
    let is_any = !places.iter().any(HashMap::is_empty);
    (is_any && is_borne_out(board, scope, &places, origin)).then_some(places)
}

/// Pairs the operators of a gap that belong together.
fn pair_alike(board: &mut Board<'_>, gap: &PairingGap, places: &[HashMap<usize, String>; 2]) {
    for [t, g] in matches(board, gap, places) {
        if board.run(0, t).op_type == board.run(1, g).op_type {
            board.pair(t, g, MatchEvidence::Origin);
        } else {
            // Frameworks that have other words for a type may have another order of inputs.
            let inputs = inputs_of(board, [t, g]);
            board.pair_inputs([t, g], MatchEvidence::Origin, &inputs);
        }
    }
}

/// Where an operator comes from, without what differs between machines.
fn place_of(board: &Board<'_>, side: usize, run: usize, origin: Origin) -> Option<String> {
    let [module, source] = board.sides[side].module_and_source(run);
    match origin {
        Origin::Module => module,
        Origin::Line => {
            let source = source?;
            // Folders differ between machines; neither a function's name nor a file's has slashes.
            let file = source.rfind(['/', '\\']).map_or(0, |slash| slash + 1);
            Some(source[file..].to_owned())
        }
    }
}

/// Whether pairs that exist come from the same place on both sides, as far as both know it. Lines
/// need such a pair, as the program may have been edited between both runs.
fn is_borne_out(
    board: &Board<'_>,
    scope: &PlaceScope,
    places: &[HashMap<usize, String>; 2],
    origin: Origin,
) -> bool {
    let (mut n_known, mut n_other) = (0, 0);
    for run in &scope.runs[0] {
        let golden = board.only_partner(0, *run);
        let Some(golden) = golden.and_then(|golden| places[1].get(&golden)) else {
            continue;
        };
        if let Some(target) = places[0].get(run) {
            n_known += 1;
            n_other += usize::from(target != golden);
        }
        if n_known == N_ASKED_MAX {
            break;
        }
    }
    let least = if origin == Origin::Line { 1 } else { 0 };
    n_known >= least && n_other * OTHER_ONE_IN <= n_known
}

/// The operators without a partner that alone are of their type in their module.
fn alone(
    board: &Board<'_>,
    scope: &PlaceScope,
    places: &[HashMap<usize, String>; 2],
) -> PairingGap {
    let runs = [0, 1].map(|side| {
        let mut groups: BTreeMap<OriginKey<'_>, Vec<usize>> = BTreeMap::new();
        for &run in &scope.runs[side] {
            if let Some(place) = places[side].get(&run) {
                let key = (place.as_str(), board.op_type(side, run).name());
                groups.entry(key).or_default().push(run);
            }
        }
        let only = groups.into_values().filter(|runs| runs.len() == 1);
        let free = only.flatten().filter(|&run| board.is_free(side, run));
        free.collect()
    });
    PairingGap {
        runs,
        ..PairingGap::default()
    }
}

/// The operators of a gap that belong together.
fn matches(
    board: &Board<'_>,
    gap: &PairingGap,
    places: &[HashMap<usize, String>; 2],
) -> Vec<[usize; 2]> {
    let groups = [0, 1].map(|side| {
        let mut groups: BTreeMap<OriginKey<'_>, Vec<usize>> = BTreeMap::new();
        for &run in &gap.runs[side] {
            let op_type = board.op_type(side, run);
            if let Some(place) = places[side].get(&run)
                && !op_type.is_empty()
            {
                let key = (place.as_str(), op_type.name());
                groups.entry(key).or_default().push(run);
            }
        }
        groups
    });
    let mut found = Vec::new();
    for (key, targets) in &groups[0] {
        let Some(goldens) = groups[1].get(key) else {
            continue;
        };
        let [targets, goldens] = [(0, targets), (1, goldens)].map(|(side, runs)| {
            // A module's own call may appear next to the call inside it. The inner one, which is
            // meant, ends first.
            let word = &board.run(side, runs[0]).op_type;
            let runs = runs.iter().copied();
            runs.filter(|&run| board.run(side, run).op_type == *word)
                .collect::<Vec<_>>()
        });
        if targets.len() == goldens.len() {
            let pairs = targets.into_iter().zip(goldens);
            found.extend(
                pairs
                    .map(|(t, g)| [t, g])
                    .filter(|&[t, g]| has_as_many_elements(board, t, g)),
            );
        }
    }
    found
}

/// Whether the first outputs have equally many elements, if known. Shapes are less reliable,
/// because frameworks flatten batches in front of an operator.
fn has_as_many_elements(board: &Board<'_>, t: usize, g: usize) -> bool {
    let n_elements = [board.run(0, t), board.run(1, g)].map(|run| {
        let mut slots = run.slots.iter();
        let output = slots.find(|slot| slot.side == SlotSide::Output)?;
        output.n_elements()
    });
    match n_elements {
        [Some(a), Some(b)] => a == b,
        _ => true,
    }
}

/// Matches inputs that frameworks order differently: equal values first, then equal shapes, then
/// equally many elements in another number of axes. A value that both sides have is never paired
/// with one that only one side has.
fn inputs_of(board: &Board<'_>, runs: [usize; 2]) -> Vec<[Position; 2]> {
    let slots = [0, 1].map(|side| &board.run(side, runs[side]).slots);
    let number = |side: usize, slot: usize| {
        let run = runs[side];
        board.values().number(side, SlotRef { run, slot })
    };
    let mut is_used = vec![false; slots[1].len()];
    let mut pairs = Vec::new();
    let mut is_open = vec![true; slots[0].len()];
    let same_value = |t: usize, g: usize| number(0, t).is_some() && number(0, t) == number(1, g);
    let same_extents = |t: usize, g: usize| {
        number(0, t).is_some() == number(1, g).is_some() && slots[0][t].shape == slots[1][g].shape
    };
    let same_length = |t: usize, g: usize| {
        number(0, t).is_some() == number(1, g).is_some()
            && slots[0][t].shape.as_ref().map(Vec::len) != slots[1][g].shape.as_ref().map(Vec::len)
            && slots[0][t].n_elements() == slots[1][g].n_elements()
    };
    let rules: [&dyn Fn(usize, usize) -> bool; 3] = [&same_value, &same_extents, &same_length];
    for is_same in rules {
        for (t, slot) in slots[0].iter().enumerate() {
            let is_input = slot.side == SlotSide::Input;
            if !is_input || !is_open[t] {
                continue;
            }
            let mut inputs = slots[1].iter().enumerate();
            let found = inputs
                .find(|(g, other)| other.side == SlotSide::Input && !is_used[*g] && is_same(t, *g));
            if let Some((g, other)) = found {
                is_used[g] = true;
                is_open[t] = false;
                pairs.push([(slot.side, slot.index), (other.side, other.index)]);
            }
        }
    }
    pairs
}
