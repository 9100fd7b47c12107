//! Inputs whose operator a dump without a graph lacks.
//!
//! Next to its graph a dump says itself what is missing. Without one, what no operator of it makes
//! looks like a weight, unless the graph of the other side has an operator there that makes it.

use std::collections::{HashMap, HashSet};

use opscope_store::record::SlotSide;

use super::{MatchedDumps, SlotPair, SlotRef};
use crate::compare::party::Party;
use crate::compare::side::ComparedDump;

/// Maximum number of operators that make a constant.
const N_PASSED_MAX: usize = 16;

/// The inputs of each side that an operator without a partner makes on the other side, where the
/// side itself has no graph.
pub(crate) fn find(sides: MatchedDumps<'_>) -> [HashSet<SlotRef>; 2] {
    let dumps = [sides.target, sides.golden];
    let mut alone = [HashSet::new(), HashSet::new()];
    for one in &sides.matching.unmatched {
        alone[one.party.index()].insert(one.run);
    }
    [Party::Target, Party::Golden].map(|party| {
        let own = party.index();
        let [dump, other] = [dumps[own], dumps[1 - own]];
        if !dump.is_without_wires() || other.is_without_wires() || !has_names_of(dump, other) {
            return HashSet::new();
        }
        let mut is_computed: HashMap<usize, bool> = HashMap::new();
        let mut is_made = |slot: &&SlotPair| {
            let [_, shown] = in_order(slot, own);
            let made = other.producer_of(shown);
            made.is_some_and(|made| {
                let is_alone = alone[1 - own].contains(&made.run);
                is_alone
                    && *is_computed
                        .entry(made.run)
                        .or_insert_with(|| is_of_inputs(other, made.run))
            })
        };
        let slots = sides.matching.pairs.iter().flat_map(|pair| &pair.slots);
        let inputs = slots.filter(|slot| {
            let [at, _] = in_order(slot, own);
            dump.slot(at).side == SlotSide::Input
        });
        let unseen = inputs.filter(|slot| is_made(slot));
        unseen.map(|slot| in_order(slot, own)[0]).collect()
    })
}

/// Whether most operators have their names on the other side, so that what is named there and not
/// here was left out. Other tools show other operators in its place.
fn has_names_of(dump: &ComparedDump, other: &ComparedDump) -> bool {
    let names: HashSet<&str> = other.runs.iter().map(|run| &*run.op_name).collect();
    let known = dump.runs.iter().filter(|run| names.contains(&*run.op_name));
    2 * known.count() > dump.runs.len()
}

/// The slots of a pair, that of one side first.
fn in_order(slot: &SlotPair, side: usize) -> [SlotRef; 2] {
    if side == 0 {
        [slot.target, slot.golden]
    } else {
        [slot.golden, slot.target]
    }
}

/// Whether an operator computes from more than constants and parameters: the other side may read
/// what is made of these.
fn is_of_inputs(dump: &ComparedDump, run: usize) -> bool {
    let mut seen = HashSet::from([run]);
    let mut open = vec![run];
    while let Some(run) = open.pop() {
        for slot in dump.inputs_of(run) {
            match dump.producer_of(slot) {
                Some(made) if seen.insert(made.run) => open.push(made.run),
                Some(_) => {}
                None if dump.is_constant(slot) || dump.parameter_of(slot).is_some() => {}
                None => return true,
            }
        }
        if seen.len() > N_PASSED_MAX {
            return true;
        }
    }
    false
}
