//! Operators over steps or ranks: one number each, reduced to the displayed cells.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{AnswerError, Query, number_or, trace};
use crate::filter::OperatorFilter;
use crate::json::known;
use crate::viewed::{OperatorFacts, ViewedRuns};

/// Maximum number of cells in an answer.
const N_CELLS_MAX: usize = 1 << 17;
/// Maximum number of rows and columns.
const N_SIDE_MAX: usize = 2048;

/// An operator's executions in one column's steps or ranks.
#[derive(Clone, Copy, Default)]
struct StepCell {
    value: Option<f64>,
    n_executions: u32,
    has_nan: bool,
    has_inf: bool,
    is_at_fault: bool,
    /// The execution selected with the cell.
    id: usize,
}

impl StepCell {
    fn add(&mut self, facts: &OperatorFacts<'_>) {
        let [n_nan, n_inf] = facts.non_finite().map(|n| n.is_some_and(|n| n > 0));
        let value = facts.main_value();
        let is_more = trace::is_more(value, self.value);
        // A faulty execution takes precedence over the largest value.
        let is_first = self.n_executions == 0;
        if is_first || !self.is_at_fault && (facts.is_at_fault || is_more) {
            self.id = facts.id;
        }
        if is_more {
            self.value = value;
        }
        self.n_executions += 1;
        self.has_nan |= n_nan;
        self.has_inf |= n_inf;
        self.is_at_fault |= facts.is_at_fault;
    }

    /// `x` faulty, `n` NaN, `i` infinities, `0` neither, `-` not run or unknown.
    fn mark(&self) -> char {
        match self {
            cell if cell.n_executions == 0 => '-',
            cell if cell.is_at_fault => 'x',
            cell if cell.has_nan => 'n',
            cell if cell.has_inf => 'i',
            cell if cell.value.is_none() => '-',
            _ => '0',
        }
    }
}

/// An operator of the model, in all steps.
struct StepRow<'a> {
    op_type: &'a str,
    op_name: &'a str,
}

/// Rows in order of first execution, columns in ascending order.
struct StepTable<'a> {
    rows: Vec<StepRow<'a>>,
    /// Steps or ranks.
    columns: Vec<u64>,
    /// Every step and rank, regardless of the query.
    steps: Vec<u64>,
    ranks: Vec<Option<u32>>,
    /// Row, step or rank, and execution of everything that the filter accepts.
    entries: Vec<(usize, u64, usize)>,
}

/// The dimension along the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnAxis {
    Steps,
    Ranks,
}

impl<'a> StepTable<'a> {
    fn new(runs: &'a ViewedRuns, asked: &AskedSteps) -> StepTable<'a> {
        let mut table = StepTable {
            rows: Vec::new(),
            columns: Vec::new(),
            steps: Vec::new(),
            ranks: Vec::new(),
            entries: Vec::new(),
        };
        let mut known: HashMap<(&str, &str), usize> = HashMap::new();
        for facts in (0..runs.n_operators()).filter_map(|id| runs.facts(id)) {
            table.ranks.push(facts.rank);
            table.steps.extend(facts.step);
            let is_wanted = asked.rank.is_none_or(|rank| facts.rank == Some(rank))
                && asked.step.is_none_or(|step| facts.step == Some(step));
            let place = match asked.axis {
                ColumnAxis::Steps => facts.step,
                ColumnAxis::Ranks => facts.rank.map(u64::from),
            };
            let Some(column) = place.filter(|_| is_wanted && asked.filter.accepts(&facts)) else {
                continue;
            };
            let row = *known
                .entry((facts.op_type, facts.op_name))
                .or_insert_with(|| {
                    table.rows.push(StepRow {
                        op_type: facts.op_type,
                        op_name: facts.op_name,
                    });
                    table.rows.len() - 1
                });
            table.columns.push(column);
            table.entries.push((row, column, facts.id));
        }
        for numbers in [&mut table.columns, &mut table.steps] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        table.ranks.sort_unstable();
        table.ranks.dedup();
        table
    }
}

/// The steps of a query.
pub(super) struct AskedSteps {
    pub(super) rank: Option<u32>,
    step: Option<u64>,
    axis: ColumnAxis,
    filter: OperatorFilter,
    n_columns_max: usize,
}

impl AskedSteps {
    pub(super) fn read(query: &Query) -> Result<AskedSteps, AnswerError> {
        let text = query.get("q").map_or("", String::as_str);
        let rank = match query.get("rank") {
            Some(_) => Some(number_or(query, "rank", 0)?),
            None => None,
        };
        let step = match query.get("step") {
            Some(_) => Some(number_or(query, "step", 0)?),
            None => None,
        };
        let axis = match query.get("by").map(String::as_str) {
            None | Some("step") => ColumnAxis::Steps,
            Some("rank") => ColumnAxis::Ranks,
            Some(other) => {
                let text = format!("`by` is `{other}`, expected `step` or `rank`");
                return Err(AnswerError::Query(text));
            }
        };
        Ok(AskedSteps {
            rank,
            step,
            axis,
            // The table reports a mistake in the filter.
            filter: OperatorFilter::parse(text).unwrap_or_default(),
            n_columns_max: number_or(query, "columns", 400_usize)?.clamp(1, N_SIDE_MAX),
        })
    }

    /// The steps in ascending order, and their number of columns.
    pub(super) fn steps(&self, runs: &ViewedRuns) -> (Vec<u64>, usize) {
        let steps = StepTable::new(runs, self).columns;
        let n_columns = steps.len().min(self.n_columns_max);
        (steps, n_columns)
    }
}

/// First and last step of each column.
pub(super) fn columns(steps: &[u64], n_columns: usize) -> Vec<[u64; 2]> {
    let columns = (0..n_columns).map(|column| {
        // Every column has at least one step, as there are never more columns than steps.
        let start = first_of(column, n_columns, steps.len());
        let end = first_of(column + 1, n_columns, steps.len());
        [steps[start], steps[end - 1]]
    });
    columns.collect()
}

/// The first of `n_items` items shown at position `at` of `n`.
fn first_of(at: usize, n: usize, n_items: usize) -> usize {
    (at * n_items).div_ceil(n)
}

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let asked = AskedSteps::read(query)?;
    let table = StepTable::new(runs, &asked);
    let most_rows = number_or(query, "rows", 400_usize)?.clamp(1, N_SIDE_MAX);
    let n_columns = table.columns.len().min(asked.n_columns_max);
    // Rows are reduced first, so that each step or rank keeps its column.
    let n_rows = table
        .rows
        .len()
        .min(most_rows)
        .min(N_CELLS_MAX / n_columns.max(1));
    let mut cells = vec![StepCell::default(); n_rows * n_columns];
    for &(row, place, id) in &table.entries {
        // Rows and columns are scaled alike: several may share a cell, and none is skipped.
        let column = table.columns.partition_point(|known| *known < place);
        let at =
            row * n_rows / table.rows.len() * n_columns + column * n_columns / table.columns.len();
        // The maximum, with NaN above every number: a mean would hide the outlier.
        if let (Some(cell), Some(facts)) = (cells.get_mut(at), runs.facts(id)) {
            cell.add(&facts);
        }
    }
    let rows = (0..n_rows).map(|row| {
        let start = first_of(row, n_rows, table.rows.len());
        let end = first_of(row + 1, n_rows, table.rows.len());
        let shown = &table.rows[start];
        json!({ "op_type": shown.op_type, "op_name": shown.op_name, "n": end - start })
    });
    Ok(json!({
        "n_operators": table.rows.len(),
        "by": match asked.axis {
            ColumnAxis::Steps => "step",
            ColumnAxis::Ranks => "rank",
        },
        "n_columns": table.columns.len(),
        // A longer list would be useless to choose from.
        "steps": table.steps.iter().take(N_SIDE_MAX).collect::<Vec<_>>(),
        "ranks": table.ranks,
        "rows": rows.collect::<Vec<_>>(),
        "columns": columns(&table.columns, n_columns),
        "values": cells.iter().map(|cell| known(cell.value)).collect::<Vec<_>>(),
        "marks": cells.iter().map(StepCell::mark).collect::<String>(),
        "ids": cells.iter().map(|cell| cell.id).collect::<Vec<_>>(),
    }))
}
