//! Tables derived from the rows of tensors: operators, edges and events.

use std::sync::Arc;

use opscope_store::record::SlotSide;
use opscope_store::slot_table::{ColumnCells, FlatColumn, SlotRow};

use super::rows::PartRows;

/// An execution of an operator.
#[derive(Default)]
struct ExecutionRow {
    first: SlotRow,
    inputs: SideTotals,
    outputs: SideTotals,
}

/// Sums over one side of an execution. A sum is `None` if a term is unknown.
#[derive(Clone, Copy)]
struct SideTotals {
    n_slots: i64,
    n_bytes: Option<i64>,
    n_nan: Option<i64>,
    n_inf: Option<i64>,
}

impl Default for SideTotals {
    fn default() -> SideTotals {
        SideTotals {
            n_slots: 0,
            n_bytes: Some(0),
            n_nan: Some(0),
            n_inf: Some(0),
        }
    }
}

impl SideTotals {
    fn add(&mut self, row: &SlotRow) {
        let [nan, pos_inf, neg_inf, ..] = row.statistics.counts;
        self.n_slots += 1;
        self.n_bytes = sum(self.n_bytes, row.n_bytes);
        self.n_nan = sum(self.n_nan, nan);
        self.n_inf = sum(sum(self.n_inf, pos_inf), neg_inf);
    }

    /// Whether all elements are finite; `None` if some are unknown and the known ones are finite.
    fn is_finite(self) -> Option<bool> {
        Some(self.n_nan? + self.n_inf? == 0)
    }
}

fn sum(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    // An overflowing sum is unknown too.
    a?.checked_add(b?)
}

/// The tables derived from the rows of tensors.
pub(super) struct DerivedTables<'a> {
    part: &'a PartRows<'a>,
    executions: Vec<ExecutionRow>,
}

impl<'a> DerivedTables<'a> {
    pub(super) fn new(part: &'a PartRows<'a>) -> DerivedTables<'a> {
        let mut executions: Vec<ExecutionRow> = Vec::new();
        for row in &part.rows {
            if executions
                .last()
                .is_none_or(|last| last.first.position != row.position)
            {
                executions.push(ExecutionRow {
                    first: row.clone(),
                    ..ExecutionRow::default()
                });
            }
            // Always present at this point.
            if let Some(last) = executions.last_mut() {
                side_of(last, row).add(row);
            }
        }
        DerivedTables { part, executions }
    }

    /// The columns of operators, edges and events.
    pub(super) fn into_columns(self) -> [Vec<FlatColumn>; 3] {
        [self.operators(), self.edges(), self.events()]
    }

    fn operators(&self) -> Vec<FlatColumn> {
        let mut columns = place_columns(&self.executions.iter().map(|execution| &execution.first));
        let texts: [(&'static str, TextCell); 5] = [
            ("kind", |row| &row.kind),
            ("op_type", |row| &row.op_type),
            ("op_name", |row| &row.op_name),
            ("module", |row| &row.module),
            ("source", |row| &row.source),
        ];
        for (name, cell) in texts {
            let cells = self
                .executions
                .iter()
                .map(|execution| cell(&execution.first).clone());
            columns.push(text(name, cells.collect()));
        }
        let ints: [(&'static str, IntCell<ExecutionRow>); 12] = [
            ("call", |execution| execution.first.call),
            ("task", |execution| execution.first.task),
            ("stream", |execution| execution.first.stream),
            ("time_us", |execution| execution.first.time_us),
            ("n_inputs", |execution| Some(execution.inputs.n_slots)),
            ("n_outputs", |execution| Some(execution.outputs.n_slots)),
            ("input_bytes", |execution| execution.inputs.n_bytes),
            ("output_bytes", |execution| execution.outputs.n_bytes),
            ("input_nan", |execution| execution.inputs.n_nan),
            ("input_inf", |execution| execution.inputs.n_inf),
            ("output_nan", |execution| execution.outputs.n_nan),
            ("output_inf", |execution| execution.outputs.n_inf),
        ];
        for (name, cell) in ints {
            columns.push(int(name, self.executions.iter().map(cell).collect()));
        }
        columns
    }

    fn edges(&self) -> Vec<FlatColumn> {
        let edges = self.part.edges.iter();
        let consumers = edges.clone().map(|edge| &self.part.rows[edge.0]);
        let producers = edges.map(|edge| &self.part.rows[edge.1]);
        let mut columns = place_columns(&consumers);
        let values = consumers.clone().map(|row| row.value.clone());
        columns.push(text("value", values.collect()));
        let names = consumers.clone().map(|row| row.op_name.clone());
        columns.push(text("consumer", names.collect()));
        columns.push(int("input", consumers.map(|row| row.slot).collect()));
        let positions = producers.clone().map(|row| row.position);
        columns.push(int("producer_position", positions.collect()));
        let names = producers.clone().map(|row| row.op_name.clone());
        columns.push(text("producer", names.collect()));
        columns.push(int("output", producers.map(|row| row.slot).collect()));
        columns
    }

    /// Outputs with NaN or infinities, and the state of the inputs.
    fn events(&self) -> Vec<FlatColumn> {
        let mut rows = Vec::new();
        let mut kinds = Vec::new();
        let mut executions = self.executions.iter();
        let mut execution = executions.next();
        for row in &self.part.rows {
            // Both are in execution order.
            while execution.is_some_and(|found| found.first.position != row.position) {
                execution = executions.next();
            }
            let is_output = row.side.as_deref() == Some(SlotSide::Output.name());
            // A tensor counts as non-finite only if its counts are known.
            let mut totals = SideTotals::default();
            totals.add(row);
            let (true, Some(execution), Some(false)) = (is_output, execution, totals.is_finite())
            else {
                continue;
            };
            // An operator without inputs creates its values.
            let kind = match execution.inputs.is_finite() {
                Some(true) => "made_non_finite",
                Some(false) => "passed_non_finite",
                None => "has_non_finite",
            };
            kinds.push(Some(kind.into()));
            rows.push(row);
        }
        let mut columns = place_columns(&rows.iter().copied());
        columns.push(text("event", kinds));
        columns.push(text(
            "op_type",
            rows.iter().map(|row| row.op_type.clone()).collect(),
        ));
        columns.push(text(
            "op_name",
            rows.iter().map(|row| row.op_name.clone()).collect(),
        ));
        columns.push(int("output", rows.iter().map(|row| row.slot).collect()));
        columns.push(int(
            "n_nan",
            rows.iter().map(|row| row.statistics.counts[0]).collect(),
        ));
        columns.push(int(
            "n_pos_inf",
            rows.iter().map(|row| row.statistics.counts[1]).collect(),
        ));
        columns.push(int(
            "n_neg_inf",
            rows.iter().map(|row| row.statistics.counts[2]).collect(),
        ));
        columns
    }
}

fn side_of<'a>(execution: &'a mut ExecutionRow, row: &SlotRow) -> &'a mut SideTotals {
    if row.side.as_deref() == Some(SlotSide::Input.name()) {
        &mut execution.inputs
    } else {
        &mut execution.outputs
    }
}

/// A numeric cell of a row or an execution.
type IntCell<R> = fn(&R) -> Option<i64>;

/// A text cell of a row.
type TextCell = fn(&SlotRow) -> &Option<Arc<str>>;

/// The columns that place an execution; all tables start with them.
fn place_columns<'a>(rows: &(impl Iterator<Item = &'a SlotRow> + Clone)) -> Vec<FlatColumn> {
    let texts: [(&'static str, TextCell); 3] = [
        ("run", |row| &row.run),
        ("model", |row| &row.model),
        ("graph", |row| &row.graph),
    ];
    let ints: [(&'static str, IntCell<SlotRow>); 4] = [
        ("rank", |row| row.rank),
        ("load", |row| row.load),
        ("step", |row| row.step),
        ("position", |row| row.position),
    ];
    let texts =
        texts.map(|(name, cell)| text(name, rows.clone().map(|row| cell(row).clone()).collect()));
    let ints = ints.map(|(name, cell)| int(name, rows.clone().map(cell).collect()));
    texts.into_iter().chain(ints).collect()
}

fn text(name: &'static str, cells: Vec<Option<Arc<str>>>) -> FlatColumn {
    FlatColumn {
        name: name.into(),
        cells: ColumnCells::Text(cells),
    }
}

fn int(name: &'static str, cells: Vec<Option<i64>>) -> FlatColumn {
    FlatColumn {
        name: name.into(),
        cells: ColumnCells::Int(cells),
    }
}
