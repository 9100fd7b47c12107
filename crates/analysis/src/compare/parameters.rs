//! Parameters and buffers of both sides, whether they differ or not.

use std::collections::HashMap;

use opscope_store::record::SlotSide;

use super::change::TensorChange;
use super::explained::{ExplainedOrder, change_between};
use super::matching::MatchedDumps;
use super::metric::MetricId;
use super::result::{Comparison, ListedParameter, Party};
use super::side::{ComparedDump, SlotRef};
use super::verdict::value_of;

/// Lists the parameters and buffers that operators of either side read: each once for a rank, as its
/// first reader gets it. Training changes it afterwards.
pub(super) fn list(comparison: &Comparison, sides: MatchedDumps<'_>) -> Vec<ListedParameter> {
    let mut listed: Vec<ListedParameter> = Vec::new();
    let mut known: HashMap<(Option<u32>, String), usize> = HashMap::new();
    let pairs = sides.matching.pairs.iter().zip(&comparison.operators);
    for (index, (pair, operator)) in pairs.enumerate() {
        for (k, (places, slot)) in pair.slots.iter().zip(&operator.slots).enumerate() {
            if slot.is_output() {
                continue;
            }
            let names = [
                parameter(sides.target, places.target),
                parameter(sides.golden, places.golden),
            ];
            let rank = sides.target.runs[places.target.run].place.rank;
            let keys = names.iter().flatten().map(|name| (rank, name.clone()));
            let keys: Vec<(Option<u32>, String)> = keys.collect();
            let Some((_, name)) = keys.first().cloned() else {
                continue;
            };
            if keys.iter().any(|key| known.contains_key(key)) {
                continue;
            }
            known.extend(keys.into_iter().map(|key| (key, listed.len())));
            let mut parameter = ListedParameter {
                name,
                rank,
                pair: Some([index, k]),
                target: Some((*slot.target).clone()),
                golden: Some((*slot.golden).clone()),
                ..ListedParameter::default()
            };
            if value_of(slot, MetricId::ShareUnequal) > Some(0.0) {
                parameter.change = change_between(sides, *places, ExplainedOrder::TargetOfGolden);
                if parameter.change.is_none() {
                    let back = change_between(sides, *places, ExplainedOrder::GoldenOfTarget);
                    let is_rounded = matches!(back, Some(TensorChange::Rounded { .. }));
                    parameter.is_golden_changed = is_rounded;
                    parameter.change = back.filter(|_| is_rounded);
                }
            }
            listed.push(parameter);
        }
    }
    for (party, dump) in [(Party::Target, sides.target), (Party::Golden, sides.golden)] {
        add_unpaired(&mut listed, &mut known, party, dump);
    }
    listed
}

/// Adds the parameters that no pair of operators reads.
fn add_unpaired(
    listed: &mut Vec<ListedParameter>,
    known: &mut HashMap<(Option<u32>, String), usize>,
    party: Party,
    dump: &ComparedDump,
) {
    let slots = dump.runs.iter().enumerate().flat_map(|(run, execution)| {
        let slots = execution.slots.iter().enumerate();
        slots.map(move |(slot, tensor)| (SlotRef { run, slot }, execution.place.rank, tensor))
    });
    for (place, rank, tensor) in slots.filter(|(_, _, tensor)| tensor.side == SlotSide::Input) {
        let Some(name) = parameter(dump, place) else {
            continue;
        };
        let at = *known.entry((rank, name.clone())).or_insert_with(|| {
            listed.push(ListedParameter {
                name,
                rank,
                ..ListedParameter::default()
            });
            listed.len() - 1
        });
        let side = match party {
            Party::Target => &mut listed[at].target,
            Party::Golden => &mut listed[at].golden,
        };
        side.get_or_insert_with(|| (**tensor.summary()).clone());
    }
}

/// The name of a parameter, or of a constant of an exported graph.
fn parameter(dump: &ComparedDump, place: SlotRef) -> Option<String> {
    let name = dump.parameter_of(place);
    name.or_else(|| dump.constant_of(place).map(str::to_owned))
}
