//! Weights of matched operators that differ.

use std::collections::{HashMap, HashSet};

use opscope_store::file_format::graph_json::GraphFile;
use opscope_store::record::SlotSide;

use super::model_values::ModelPlaces;
use super::state::state_of;
use crate::compare::matching::SlotRef;
use crate::compare::result::{Comparison, MetricId, OperatorName};
use crate::compare::result::{Contract, ContractValue, ValueState};
use crate::compare::side::{ComparedDump, positions};
use crate::compare::verdict::value_of;

/// Adds the weights that differ. A weight is compared once for each rank: after training changes
/// it, it is a result.
pub(super) fn examine(contract: &mut Contract, comparison: &Comparison, places: &ModelPlaces<'_>) {
    let sides = places.sides;
    let mut names = [ConstantNames::default(), ConstantNames::default()];
    let mut seen: HashSet<(Option<u32>, String)> = HashSet::new();
    let pairs = sides.matching.pairs.iter().zip(&comparison.operators);
    for (index, (pair, operator)) in pairs.enumerate() {
        for (k, (slots, result)) in pair.slots.iter().zip(&operator.slots).enumerate() {
            if result.is_output() || !result.evidence.is_measured() {
                continue;
            }
            let [of_target, of_golden] = &mut names;
            let listed = (
                of_target.constant(sides.target, slots.target),
                of_golden.constant(sides.golden, slots.golden),
            );
            let n_broken = value_of(result, MetricId::NonFiniteMismatches);
            let is_broken = n_broken.is_some_and(|n| n > 0.0);
            let has_nan = value_of(result, MetricId::NanMismatches).is_some_and(|n| n > 0.0);
            let parameter = result.parameter.as_ref().map(|name| name.to_string());
            let (target, golden) = match listed {
                (Some(target), Some(golden)) => (target, golden),
                // Two programs may hold a weight in two forms, and a mask with other infinities,
                // though none with a NaN.
                (Some(name), None) | (None, Some(name)) if has_nan => {
                    (name.clone(), parameter.unwrap_or(name))
                }
                // In eager mode, without a graph, the input names the parameter.
                (None, None) => match parameter {
                    Some(name) => (name.clone(), name),
                    None => continue,
                },
                _ => continue,
            };
            let rank = sides.golden.runs[slots.golden.run].place.rank;
            if !seen.insert((rank, golden.clone())) {
                continue;
            }
            contract.n_weights += 1;
            let state = state_of(result, false);
            let is_apart = state.is_bad() || state == ValueState::Warn;
            // What makes the same as the other side's weight is no other weight, unless it holds
            // NaN or infinities that nothing has read yet.
            let is_same = !is_apart || result.agreement.is_some();
            if is_same && !is_broken {
                continue;
            }
            contract.weights.push(ContractValue {
                target_name: Some(target).filter(|other| *other != golden),
                name: golden,
                state,
                operators: [
                    Some(OperatorName::for_execution(
                        &sides.target.runs[slots.target.run],
                    )),
                    Some(OperatorName::for_execution(
                        &sides.golden.runs[slots.golden.run],
                    )),
                ],
                pair: Some([index, k]),
                ..ContractValue::default()
            });
        }
    }
}

/// The names of the constants of each graph.
#[derive(Default)]
struct ConstantNames<'a>(HashMap<*const GraphFile, HashSet<&'a str>>);

impl<'a> ConstantNames<'a> {
    /// The name of the weight or constant that an input is.
    fn constant(&mut self, dump: &'a ComparedDump, slot: SlotRef) -> Option<String> {
        let (_, graph, index) = dump.description_of(slot.run)?;
        let inputs = &graph.operators.get(index)?.inputs;
        let is_present: Vec<bool> = inputs.iter().map(Option::is_some).collect();
        let known = positions(&dump.runs[slot.run], SlotSide::Input, &is_present);
        let position = known.into_iter().find(|(own, _)| *own == slot.slot)?.1;
        let name = inputs.get(position)?.as_deref()?;
        let constants = self.0.entry(graph).or_insert_with(|| {
            let constants = graph.constants.iter();
            constants.map(String::as_str).collect()
        });
        constants.contains(name).then(|| name.to_owned())
    }
}
