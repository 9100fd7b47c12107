//! A dump's tensors and a comparison's slots as Arrow arrays, through the PyCapsule interface.
//!
//! The consumer calls the stream without the interpreter's lock, on its own threads. This module
//! never takes the lock there, because code that waits for the consumer may hold it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec;

use opscope_analysis::compare::report::{ComparedRuns, table_columns};
use opscope_analysis::compare::result::Comparison;
use opscope_analysis::{default_jobs, run_names};
use opscope_store::slot_table::{ColumnCells, RowCells, SlotRow, take_columns};
use opscope_tables::TensorRows;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::arrow::{ArrowArrayStream, ArrowSchema, Batch, Batches, Cells, Field, Kind};
use super::error::{ExceptionContent, chain};
use super::work;

/// Rows per batch, few enough that their texts never exceed an array.
const N_BATCH_ROWS: usize = 1 << 14;

/// The tensors of a dump as a table.
#[pyclass(name = "TensorTable", frozen, module = "opscope._native.reading")]
pub(super) struct TensorTable(Arc<SharedRows>);

/// A dump shared by several streams.
struct SharedRows {
    rows: TensorRows,
    /// For each part that was read, its problems.
    problems: Mutex<Vec<Option<Vec<String>>>>,
}

#[pymethods]
impl TensorTable {
    /// Lists a directory or a single file.
    #[new]
    #[pyo3(signature = (path, stats=false, run=None, jobs=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        stats: bool,
        run: Option<&str>,
        jobs: Option<usize>,
    ) -> PyResult<TensorTable> {
        let jobs = jobs.unwrap_or_else(default_jobs);
        let label = run.map_or_else(|| run_names(&[&path]).remove(0), str::to_owned);
        match work(py, || TensorRows::open(&path, &label, jobs, stats))? {
            Ok(rows) => Ok(TensorTable(Arc::new(SharedRows {
                problems: Mutex::new(vec![None; rows.n_parts()]),
                rows,
            }))),
            Err(error) => Err(ExceptionContent::from(&error).raise(py)),
        }
    }

    /// The problems found so far.
    fn problems(&self) -> Vec<String> {
        let of_parts = self.0.problems.lock();
        let of_parts = of_parts.unwrap_or_else(PoisonError::into_inner);
        let of_parts = of_parts.iter().flatten().flatten();
        self.0
            .rows
            .problems()
            .iter()
            .chain(of_parts)
            .cloned()
            .collect()
    }

    /// The columns, in a capsule.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &tensor_fields())
    }

    /// The rows, in a capsule. Each call starts from the beginning.
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = PartBatches {
            shared: self.0.clone(),
            n_begun: 0,
            rest: Vec::new().into_iter(),
        };
        stream_capsule(py, tensor_fields(), Box::new(batches))
    }
}

/// The slots of a comparison as a table.
#[pyclass(name = "ComparisonTable", frozen, module = "opscope._native.reading")]
pub(super) struct ComparisonTable(Arc<Comparison>);

impl ComparisonTable {
    pub(super) fn new(comparison: Arc<Comparison>) -> ComparisonTable {
        ComparisonTable(comparison)
    }

    fn columns(&self) -> (Vec<Field>, Vec<Cells>) {
        let config = &self.0.config;
        let names = run_names(&[&config.target, &config.golden]);
        let runs = ComparedRuns {
            target: &names[0],
            golden: &names[1],
        };
        let columns = table_columns(&self.0, runs).into_iter().map(|column| {
            let (kind, cells) = match column.cells {
                ColumnCells::Bool(cells) => (Kind::Bool, Cells::Bool(cells)),
                ColumnCells::Int(cells) => (Kind::Int, Cells::Int(cells)),
                ColumnCells::Number(cells) => (Kind::Number, Cells::Number(cells)),
                ColumnCells::Text(cells) => (Kind::Text, Cells::Text(cells)),
            };
            let name = column.name.into_owned();
            (Field { name, kind }, cells)
        });
        columns.unzip()
    }
}

#[pymethods]
impl ComparisonTable {
    /// Empty: uncompared items have rows.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// The columns, in a capsule.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.columns().0)
    }

    /// The rows, in a capsule.
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        // A comparison is fully in memory, so one batch holds all of it.
        let (fields, columns) = self.columns();
        let batch = Batch {
            n_rows: columns.first().map_or(0, Cells::len),
            columns,
        };
        stream_capsule(py, fields, Box::new(std::iter::once(Ok(batch))))
    }
}

fn schema_capsule<'py>(py: Python<'py>, fields: &[Field]) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowSchema::of_table(fields), c"arrow_schema")
}

fn stream_capsule<'py>(
    py: Python<'py>,
    fields: Vec<Field>,
    batches: Batches,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = ArrowArrayStream::new(fields, batches);
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Batches of rows; one part is in memory at a time.
struct PartBatches {
    shared: Arc<SharedRows>,
    /// Number of parts read, including the current one.
    n_begun: usize,
    rest: vec::IntoIter<SlotRow>,
}

impl Iterator for PartBatches {
    type Item = Result<Batch, String>;

    fn next(&mut self) -> Option<Result<Batch, String>> {
        while self.rest.len() == 0 {
            if self.n_begun == self.shared.rows.n_parts() {
                return None;
            }
            match self.shared.part(self.n_begun) {
                Ok(rows) => self.rest = rows.into_iter(),
                Err(error) => return Some(Err(error)),
            }
            self.n_begun += 1;
        }
        let mut rows: Vec<SlotRow> = self.rest.by_ref().take(N_BATCH_ROWS).collect();
        let n_rows = rows.len();
        let columns = take_columns(&mut rows).into_iter();
        let columns = columns.map(|column| cells(column.cells)).collect();
        Some(Ok(Batch { n_rows, columns }))
    }
}

impl SharedRows {
    fn part(&self, index: usize) -> Result<Vec<SlotRow>, String> {
        // Missing rows would go unnoticed, so the consumer gets the error.
        let part = self.rows.part(index);
        let part = part.map_err(|error| chain(&error))?;
        let problems = self.problems.lock();
        let mut problems = problems.unwrap_or_else(PoisonError::into_inner);
        // Several streams may read a part; each finds the same problems, which are reported once.
        if let Some(known) = problems.get_mut(index) {
            *known = Some(part.problems);
        }
        Ok(part.rows)
    }
}

/// The columns of `docs/formats/tables.md`, with the types that Parquet readers use.
fn tensor_fields() -> Vec<Field> {
    // Columns without rows have all names and types, so these are listed only once.
    let columns = take_columns(&mut []).into_iter();
    let fields = columns.map(|column| Field {
        name: column.name.into(),
        kind: match column.cells {
            RowCells::Int(_) => Kind::Int,
            RowCells::Number(_) => Kind::Number,
            RowCells::Text(_) => Kind::Text,
            RowCells::Extents(_) => Kind::Ints,
        },
    });
    fields.collect()
}

fn cells(cells: RowCells) -> Cells {
    match cells {
        RowCells::Int(cells) => Cells::Int(cells),
        RowCells::Number(cells) => Cells::Number(cells),
        RowCells::Text(cells) => Cells::Text(cells),
        // A tensor without a shape has none; a scalar has an empty one.
        RowCells::Extents(cells) => Cells::Ints(cells),
    }
}
