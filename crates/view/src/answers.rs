//! Answers to the page's requests, computed from the open dumps and the query. A query never
//! contains a path.

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

/// A request that cannot be answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// The requested thing does not exist.
    Missing(String),
    /// The address is invalid.
    Query(String),
    /// The dump has changed or is damaged.
    Dump(String),
}

impl std::fmt::Display for AnswerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (AnswerError::Missing(text) | AnswerError::Query(text) | AnswerError::Dump(text)) =
            self;
        f.write_str(text)
    }
}

/// Answers a request; `path` is the part of the address after `api/`.
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

/// Parses an integer of an address.
fn number<N: std::str::FromStr>(text: &str, name: &str) -> Result<N, AnswerError> {
    text.parse()
        .map_err(|_| AnswerError::Query(format!("`{name}`: `{text}` is not a number")))
}

/// An integer of a query, or a default.
fn number_or<N: std::str::FromStr>(query: &Query, name: &str, or: N) -> Result<N, AnswerError> {
    match query.get(name) {
        Some(text) => number(text, name),
        None => Ok(or),
    }
}

/// The slot that a query refers to.
struct AskedSlot {
    operator: usize,
    key: SlotKey,
}

impl AskedSlot {
    fn read(runs: &ViewedRuns, query: &Query) -> Result<AskedSlot, AnswerError> {
        let operator = number(required(query, "op")?, "op")?;
        // Clients identify operators by number only.
        if operator >= runs.n_operators() {
            return Err(AnswerError::Missing(format!(
                "there is no operator {operator}"
            )));
        }
        let slot = required(query, "slot")?;
        let key = parse_slot(slot);
        let key =
            key.ok_or_else(|| AnswerError::Query(format!("`slot`: `{slot}` is not a slot")))?;
        Ok(AskedSlot { operator, key })
    }
}

fn required<'q>(query: &'q Query, name: &str) -> Result<&'q str, AnswerError> {
    let value = query.get(name).map(String::as_str);
    value.ok_or_else(|| AnswerError::Query(format!("`{name}` is missing")))
}

fn side_of(query: &Query) -> Result<ShownSide, AnswerError> {
    match query.get("side").map(String::as_str) {
        None | Some("target") => Ok(ShownSide::Target),
        Some("golden") => Ok(ShownSide::Golden),
        Some("reference") => Ok(ShownSide::Reference),
        Some(other) => Err(AnswerError::Query(format!(
            "`side`: there is no side `{other}`"
        ))),
    }
}
