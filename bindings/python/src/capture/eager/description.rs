//! The description of a step beside its dump, in the form that those of graphs have.

use opscope_store::record::Operator;
use serde_json::{Map, Value, json};

use super::step::Noted;

/// The text of a step's description.
pub(super) fn to_json(name: &str, step: u64, noted: &Noted) -> String {
    let operators = noted.operators.iter().map(|(operator, is_selected)| {
        // One line for each: a step has many.
        format!("  {}", operator_json(operator, *is_selected))
    });
    let operators: Vec<String> = operators.collect();
    let aliases: Map<String, Value> = (noted.aliases.iter())
        .map(|(alias, of)| (alias.to_string(), Value::from(&**of)))
        .collect();
    let arguments: Vec<&str> = noted.arguments.iter().map(|name| &**name).collect();
    format!(
        "{{\n \"version\": 1,\n \"name\": {},\n \"phase\": \"eager\",\n \"step\": {step},\n \"arguments\": {},\n \
         \"aliases\": {},\n \"operators\": [\n{}\n ]\n}}\n",
        Value::from(name),
        Value::from(arguments),
        Value::from(aliases),
        operators.join(",\n"),
    )
}

fn operator_json(operator: &Operator, is_selected: bool) -> Value {
    let outputs = operator.outputs.iter();
    let outputs: Vec<Option<&str>> = outputs
        .map(|name| (!name.is_empty()).then_some(name.as_str()))
        .collect();
    let attributes: Map<String, Value> = (operator.attributes.iter())
        .map(|(name, text)| (name.clone(), Value::from(text.as_str())))
        .collect();
    json!({
        "task_id": operator.task_id,
        "op_type": operator.op_type,
        "op_name": operator.op_name,
        "inputs": operator.inputs,
        "outputs": outputs,
        "is_selected": is_selected,
        "attributes": attributes,
    })
}
