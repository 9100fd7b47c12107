//! A step's description next to its dump, in the form of graph descriptions.

use opscope_store::record::Operator;
use serde_json::{Map, Value, json};

use super::noted::{EagerStepNotes, OperatorDetails};

/// The text of a step's description.
pub(super) fn to_json(name: &str, step: u64, noted: &EagerStepNotes) -> String {
    let operators = noted.operators.iter().map(|(operator, details)| {
        // One line each, because a step has many.
        let mut attributes = attributes(operator, details, step);
        for (i, input) in operator.inputs.iter().enumerate() {
            if noted.named.contains(input.as_str()) {
                attributes.insert(format!("input.{i}.fqn"), input.as_str().into());
            }
        }
        for (i, output) in operator.outputs.iter().enumerate() {
            if let Some(name) = noted.assigned.get(output.as_str()) {
                attributes.insert(format!("output.{i}.fqn"), Value::from(&**name));
            }
        }
        for (key, text) in &details.written {
            attributes.insert(key.clone(), text.as_str().into());
        }
        format!("  {}", operator_json(operator, details, attributes))
    });
    let operators: Vec<String> = operators.collect();
    let aliases: Map<String, Value> = (noted.aliases.iter())
        .map(|(alias, of)| (alias.to_string(), Value::from(&**of)))
        .collect();
    let results: Vec<&str> = noted.results.iter().map(|name| &**name).collect();
    let arguments: Vec<&str> = noted.arguments.iter().map(|name| &**name).collect();
    format!(
        "{{\n \"version\": 1,\n \"name\": {},\n \"phase\": \"eager\",\n \"step\": {step},\n \"arguments\": {},\n \
         \"results\": {},\n \"aliases\": {},\n \"operators\": [\n{}\n ]\n}}\n",
        Value::from(name),
        Value::from(arguments),
        Value::from(results),
        Value::from(aliases),
        operators.join(",\n"),
    )
}

fn operator_json(
    operator: &Operator,
    details: &OperatorDetails,
    attributes: Map<String, Value>,
) -> Value {
    let outputs = operator.outputs.iter();
    let outputs: Vec<Option<&str>> = outputs
        .map(|name| (!name.is_empty()).then_some(name.as_str()))
        .collect();
    json!({
        "task_id": operator.task_id,
        "op_type": operator.op_type,
        "op_name": operator.op_name,
        "inputs": operator.inputs,
        "outputs": outputs,
        "is_selected": details.is_selected,
        "attributes": attributes,
    })
}

fn attributes(operator: &Operator, details: &OperatorDetails, step: u64) -> Map<String, Value> {
    let origin = &details.origin;
    let seq_nr = origin.seq_nr.map_or(String::new(), |n| n.to_string());
    // Names are unique within a step.
    let forward = origin.forward.iter().find(|forward| forward.step == step);
    let known = [
        ("target", details.kind.target.as_str()),
        ("alias", details.kind.alias.as_str()),
        ("phase", origin.phase.as_str()),
        ("module", &*origin.module),
        ("source", &*origin.source),
        ("seq_nr", seq_nr.as_str()),
        ("autograd_node", origin.node.as_deref().unwrap_or_default()),
        ("forward", forward.map_or("", |forward| &*forward.op_name)),
    ];
    let known = known.into_iter().filter(|(_, text)| !text.is_empty());
    let mut attributes: Map<String, Value> = known
        .map(|(name, text)| (name.to_owned(), text.into()))
        .collect();
    for (name, text) in &operator.attributes {
        attributes.insert(name.clone(), text.as_str().into());
    }
    attributes
}
