//! Reading.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::statistics::Statistics;

use super::columns::{self, CellKind, TableColumn};
use super::row::KnownTexts;
use super::{FORMAT_NAME, SlotRow, VERSION, VERSION_KEY};
use crate::file_bytes::FileBytes;
use crate::{FormatError, StoreError, check_memory, guard};

/// Maximum number of columns that a table may have; those of later versions among them.
const N_COLUMNS_MAX: usize = 1 << 10;
/// Maximum number of dimensions of one shape.
const N_EXTENTS_MAX: usize = 1 << 10;

/// The range of a column of 64-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRange {
    /// The column.
    pub name: &'static str,
    /// The least and the largest value; `None` if all cells are empty.
    pub bounds: Option<(i64, i64)>,
    /// Number of empty cells.
    pub n_empty: u64,
}

impl ColumnRange {
    /// The range of the rows of both.
    fn joined(self, other: ColumnRange) -> ColumnRange {
        let bounds = match (self.bounds, other.bounds) {
            (Some((low, high)), Some((other_low, other_high))) => {
                Some((low.min(other_low), high.max(other_high)))
            }
            (bounds, other) => bounds.or(other),
        };
        ColumnRange {
            bounds,
            n_empty: self.n_empty.saturating_add(other.n_empty),
            ..self
        }
    }
}

/// The range of a column in a row group, without its name.
fn integer_range(column: &ColumnChunkMetaData) -> Option<ColumnRange> {
    // Cells of a list are not those of a row.
    if column.column_descr().max_rep_level() > 0 {
        return None;
    }
    let Some(Statistics::Int64(statistics)) = column.statistics() else {
        return None;
    };
    let n_empty = statistics.null_count_opt()?;
    let bounds = match (statistics.min_opt(), statistics.max_opt()) {
        (Some(&least), Some(&most)) => Some((least, most)),
        _ if u64::try_from(column.num_values()) == Ok(n_empty) => None,
        _ => return None,
    };
    Some(ColumnRange {
        name: "",
        bounds,
        n_empty,
    })
}

/// A table that is open.
pub struct SlotTable {
    file: SerializedFileReader<Bytes>,
    /// For each column of ours its place in the file.
    places: Vec<(&'static TableColumn, usize)>,
}

impl SlotTable {
    /// Opens a table that was found in a dump.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read or is not a table of a known version.
    pub fn open(path: &Path) -> Result<SlotTable, StoreError> {
        let bytes = FileBytes::open_in_dump(path).map_err(StoreError::io("read", path))?;
        SlotTable::from_bytes(bytes).map_err(StoreError::corrupt(FORMAT_NAME, path))
    }

    /// Reads the pages of the columns that `is_read` names, whose checksums have to be right: for
    /// readers that check none themselves.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read or a page is damaged.
    pub fn check_pages(path: &Path, is_read: impl Fn(&str) -> bool) -> Result<(), StoreError> {
        let table = SlotTable::open(path)?;
        let checked = table.check_columns(is_read);
        checked.map_err(StoreError::corrupt(FORMAT_NAME, path))
    }

    fn check_columns(&self, is_read: impl Fn(&str) -> bool) -> Result<(), FormatError> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        guarded(0, || {
            for group in 0..self.n_groups() {
                let group = self.file.get_row_group(group)?;
                for i in 0..schema.num_columns() {
                    let column = schema.column(i);
                    let name = column.path().parts().first();
                    if name.is_some_and(|name| is_read(name)) {
                        let mut pages = group.get_column_page_reader(i)?;
                        while pages.get_next_page()?.is_some() {}
                    }
                }
            }
            Ok(())
        })
    }

    /// Reads the description of a table at its end.
    ///
    /// # Errors
    /// [`FormatError`] if that is damaged, or of a version that is not known.
    pub fn from_bytes(bytes: FileBytes) -> Result<SlotTable, FormatError> {
        let n_bytes = bytes.as_ref().len() as u64;
        guarded(n_bytes, || {
            let file = SerializedFileReader::new(Bytes::from_owner(bytes))?;
            Ok(file)
        })
        .and_then(|file| SlotTable::check(file, n_bytes))
    }

    fn check(file: SerializedFileReader<Bytes>, n_bytes: u64) -> Result<SlotTable, FormatError> {
        let wrong = |expected: &str, found: String| FormatError::new(n_bytes, expected, found);
        let metadata = file.metadata();
        let version = metadata.file_metadata().key_value_metadata();
        let version = version.into_iter().flatten();
        let version = version.into_iter().find(|fact| fact.key == VERSION_KEY);
        let version = version
            .and_then(|fact| fact.value.clone())
            .unwrap_or_default();
        if version.parse::<u32>().ok().is_none_or(|n| n > VERSION) {
            let expected = format!("`{VERSION_KEY}` of at most {VERSION}");
            return Err(wrong(&expected, format!("`{version}`")));
        }
        let n_columns = metadata.file_metadata().schema_descr().num_columns();
        if n_columns > N_COLUMNS_MAX {
            let expected = format!("at most {N_COLUMNS_MAX} columns");
            return Err(wrong(&expected, n_columns.to_string()));
        }
        let mut n_rows_total: u64 = 0;
        for group in metadata.row_groups() {
            let n_rows = u64::try_from(group.num_rows()).unwrap_or(u64::MAX);
            n_rows_total = n_rows_total.saturating_add(n_rows);
            let n_unpacked = u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX);
            // No two rows are the same, so that each takes more than a byte even when packed.
            if n_rows_total > n_bytes.max(N_ROWS_MIN) {
                let expected = format!("at most as many rows as the {n_bytes} bytes of the file");
                return Err(wrong(&expected, n_rows_total.to_string()));
            }
            // Of such the library would panic.
            if group.columns().iter().any(|column| {
                let dictionary = column.dictionary_page_offset().unwrap_or(0);
                let sizes = [
                    column.compressed_size(),
                    column.uncompressed_size(),
                    column.num_values(),
                ];
                let place = [column.data_page_offset(), dictionary];
                sizes.into_iter().chain(place).any(|number| number < 0)
            }) {
                return Err(wrong("columns with a place", "a negative one".to_owned()));
            }
            // The library allocates what the pages claim, so that is checked first.
            check_memory(n_rows.saturating_mul(ROW_BYTES).max(n_unpacked))
                .map_err(|error| wrong("a row group that fits memory", error.to_string()))?;
        }
        let schema = metadata.file_metadata().schema_descr();
        // By name, as later versions may add columns anywhere and leave some out.
        let places = columns::ALL.iter().filter_map(|column| {
            let place = (0..schema.num_columns()).find(|&i| {
                schema
                    .column(i)
                    .path()
                    .parts()
                    .first()
                    .is_some_and(|p| p == column.name)
            });
            place.map(|place| (column, place))
        });
        let places = places.collect();
        Ok(SlotTable { file, places })
    }

    /// Facts about the table as a whole.
    pub fn fact(&self, key: &str) -> Option<&str> {
        let facts = self.file.metadata().file_metadata().key_value_metadata()?;
        let fact = facts.iter().find(|fact| fact.key == key)?;
        fact.value.as_deref()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        let n_rows = self.file.metadata().file_metadata().num_rows();
        u64::try_from(n_rows).unwrap_or(0)
    }

    /// The ranges of columns of 64-bit integers, by the statistics in the description. Columns
    /// without statistics are left out.
    pub fn integer_ranges(&self) -> Vec<ColumnRange> {
        let places = self.places.iter();
        places
            .filter_map(|&(column, place)| {
                let groups = self.file.metadata().row_groups().iter();
                let ranges = groups.map(|group| integer_range(group.column(place)));
                let range = ranges.reduce(|all, range| Some(all?.joined(range?)))??;
                Some(ColumnRange {
                    name: column.name,
                    ..range
                })
            })
            .collect()
    }

    /// Number of row groups.
    pub fn n_groups(&self) -> usize {
        self.file.metadata().num_row_groups()
    }

    /// Reads a row group.
    ///
    /// # Errors
    /// [`FormatError`] if it is damaged.
    pub fn read_group(&self, group: usize) -> Result<Vec<SlotRow>, FormatError> {
        guarded(0, || self.rows(group))
    }

    fn rows(&self, group: usize) -> Result<Vec<SlotRow>, ParquetError> {
        let group = self.file.get_row_group(group)?;
        let n_rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut rows = vec![SlotRow::default(); n_rows];
        for (column, place) in &self.places {
            let reader = group.get_column_reader(*place)?;
            read_column(column, reader, &mut rows)?;
        }
        Ok(rows)
    }
}

/// Memory that a row takes, roughly.
const ROW_BYTES: u64 = size_of::<SlotRow>() as u64;
/// Rows that a table may have however small its file is.
const N_ROWS_MIN: u64 = 1 << 16;

fn read_column(
    column: &TableColumn,
    reader: ColumnReader,
    rows: &mut [SlotRow],
) -> Result<(), ParquetError> {
    match (column.cell, reader) {
        (CellKind::Int(place), ColumnReader::Int64ColumnReader(reader)) => {
            fill(reader, rows, |row, value| *place(row) = Some(value))
        }
        (CellKind::Count(i), ColumnReader::Int64ColumnReader(reader)) => {
            fill(reader, rows, |row, value| {
                row.statistics.counts[i] = Some(value);
            })
        }
        (CellKind::Number(i), ColumnReader::DoubleColumnReader(reader)) => {
            fill(reader, rows, |row, value| {
                row.statistics.numbers[i] = Some(value);
            })
        }
        (CellKind::Text(place), ColumnReader::ByteArrayColumnReader(reader)) => {
            let mut texts = KnownTexts::default();
            fill(reader, rows, |row, value| {
                *place(row) = Some(texts.share(&String::from_utf8_lossy(value.data())));
            })
        }
        (CellKind::Shape, ColumnReader::Int64ColumnReader(reader)) => read_shapes(reader, rows),
        _ => Err(ParquetError::General(format!(
            "the column `{}` has another type",
            column.name
        ))),
    }
}

fn fill<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: &mut [SlotRow],
    mut set: impl FnMut(&mut SlotRow, T::T),
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    reader.read_records(rows.len(), Some(&mut levels), None, &mut values)?;
    let mut values = values.into_iter();
    // A row without a level would take the next one's value.
    if levels.len() != rows.len() {
        return Err(ParquetError::General(
            "a column is shorter than the table".to_owned(),
        ));
    }
    for (row, level) in rows.iter_mut().zip(levels) {
        if level > 0
            && let Some(value) = values.next()
        {
            set(row, value);
        }
    }
    Ok(())
}

fn read_shapes(
    mut reader: ColumnReaderImpl<Int64Type>,
    rows: &mut [SlotRow],
) -> Result<(), ParquetError> {
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    let n = rows.len();
    reader.read_records(n, Some(&mut definition), Some(&mut repetition), &mut values)?;
    let mut levels = definition.into_iter().zip(repetition).peekable();
    let mut values = values.into_iter();
    let mut last: Option<Arc<[i64]>> = None;
    let mut extents = Vec::new();
    for row in rows {
        let Some((level, _)) = levels.next() else {
            return Err(ParquetError::General(
                "a column is shorter than the table".to_owned(),
            ));
        };
        if level == 0 {
            continue;
        }
        extents.clear();
        // A level of 1 is an empty list, the shape of a scalar.
        if level > 1 {
            extents.extend(values.next());
        }
        while levels.next_if(|(_, repetition)| *repetition > 0).is_some() {
            extents.extend(values.next());
        }
        if extents.len() > N_EXTENTS_MAX {
            return Err(ParquetError::General(format!(
                "a shape of {} axes",
                extents.len()
            )));
        }
        // Neighbours often have one shape, and then share its copy.
        let shared = last.take().filter(|last| **last == extents[..]);
        let shared = shared.unwrap_or_else(|| extents.as_slice().into());
        row.shape = Some(shared.clone());
        last = Some(shared);
    }
    Ok(())
}

/// The library checks much and panics at the rest.
fn guarded<T>(
    offset: u64,
    work: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, FormatError> {
    let wrong = |found: String| FormatError::new(offset, "a Parquet table that is whole", found);
    match guard::catch(work) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(wrong(error.to_string())),
        Err(_) => Err(wrong("pages that contradict each other".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot_table::{StatisticsCells, TableWriter, column_names};

    fn row(n: i64) -> SlotRow {
        let text = |text: &str| Some(text.into());
        SlotRow {
            step: Some(n / 7),
            position: (n % 3 > 0).then_some(n),
            op_name: text(&format!("op{}", n / 2)),
            value: (n % 5 > 0).then(|| "v".into()),
            shape: match n % 4 {
                0 => None,
                k => Some((0..k - 1).map(|i| n + i).collect()),
            },
            statistics: StatisticsCells {
                counts: [(n % 2 > 0).then_some(n); 8],
                numbers: [(n % 6 > 0).then_some(n as f64 / 3.0); 7],
            },
            ..SlotRow::default()
        }
    }

    fn table(n_rows: i64, n_group: usize) -> (Vec<SlotRow>, Vec<u8>) {
        let mut rows: Vec<SlotRow> = (0..n_rows).map(row).collect();
        let mut file = Vec::new();
        let facts = vec![("key".to_owned(), "fact".to_owned())];
        let mut writer = TableWriter::new(&mut file, facts, Some(1)).unwrap();
        for group in rows.chunks_mut(n_group) {
            writer.write_group(group).unwrap();
        }
        writer.finish().unwrap();
        (rows, file)
    }

    #[test]
    fn tables_read_back() {
        for (n_rows, n_group) in [(0, 1), (1, 1), (40, 7), (40, 64)] {
            let (rows, file) = table(n_rows, n_group);
            let table = SlotTable::from_bytes(file.into()).unwrap();
            assert_eq!(table.n_rows(), n_rows as u64);
            assert_eq!(table.fact("key"), Some("fact"));
            let read = (0..table.n_groups()).flat_map(|group| table.read_group(group).unwrap());
            let read: Vec<_> = read.collect();
            assert_eq!(read.len(), rows.len());
            for (read, row) in read.iter().zip(&rows) {
                assert_eq!(read, row, "{n_rows} {n_group}");
            }
        }
        let names: std::collections::HashSet<_> = column_names().into_iter().collect();
        assert_eq!(names.len(), columns::ALL.len());
    }

    #[test]
    fn a_small_file_cannot_ask_for_many_rows() {
        let mut rows = vec![row(1); N_ROWS_MIN as usize + 1];
        for n_rows in [rows.len() - 1, rows.len()] {
            let mut file = Vec::new();
            let mut writer = TableWriter::new(&mut file, Vec::new(), Some(1)).unwrap();
            writer.write_group(&mut rows[..n_rows]).unwrap();
            writer.finish().unwrap();
            let is_small = file.len() < n_rows;
            let is_read = SlotTable::from_bytes(file.into()).is_ok();
            assert_eq!((is_small, is_read), (true, n_rows <= N_ROWS_MIN as usize));
        }
    }

    /// Nothing may panic, a table that is cut short is refused, and damage inside a page is found.
    #[test]
    fn damage_ends_with_an_error_or_rows() {
        let (_, file) = table(5, 7);
        for end in 0..file.len() {
            assert!(
                SlotTable::from_bytes(file[..end].to_vec().into()).is_err(),
                "{end}"
            );
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x55;
            if let Ok(table) = SlotTable::from_bytes(damaged.into()) {
                for group in 0..table.n_groups() {
                    let _ = table.read_group(group);
                }
                let _ = table.check_columns(|_| true);
            }
        }
    }
}
