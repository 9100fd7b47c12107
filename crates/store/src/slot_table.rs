//! The table of a dump: one row for each tensor, in Parquet.
//!
//! The native form has a table for each step, and indexes of other forms have the same columns.
//! `docs/formats/slot_table.md` describes them; [`column_names`] lists them.

mod cells;
mod columns;
mod flat;
pub mod journal;
mod read;
mod row;
mod write;

use opscope_tensor::ElementCounts;

pub use cells::{RowCells, RowColumn, take_columns};
pub use columns::column_names;
pub use flat::{ColumnCells, FlatColumn, FlatTableWriter, write_flat};
pub use read::{ColumnRange, SlotTable};
pub use row::{SlotRow, StatisticsCells};
pub use write::{TableMetadata, TableWriter};

/// The version of the schema. Readers take tables of this version and of earlier ones.
pub const VERSION: u32 = 1;
/// The name used in messages.
pub const FORMAT_NAME: &str = "slot table";
/// Rows that are together in a row group, which is read and written as a whole.
pub const N_GROUP_ROWS: usize = 1 << 17;

/// Tables of fewer rows are not compressed: to begin with each column takes most of the time then.
const N_COMPRESSED_ROWS_MIN: usize = 2048;

/// zstd's level for a table of `n_rows`, if it is to be compressed at all.
pub fn compression_of(n_rows: usize, level: i32) -> Option<i32> {
    (n_rows >= N_COMPRESSED_ROWS_MIN).then_some(level)
}

/// zstd's level for tables that are written once and read often.
pub const INDEX_LEVEL: i32 = 3;

/// Counts of elements by kind, without that of all elements, which every tensor has.
const N_COUNTS: usize = ElementCounts::NAMES.len() - 1;
/// Names of the statistics other than counts.
const NUMBER_NAMES: [&str; 7] = ["min", "max", "sum", "mean", "std", "l1", "l2"];
/// The key of the version in the file.
const VERSION_KEY: &str = "opscope.slot_table";
