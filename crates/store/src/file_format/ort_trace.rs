//! The databases that ONNX Runtime's debug builds write: a table of the values of each run, and one
//! of the nodes.
//!
//! `docs/formats/ort_debug.md` lists the columns. Source:
//! `onnxruntime/core/framework/debug_node_inputs_outputs_utils.cc`.

mod uses;

use std::path::Path;
use std::sync::Arc;

use opscope_tensor::{DType, Shape};

use self::uses::{TraceNodes, UseBudget};
use super::onnx_tensor::{self, OnnxElements};
use super::sqlite::{Database, Row, RowBuffer, Rows, SqlTable, SqlValue};
use crate::file_bytes::FileBytes;
use crate::file_parts::FileParts;
use crate::record::SlotSide;
use crate::{FormatError, StoreError};

/// The name used in error messages.
pub const FORMAT_NAME: &str = "ONNX Runtime trace";
/// How names of such files end: the tool adds it to the number of its process.
pub const SUFFIX: &str = ".db";
const VALUES_TABLE: &str = "Tensors";
const NODES_TABLE: &str = "Nodes";
const STEP: &str = "Step";
const NAME: &str = "Name";
const VALUE: &str = "Value";
const PRODUCER: &str = "TracedProducer";
const CONSUMERS: &str = "TracedConsumers";
const OP_TYPE: &str = "OpType";

/// A database with the values of nodes.
pub struct OrtTrace {
    database: Database,
    table: ValuesTable,
}

/// The table of values and the positions of its columns.
struct ValuesTable {
    table: SqlTable,
    step: usize,
    name: usize,
    value: usize,
    producer: usize,
    consumers: usize,
}

/// The cells of a row of values.
struct ValueCells<'a> {
    run: u64,
    name: &'a str,
    blob: &'a [u8],
    producer: &'a str,
    consumers: &'a str,
}

/// A value of one run.
#[derive(Debug)]
pub struct TraceValue<'a> {
    /// Its position among all values.
    pub position: usize,
    /// Which run of the model, counted from 0.
    pub run: u64,
    /// Its name in the model.
    pub name: &'a str,
    /// Type of its elements.
    pub dtype: DType,
    /// Its dimensions.
    pub shape: Shape,
    /// Its elements, in row-major order and little-endian.
    pub elements: &'a [u8],
    /// Where the elements begin in the file; none where they are not in one piece there.
    pub offset: Option<u64>,
    /// The slots in which it was, at least one; none of a value that is shown alone.
    pub uses: Vec<ValueUse>,
}

/// A slot in which a value was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueUse {
    /// The node's name; that of the value where the node is not known.
    pub op_name: Arc<str>,
    /// The node's type; empty where the node is not known.
    pub op_type: Arc<str>,
    /// Position of the node in the order of first executions; after all others if unknown.
    pub order: usize,
    /// Side and position at the node.
    pub slot: (SlotSide, u32),
}

/// Finds the slots of a value by its name, the node that made it and those that read it.
type UsesOf<'a> = &'a mut dyn FnMut(&str, &str, &str) -> Result<Vec<ValueUse>, String>;

/// Whether a file has the name and the table of such a file; not if it cannot be read.
pub fn is_file_at(path: &Path, file_name: &str) -> bool {
    file_name.ends_with(SUFFIX) && has_table(path)
}

fn has_table(path: &Path) -> bool {
    // Many names end in `.db`: only the table identifies the program.
    let database = Database::open(path);
    database.is_ok_and(|database| ValuesTable::find(&database).is_ok())
}

impl OrtTrace {
    /// Opens a file without writing any other file.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read, is damaged, or has other tables or columns.
    pub fn open(path: &Path) -> Result<OrtTrace, StoreError> {
        let database = Database::open(path)?;
        OrtTrace::of_database(database).map_err(StoreError::corrupt(FORMAT_NAME, path))
    }

    /// [`OrtTrace::open`] for the bytes of a database and of its journal.
    ///
    /// # Errors
    /// [`FormatError`] if they are damaged, or have other tables or columns.
    pub fn from_bytes(
        file: FileParts,
        journal: Option<FileBytes>,
    ) -> Result<OrtTrace, FormatError> {
        OrtTrace::of_database(Database::from_bytes(file, journal)?)
    }

    fn of_database(database: Database) -> Result<OrtTrace, FormatError> {
        let table = ValuesTable::find(&database)?;
        Ok(OrtTrace { database, table })
    }

    /// Shows every value in the order in which they were written.
    ///
    /// # Errors
    /// [`FormatError`] if a page or a row is damaged, or whatever `show` returns.
    pub fn visit(
        &self,
        mut show: impl FnMut(TraceValue<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let nodes = read_nodes(&self.database)?;
        let mut rows = self.database.rows(&self.table.table);
        let mut buffer = RowBuffer::default();
        let mut budget = UseBudget::default();
        while let Some(row) = rows.next_row()? {
            self.with_value(
                &mut rows,
                &row,
                &mut buffer,
                &mut |name, producer, consumers| nodes.uses(name, producer, consumers, &mut budget),
                &mut show,
            )?;
        }
        Ok(())
    }

    /// Shows the value at a position.
    ///
    /// # Errors
    /// As for [`OrtTrace::visit`]; also if there is none.
    pub fn visit_one(
        &self,
        position: usize,
        mut show: impl FnMut(TraceValue<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut rows = self.database.rows(&self.table.table);
        // Rows are numbered from 1, and none is ever removed.
        let number = i64::try_from(position).ok().and_then(|n| n.checked_add(1));
        let row = match number {
            Some(number) => rows.find(number)?,
            None => None,
        };
        let Some(row) = row else {
            let expected = format!("a value at position {position}");
            return Err(FormatError::new(0, expected, "none"));
        };
        // A caller that asks for one value knows its slots, and the list of nodes may be long.
        let mut buffer = RowBuffer::default();
        self.with_value(
            &mut rows,
            &row,
            &mut buffer,
            &mut |_, _, _| Ok(Vec::new()),
            &mut show,
        )
    }

    fn with_value<'a>(
        &'a self,
        rows: &mut Rows<'a>,
        row: &Row<'a>,
        buffer: &mut RowBuffer,
        uses_of: UsesOf<'_>,
        show: &mut dyn FnMut(TraceValue<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let number = row.number;
        let wrong = |expected: &str, found: String| {
            FormatError::new(
                row.at,
                format!("{expected} in row {number} of `{VALUES_TABLE}`"),
                found,
            )
        };
        let values = rows.read(row, buffer)?;
        let cells = self.table.cells(&values, &wrong)?;
        let position = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        let position = position.ok_or_else(|| wrong("a number from 1 on", number.to_string()))?;
        let tensor = onnx_tensor::decode(cells.blob).map_err(|error| {
            let expected = format!("{} at byte {} of the tensor", error.expected, error.offset);
            wrong(&expected, error.found)
        })?;
        // The tool writes the name twice. If they differ, the value is ambiguous.
        if tensor.name != cells.name {
            let expected = format!("the tensor `{}`", cells.name);
            return Err(wrong(&expected, format!("`{}`", tensor.name)));
        }
        let uses = uses_of(cells.name, cells.producer, cells.consumers);
        let uses = uses.map_err(|expected| wrong(&expected, "more".to_owned()))?;
        let (elements, offset) = match &tensor.elements {
            OnnxElements::InFile(range) => {
                let elements = cells.blob.get(range.clone()).unwrap_or_default();
                (elements, row.place_of(elements))
            }
            OnnxElements::Decoded(elements) => (&elements[..], None),
        };
        show(TraceValue {
            position,
            run: cells.run,
            name: cells.name,
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            elements,
            offset,
            uses,
        })
    }
}

impl ValuesTable {
    fn find(database: &Database) -> Result<ValuesTable, FormatError> {
        let table = database.table(VALUES_TABLE)?;
        let column = |name| column(&table, VALUES_TABLE, name);
        let [step, name, value] = [column(STEP)?, column(NAME)?, column(VALUE)?];
        let [producer, consumers] = [column(PRODUCER)?, column(CONSUMERS)?];
        Ok(ValuesTable {
            table,
            step,
            name,
            value,
            producer,
            consumers,
        })
    }

    /// The cells of a row, each of the type that its column has.
    fn cells<'b>(
        &self,
        values: &[SqlValue<'b>],
        wrong: &dyn Fn(&str, String) -> FormatError,
    ) -> Result<ValueCells<'b>, FormatError> {
        let get = |column: usize| values.get(column).copied().unwrap_or(SqlValue::Null);
        let text = |column, what: &str| {
            let value = get(column);
            value
                .text()
                .ok_or_else(|| wrong(what, value.kind().to_owned()))
        };
        // SQLite allows any type in any column, whatever the statement of the table declares.
        let run = match get(self.step) {
            SqlValue::Integer(step @ 1..) => step.unsigned_abs() - 1,
            SqlValue::Integer(step) => return Err(wrong("a step from 1 on", step.to_string())),
            other => return Err(wrong("a step", other.kind().to_owned())),
        };
        let name = text(self.name, "the name of a value")?;
        let SqlValue::Blob(blob) = get(self.value) else {
            let found = get(self.value).kind().to_owned();
            return Err(wrong("a tensor of ONNX", found));
        };
        Ok(ValueCells {
            run,
            name,
            blob,
            producer: text(self.producer, "the node that made a value")?,
            consumers: text(self.consumers, "the nodes that read a value")?,
        })
    }
}

fn column(table: &SqlTable, of_table: &str, name: &str) -> Result<usize, FormatError> {
    let position = table.columns.iter().position(|column| column == name);
    position.ok_or_else(|| {
        let expected = format!("a column `{name}` of the table `{of_table}`");
        FormatError::new(0, expected, table.columns.join(", "))
    })
}

/// The nodes in the order in which they ran first, which is that of their rows.
fn read_nodes(database: &Database) -> Result<TraceNodes, FormatError> {
    let table = database.table(NODES_TABLE)?;
    let [name, op_type] = [
        column(&table, NODES_TABLE, NAME)?,
        column(&table, NODES_TABLE, OP_TYPE)?,
    ];
    let mut rows = database.rows(&table);
    let mut buffer = RowBuffer::default();
    let mut nodes = TraceNodes::default();
    while let Some(row) = rows.next_row()? {
        let values = rows.read(&row, &mut buffer)?;
        let text = |column: usize| values.get(column).and_then(SqlValue::text);
        let (Some(name), Some(op_type)) = (text(name), text(op_type)) else {
            let expected = format!("a name and a type in row {} of `{NODES_TABLE}`", row.number);
            return Err(FormatError::new(row.at, expected, "other values"));
        };
        nodes.add(name, op_type);
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests;
