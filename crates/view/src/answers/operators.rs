//! The table of operators.

use std::cmp::Ordering;

use opscope_analysis::compare::report::words;
use opscope_analysis::compare::result::{Cause, VerdictLevel};
use opscope_analysis::survey::{NEAR_EDGE, SpreadRole};
use opscope_store::record::SlotSide;
use serde_json::{Value, json};

use super::{AnswerError, Query, number_or, verdict};
use crate::filter::{FilterError, OperatorFilter};
use crate::json::known;
use crate::viewed::{OperatorFacts, ViewedRuns};

/// Maximum number of rows in an answer.
const N_ROWS_MAX: usize = 1000;

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let total = runs.n_operators();
    let text = query.get("q").map_or("", String::as_str);
    let filter = match OperatorFilter::parse(text) {
        Ok(filter) => filter,
        Err(error) => return Ok(mistake(&error, total)),
    };
    let sort = query.get("sort").map_or("order", String::as_str);
    // Sorts numbers only; rows are built just for the requested range.
    let ids = listed(runs, &filter, sort)?;
    let offset: usize = number_or(query, "offset", 0)?;
    let limit: usize = number_or(query, "limit", 200)?;
    let rows = ids.iter().skip(offset).take(limit.min(N_ROWS_MAX));
    let rows: Vec<Value> = rows
        .filter_map(|&id| Some(row(runs, &runs.facts(id)?)))
        .collect();
    let find = match query.get("find") {
        Some(_) => {
            let id: usize = number_or(query, "find", 0)?;
            ids.iter().position(|&listed| listed == id)
        }
        None => None,
    };
    Ok(json!({
        "total": total,
        "matching": ids.len(),
        "find": find,
        "rows": rows,
        "error": null,
    }))
}

fn mistake(error: &FilterError, total: usize) -> Value {
    json!({
        "total": total, "matching": 0, "find": null, "rows": [],
        "error": {
            "start": error.place.start,
            "end": error.place.end,
            "message": error.message,
            "suggestion": error.suggestion,
        },
    })
}

/// The operators that a filter accepts, in execution order.
pub(super) fn accepted(runs: &ViewedRuns, filter: &OperatorFilter) -> Vec<usize> {
    let all = 0..runs.n_operators();
    if filter.is_empty() {
        return all.collect();
    }
    all.filter(|id| runs.facts(*id).is_some_and(|facts| filter.accepts(&facts)))
        .collect()
}

/// The number of an operator that a column shows.
fn number(runs: &ViewedRuns, id: usize, column: &str) -> Option<f64> {
    let facts = runs.facts(id)?;
    let [error, added, _] = facts.errors();
    let [n_nan, n_inf] = facts.non_finite();
    match column {
        "error" => error,
        "added" => added,
        "max_abs" => facts.max_abs(),
        "headroom" => facts.surveyed?.headroom.map(f64::from),
        "n_nan" => n_nan.map(|n| n as f64),
        "n_inf" => n_inf.map(|n| n as f64),
        _ => None,
    }
}

/// The accepted operators in the requested order.
fn listed(
    runs: &ViewedRuns,
    filter: &OperatorFilter,
    sort: &str,
) -> Result<Vec<usize>, AnswerError> {
    let mut ids = accepted(runs, filter);
    let (key, is_descending) = match sort.strip_prefix('-') {
        Some(key) => (key, true),
        None => (sort, false),
    };
    match key {
        "order" => {}
        // Sorts are stable, so equal rows stay in execution order.
        "name" => {
            ids.sort_by_cached_key(|&id| runs.facts(id).map(|facts| facts.op_name.to_owned()));
        }
        "type" => {
            ids.sort_by_cached_key(|&id| runs.facts(id).map(|facts| facts.op_type.to_owned()));
        }
        "guilt" => ids.sort_by_cached_key(|&id| runs.facts(id).map(|facts| guilt(&facts))),
        "error" | "added" | "max_abs" | "headroom" | "n_nan" | "n_inf" => {
            let mut keyed: Vec<_> = ids.iter().map(|&id| (number(runs, id, key), id)).collect();
            // Not reversed afterwards, so that unknown values stay last.
            keyed.sort_by(|a, b| in_order(a.0, b.0, is_descending));
            return Ok(keyed.into_iter().map(|(_, id)| id).collect());
        }
        _ => {
            return Err(AnswerError::Query(format!(
                "`sort`: there is no order `{sort}`"
            )));
        }
    }
    if is_descending {
        ids.reverse();
    }
    Ok(ids)
}

/// Orders numbers: NaN is larger than any other, and unknown values come last in either direction.
fn in_order(a: Option<f64>, b: Option<f64>, is_descending: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => {
            let order = a.is_nan().cmp(&b.is_nan());
            let order = order.then(a.partial_cmp(&b).unwrap_or(Ordering::Equal));
            if is_descending {
                order.reverse()
            } else {
                order
            }
        }
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// Orders by severity: faulty operators, then failures, then warnings, each in execution order.
pub(crate) fn guilt(facts: &OperatorFacts<'_>) -> (bool, u8) {
    let by_level = match facts.level {
        VerdictLevel::Fail => 0,
        VerdictLevel::Warn => 1,
        VerdictLevel::Skip => 2,
        VerdictLevel::Pass => 3,
    };
    (!facts.is_at_fault, by_level)
}

/// The cells of an operator's row.
pub(crate) fn row(runs: &ViewedRuns, facts: &OperatorFacts<'_>) -> Value {
    let [error, added, inputs] = facts.errors().map(known);
    let [n_nan, n_inf] = facts.non_finite();
    let compared = facts.compared;
    let cause = facts.cause;
    let golden = compared.and_then(|operator| operator.golden.last());
    // Most pairs share a name, and the page shows golden's only if it differs.
    let golden = golden.filter(|golden| golden.op_name != *facts.op_name);
    let (dtype, shape) = output_of(runs, facts);
    json!({
        "id": facts.id,
        "op_type": facts.op_type,
        "op_name": facts.op_name,
        "rank": facts.rank, "step": facts.step, "call": facts.call,
        "status": words::level(facts.level),
        "at_fault": facts.is_at_fault,
        "cause": cause.map(words::cause_name),
        "error": error, "added": added, "inputs": inputs,
        "entry": entry(runs, facts),
        "golden": golden.map(|golden| golden.op_name.as_str()),
        "n_target": compared.map_or(1, |operator| operator.target.len()),
        "n_golden": compared.map_or(0, |operator| operator.golden.len()),
        "max_abs": known(facts.max_abs()),
        "headroom": facts.surveyed.and_then(|found| found.headroom),
        "n_nan": n_nan, "n_inf": n_inf,
        "note": note(facts),
        "dtype": dtype, "shape": shape,
    })
}

/// How a difference enters a faulty operator that is not the origin itself.
pub(super) fn entry(runs: &ViewedRuns, facts: &OperatorFacts<'_>) -> Option<&'static str> {
    let operator = facts
        .compared
        .filter(|_| facts.cause == Some(Cause::Outside))?;
    let mut slots = operator.slots.iter();
    let outside = slots.find(|slot| slot.is_outside && slot.level != VerdictLevel::Pass);
    match verdict::entry(runs, facts.id, outside) {
        Some("model_input") => Some("input"),
        other => other,
    }
}

fn note(facts: &OperatorFacts<'_>) -> Option<&'static str> {
    let found = facts.surveyed?;
    if facts.has_overflow && found.role.is_none() {
        return Some("overflowed");
    }
    match found.role {
        Some(SpreadRole::MakesNan) => Some("makes_nan"),
        Some(SpreadRole::MakesInf) => Some("makes_inf"),
        Some(SpreadRole::TurnsInfToNan) => Some("inf_to_nan"),
        Some(SpreadRole::HandsOn) => Some("hands_on"),
        Some(SpreadRole::MayBeMask) => Some("may_be_mask"),
        Some(SpreadRole::Unknown) => None,
        None => found
            .headroom
            .filter(|headroom| *headroom < NEAR_EDGE)
            .map(|_| "near_edge"),
    }
}

/// Dtype and shape of the first output.
fn output_of(runs: &ViewedRuns, facts: &OperatorFacts<'_>) -> (Option<String>, Option<Vec<u64>>) {
    if let Some(operator) = facts.compared {
        let output = operator.slots.iter().find(|slot| slot.is_output());
        return (
            output.map(|slot| slot.target.dtype.to_string()),
            output.map(|slot| slot.target.shape.clone()),
        );
    }
    let slots = runs.target.dump.runs.get(facts.id).map(|run| &run.slots);
    let output = slots.and_then(|slots| slots.iter().find(|slot| slot.side == SlotSide::Output));
    (
        output.map(|slot| slot.dtype_name.to_string()),
        output.and_then(|slot| slot.shape.clone()),
    )
}
