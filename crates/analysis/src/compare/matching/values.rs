//! Names of values: tools that look at an ONNX model from outside save values, and not operators.

use std::collections::{BTreeMap, HashMap};

use opscope_store::record::SlotSide;

use super::board::Board;
use super::places::PlaceScope;
use super::slots::{self, Position};
use super::{MatchEvidence, MissingSlot, RunPair, ValueAnchor};

/// An output of an execution.
type MadeValue = (usize, u32);

/// At most one in this many names shared by two files may name another value, if both come from one
/// export.
const N_KEPT_MIN: usize = 8;

/// Pairs values with the operators on the other side that produce values of the same name,
/// according to the graph next to the dump. If another export renumbered names such as `input.4`,
/// equal elements take precedence.
pub(super) fn equal(
    board: &mut Board<'_>,
    anchors: &HashMap<usize, &ValueAnchor>,
    scope: &PlaceScope,
) {
    let anchored: [HashMap<usize, usize>; 2] = [0, 1].map(|i| {
        let pairs = anchors.values().map(|anchor| anchor.runs);
        pairs.map(|runs| (runs[i], runs[1 - i])).collect()
    });
    for side in [0, 1] {
        let other = 1 - side;
        let mut of_maker: BTreeMap<usize, Vec<MadeValue>> = BTreeMap::new();
        let makers = makers(board, scope, other);
        let values = scope.runs[side].iter().copied();
        for run in values.filter(|&run| board.is_free(side, run)) {
            let own = board.run(side, run);
            let key = (own.op_name.as_str(), own.repeat);
            if let Some(&(maker, index)) = makers.get(&key).filter(|_| own.is_value()) {
                of_maker.entry(maker).or_default().push((run, index));
            }
        }
        let contradicts = |maker: &usize, values: &[MadeValue]| {
            anchored[other]
                .get(maker)
                .is_some_and(|run| values.iter().all(|(value, _)| value != run))
                || values.iter().any(|(value, _)| {
                    let partner = anchored[side].get(value);
                    partner.is_some_and(|partner| partner != maker)
                })
        };
        let known = of_maker.iter().filter(|(maker, values)| {
            let mut values = values.iter();
            anchored[other].contains_key(maker)
                || values.any(|(value, _)| anchored[side].contains_key(value))
        });
        let [n, n_other] = known.fold([0, 0], |[n, n_other], (maker, values)| {
            [n + 1, n_other + usize::from(contradicts(maker, values))]
        });
        // Where nearly all names are those of the same values, they are names of one export, and
        // one that is not has another maker. A single one is not a sign of another export.
        let are_given_anew = n_other > 1 && n_other * N_KEPT_MIN > n;
        of_maker.retain(|maker, values| !(are_given_anew && contradicts(maker, values)));
        for (maker, values) in of_maker {
            let pair = pair_of(board, side, &values, maker);
            board.add(pair);
        }
    }
}

/// The outputs of executions without a partner yet, by the name of the value and the repeat of the
/// execution.
fn makers<'a>(
    board: &Board<'a>,
    scope: &PlaceScope,
    side: usize,
) -> HashMap<(&'a str, usize), MadeValue> {
    let free = scope.runs[side].iter().copied();
    let free = free.filter(|&run| board.is_free(side, run));
    let made = free.flat_map(|run| {
        let outputs = board.sides[side].named_outputs(run).into_iter();
        outputs.map(move |(name, index)| ((name, board.run(side, run).repeat), (run, index)))
    });
    made.collect()
}

/// Values as partners of what makes them.
fn pair_of(board: &Board<'_>, side: usize, values: &[MadeValue], maker: usize) -> RunPair {
    let pairs: Vec<RunPair> = values
        .iter()
        .map(|&(value, index)| {
            let mut runs = [value, maker];
            let mut given: [Position; 2] = [(SlotSide::Output, 0), (SlotSide::Output, index)];
            if side == 1 {
                runs.reverse();
                given.reverse();
            }
            slots::one_to_one(board.sides, runs, MatchEvidence::Name, &[given])
        })
        .collect();
    // A slot of the operator is missing if none of its values is the one.
    let missing = pairs.iter().flat_map(|pair| &pair.missing).copied();
    let missing = missing.filter(|slot| {
        slot.party.index() == side || pairs.iter().all(|pair| pair.missing.contains(slot))
    });
    let mut left: Vec<MissingSlot> = Vec::new();
    for slot in missing {
        if !left.contains(&slot) {
            left.push(slot);
        }
    }
    let mut runs = [
        values.iter().map(|(value, _)| *value).collect(),
        [maker].into(),
    ];
    runs.rotate_left(side);
    let [target, golden] = runs;
    let mut slots: Vec<_> = pairs.iter().flat_map(|pair| &pair.slots).copied().collect();
    slots.sort_by_key(|pair| (pair.target, pair.golden));
    RunPair {
        target,
        golden,
        how: MatchEvidence::Name,
        slots,
        missing: left.into(),
    }
}
