//! A row for each slot that was compared, in the order of execution, then one for everything that
//! was not, in Parquet.
//!
//! The rows are those of CSV. Their columns have types and the names that the other tables of an
//! index have, so that both are joined: `call` for `repeat`, and a slot is `side` and `slot`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::Arc;

use opscope_store::slot_table::{
    ColumnCells, FlatColumn, FlatTableWriter, N_GROUP_ROWS, TableMetadata,
};

use super::columns::{self, MetricColumns, OperatorRows, PATH_COLUMNS, ReportCell, SLOT_COLUMNS};
use crate::compare::result::{Comparison, Evidence, SlotKey};

/// The names of both dumps in the columns `run` and `golden_run`.
#[derive(Clone, Copy, Debug)]
pub struct ComparedRuns<'a> {
    /// The dump under test.
    pub target: &'a str,
    /// The trusted dump.
    pub golden: &'a str,
}

/// Kinds of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellKind {
    /// `yes`, or nothing for no.
    Flag,
    Int,
    Number,
    /// A slot, in two columns.
    Slot,
    Text,
}

/// Columns other than texts; metrics are numbers.
const KINDS: [(&str, CellKind); 11] = [
    ("index", CellKind::Int),
    ("rank", CellKind::Int),
    ("step", CellKind::Int),
    ("repeat", CellKind::Int),
    ("likeness", CellKind::Number),
    ("inputs_error", CellKind::Number),
    ("outputs_error", CellKind::Number),
    ("added_error", CellKind::Number),
    ("in_verdict", CellKind::Flag),
    ("slot", CellKind::Slot),
    ("golden_slot", CellKind::Slot),
];

/// The table in memory. All columns have equally many cells.
pub fn table_columns(comparison: &Comparison, runs: ComparedRuns<'_>) -> Vec<FlatColumn> {
    let mut table = TableInProgress::new(comparison, runs);
    let rows = ComparedRows::for_comparison(comparison);
    // Nothing fails here.
    let _: Result<(), Infallible> = rows.for_each(|row| {
        table.add(row);
        Ok(())
    });
    table.take()
}

/// Writes the table. Texts of dumps are taken as they are: nothing runs what is in a Parquet file.
///
/// # Errors
/// Those of `out`.
pub fn write(
    comparison: &Comparison,
    runs: ComparedRuns<'_>,
    metadata: TableMetadata,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let mut table = TableInProgress::new(comparison, runs);
    // An upper bound, which is enough: it only chooses how well the table is compressed.
    let slots = comparison
        .operators
        .iter()
        .flat_map(|operator| &operator.slots);
    let n_rows = slots.count() + comparison.skips.len();
    let mut writer = FlatTableWriter::new(&mut *out, metadata, &table.columns, n_rows)?;
    ComparedRows::for_comparison(comparison).for_each(|row| {
        table.add(row);
        table.write_full_group(&mut writer)
    })?;
    writer.write_group(table.take())?;
    writer.finish()?;
    out.flush()
}

/// The rows of a comparison.
struct ComparedRows<'a> {
    comparison: &'a Comparison,
    metrics: MetricColumns,
    rows: OperatorRows,
}

impl<'a> ComparedRows<'a> {
    fn for_comparison(comparison: &'a Comparison) -> ComparedRows<'a> {
        ComparedRows {
            comparison,
            metrics: MetricColumns::for_comparison(comparison),
            rows: OperatorRows::for_comparison(comparison),
        }
    }

    /// Shows the cells of each row in turn, up to the first failure.
    fn for_each<E>(&self, mut show: impl FnMut(Vec<ReportCell>) -> Result<(), E>) -> Result<(), E> {
        for operator in &self.comparison.operators {
            let compared = operator.slots.iter();
            // The others have a separate skip, which is a row below.
            for slot in compared.filter(|slot| slot.evidence != Evidence::None) {
                let paths = [&slot.target.path, &slot.golden.path];
                let paths = paths.map(|path| columns::text(path.as_deref().unwrap_or_default()));
                let cells = self.rows.of_slot(operator, slot).into_iter();
                show(cells.chain(self.metrics.cells(slot)).chain(paths).collect())?;
            }
        }
        // Skips come last, as most have no place in the order of execution.
        let n_metrics = self.metrics.titles().count();
        for skip in &self.comparison.skips {
            let (cells, paths) = columns::of_skip(skip);
            let none = std::iter::repeat_n(ReportCell::Nothing, n_metrics);
            show(cells.into_iter().chain(none).chain(paths).collect())?;
        }
        Ok(())
    }
}

fn columns_before() -> impl Iterator<Item = (String, CellKind)> {
    SLOT_COLUMNS.into_iter().map(|name| {
        let known = KINDS.iter().find(|(known, _)| *known == name);
        let kind = known.map_or(CellKind::Text, |(_, kind)| *kind);
        // As in the other tables.
        let name = if name == "repeat" { "call" } else { name };
        (name.to_owned(), kind)
    })
}

/// Rows that wait for a full row group.
struct TableInProgress {
    runs: [Arc<str>; 2],
    kinds: Vec<CellKind>,
    columns: Vec<FlatColumn>,
    /// Names and levels repeat from row to row.
    texts: HashMap<String, Arc<str>>,
}

impl TableInProgress {
    fn new(comparison: &Comparison, runs: ComparedRuns<'_>) -> TableInProgress {
        let metrics = MetricColumns::for_comparison(comparison);
        let metrics = metrics.titles().map(|title| (title, CellKind::Number));
        let metrics: Vec<_> = metrics.collect();
        let paths = PATH_COLUMNS.map(|name| (name.to_owned(), CellKind::Text));
        let names = columns_before().chain(metrics).chain(paths);
        let column = |name: String, cells| FlatColumn {
            name: name.into(),
            cells,
        };
        let text = || ColumnCells::Text(Vec::new());
        let mut columns = vec![
            column("run".to_owned(), text()),
            column("golden_run".to_owned(), text()),
        ];
        let mut kinds = Vec::new();
        for (name, kind) in names {
            match kind {
                CellKind::Flag => columns.push(column(name, ColumnCells::Bool(Vec::new()))),
                CellKind::Int => columns.push(column(name, ColumnCells::Int(Vec::new()))),
                CellKind::Number => columns.push(column(name, ColumnCells::Number(Vec::new()))),
                CellKind::Slot => {
                    columns.push(column(name.replace("slot", "side"), text()));
                    columns.push(column(name, ColumnCells::Int(Vec::new())));
                }
                CellKind::Text => columns.push(column(name, text())),
            }
            kinds.push(kind);
        }
        TableInProgress {
            runs: [runs.target.into(), runs.golden.into()],
            kinds,
            columns,
            texts: HashMap::new(),
        }
    }

    /// Adds a row of cells in the order of the names.
    fn add(&mut self, cells: Vec<ReportCell>) {
        let [target, golden] = self.runs.clone().map(|run| TableCell::Text(Some(run)));
        let mut row = vec![target, golden];
        // A slot becomes two cells, so that kinds and columns differ in number.
        for (cell, kind) in cells.into_iter().zip(self.kinds.clone()) {
            self.take_apart(cell, kind, &mut row);
        }
        for (column, cell) in self.columns.iter_mut().zip(row) {
            match (&mut column.cells, cell) {
                (ColumnCells::Bool(cells), TableCell::Flag(flag)) => cells.push(Some(flag)),
                (ColumnCells::Int(cells), TableCell::Number(number)) => {
                    // Counts, which a double holds exactly.
                    cells.push(number.map(|number| number as i64));
                }
                (ColumnCells::Number(cells), TableCell::Number(number)) => cells.push(number),
                (ColumnCells::Text(cells), TableCell::Text(text)) => cells.push(text),
                (cells, cell) => debug_assert!(false, "{cell:?} in {cells:?}"),
            }
        }
    }

    fn take_apart(&mut self, cell: ReportCell, kind: CellKind, row: &mut Vec<TableCell>) {
        let (text, number) = match cell {
            ReportCell::Nothing => (None, None),
            ReportCell::Text(text) => (Some(text), None),
            ReportCell::Number(number) => (None, Some(number)),
        };
        match kind {
            CellKind::Flag => row.push(TableCell::Flag(text.is_some())),
            CellKind::Int | CellKind::Number => row.push(TableCell::Number(number)),
            CellKind::Slot => {
                let slot = text.as_deref().and_then(SlotKey::parse);
                let side = slot.map(|slot| self.shared(slot.side.name()));
                row.push(TableCell::Text(side));
                row.push(TableCell::Number(slot.map(|slot| slot.index.into())));
            }
            CellKind::Text => row.push(TableCell::Text(text.map(|text| self.shared(&text)))),
        }
    }

    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let shared: Arc<str> = text.into();
        self.texts.insert(text.to_owned(), shared.clone());
        shared
    }

    fn write_full_group<W: Write + Send>(
        &mut self,
        writer: &mut FlatTableWriter<W>,
    ) -> io::Result<()> {
        if self.columns[0].cells.len() < N_GROUP_ROWS {
            return Ok(());
        }
        writer.write_group(self.take())
    }

    /// The rows so far; none are left.
    fn take(&mut self) -> Vec<FlatColumn> {
        // Numbers and messages of a million rows would stay otherwise.
        self.texts.clear();
        let columns = self.columns.iter_mut();
        let taken = columns.map(|column| FlatColumn {
            name: column.name.clone(),
            cells: match &mut column.cells {
                ColumnCells::Bool(cells) => ColumnCells::Bool(std::mem::take(cells)),
                ColumnCells::Int(cells) => ColumnCells::Int(std::mem::take(cells)),
                ColumnCells::Number(cells) => ColumnCells::Number(std::mem::take(cells)),
                ColumnCells::Text(cells) => ColumnCells::Text(std::mem::take(cells)),
            },
        });
        taken.collect()
    }
}

/// A cell of the table.
#[derive(Debug)]
enum TableCell {
    Flag(bool),
    Number(Option<f64>),
    Text(Option<Arc<str>>),
}
