//! The result by the operators of one side, for viewers of models: properties of an ONNX file, and
//! node data of Model Explorer.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::words;
use crate::compare::result::{Cause, Certainty, Comparison, OperatorName, Party, VerdictLevel};

/// The result of one operator over all of its executions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeNote {
    /// The worst level.
    pub level: VerdictLevel,
    /// The largest relative distance of an output, if one was measured.
    pub difference: Option<f64>,
    /// The cause, at the worst level.
    pub cause: Option<Cause>,
    /// The operators of the other side that it was matched with.
    pub partners: Vec<OperatorName>,
    /// Whether the verdict names it.
    pub is_named: bool,
}

/// Notes by model, if known, and by the name of the operator.
pub type NodeNotes<'a> = BTreeMap<(Option<&'a str>, &'a str), NodeNote>;

/// Background colours of levels; uncompared operators have none.
const COLOURS: [(VerdictLevel, &str); 3] = [
    (VerdictLevel::Fail, "#eba59b"),
    (VerdictLevel::Warn, "#f0ce94"),
    (VerdictLevel::Pass, "#b7d9df"),
];
/// Background colour of the operator that the verdict names.
const NAMED_COLOUR: &str = "#c0281c";

/// The notes on every compared operator of a side.
pub fn node_notes(comparison: &Comparison, side: Party) -> NodeNotes<'_> {
    let named = named(comparison, side);
    let mut notes = NodeNotes::new();
    for operator in &comparison.operators {
        let own = side.pick(&operator.target, &operator.golden);
        let others = side.other().pick(&operator.target, &operator.golden);
        let difference = operator.error.map(|error| error.outputs);
        for name in own {
            let key = (name.model.as_deref(), &*name.op_name);
            let is_new = !notes.contains_key(&key);
            let note = notes.entry(key).or_default();
            if is_new || badness(operator.level) > badness(note.level) {
                note.level = operator.level;
                note.cause = operator.cause;
                note.partners = others.to_vec();
            }
            // Executions without a number leave the others' as they are.
            let both = [note.difference, difference].into_iter().flatten();
            note.difference = both.map(f64::abs).max_by(f64::total_cmp);
            note.is_named |= named == Some(name);
        }
    }
    notes
}

/// The order of levels, in which an uncompared execution says least.
fn badness(level: VerdictLevel) -> u8 {
    match level {
        VerdictLevel::Skip => 0,
        VerdictLevel::Pass => 1,
        VerdictLevel::Warn => 2,
        VerdictLevel::Fail => 3,
    }
}

/// The operator that the verdict names, as the side calls it.
fn named(comparison: &Comparison, side: Party) -> Option<&OperatorName> {
    let point = comparison.summary.headline()?;
    let operator = comparison.operators.get(point.operator)?;
    let (target, golden) = (operator.target.last(), operator.golden.last());
    side.pick(point.name.as_ref().or(target), golden)
}

/// The name of a certainty in results.
pub fn certainty_name(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven => "proven",
        Certainty::Measured => "measured",
        Certainty::Likely => "likely",
        Certainty::FirstDifference => "first_difference",
    }
}

/// Keys and values about the whole model.
pub fn model_properties(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let certainty = comparison.summary.certainty.map(certainty_name);
    let config = &comparison.config;
    let mut properties = vec![
        ("verdict", words::verdict(comparison)),
        ("target", config.target.clone()),
        ("golden", config.golden.clone()),
        ("program", config.program.clone()),
    ];
    properties.extend(certainty.map(|name| ("certainty", name.to_owned())));
    properties
}

/// Keys and values about one operator.
pub fn node_properties(
    comparison: &Comparison,
    note: &NodeNote,
    side: Party,
) -> Vec<(&'static str, String)> {
    let mut properties = vec![("level", words::level(note.level).to_owned())];
    properties.extend(note.difference.map(|n| ("rel_l2", words::number(n))));
    let cause = note.cause.map(|cause| words::cause_name(cause).to_owned());
    properties.extend(cause.map(|cause| ("cause", cause)));
    let partners: Vec<&str> = note.partners.iter().map(|name| &*name.op_name).collect();
    if !partners.is_empty() {
        properties.push((side.other().name(), partners.join(", ")));
    }
    if note.is_named {
        properties.push(("verdict", words::verdict(comparison)));
    }
    properties
}

/// Node data of Model Explorer: the largest relative distance of each operator of the target, with
/// a colour for its level. `graph` is the name of the target's graph; without it graphs go by the
/// names of models in the dump.
pub fn model_explorer(comparison: &Comparison, graph: Option<&str>) -> Value {
    let mut graphs = Map::new();
    for ((model, name), note) in node_notes(comparison, Party::Target) {
        let Some(difference) = note.difference else {
            continue;
        };
        // JSON has no infinity, and the viewer needs a number to draw.
        let value = if difference.is_finite() {
            difference
        } else {
            f64::MAX
        };
        let mut result = json!({ "value": value });
        let of_level = COLOURS.iter().find(|(level, _)| *level == note.level);
        let colour = note.is_named.then_some(NAMED_COLOUR);
        if let Some(colour) = colour.or(of_level.map(|(_, colour)| *colour)) {
            result["bgColor"] = json!(colour);
        }
        let graph = graph.or(model).unwrap_or_default();
        let data = graphs
            .entry(graph)
            .or_insert_with(|| json!({ "results": {} }));
        data["results"][name] = result;
    }
    Value::Object(graphs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::result::{OperatorResult, OwnError};

    fn pair(name: &str, model: Option<&str>, level: VerdictLevel, error: f64) -> OperatorResult {
        let named = OperatorName {
            op_name: name.into(),
            model: model.map(Into::into),
            ..OperatorName::default()
        };
        OperatorResult {
            target: [named.clone()].into(),
            golden: [named].into(),
            level,
            error: Some(OwnError {
                outputs: error,
                ..OwnError::default()
            }),
            ..OperatorResult::default()
        }
    }

    #[test]
    fn executions_of_an_operator_count_by_the_worst() {
        let results = json!({ "results": {
            "a": { "value": 0.5, "bgColor": "#eba59b" },
            "b": { "value": f64::MAX, "bgColor": "#f0ce94" },
        } });
        let cases = [
            (Some("file"), None, "file"),
            (Some("file"), Some("graph"), "graph"),
            (None, None, ""),
        ];
        for (model, graph, expected) in cases {
            let comparison = Comparison {
                operators: vec![
                    pair("a", model, VerdictLevel::Skip, 0.0),
                    pair("a", model, VerdictLevel::Fail, 0.5),
                    pair("a", model, VerdictLevel::Pass, 0.25),
                    pair("b", model, VerdictLevel::Warn, f64::NAN),
                ],
                ..Comparison::default()
            };
            let data = model_explorer(&comparison, graph);
            assert_eq!(data, json!({ expected: results }));
        }
    }
}
