//! The contents of a report as one JSON value.

use std::cmp::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::questions::json;
use super::{N_FILE_BYTES, compressed, graphs, tensors};
use crate::answers::AnswerError;
use crate::answers::operators::{guilt, row};
use crate::page::{SCRIPT, STYLE};
use crate::viewed::ViewedRuns;

/// Maximum number of rows in the table.
const N_ROWS_MAX: usize = 20_000;
/// Maximum number of operators with details.
const N_DETAILS_MAX: usize = 1000;
/// Columns of the trace, as many as the page requests.
const N_TRACE_COLUMNS: usize = 1312;
/// Maximum number of events.
const N_EVENTS: usize = 500;
/// Rows and columns of operators over steps, if not all rows are in the file.
const N_STEP_CELLS: [usize; 2] = [200, 400];

/// The server's answers that a file contains, keyed by the page's requests.
pub(super) fn contents(runs: &ViewedRuns) -> Result<Value, AnswerError> {
    let ranked = ranked(runs);
    let mut shown: Vec<usize> = ranked.iter().copied().take(N_ROWS_MAX).collect();
    shown.sort_unstable();
    let is_whole = shown.len() == runs.n_operators();
    let rows = shown.iter().filter_map(|&id| runs.facts(id));
    let rows: Vec<Value> = rows.map(|facts| row(runs, &facts)).collect();
    let mut details = Map::new();
    for &id in ranked.iter().take(N_DETAILS_MAX) {
        details.insert(id.to_string(), json(runs, &format!("operator/{id}"), &[])?);
    }
    let columns = N_TRACE_COLUMNS.to_string();
    let info = json(runs, "info", &[])?;
    // If all rows are in the file, the page computes the answer itself, for any filter.
    let mut steps = Value::Null;
    if has_view(&info, "steps") && !is_whole {
        let [rows, columns] = N_STEP_CELLS.map(|n| n.to_string());
        steps = json(runs, "steps", &[("rows", &rows), ("columns", &columns)])?;
    }
    let scalars = if has_view(&info, "steps") {
        json(
            runs,
            "scalars",
            &[("columns", &N_STEP_CELLS[1].to_string())],
        )?
    } else {
        Value::Null
    };
    let graphs = graphs::graphs(runs, &ranked)?;
    let mut contents = json!({
        "made": seconds_now(),
        "is_saved": runs.is_saved,
        "coverage": json(runs, "coverage", &[])?,
        "events": json(runs, "events", &[("limit", &N_EVENTS.to_string())])?,
        "scalars": scalars,
        "trace": json(runs, "trace", &[("columns", &columns)])?,
        "steps": steps,
        "rows": rows,
        "details": details,
        "graphs": graphs.layouts,
        "graph_of": graphs.layout_of,
        "info": info,
    });
    let spent = compressed(contents.to_string().as_bytes());
    let spent = spent.map_err(|error| AnswerError::Missing(error.to_string()))?;
    // Three bytes become four letters.
    let spent = spent.len() / 3 * 4 + SCRIPT.len() + STYLE.len();
    let budget = N_FILE_BYTES.saturating_sub(spent);
    contents["tensors"] = tensors::tensors(runs, &ranked, &contents, budget)?.into();
    Ok(contents)
}

/// The operators by relevance: faulty ones, then by level, then by error.
fn ranked(runs: &ViewedRuns) -> Vec<usize> {
    let facts = (0..runs.n_operators()).filter_map(|id| runs.facts(id));
    let mut keyed: Vec<_> = facts
        .map(|facts| (guilt(&facts), facts.main_value(), facts.id))
        .collect();
    keyed.sort_by(|a, b| {
        let [x, y] = [a.1, b.1].map(|value| match value {
            // NaN exceeds any number.
            Some(value) if value.is_nan() => (true, 0.0),
            Some(value) => (false, value),
            None => (false, f64::NEG_INFINITY),
        });
        let by_value =
            y.0.cmp(&x.0)
                .then(y.1.partial_cmp(&x.1).unwrap_or(Ordering::Equal));
        a.0.cmp(&b.0).then(by_value).then(a.2.cmp(&b.2))
    });
    keyed.into_iter().map(|(_, _, id)| id).collect()
}

fn has_view(info: &Value, view: &str) -> bool {
    let views = info["views"].as_array();
    views.is_some_and(|views| views.iter().any(|known| known == view))
}

fn seconds_now() -> u64 {
    // A clock before 1970 is not set, and 0 is as good as any number.
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
