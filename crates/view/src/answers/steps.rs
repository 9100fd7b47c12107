//! Operators over steps: a number for each, reduced to the cells that are shown.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{AnswerError, Query, number_or, trace};
use crate::filter::OperatorFilter;
use crate::json::known;
use crate::viewed::{OperatorFacts, ViewedRuns};

/// Most cells of an answer.
const N_CELLS_MAX: usize = 1 << 17;
/// Most rows and columns of it.
const N_SIDE_MAX: usize = 2048;

/// An operator's executions in the steps of one column.
#[derive(Clone, Copy, Default)]
struct StepCell {
    value: Option<f64>,
    n_executions: u32,
    has_nan: bool,
    has_inf: bool,
    is_at_fault: bool,
    /// The execution that is selected with the cell.
    id: usize,
}

impl StepCell {
    fn add(&mut self, facts: &OperatorFacts<'_>) {
        let [n_nan, n_inf] = facts.non_finite().map(|n| n.is_some_and(|n| n > 0));
        let value = facts.main_value();
        let is_more = trace::is_more(value, self.value);
        // The one at fault before the largest.
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

    /// `x` at fault, `n` NaN, `i` infinities, `0` neither, `-` nothing was run or is known.
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

/// An operator of the model, whichever steps ran it.
struct StepRow<'a> {
    op_type: &'a str,
    op_name: &'a str,
}

/// Rows in the order in which operators first ran, and steps in ascending order.
struct StepTable<'a> {
    rows: Vec<StepRow<'a>>,
    steps: Vec<u64>,
    ranks: Vec<Option<u32>>,
    /// Row, step and execution of what the filter accepts.
    entries: Vec<(usize, u64, usize)>,
}

impl<'a> StepTable<'a> {
    fn new(runs: &'a ViewedRuns, filter: &OperatorFilter, rank: Option<u32>) -> StepTable<'a> {
        let mut table = StepTable {
            rows: Vec::new(),
            steps: Vec::new(),
            ranks: Vec::new(),
            entries: Vec::new(),
        };
        let mut known: HashMap<(&str, &str), usize> = HashMap::new();
        for facts in (0..runs.n_operators()).filter_map(|id| runs.facts(id)) {
            table.ranks.push(facts.rank);
            let is_wanted = rank.is_none_or(|rank| facts.rank == Some(rank));
            let Some(step) = facts.step.filter(|_| is_wanted && filter.accepts(&facts)) else {
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
            table.steps.push(step);
            table.entries.push((row, step, facts.id));
        }
        table.steps.sort_unstable();
        table.steps.dedup();
        table.ranks.sort_unstable();
        table.ranks.dedup();
        table
    }
}

/// The steps that a query is about.
pub(super) struct AskedSteps {
    pub(super) rank: Option<u32>,
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
        Ok(AskedSteps {
            rank,
            // The table tells of a mistake.
            filter: OperatorFilter::parse(text).unwrap_or_default(),
            n_columns_max: number_or(query, "columns", 400_usize)?.clamp(1, N_SIDE_MAX),
        })
    }

    /// The steps in ascending order, and how many columns they have together.
    pub(super) fn steps(&self, runs: &ViewedRuns) -> (Vec<u64>, usize) {
        let steps = StepTable::new(runs, &self.filter, self.rank).steps;
        let n_columns = steps.len().min(self.n_columns_max);
        (steps, n_columns)
    }
}

/// First and last step of each column.
pub(super) fn columns(steps: &[u64], n_columns: usize) -> Vec<[u64; 2]> {
    let columns = (0..n_columns).map(|column| {
        let start = first_of(column, n_columns, steps.len());
        let end = first_of(column + 1, n_columns, steps.len());
        [steps[start], steps[end - 1]]
    });
    columns.collect()
}

/// The first of `of` that are shown in place `at` of `n`.
fn first_of(at: usize, n: usize, of: usize) -> usize {
    (at * of).div_ceil(n)
}

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let asked = AskedSteps::read(query)?;
    let table = StepTable::new(runs, &asked.filter, asked.rank);
    let most_rows = number_or(query, "rows", 400_usize)?.clamp(1, N_SIDE_MAX);
    let n_columns = table.steps.len().min(asked.n_columns_max);
    // Rows give way first: a step must not hide behind another.
    let n_rows = table
        .rows
        .len()
        .min(most_rows)
        .min(N_CELLS_MAX / n_columns.max(1));
    let mut cells = vec![StepCell::default(); n_rows * n_columns];
    for &(row, step, id) in &table.entries {
        let column = table.steps.partition_point(|known| *known < step);
        let at =
            row * n_rows / table.rows.len() * n_columns + column * n_columns / table.steps.len();
        // The largest wins, and NaN over every number: a mean would hide the one that matters.
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
        "n_steps": table.steps.len(),
        "ranks": table.ranks,
        "rows": rows.collect::<Vec<_>>(),
        "columns": columns(&table.steps, n_columns),
        "values": cells.iter().map(|cell| known(cell.value)).collect::<Vec<_>>(),
        "marks": cells.iter().map(StepCell::mark).collect::<String>(),
        "ids": cells.iter().map(|cell| cell.id).collect::<Vec<_>>(),
    }))
}
