//! Tables of plain columns, which accompany those of tensors.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::write::{TableMetadata, as_io, properties, split, texts_of};
use super::{INDEX_LEVEL, compression_of};

/// A column with all its cells.
#[derive(Clone, Debug)]
pub struct FlatColumn {
    /// The name.
    pub name: Cow<'static, str>,
    /// One cell for each row.
    pub cells: ColumnCells,
}

/// The cells of a column; any may be empty.
#[derive(Clone, Debug)]
pub enum ColumnCells {
    /// Yes or no.
    Bool(Vec<Option<bool>>),
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Numbers; NaN and infinities stay what they are.
    Number(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<Arc<str>>>),
}

/// Writes a table with one row group. All columns have equally many cells.
///
/// # Errors
/// The operating system's.
pub fn write_flat(
    out: &mut (impl Write + Send),
    metadata: TableMetadata,
    columns: Vec<FlatColumn>,
) -> io::Result<()> {
    let n_rows = columns.first().map_or(0, |column| column.cells.len());
    let mut writer = FlatTableWriter::new(&mut *out, metadata, &columns, n_rows)?;
    writer.write_group(columns)?;
    writer.finish()?;
    out.flush()
}

/// Writes a table of plain columns, one row group after the other.
pub struct FlatTableWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> FlatTableWriter<W> {
    /// Begins a table with the names and kinds of `columns`, whose cells do not count. It is
    /// compressed if `n_rows`, the rows of all groups together, are many.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(
        out: W,
        metadata: TableMetadata,
        columns: &[FlatColumn],
        n_rows: usize,
    ) -> io::Result<FlatTableWriter<W>> {
        let fields = columns.iter().map(field).collect::<Result<_, _>>();
        let schema = Type::group_type_builder("rows").with_fields(fields.map_err(as_io)?);
        let schema = Arc::new(schema.build().map_err(as_io)?);
        let level = compression_of(n_rows, INDEX_LEVEL);
        let properties = properties(metadata, level).map_err(as_io)?;
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties.build()));
        writer.map(FlatTableWriter).map_err(as_io)
    }

    /// Adds rows as a separate group. All columns have equally many cells, [`N_GROUP_ROWS`] at
    /// most.
    ///
    /// [`N_GROUP_ROWS`]: super::N_GROUP_ROWS
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_group(&mut self, columns: Vec<FlatColumn>) -> io::Result<()> {
        // A group without rows would be one that readers ask for statistics of nothing.
        if columns.first().is_none_or(|column| column.cells.is_empty()) {
            return Ok(());
        }
        let mut group = self.0.next_row_group().map_err(as_io)?;
        // Taken one by one, so that a column is freed when it is written.
        for column in columns {
            let next = group.next_column().map_err(as_io)?;
            let mut writer = next.ok_or_else(|| io::Error::other("the schema lacks a column"))?;
            write_cells(column.cells, &mut writer).map_err(as_io)?;
            writer.close().map_err(as_io)?;
        }
        group.close().map(drop).map_err(as_io)
    }

    /// Writes the end; the table is whole then.
    ///
    /// # Errors
    /// The operating system's.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.finish().map(drop).map_err(as_io)
    }
}

impl ColumnCells {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            ColumnCells::Bool(cells) => cells.len(),
            ColumnCells::Int(cells) => cells.len(),
            ColumnCells::Number(cells) => cells.len(),
            ColumnCells::Text(cells) => cells.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn field(column: &FlatColumn) -> Result<TypePtr, ParquetError> {
    let of_type = |physical| {
        Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL)
    };
    let field = match column.cells {
        ColumnCells::Bool(_) => of_type(PhysicalType::BOOLEAN),
        ColumnCells::Number(_) => of_type(PhysicalType::DOUBLE),
        ColumnCells::Int(_) => of_type(PhysicalType::INT64),
        ColumnCells::Text(_) => of_type(PhysicalType::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String))
            .with_converted_type(ConvertedType::UTF8),
    };
    field.build().map(Arc::new)
}

fn write_cells(
    cells: ColumnCells,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    match cells {
        ColumnCells::Bool(cells) => {
            let (values, levels) = split(cells.into_iter());
            let writer = writer.typed::<BoolType>();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnCells::Int(cells) => {
            let (values, levels) = split(cells.into_iter());
            let writer = writer.typed::<Int64Type>();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnCells::Number(cells) => {
            let (values, levels) = split(cells.into_iter());
            let writer = writer.typed::<DoubleType>();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnCells::Text(cells) => {
            let (values, levels) = texts_of(cells.iter().map(Option::as_ref));
            let writer = writer.typed::<ByteArrayType>();
            writer.write_batch(&values, Some(&levels), None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    #[test]
    fn cells_read_back() {
        for n_rows in [0, 1, 5] {
            let ints: Vec<Option<i64>> = (0..n_rows).map(|i| (i % 2 == 0).then_some(i)).collect();
            let texts = ints.iter().map(|i| i.map(|i| format!("t{i}").into()));
            let numbers = ints.iter().map(|i| i.map(|i| 1.0 / i as f64));
            let bools = ints.iter().map(|i| i.map(|i| i > 1));
            let columns = vec![
                FlatColumn {
                    name: "texts".into(),
                    cells: ColumnCells::Text(texts.collect()),
                },
                FlatColumn {
                    name: "ints".into(),
                    cells: ColumnCells::Int(ints.clone()),
                },
                FlatColumn {
                    name: "numbers".into(),
                    cells: ColumnCells::Number(numbers.collect()),
                },
                FlatColumn {
                    name: "bools".into(),
                    cells: ColumnCells::Bool(bools.collect()),
                },
            ];
            let mut file = Vec::new();
            write_flat(&mut file, vec![("key".into(), "fact".into())], columns).unwrap();
            let file = SerializedFileReader::new(Bytes::from(file)).unwrap();
            let rows = file.get_row_iter(None).unwrap();
            let rows: Vec<_> = rows.map(Result::unwrap).collect();
            assert_eq!(rows.len(), ints.len());
            for (row, int) in rows.iter().zip(ints) {
                let cells: Vec<Field> = row
                    .get_column_iter()
                    .map(|(_, cell)| cell.clone())
                    .collect();
                let expected = match int {
                    Some(int) => vec![
                        Field::Str(format!("t{int}")),
                        Field::Long(int),
                        Field::Double(1.0 / int as f64),
                        Field::Bool(int > 1),
                    ],
                    None => vec![Field::Null; 4],
                };
                assert_eq!(cells, expected);
            }
        }
    }
}
