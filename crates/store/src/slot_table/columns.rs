//! The columns, declared once.

use std::sync::Arc;

use opscope_tensor::ElementCounts;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

use super::{N_COUNTS, NUMBER_NAMES, SlotRow};

/// A column of the table.
#[derive(Clone, Copy)]
pub(super) struct TableColumn {
    pub(super) name: &'static str,
    pub(super) cell: CellKind,
}

/// How a column's cells are found in a row.
#[derive(Clone, Copy)]
pub(super) enum CellKind {
    Int(fn(&mut SlotRow) -> &mut Option<i64>),
    Text(fn(&mut SlotRow) -> &mut Option<Arc<str>>),
    /// A list of whole numbers.
    Shape,
    /// A count of the statistics, by its place.
    Count(usize),
    /// Another number of the statistics.
    Number(usize),
}

macro_rules! named {
    ($kind:ident, $name:ident) => {
        TableColumn {
            name: stringify!($name),
            cell: CellKind::$kind(|row| &mut row.$name),
        }
    };
}

/// Columns other than statistics.
const N_DESCRIPTIONS: usize = 31;
const DESCRIPTIONS: [TableColumn; N_DESCRIPTIONS] = [
    named!(Text, run),
    named!(Int, rank),
    named!(Int, device),
    named!(Text, model),
    named!(Text, graph),
    named!(Int, load),
    named!(Int, step),
    named!(Int, position),
    named!(Int, call),
    named!(Text, kind),
    named!(Text, op_type),
    named!(Text, op_name),
    named!(Text, module),
    named!(Text, source),
    named!(Int, task),
    named!(Int, stream),
    named!(Int, time_us),
    named!(Text, side),
    named!(Int, slot),
    named!(Text, value),
    named!(Text, dtype),
    named!(Text, stored_dtype),
    named!(Text, layout),
    TableColumn {
        name: "shape",
        cell: CellKind::Shape,
    },
    named!(Int, n_elements),
    named!(Int, n_bytes),
    named!(Text, digest),
    named!(Text, file),
    named!(Text, file_format),
    named!(Int, file_slot),
    named!(Int, offset),
];

/// Columns that came later. They follow the others, as journals identify columns by position.
const N_LATER: usize = 3;
const LATER: [TableColumn; N_LATER] = [
    named!(Text, collective),
    named!(Text, group_ranks),
    named!(Text, placement),
];

const N_COLUMNS: usize = N_DESCRIPTIONS + N_COUNTS + NUMBER_NAMES.len() + N_LATER;

/// All columns, in the order in which they are written.
pub(super) static ALL: [TableColumn; N_COLUMNS] = all();

const fn all() -> [TableColumn; N_COLUMNS] {
    let blank = TableColumn {
        name: "",
        cell: CellKind::Shape,
    };
    let mut columns = [blank; N_COLUMNS];
    let mut i = 0;
    while i < columns.len() {
        columns[i] = if i < N_DESCRIPTIONS {
            DESCRIPTIONS[i]
        } else if i < N_DESCRIPTIONS + N_COUNTS {
            let nth = i - N_DESCRIPTIONS;
            TableColumn {
                name: ElementCounts::NAMES[nth + 1],
                cell: CellKind::Count(nth),
            }
        } else if i < N_COLUMNS - N_LATER {
            let nth = i - N_DESCRIPTIONS - N_COUNTS;
            TableColumn {
                name: NUMBER_NAMES[nth],
                cell: CellKind::Number(nth),
            }
        } else {
            LATER[i - (N_COLUMNS - N_LATER)]
        };
        i += 1;
    }
    columns
}

/// The names of all columns.
pub fn column_names() -> Vec<&'static str> {
    ALL.iter().map(|column| column.name).collect()
}

/// The schema of a file.
pub(super) fn schema() -> Result<TypePtr, ParquetError> {
    let fields = ALL.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("slots").with_fields(fields);
    schema.build().map(Arc::new)
}

fn field(column: &TableColumn) -> Result<TypePtr, ParquetError> {
    let optional = |physical| {
        Type::primitive_type_builder(column.name, physical).with_repetition(Repetition::OPTIONAL)
    };
    let field = match column.cell {
        CellKind::Int(_) | CellKind::Count(_) => optional(PhysicalType::INT64).build(),
        CellKind::Number(_) => optional(PhysicalType::DOUBLE).build(),
        CellKind::Text(_) => optional(PhysicalType::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String))
            .with_converted_type(ConvertedType::UTF8)
            .build(),
        CellKind::Shape => return shape_field(column.name),
    };
    field.map(Arc::new)
}

/// The three levels that the format prescribes for lists.
fn shape_field(name: &str) -> Result<TypePtr, ParquetError> {
    let extent = Type::primitive_type_builder("element", PhysicalType::INT64)
        .with_repetition(Repetition::REQUIRED)
        .build()?;
    let list = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(extent)])
        .build()?;
    let field = Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_converted_type(ConvertedType::LIST)
        .with_fields(vec![Arc::new(list)])
        .build()?;
    Ok(Arc::new(field))
}
