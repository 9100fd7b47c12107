//! Tables of plain columns, which stand beside those of tensors.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::write::{TableMetadata, as_io, properties, split, texts_of};
use super::{INDEX_LEVEL, compression_of};

/// A column with all its cells.
#[derive(Clone, Debug)]
pub struct FlatColumn {
    /// The name.
    pub name: &'static str,
    /// One cell for each row.
    pub cells: ColumnCells,
}

/// The cells of a column, any of which may be empty.
#[derive(Clone, Debug)]
pub enum ColumnCells {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
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
    let fields = columns.iter().map(field).collect::<Result<_, _>>();
    let schema = Type::group_type_builder("rows").with_fields(fields.map_err(as_io)?);
    let schema = Arc::new(schema.build().map_err(as_io)?);
    let properties = properties(metadata, compression_of(n_rows, INDEX_LEVEL)).map_err(as_io)?;
    let writer = SerializedFileWriter::new(&mut *out, schema, Arc::new(properties.build()));
    let mut writer = writer.map_err(as_io)?;
    // A group without rows would be one that readers ask for statistics of nothing.
    if n_rows > 0 {
        let mut group = writer.next_row_group().map_err(as_io)?;
        // Taken one by one, so that a column is freed when it is written.
        for column in columns {
            let next = group.next_column().map_err(as_io)?;
            let mut writer = next.ok_or_else(|| io::Error::other("the schema lacks a column"))?;
            write_cells(column.cells, &mut writer).map_err(as_io)?;
            writer.close().map_err(as_io)?;
        }
        group.close().map_err(as_io)?;
    }
    writer.finish().map_err(as_io)?;
    drop(writer);
    out.flush()
}

impl ColumnCells {
    /// Number of cells.
    pub fn len(&self) -> usize {
        match self {
            ColumnCells::Int(cells) => cells.len(),
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
        Type::primitive_type_builder(column.name, physical).with_repetition(Repetition::OPTIONAL)
    };
    let field = match column.cells {
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
        ColumnCells::Int(cells) => {
            let (values, levels) = split(cells.into_iter());
            let writer = writer.typed::<Int64Type>();
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
            let columns = vec![
                FlatColumn {
                    name: "texts",
                    cells: ColumnCells::Text(texts.collect()),
                },
                FlatColumn {
                    name: "ints",
                    cells: ColumnCells::Int(ints.clone()),
                },
            ];
            let mut file = Vec::new();
            write_flat(&mut file, vec![("key".into(), "fact".into())], columns).unwrap();
            let file = SerializedFileReader::new(Bytes::from(file)).unwrap();
            let rows = file.get_row_iter(None).unwrap();
            let rows: Vec<_> = rows.map(Result::unwrap).collect();
            assert_eq!(rows.len(), ints.len());
            for (row, int) in rows.iter().zip(ints) {
                let [text, found] = [0, 1].map(|i| row.get_column_iter().nth(i).unwrap().1);
                let expected = match int {
                    Some(int) => [Field::Str(format!("t{int}")), Field::Long(int)],
                    None => [Field::Null, Field::Null],
                };
                assert_eq!([text.clone(), found.clone()], expected);
            }
        }
    }
}
