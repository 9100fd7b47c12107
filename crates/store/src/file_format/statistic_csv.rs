//! `MindSpore`'s `statistic.csv`: a row of statistics for each tensor of a directory.
//!
//! Written: the form of `MindSpore` 2.10, in which every row ends with a comma that the header does
//! not have. Read: that one and all older ones back to 1.6. Numbers are taken as they are given;
//! `opscope-tensor` computes them. `docs/formats/mindspore.md` has the columns.

mod category;
mod parse;

use std::fmt::Write;

use opscope_tensor::{DType, Shape};

pub use category::StatisticCategory;
pub use parse::{StatisticRows, parse};

use super::ms_dtype;
use super::number_text::general;
use crate::record::SlotSide;

/// The name used in error messages.
pub const FORMAT_NAME: &str = "MindSpore statistics";
/// The columns that every file has.
pub const COMMON_COLUMNS: [&str; 10] = [
    "Op Type",
    "Op Name",
    "Task ID",
    "Stream ID",
    "Timestamp",
    "IO",
    "Slot",
    "Data Size",
    "Data Type",
    "Shape",
];
/// Marks a value that could not be computed.
const NULL: &str = "null";

/// Whose statistics a row holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticSubject {
    /// The operator's type; `Parameter` for a parameter.
    pub op_type: String,
    /// The operator's full name, unchanged. A parameter's has its characters replaced as in file
    /// names, and so have all names in files of older versions.
    pub op_name: String,
    /// The task.
    pub task_id: u32,
    /// The stream.
    pub stream_id: u32,
    /// Microseconds since 1970-01-01 UTC, those of the tensor's file if there is one.
    pub timestamp: u64,
    /// Input or output.
    pub side: SlotSide,
    /// Which one.
    pub slot: u32,
    /// Bytes of the tensor as it was, packed types packed.
    pub n_bytes: u64,
    /// Name of the dtype as it was.
    pub dtype: String,
    /// Dimensions.
    pub shape: Vec<u64>,
}

/// The value in one column.
#[derive(Clone, Debug, PartialEq)]
pub enum StatisticCell {
    /// A real number, with six significant digits.
    Real(f64),
    /// A count.
    Count(u64),
    /// The hexadecimal digits of a hash, or another text.
    Text(String),
    /// No value.
    Null,
}

impl StatisticSubject {
    /// Dtype and shape of a tensor, the rest empty.
    pub fn of_tensor(dtype: DType, shape: &Shape, n_bytes: u64) -> StatisticSubject {
        StatisticSubject {
            op_type: String::new(),
            op_name: String::new(),
            task_id: 0,
            stream_id: 0,
            timestamp: 0,
            side: SlotSide::Output,
            slot: 0,
            n_bytes,
            dtype: ms_dtype::lower(dtype).unwrap_or(dtype.name()).to_owned(),
            shape: shape.iter().map(|&dim| dim as u64).collect(),
        }
    }
}

/// The header line.
pub fn header(categories: &[StatisticCategory]) -> String {
    let columns = categories.iter().map(|category| category.column());
    let all: Vec<_> = COMMON_COLUMNS.into_iter().chain(columns).collect();
    all.join(",") + "\n"
}

/// One row, with a cell for each category. A line break in a name becomes `_`: it would begin a new
/// row.
pub fn row(subject: &StatisticSubject, cells: &[StatisticCell]) -> String {
    let shape: Vec<_> = subject.shape.iter().map(u64::to_string).collect();
    let mut row = format!(
        "{},{},{},{},{},{},{},{},{},\"[{}]\",",
        subject.op_type.replace(|c: char| c.is_control(), "_"),
        subject.op_name.replace(|c: char| c.is_control(), "_"),
        subject.task_id,
        subject.stream_id,
        subject.timestamp,
        subject.side.name(),
        subject.slot,
        subject.n_bytes,
        subject.dtype,
        shape.join(",")
    );
    for cell in cells {
        // Writing to a `String` cannot fail.
        let _ = match cell {
            StatisticCell::Real(value) => write!(row, "{},", general(*value)),
            StatisticCell::Count(value) => write!(row, "{value},"),
            StatisticCell::Text(text) => write!(row, "{text},"),
            StatisticCell::Null => write!(row, "{NULL},"),
        };
    }
    row + "\n"
}

#[cfg(test)]
mod tests;
