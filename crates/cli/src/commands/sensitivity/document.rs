//! All measurements, as JSON and as a table.

use opscope_analysis::compare::report::{quoted, words};
use opscope_sensitivity::ranking::RankedOperator;
use opscope_sensitivity::{OperatorState, OutputDistance};
use opscope_store::record::Operator;
use serde_json::{Map, Value, json};

use super::{FormatResult, SensitivityResult};
use crate::commands::saved_result;
use crate::format::json_number;

/// Version of the JSON.
const VERSION: u32 = 1;

/// Columns of the table.
const COLUMNS: [&str; 14] = [
    "dtype",
    "position",
    "task_id",
    "operator",
    "op_type",
    "is_named",
    "first_output",
    "state",
    "rel_l2",
    "max_abs",
    "cosine",
    "n_changed",
    "n_non_finite",
    "is_kept",
];

/// The whole result.
pub(super) fn json(result: &SensitivityResult) -> Value {
    let mut whole = Map::new();
    whole.insert("version".into(), json!(VERSION));
    whole.insert("program".into(), json!(saved_result::program()));
    whole.insert("model".into(), json!(result.model.display().to_string()));
    result.engine.add_to(&mut whole);
    let measured = json!({
        "n_samples": result.n_samples,
        "has_made_up_inputs": result.has_made_up_inputs,
        "repeated": distance(&result.repeated),
        "limit": result.limit,
        "without_float_results": in_state(result, OperatorState::WithoutFloats),
        "not_run": in_state(result, OperatorState::NotRun),
        "dtypes": result.formats.iter().map(|format| of_format(result, format)).collect::<Vec<_>>(),
    });
    if let Value::Object(measured) = measured {
        whole.extend(measured);
    }
    Value::Object(whole)
}

/// Operators that are not rounded for this reason.
fn in_state(result: &SensitivityResult, state: OperatorState) -> Vec<Value> {
    let all = result.operators.iter().filter(|entry| entry.state == state);
    all.map(|entry| operator(result, &entry.operator)).collect()
}

fn of_format(result: &SensitivityResult, measured: &FormatResult) -> Value {
    let ranking = measured.ranking.iter().map(|ranked| {
        let mut entry = operator(result, &ranked.operator);
        entry["distance"] = distance(&ranked.distance);
        entry["overflows"] = ranked.overflows.into();
        entry
    });
    let ranking: Vec<Value> = ranking.collect();
    let choice = measured.choice.as_ref().map(|choice| {
        let kept = choice
            .kept
            .iter()
            .map(|position| &measured.ranking[*position]);
        json!({
            "is_within": choice.is_within,
            "n_tried": choice.n_tried,
            "kept": kept.map(|ranked| operator(result, &ranked.operator)).collect::<Vec<_>>(),
            "distance": distance(&choice.distance),
        })
    });
    json!({
        "dtype": measured.format.name(),
        "together": distance(&measured.together),
        "choice": choice,
        "ranking": ranking,
    })
}

fn operator(result: &SensitivityResult, operator: &Operator) -> Value {
    json!({
        "name": operator.op_name,
        "is_named": is_named(result, operator),
        "op_type": operator.op_type,
        "task_id": operator.task_id,
        "outputs": operator.outputs,
    })
}

/// Whether the file names the operator, other than by its output.
fn is_named(result: &SensitivityResult, operator: &Operator) -> bool {
    result.unnamed.binary_search(&operator.task_id).is_err()
}

fn distance(distance: &OutputDistance) -> Value {
    let outputs = distance.outputs.iter().map(|output| {
        json!({
            "name": output.name,
            "is_float": output.is_float,
            "rel_l2": json_number(output.rel_l2),
            "max_abs": json_number(output.max_abs),
            "cosine": output.cosine.map(json_number),
            "n_elements": output.n_elements,
            "n_changed": output.n_changed,
            "n_non_finite": output.n_non_finite,
        })
    });
    json!({
        "rel_l2": json_number(distance.rel_l2()),
        "max_abs": json_number(distance.max_abs()),
        "cosine": distance.cosine().map(json_number),
        "failure": distance.failure,
        "outputs": outputs.collect::<Vec<_>>(),
    })
}

/// A row for each dtype and operator: rounded ones in the order of the ranking, then the others.
pub(super) fn csv(result: &SensitivityResult) -> String {
    let mut text = line(&COLUMNS.map(str::to_owned));
    for one in &result.formats {
        // The position has its own cell, so that it survives sorting the table.
        for (position, ranked) in one.ranking.iter().enumerate() {
            text += &line(&rounded_row(result, one, position, ranked));
        }
        let others = result.operators.iter();
        for other in others.filter(|other| other.state != OperatorState::Rounded) {
            let state = match other.state {
                OperatorState::NotRun => "not run",
                _ => "no float results",
            };
            let mut row = row_head(result, one, &other.operator);
            row[7] = state.to_owned();
            text += &line(&row);
        }
    }
    text
}

fn rounded_row(
    result: &SensitivityResult,
    one: &FormatResult,
    position: usize,
    ranked: &RankedOperator,
) -> [String; COLUMNS.len()] {
    let mut row = row_head(result, one, &ranked.operator);
    let distance = &ranked.distance;
    let outputs = distance.outputs.iter();
    let (n_changed, n_non_finite) = outputs.fold((0, 0), |(n_changed, n_non_finite), output| {
        (
            n_changed + output.n_changed,
            n_non_finite + output.n_non_finite,
        )
    });
    row[1] = (position + 1).to_string();
    row[7] = if distance.failure.is_some() {
        "fails".to_owned()
    } else {
        "rounded".to_owned()
    };
    row[8] = whole(distance.rel_l2());
    row[9] = whole(distance.max_abs());
    row[10] = distance.cosine().map_or_else(String::new, whole);
    row[11] = n_changed.to_string();
    row[12] = n_non_finite.to_string();
    // An empty cell without a limit is different from "not kept".
    if let Some(choice) = &one.choice {
        row[13] = choice.keeps(position).to_string();
    }
    row
}

fn row_head(
    result: &SensitivityResult,
    one: &FormatResult,
    operator: &Operator,
) -> [String; COLUMNS.len()] {
    let first_output = operator.outputs.iter().find(|name| !name.is_empty());
    let mut row = [const { String::new() }; COLUMNS.len()];
    row[0] = one.format.name().to_owned();
    row[2] = operator.task_id.to_string();
    row[3] = quoted(&operator.op_name);
    row[4] = quoted(&operator.op_type);
    row[5] = is_named(result, operator).to_string();
    row[6] = first_output.map_or_else(String::new, |name| quoted(name));
    row
}

/// One line of cells, quoted if necessary.
fn line(cells: &[String; COLUMNS.len()]) -> String {
    // RFC 4180 requires this line end.
    format!("{}\r\n", cells.join(","))
}

/// The shortest decimal that parses as the same number.
fn whole(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        words::number(value)
    }
}
