//! A dump's tensors and a comparison's slots as Arrow's arrays, for whatever takes those: through
//! the PyCapsule interface, without a copy.
//!
//! The consumer calls the stream without the interpreter's lock, on threads of its own. Nothing
//! here takes it there, as who waits for the consumer may hold it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch,
    RecordBatchIterator, RecordBatchReader, StringArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use opscope_analysis::compare::report::{ComparedRuns, table_columns};
use opscope_analysis::compare::result::Comparison;
use opscope_analysis::default_jobs;
use opscope_analysis::tables::{TensorRows, run_names};
use opscope_store::slot_table::{ColumnCells, RowCells, SlotRow, take_columns};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::error::{ExceptionContent, chain};
use super::work;

/// Rows that are one batch: few enough that their texts never fill an array.
const N_BATCH_ROWS: usize = 1 << 14;

/// The tensors of a dump as a table.
#[pyclass(name = "TensorTable", frozen, module = "opscope._native.reading")]
pub(super) struct TensorTable(Arc<SharedRows>);

/// A dump that several streams may read.
struct SharedRows {
    rows: TensorRows,
    /// For each part that was read, the problems found in it.
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
        schema_capsule(py, &tensor_schema())
    }

    /// The rows, in a capsule. Each call begins anew.
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = PartBatches {
            shared: self.0.clone(),
            schema: tensor_schema(),
            n_begun: 0,
            rest: Vec::new().into_iter(),
        };
        stream_capsule(py, Box::new(batches))
    }
}

/// The slots of a comparison as a table.
#[pyclass(name = "ComparisonTable", frozen, module = "opscope._native.reading")]
pub(super) struct ComparisonTable(RecordBatch);

impl ComparisonTable {
    pub(super) fn new(comparison: &Comparison) -> Result<ComparisonTable, ArrowError> {
        let config = &comparison.config;
        let names = run_names(&[&config.target, &config.golden]);
        let runs = ComparedRuns {
            target: &names[0],
            golden: &names[1],
        };
        // A comparison is in memory as a whole, so that one batch holds all of it.
        let columns = table_columns(comparison, runs).into_iter().map(|column| {
            let array: ArrayRef = match column.cells {
                ColumnCells::Bool(cells) => Arc::new(BooleanArray::from(cells)),
                ColumnCells::Int(cells) => Arc::new(Int64Array::from(cells)),
                ColumnCells::Number(cells) => Arc::new(Float64Array::from(cells)),
                ColumnCells::Text(cells) => Arc::new(StringArray::from_iter(cells)),
            };
            let field = Field::new(column.name.into_owned(), array.data_type().clone(), true);
            (field, array)
        });
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(ComparisonTable)
    }
}

#[pymethods]
impl ComparisonTable {
    /// Nothing: what was not compared has rows of its own.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// The columns, in a capsule.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    /// The rows, in a capsule.
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        stream_capsule(py, Box::new(batches))
    }
}

fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(as_exception)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn stream_capsule<'py>(
    py: Python<'py>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(batches);
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

pub(super) fn as_exception(error: ArrowError) -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err(error.to_string())
}

/// Batches of rows, of which one part is in memory at a time.
struct PartBatches {
    shared: Arc<SharedRows>,
    schema: SchemaRef,
    /// Parts that were read, up to the one of which rows are left.
    n_begun: usize,
    rest: vec::IntoIter<SlotRow>,
}

impl Iterator for PartBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        // A panic must not unwind into the consumer's foreign code.
        let batch = catch_unwind(AssertUnwindSafe(|| self.next_batch()));
        let unknown =
            || ArrowError::ComputeError("reading failed for an unknown reason".to_owned());
        batch.unwrap_or_else(|_| Err(unknown())).transpose()
    }
}

impl RecordBatchReader for PartBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl PartBatches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while self.rest.len() == 0 {
            if self.n_begun == self.shared.rows.n_parts() {
                return Ok(None);
            }
            self.rest = self.shared.part(self.n_begun)?.into_iter();
            self.n_begun += 1;
        }
        let mut rows: Vec<SlotRow> = self.rest.by_ref().take(N_BATCH_ROWS).collect();
        let columns = take_columns(&mut rows).into_iter();
        let arrays = columns.map(|column| array(column.cells));
        let arrays = arrays.collect::<Result<_, _>>()?;
        RecordBatch::try_new(self.schema.clone(), arrays).map(Some)
    }
}

impl SharedRows {
    fn part(&self, index: usize) -> Result<Vec<SlotRow>, ArrowError> {
        // Rows that are missing would go unnoticed, so that the consumer gets the error.
        let part = self.rows.part(index);
        let part = part.map_err(|error| ArrowError::ExternalError(chain(&error).into()))?;
        let problems = self.problems.lock();
        let mut problems = problems.unwrap_or_else(PoisonError::into_inner);
        // Several streams may read a part: each finds the same, and it is told once.
        if let Some(known) = problems.get_mut(index) {
            *known = Some(part.problems);
        }
        Ok(part.rows)
    }
}

/// The columns of `docs/formats/tables.md`, with the types that readers of Parquet give those.
fn tensor_schema() -> SchemaRef {
    // Columns of no rows have all names and types, so that both are listed in one place.
    let fields = take_columns(&mut []).into_iter().map(|column| {
        let data_type = match column.cells {
            RowCells::Int(_) => DataType::Int64,
            RowCells::Number(_) => DataType::Float64,
            RowCells::Text(_) => DataType::Utf8,
            RowCells::Extents(_) => DataType::List(extent()),
        };
        Field::new(column.name, data_type, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn extent() -> FieldRef {
    Arc::new(Field::new("element", DataType::Int64, false))
}

fn array(cells: RowCells) -> Result<ArrayRef, ArrowError> {
    Ok(match cells {
        RowCells::Int(cells) => Arc::new(Int64Array::from(cells)),
        RowCells::Number(cells) => Arc::new(Float64Array::from(cells)),
        RowCells::Text(cells) => Arc::new(StringArray::from_iter(cells)),
        RowCells::Extents(cells) => {
            let lengths = cells
                .iter()
                .map(|cell| cell.as_ref().map_or(0, |list| list.len()));
            let offsets = OffsetBuffer::from_lengths(lengths);
            // A tensor without a shape has none; a scalar has an empty one.
            let is_there: NullBuffer = cells.iter().map(Option::is_some).collect::<Vec<_>>().into();
            let extents = cells.iter().flatten().flat_map(|list| list.iter().copied());
            let extents = Int64Array::from_iter_values(extents);
            Arc::new(ListArray::try_new(
                extent(),
                offsets,
                Arc::new(extents),
                Some(is_there),
            )?)
        }
    })
}
