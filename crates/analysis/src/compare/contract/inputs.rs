//! Pairs and measures the inputs of both models.

use super::ContractOptions;
use super::known_pairs::KnownPairs;
use super::model_values::{ModelPlaces, PlacePair};
use super::pairing::by_name_or_position;
use super::state::judge_other;
use crate::compare::matching::SlotPair;
use crate::compare::measure::measure_pair;
use crate::compare::result::{Comparison, OperatorName};
use crate::compare::result::{Contract, ContractValue, ValuePairing, ValuePresence};

/// Adds the inputs that both dumps show.
pub(super) fn examine(
    contract: &mut Contract,
    comparison: &Comparison,
    places: &ModelPlaces<'_>,
    options: ContractOptions<'_>,
) {
    if options.selection.is_outputs_only {
        return;
    }
    let known = KnownPairs::collect(places.sides);
    for pair in &places.pairs {
        let inputs = paired(pair).into_iter().filter_map(|(target, golden, by)| {
            input((target, golden, by), pair, (places, &known), options)
        });
        for mut value in inputs {
            judge_other(&mut value, comparison, options.thresholds);
            contract.inputs.push(value);
        }
    }
}

/// Names of matching inputs: the target's and the golden side's. Graphs of PyTorch list parameters
/// among theirs.
fn paired(pair: &PlacePair<'_>) -> Vec<(String, String, ValuePairing)> {
    let target = pair.target.as_ref().and_then(|place| place.graph);
    let (Some(target), Some(golden)) = (target, pair.golden.graph) else {
        return Vec::new();
    };
    if target.opsets.is_empty() || golden.opsets.is_empty() {
        return Vec::new();
    }
    let names = [target, golden].map(|graph| {
        let names = graph.arguments.iter().map(String::as_str);
        names.collect::<Vec<&str>>()
    });
    let paired = by_name_or_position(&names[1], &names[0]).into_iter();
    paired
        .filter_map(|(own, partner)| {
            let (at, by) = partner?;
            Some((names[0][at].to_owned(), names[1][own].to_owned(), by))
        })
        .collect()
}

fn input(
    (target_name, name, by): (String, String, ValuePairing),
    pair: &PlacePair<'_>,
    (places, known): (&ModelPlaces<'_>, &KnownPairs<'_>),
    options: ContractOptions<'_>,
) -> Option<ContractValue> {
    let target = pair.target.as_ref()?.argument(&target_name)?;
    let golden = pair.golden.argument(&name)?;
    let sides = places.sides;
    let operator_pair = known.place(target, golden);
    let slots = SlotPair::plain(target, golden);
    let result = match operator_pair {
        Some(_) => None,
        None => measure_pair(sides, slots, options.measure)
            .ok()
            .map(Box::new),
    };
    Some(ContractValue {
        target_name: Some(target_name).filter(|other| *other != name),
        name,
        by,
        presence: ValuePresence::Both,
        operators: [
            Some(OperatorName::for_execution(&sides.target.runs[target.run])),
            Some(OperatorName::for_execution(&sides.golden.runs[golden.run])),
        ],
        pair: operator_pair,
        result,
        ..ContractValue::default()
    })
}
