//! Integer ranges of the parts of a table, in one file next to the parts.
//!
//! A query for few rows can skip parts whose numbers cannot match, which saves most of the time
//! with thousands of parts. The file is optional: if it is missing, or a part has changed since,
//! the part itself is opened.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Write;
use std::path::Path;
use std::time::UNIX_EPOCH;

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::slot_table::SlotTable;
use opscope_store::{regular_file, slot_table};
use serde_json::{Map, Value, json};

use super::EXTENSION;

/// The file name, in the directory of a dump's parts.
const FILE: &str = "ranges.json";
/// Maximum bytes of the file. A part takes about 1 KiB.
const N_BYTES_MAX: u64 = 1 << 28;

/// The ranges of parts, by file name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartRanges {
    parts: BTreeMap<String, PartRange>,
}

/// The ranges of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRange {
    /// File size when the range was read.
    pub n_bytes: u64,
    /// Modification time, in nanoseconds since 1970.
    pub modified_ns: u64,
    /// Number of rows.
    pub n_rows: u64,
    /// Integer columns with their minimum and maximum (`None` if all cells are empty) and the
    /// number of empty cells.
    pub columns: BTreeMap<String, (Option<(i64, i64)>, u64)>,
}

/// A condition on an integer column that all rows of an answer meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCondition {
    /// The column.
    pub column: String,
    /// The comparison with the value.
    pub comparison: RangeComparison,
    /// The value.
    pub value: i64,
}

/// The comparison of a cell with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeComparison {
    /// The cell equals the value.
    Equal,
    /// The cell is less.
    Less,
    /// The cell is less or equal.
    AtMost,
    /// The cell is greater.
    Greater,
    /// The cell is greater or equal.
    AtLeast,
}

impl PartRanges {
    /// Reads the ranges of a dump's parts; empty if they are missing or damaged.
    pub fn read(index: &Path, table: &str, label: &str) -> PartRanges {
        PartRanges::try_read(&index.join(table).join(label).join(FILE)).unwrap_or_default()
    }

    fn try_read(path: &Path) -> Option<PartRanges> {
        let bytes = regular_file::read_in_dump(path, N_BYTES_MAX).ok()?;
        let root: Value = serde_json::from_slice(&bytes).ok()?;
        // Other versions are not understood.
        if root["version"].as_u64()? != u64::from(slot_table::VERSION) {
            return None;
        }
        let parts = root["parts"].as_object()?.iter();
        let parts =
            parts.filter_map(|(name, part)| Some((name.clone(), PartRange::of_json(part)?)));
        Some(PartRanges {
            parts: parts.collect(),
        })
    }

    /// The range of the part with this file name; `None` if unknown.
    pub fn part(&self, file_name: &str) -> Option<&PartRange> {
        self.parts.get(file_name)
    }

    /// The range of the part in the file `path`; `None` if unknown or the file has changed since.
    pub fn current_part(&self, path: &Path) -> Option<&PartRange> {
        let part = self.part(path.file_name()?.to_str()?)?;
        let stamp = stamp(&fs::metadata(path).ok()?)?;
        ((part.n_bytes, part.modified_ns) == stamp).then_some(part)
    }

    /// Updates the ranges of the parts in `index/table/label`.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be written.
    pub(super) fn update(
        index: &Path,
        table: &str,
        label: &str,
        creator: &Creator,
    ) -> Result<(), StoreError> {
        let dir = index.join(table).join(label);
        // A dump without parts has no such directory.
        let Ok(entries) = fs::read_dir(&dir) else {
            return Ok(());
        };
        let before = PartRanges::try_read(&dir.join(FILE));
        let known = before.clone().unwrap_or_default();
        let mut now = PartRanges::default();
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name().into_string();
            let (Ok(name), Ok(metadata)) = (name, entry.metadata()) else {
                continue;
            };
            if path.extension().is_none_or(|end| end != EXTENSION) {
                continue;
            }
            let Some(stamp) = stamp(&metadata) else {
                continue;
            };
            let part = match known.part(&name) {
                Some(part) if (part.n_bytes, part.modified_ns) == stamp => Some(part.clone()),
                _ => PartRange::of_file(&path, stamp),
            };
            now.parts.extend(part.map(|part| (name, part)));
        }
        if before.as_ref() == Some(&now) {
            return Ok(());
        }
        let text = now.to_json().to_string();
        creator.replace_with(&dir.join(FILE), |file| file.write_all(text.as_bytes()))
    }

    fn to_json(&self) -> Value {
        let parts = self.parts.iter();
        let parts: Map<String, Value> = parts
            .map(|(name, part)| (name.clone(), part.to_json()))
            .collect();
        json!({ "version": slot_table::VERSION, "parts": parts })
    }
}

impl PartRange {
    /// Whether a row of the part may meet a condition, according to the range.
    pub fn may_meet(&self, condition: &RangeCondition) -> bool {
        let value = condition.value;
        match self.columns.get(&condition.column) {
            None => true,
            // An empty cell matches no comparison.
            Some((None, _)) => false,
            Some(&(Some((least, most)), _)) => match condition.comparison {
                RangeComparison::Equal => (least..=most).contains(&value),
                RangeComparison::Less => least < value,
                RangeComparison::AtMost => least <= value,
                RangeComparison::Greater => most > value,
                RangeComparison::AtLeast => most >= value,
            },
        }
    }

    /// Whether the part may have an empty cell in a column.
    pub fn may_be_empty(&self, column: &str) -> bool {
        self.columns
            .get(column)
            .is_none_or(|&(_, n_empty)| n_empty > 0)
    }

    fn of_file(path: &Path, (n_bytes, modified_ns): (u64, u64)) -> Option<PartRange> {
        let table = SlotTable::open(path).ok()?;
        let columns = table.integer_ranges().into_iter();
        Some(PartRange {
            n_bytes,
            modified_ns,
            n_rows: table.n_rows(),
            columns: columns
                .map(|range| (range.name.to_owned(), (range.bounds, range.n_empty)))
                .collect(),
        })
    }

    fn of_json(part: &Value) -> Option<PartRange> {
        let columns = part["columns"].as_object()?.iter();
        let columns = columns.map(|(name, range)| {
            let bounds = match (&range[0], &range[1]) {
                (Value::Null, Value::Null) => None,
                (least, most) => Some((least.as_i64()?, most.as_i64()?)),
            };
            Some((name.clone(), (bounds, range[2].as_u64()?)))
        });
        Some(PartRange {
            n_bytes: part["bytes"].as_u64()?,
            modified_ns: part["modified_ns"].as_u64()?,
            n_rows: part["rows"].as_u64()?,
            columns: columns.collect::<Option<_>>()?,
        })
    }

    fn to_json(&self) -> Value {
        let columns = self.columns.iter().map(|(name, (bounds, n_empty))| {
            let (least, most) = bounds.unzip();
            (name.clone(), json!([least, most, n_empty]))
        });
        let columns: Map<String, Value> = columns.collect();
        json!({
            "bytes": self.n_bytes,
            "modified_ns": self.modified_ns,
            "rows": self.n_rows,
            "columns": columns,
        })
    }
}

/// Size and modification time of a file.
fn stamp(metadata: &Metadata) -> Option<(u64, u64)> {
    let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((metadata.len(), u64::try_from(modified.as_nanos()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::{PartRange, PartRanges, RangeComparison, RangeCondition};

    #[test]
    fn only_parts_whose_range_excludes_a_condition_are_left_out() {
        let part = PartRange {
            n_bytes: 1,
            modified_ns: 1,
            n_rows: 4,
            columns: [
                ("step".to_owned(), (Some((2, 5)), 1)),
                ("rank".to_owned(), (None, 4)),
            ]
            .into(),
        };
        let may_meet = |column: &str, comparison, value| {
            part.may_meet(&RangeCondition {
                column: column.to_owned(),
                comparison,
                value,
            })
        };
        // The values below, at and above each bound.
        let cases = [
            (
                RangeComparison::Equal,
                [false, true, true, true, true, false],
            ),
            (
                RangeComparison::Less,
                [false, false, true, true, true, true],
            ),
            (
                RangeComparison::AtMost,
                [false, true, true, true, true, true],
            ),
            (
                RangeComparison::Greater,
                [true, true, true, true, false, false],
            ),
            (
                RangeComparison::AtLeast,
                [true, true, true, true, true, false],
            ),
        ];
        for (comparison, expected) in cases {
            let may = [1, 2, 3, 4, 5, 6].map(|value| may_meet("step", comparison, value));
            assert_eq!(may, expected, "{comparison:?}");
            assert!(!may_meet("rank", comparison, 0), "{comparison:?}");
            assert!(may_meet("op_name", comparison, 0), "{comparison:?}");
        }
    }

    #[test]
    fn ranges_survive_their_file_and_damage_says_nothing() {
        let part = PartRange {
            n_bytes: 1 << 40,
            modified_ns: u64::MAX,
            n_rows: 3,
            columns: [
                ("n_nan".to_owned(), (Some((i64::MIN, i64::MAX)), 0)),
                ("rank".to_owned(), (None, 3)),
            ]
            .into(),
        };
        let ranges = PartRanges {
            parts: [("rank-0.parquet".to_owned(), part)].into(),
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ranges.json");
        let text = ranges.to_json().to_string();
        std::fs::write(&path, &text).unwrap();
        assert_eq!(PartRanges::try_read(&path), Some(ranges));
        // One bound is missing and the other is not.
        std::fs::write(&path, text.replace("-9223372036854775808", "null")).unwrap();
        let read = PartRanges::try_read(&path).unwrap();
        assert_eq!(read.part("rank-0.parquet"), None);
        std::fs::write(&path, text.replace("\"version\":1", "\"version\":2")).unwrap();
        assert_eq!(PartRanges::try_read(&path), None);
        std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(PartRanges::try_read(&path), None);
    }
}
