//! Answers to the page's questions. Each is made from the dumps that are open and from the address's
//! query; nothing in a query is ever a path.

mod coverage;
pub(crate) mod elements;
mod events;
pub(crate) mod graph;
mod info;
mod operator;
pub(crate) mod operators;
mod scalars;
mod slice;
mod steps;
mod tensor;
mod trace;
mod verdict;

use std::collections::HashMap;

use opscope_analysis::compare::result::SlotKey;
use serde_json::Value;

use crate::json::parse_slot;
use crate::report;
use crate::viewed::{ShownSide, ViewedRuns};

/// The query of an address.
pub(crate) type Query = HashMap<String, String>;

/// An answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A JSON value.
    Json(Value),
    /// Numbers, little-endian.
    Bytes(Vec<u8>),
    /// A file to save, with its name, which needs no quoting.
    File(String, Vec<u8>),
}

/// A question that has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// There is no such thing.
    Missing(String),
    /// The address is wrong.
    Query(String),
    /// The dump is not what it was, or is damaged.
    Dump(String),
}

impl std::fmt::Display for AnswerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (AnswerError::Missing(text) | AnswerError::Query(text) | AnswerError::Dump(text)) =
            self;
        f.write_str(text)
    }
}

/// Answers a question, which is the part of the address behind `api/`.
pub(crate) fn answer(runs: &ViewedRuns, path: &str, query: &Query) -> Result<Answer, AnswerError> {
    if let Some(id) = path.strip_prefix("operator/") {
        return operator::answer(runs, number(id, "operator")?).map(Answer::Json);
    }
    if let Some(id) = path.strip_prefix("event/") {
        return events::event(runs, number(id, "event")?).map(Answer::Json);
    }
    match path {
        "info" => Ok(Answer::Json(info::answer(runs))),
        "operators" => operators::answer(runs, query).map(Answer::Json),
        "trace" => trace::answer(runs, query).map(Answer::Json),
        "graph" => graph::answer(runs, query).map(Answer::Json),
        "steps" => steps::answer(runs, query).map(Answer::Json),
        "scalars" => scalars::answer(runs, query).map(Answer::Json),
        "events" => events::answer(runs, query).map(Answer::Json),
        "tensor" => tensor::answer(runs, query).map(Answer::Json),
        "slice" => slice::picture(runs, query).map(Answer::Bytes),
        "values" => slice::values(runs, query).map(Answer::Json),
        "npy" => elements::npy(runs, query),
        "coverage" => Ok(Answer::Json(coverage::answer(runs))),
        "report" => {
            let report = report::write(runs);
            let report = report.map_err(|error| AnswerError::Dump(error.to_string()))?;
            Ok(Answer::File(report::file_name(runs), report.into_bytes()))
        }
        _ => Err(AnswerError::Missing("there is no such question".to_owned())),
    }
}

/// A whole number of an address.
fn number<N: std::str::FromStr>(text: &str, name: &str) -> Result<N, AnswerError> {
    let wrong = |_| AnswerError::Query(format!("`{name}`: `{text}` is no number"));
    text.parse().map_err(wrong)
}

/// A whole number of a query, or what stands for it.
fn number_or<N: std::str::FromStr>(query: &Query, name: &str, or: N) -> Result<N, AnswerError> {
    match query.get(name) {
        Some(text) => number(text, name),
        None => Ok(or),
    }
}

/// The slot that a query is about.
struct AskedSlot {
    operator: usize,
    key: SlotKey,
}

impl AskedSlot {
    fn read(runs: &ViewedRuns, query: &Query) -> Result<AskedSlot, AnswerError> {
        let missing = |name: &str| AnswerError::Query(format!("`{name}` is missing"));
        let operator = query.get("op").ok_or_else(|| missing("op"))?;
        let operator = number(operator, "op")?;
        // Numbers are all that a client can name.
        if operator >= runs.n_operators() {
            return Err(AnswerError::Missing(format!(
                "there is no operator {operator}"
            )));
        }
        let slot = query.get("slot").ok_or_else(|| missing("slot"))?;
        let key = parse_slot(slot);
        let key = key.ok_or_else(|| AnswerError::Query(format!("`slot`: `{slot}` is no slot")))?;
        Ok(AskedSlot { operator, key })
    }
}

fn side_of(query: &Query) -> Result<ShownSide, AnswerError> {
    match query.get("side").map(String::as_str) {
        None | Some("target") => Ok(ShownSide::Target),
        Some("golden") => Ok(ShownSide::Golden),
        Some(other) => Err(AnswerError::Query(format!(
            "`side`: there is no side `{other}`"
        ))),
    }
}
