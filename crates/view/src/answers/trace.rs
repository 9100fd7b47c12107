//! The trace: every operator from left to right.

use opscope_analysis::compare::result::VerdictLevel;
use serde_json::{Value, json};

use super::{AnswerError, Query, info, number_or, operators};
use crate::filter::OperatorFilter;
use crate::json::known;
use crate::viewed::{OperatorFacts, ViewedRuns};

/// Maximum number of columns.
const N_COLUMNS_MAX: usize = 8192;
/// Maximum number of module names below the trace.
const N_LABELS_MAX: usize = 64;

/// The operators of one column.
#[derive(Default)]
struct TraceColumn {
    value: Option<f64>,
    added: Option<f64>,
    level: VerdictLevel,
    has_non_finite: bool,
    /// The operator selected with the column: the worst.
    first: usize,
    fault: Option<usize>,
}

impl TraceColumn {
    fn add(&mut self, facts: &OperatorFacts<'_>, is_first: bool) {
        let value = facts.main_value();
        let is_worse = is_more(value, self.value) && self.fault.is_none();
        if is_first || facts.is_at_fault && self.fault.is_none() || is_worse {
            self.first = facts.id;
        }
        if is_more(value, self.value) {
            self.value = value;
        }
        let [_, added, _] = facts.errors();
        if is_more(added, self.added) {
            self.added = added;
        }
        if is_first || severity(facts.level) > severity(self.level) {
            self.level = facts.level;
        }
        self.has_non_finite |= facts.non_finite().iter().any(|n| n.is_some_and(|n| n > 0));
        if facts.is_at_fault {
            self.fault.get_or_insert(facts.id);
        }
    }
}

/// Whether a number is larger; NaN is larger than any other.
pub(super) fn is_more(value: Option<f64>, than: Option<f64>) -> bool {
    match (value, than) {
        (Some(value), Some(than)) => !than.is_nan() && (value.is_nan() || value > than),
        (value, _) => value.is_some(),
    }
}

/// Orders levels by severity; uncompared operators come lowest.
pub(super) fn severity(level: VerdictLevel) -> u8 {
    match level {
        VerdictLevel::Skip => 0,
        VerdictLevel::Pass => 1,
        VerdictLevel::Warn => 2,
        VerdictLevel::Fail => 3,
    }
}

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let text = query.get("q").map_or("", String::as_str);
    // The table reports a mistake in the filter.
    let filter = OperatorFilter::parse(text).unwrap_or_default();
    let most: usize = number_or(query, "columns", 1024)?;
    let ids = operators::accepted(runs, &filter);
    // More columns than operators or pixels would be useless.
    let n_columns = ids.len().min(most.clamp(1, N_COLUMNS_MAX));
    let mut columns = Vec::with_capacity(n_columns);
    for at in 0..n_columns {
        // Column sizes differ by at most one operator, and every operator is in one column.
        let part = at * ids.len() / n_columns..(at + 1) * ids.len() / n_columns;
        let mut column = TraceColumn::default();
        for (i, facts) in ids[part]
            .iter()
            .filter_map(|&id| runs.facts(id))
            .enumerate()
        {
            column.add(&facts, i == 0);
        }
        columns.push(column);
    }
    let letters = columns.iter().map(|column| match column.level {
        VerdictLevel::Pass => 'p',
        VerdictLevel::Warn => 'w',
        VerdictLevel::Fail => 'f',
        VerdictLevel::Skip => 's',
    });
    let nan = columns
        .iter()
        .map(|column| if column.has_non_finite { '1' } else { '0' });
    let faults = columns.iter().enumerate();
    let faults = faults.filter_map(|(at, column)| Some((at, column.fault?)));
    let values = columns.iter().map(|column| known(column.value));
    let added = columns.iter().map(|column| known(column.added));
    // A single dump has no common limit, because operators differ in dtype.
    let is_compared = runs.comparison().is_some();
    Ok(json!({
        "n": ids.len(),
        "columns": n_columns,
        "value": values.collect::<Vec<_>>(),
        "added": is_compared.then(|| added.collect::<Vec<_>>()),
        "status": letters.collect::<String>(),
        "nan": nan.collect::<String>(),
        "first": columns.iter().map(|column| column.first).collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
        "limit": if is_compared { known(info::error_limit()) } else { Value::Null },
        "labels": labels(runs, &columns),
    }))
}

/// The outermost scope of names, at each position where it changes.
fn labels(runs: &ViewedRuns, columns: &[TraceColumn]) -> Vec<Value> {
    let mut labels = Vec::new();
    let mut last = String::new();
    for (at, column) in columns.iter().enumerate() {
        let Some(facts) = runs.facts(column.first) else {
            continue;
        };
        let scope = outermost(facts.op_name);
        if scope != last && labels.len() < N_LABELS_MAX {
            labels.push(json!({ "at": at, "text": scope }));
            last = scope.to_owned();
        }
    }
    labels
}

/// The outermost scope of a name.
fn outermost(name: &str) -> &str {
    let name = name.trim_start_matches('/');
    let end = name.find(['/', '.']).unwrap_or(name.len());
    &name[..end]
}
