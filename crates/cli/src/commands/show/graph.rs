//! Graphs and statistics stored next to a dump's tensors.

use std::io::Write;
use std::path::Path;

use opscope_analysis::graph::{BesideFile, type_text};
use opscope_store::file_format::number_text::general;
use opscope_store::file_format::statistic_csv::StatisticRows;
use opscope_store::record::graph::{
    AttributeGroup, GraphDescription, GraphNode, InputOrigin, Literal, ValueType,
};
use serde_json::{Value, json};

use super::print_json;
use crate::console::{self, line, report};
use crate::exit::{CommandFailure, CommandResult, PARTIAL};
use crate::format;

/// The name of a constant tensor without a description.
const A_CONSTANT: &str = "a constant";
const TENSOR: &str = "Tensor";

pub(super) fn show(path: &Path, beside: &BesideFile, is_json: bool) -> CommandResult {
    match (beside, is_json) {
        (BesideFile::Graph { graph, has_text }, true) => {
            print_json(&graph_json(path, graph, *has_text))
        }
        (BesideFile::Graph { graph, has_text }, false) => print_graph(graph, *has_text),
        (BesideFile::Statistics(table), true) => {
            // Readable rows are shown together with damaged ones, which are listed under `errors`.
            print_json(&table_json(path, table))?;
            table_verdict(table)
        }
        (BesideFile::Statistics(table), false) => {
            print_table(path, table)?;
            table_verdict(table)
        }
    }
}

fn print_graph(graph: &GraphDescription, has_text: bool) -> CommandResult {
    let mut out = console::out();
    line!(out, "graph     {} (number {})", graph.name, graph.id)?;
    for parameter in &graph.parameters {
        let kind = match (has_text, parameter.is_weight) {
            // The message alone does not tell weights from inputs.
            (false, _) => "parameter",
            (true, true) => "weight",
            (true, false) => "input",
        };
        line!(
            out,
            "{kind:<9} {}  {}",
            parameter.name,
            type_text(&parameter.value)
        )?;
    }
    for node in &graph.nodes {
        writeln!(out)?;
        line!(out, "{}  {}", node.op_type, node.full_name)?;
        for (i, input) in node.inputs.iter().enumerate() {
            let value = graph.type_of(input).unwrap_or_default();
            let name = input_text(graph, input);
            line!(out, "  input.{i}   {}  from {name}", type_text(&value))?;
        }
        for (i, output) in outputs(&node.output).iter().enumerate() {
            line!(out, "  output.{i}  {}", type_text(output))?;
        }
        for line in node.source.iter().flat_map(|source| &source.lines) {
            line!(out, "  source    {line}")?;
        }
    }
    let (nodes, parameters) = (graph.nodes.len() as u64, graph.parameters.len() as u64);
    writeln!(
        out,
        "\n{}, {}",
        format::count(nodes, "operator"),
        format::count(parameters, "parameter")
    )?;
    Ok(())
}

/// Returns the outputs of an operator.
fn outputs(output: &ValueType) -> &[ValueType] {
    match output {
        ValueType::Tuple(types) => types,
        // A MindSpore operator returns one value; several outputs are a tuple.
        single => std::slice::from_ref(single),
    }
}

fn input_text(graph: &GraphDescription, input: &InputOrigin) -> String {
    match input {
        InputOrigin::Constant(index) => match graph.constants.get(*index) {
            Some(constant) => literal_text(&constant.value),
            None => String::new(),
        },
        other => graph.input_name(other),
    }
}

fn literal_text(value: &Literal) -> String {
    match value {
        Literal::Bool(value) => value.to_string(),
        Literal::Int(_, value) => value.to_string(),
        Literal::Float(_, value) => general(*value),
        Literal::Text(text) | Literal::Name(text) | Literal::Monad(text) => text.clone(),
        Literal::Tuple(values) => format!("({})", literals_text(values)),
        Literal::List(values) => format!("[{}]", literals_text(values)),
        Literal::Tensor(_, elements) if elements.is_empty() => A_CONSTANT.to_owned(),
        Literal::Tensor(_, elements) => format!("constant {}", elements.trim()),
    }
}

fn literals_text(values: &[Literal]) -> String {
    let texts: Vec<String> = values.iter().map(literal_text).collect();
    texts.join(", ")
}

/// The message has no place for some of it, which is null without the text.
fn graph_json(path: &Path, graph: &GraphDescription, has_text: bool) -> Value {
    let parameters = graph.parameters.iter().map(|parameter| {
        let mut object = type_json(&parameter.value);
        object["name"] = parameter.name.clone().into();
        object["is_weight"] = if has_text {
            parameter.is_weight.into()
        } else {
            Value::Null
        };
        object
    });
    json!({
        "path": path,
        "name": graph.name,
        "graph_id": graph.id,
        "parameters": parameters.collect::<Vec<_>>(),
        "operators": graph.nodes.iter().map(|node| node_json(graph, node, has_text)).collect::<Vec<_>>(),
        "outputs": graph.outputs.iter().map(|o| graph.input_name(o)).collect::<Vec<_>>(),
    })
}

fn node_json(graph: &GraphDescription, node: &GraphNode, has_text: bool) -> Value {
    let inputs = node.inputs.iter().map(|input| {
        let constant = match input {
            InputOrigin::Constant(index) => {
                graph.constants.get(*index).map(|constant| &constant.value)
            }
            _ => None,
        };
        let tensor = constant.filter(|value| matches!(value, Literal::Tensor(..)));
        // A constant tensor's text says more than that it is a constant, so it gets a separate
        // member.
        let mut object = match tensor {
            Some(_) => json!({"type": TENSOR, "from": A_CONSTANT}),
            None => {
                let mut object = type_json(&graph.type_of(input).unwrap_or_default());
                object["from"] = input_text(graph, input).into();
                object
            }
        };
        object["constant"] = tensor.map_or(Value::Null, constant_json);
        object["kind"] = match input {
            InputOrigin::Node(_) => "operator",
            InputOrigin::Parameter(_) => "parameter",
            InputOrigin::Constant(_) => "constant",
            InputOrigin::Unknown(_) => "unknown",
        }
        .into();
        object
    });
    let attributes = |group| -> serde_json::Map<String, Value> {
        let of_group = node.attributes.iter().filter(|a| a.group == group);
        of_group
            .map(|a| (a.name.clone(), literal_text(&a.value).into()))
            .collect()
    };
    let source = node.source.iter().flat_map(|source| &source.lines);
    json!({
        "op_type": node.op_type,
        "full_name": node.full_name,
        "scope": node.scope(),
        "inputs": inputs.collect::<Vec<_>>(),
        "outputs": outputs(&node.output).iter().map(type_json).collect::<Vec<_>>(),
        "is_kernel": node.is_kernel(),
        "attributes": attributes(AttributeGroup::Operator),
        "node_attributes": has_text.then(|| attributes(AttributeGroup::Node)),
        "origin_attributes": has_text.then(|| attributes(AttributeGroup::Origin)),
        "source": source.collect::<Vec<_>>(),
    })
}

/// The text that describes a constant tensor; a message has none.
fn constant_json(value: &Literal) -> Value {
    match value {
        Literal::Tensor(Some(tensor), elements) => {
            let elements = (!elements.is_empty()).then(|| elements.trim());
            json!({"dtype": tensor.dtype.name(), "shape": tensor.shape, "elements": elements})
        }
        _ => Value::Null,
    }
}

fn type_json(value: &ValueType) -> Value {
    match value.tensor() {
        Some(tensor) if tensor.is_of_any_rank() => {
            json!({"dtype": tensor.dtype.name(), "shape": null})
        }
        Some(tensor) => json!({"dtype": tensor.dtype.name(), "shape": tensor.shape}),
        None => json!({"type": type_text(value)}),
    }
}

fn print_table(path: &Path, table: &StatisticRows) -> CommandResult {
    let mut header = vec!["type", "operator", "slot", "dtype", "shape", "bytes"];
    header.extend(table.columns.iter().map(String::as_str));
    let rows = table.rows.iter().map(|(subject, values)| {
        let mut row = vec![
            subject.op_type.clone(),
            subject.op_name.clone(),
            format!("{}.{}", subject.side.name(), subject.slot),
            subject.dtype.clone(),
            format::shape(&subject.shape),
            format::bytes(subject.n_bytes),
        ];
        let values = values.iter();
        row.extend(values.map(|value| value.clone().unwrap_or_else(|| "-".to_owned())));
        row
    });
    let rows = rows.collect();
    let mut right = header[5..].to_vec();
    // Digests are text, although they are among the statistics.
    right.retain(|column| !matches!(*column, "MD5" | "SHA1"));
    let mut out = console::out();
    writeln!(out, "{}", format::table(&header, &right, rows).trim_fmt())?;
    let n = format::count(table.rows.len() as u64, "row");
    writeln!(out, "\n{n}")?;
    print_damage(path, table);
    Ok(())
}

fn print_damage(path: &Path, table: &StatisticRows) {
    for error in &table.errors {
        report!("opscope: `{}`: {error}", path.display());
    }
}

fn table_verdict(table: &StatisticRows) -> CommandResult {
    if table.errors.is_empty() {
        Ok(())
    } else {
        Err(CommandFailure::silent(PARTIAL))
    }
}

fn table_json(path: &Path, table: &StatisticRows) -> Value {
    let rows = table.rows.iter().map(|(subject, values)| {
        let columns = table.columns.iter().cloned();
        let values = values.iter().map(|value| Value::from(value.clone()));
        let statistics: serde_json::Map<_, _> = columns.zip(values).collect();
        json!({
            "op_type": subject.op_type,
            "op_name": subject.op_name,
            "task_id": subject.task_id,
            "stream_id": subject.stream_id,
            "timestamp": subject.timestamp,
            "slot": format!("{}.{}", subject.side.name(), subject.slot),
            "bytes": subject.n_bytes,
            "dtype": subject.dtype,
            "shape": subject.shape,
            "statistics": statistics,
        })
    });
    json!({
        "path": path,
        "columns": table.columns,
        "rows": rows.collect::<Vec<_>>(),
        "errors": table.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
