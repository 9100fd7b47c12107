//! Writing.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::ColumnPath;

use super::columns::{self, CellKind};
use super::{N_GROUP_ROWS, SlotRow, VERSION, VERSION_KEY};

/// Facts about a table as a whole, by name.
pub type TableMetadata = Vec<(String, String)>;

/// Writes a table, one row group after the other.
pub struct TableWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> TableWriter<W> {
    /// Begins a table, compressed at zstd's `level` or not at all.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(out: W, metadata: TableMetadata, level: Option<i32>) -> io::Result<TableWriter<W>> {
        let mut properties = properties(metadata, level).map_err(as_io)?;
        for column in &columns::ALL {
            // Hardly any two cells of these are equal, so that a dictionary would only cost time.
            let is_diverse = matches!(column.cell, CellKind::Number(_))
                || ["time_us", "offset", "digest"].contains(&column.name);
            if is_diverse {
                let path = ColumnPath::from(column.name);
                properties = properties.set_column_dictionary_enabled(path, false);
            }
        }
        let schema = columns::schema().map_err(as_io)?;
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties.build()));
        writer.map(TableWriter).map_err(as_io)
    }

    /// Adds rows as a separate group; all but the last should have [`N_GROUP_ROWS`].
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_group(&mut self, rows: &mut [SlotRow]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.0.next_row_group().map_err(as_io)?;
        for column in &columns::ALL {
            let next = group.next_column().map_err(as_io)?;
            let mut writer = next.ok_or_else(|| io::Error::other("the schema lacks a column"))?;
            write_column(column.cell, rows, &mut writer).map_err(as_io)?;
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

/// How tables are written, compressed at zstd's `level` or not at all.
pub(super) fn properties(
    metadata: TableMetadata,
    level: Option<i32>,
) -> Result<WriterPropertiesBuilder, ParquetError> {
    let compression = match level {
        Some(level) => Compression::ZSTD(ZstdLevel::try_new(level)?),
        None => Compression::UNCOMPRESSED,
    };
    let version = (VERSION_KEY.to_owned(), VERSION.to_string());
    let facts = std::iter::once(version).chain(metadata);
    let facts = facts
        .map(|(key, value)| KeyValue::new(key, value))
        .collect();
    Ok(WriterProperties::builder()
        .set_created_by(concat!("opscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(facts))
        .set_compression(compression)
        // Per page, so that a query skips pages and not just row groups.
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_max_row_group_row_count(Some(N_GROUP_ROWS)))
}

fn write_column(
    cell: CellKind,
    rows: &mut [SlotRow],
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    match cell {
        CellKind::Int(place) => {
            let (values, levels) = split(rows.iter_mut().map(|row| *place(row)));
            writer
                .typed::<Int64Type>()
                .write_batch(&values, Some(&levels), None)
        }
        CellKind::Count(i) => {
            let (values, levels) = split(rows.iter().map(|row| row.statistics.counts[i]));
            writer
                .typed::<Int64Type>()
                .write_batch(&values, Some(&levels), None)
        }
        CellKind::Number(i) => {
            let (values, levels) = split(rows.iter().map(|row| row.statistics.numbers[i]));
            writer
                .typed::<DoubleType>()
                .write_batch(&values, Some(&levels), None)
        }
        CellKind::Text(place) => {
            let (values, levels) = texts(rows, place);
            writer
                .typed::<ByteArrayType>()
                .write_batch(&values, Some(&levels), None)
        }
        // A list column: repetition levels separate the rows, definition levels the empty lists.
        CellKind::Shape => {
            let shapes = ShapeLevels::new(rows);
            let (definition, repetition) = (&shapes.definition, &shapes.repetition);
            writer.typed::<Int64Type>().write_batch(
                &shapes.extents,
                Some(definition),
                Some(repetition),
            )
        }
    }?;
    Ok(())
}

/// The cells that are there, and for each cell whether it is.
pub(super) fn split<T>(cells: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let n = cells.size_hint().0;
    let (mut values, mut levels) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    (values, levels)
}

fn texts(
    rows: &mut [SlotRow],
    place: fn(&mut SlotRow) -> &mut Option<Arc<str>>,
) -> (Vec<ByteArray>, Vec<i16>) {
    texts_of(rows.iter_mut().map(|row| place(row).as_ref()))
}

/// Neighbours often share their text, and then also the copy of it.
pub(super) fn texts_of<'a>(
    cells: impl Iterator<Item = Option<&'a Arc<str>>>,
) -> (Vec<ByteArray>, Vec<i16>) {
    let mut last: Option<(&Arc<str>, ByteArray)> = None;
    split(cells.map(|text| {
        let text = text?;
        if let Some((known, bytes)) = &last
            && *known == text
        {
            return Some(bytes.clone());
        }
        let bytes = ByteArray::from(&**text);
        last = Some((text, bytes.clone()));
        Some(bytes)
    }))
}

/// A column of lists, in the levels of the format.
#[derive(Default)]
struct ShapeLevels {
    extents: Vec<i64>,
    /// 0 for no list, 1 for an empty one, 2 for a dimension.
    definition: Vec<i16>,
    /// 0 where a list begins, 1 where it continues.
    repetition: Vec<i16>,
}

impl ShapeLevels {
    fn new(rows: &[SlotRow]) -> ShapeLevels {
        let mut levels = ShapeLevels::default();
        for row in rows {
            let n_extents = row.shape.as_ref().map_or(0, |shape| shape.len());
            if n_extents == 0 {
                levels.definition.push(i16::from(row.shape.is_some()));
                levels.repetition.push(0);
            }
            levels
                .extents
                .extend(row.shape.iter().flat_map(|shape| shape.iter()));
            levels.definition.extend(std::iter::repeat_n(2, n_extents));
            levels
                .repetition
                .extend((0..n_extents).map(|i| i16::from(i > 0)));
        }
        levels
    }
}

/// The library wraps the error of the operating system.
pub(super) fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}
