//! The first operator that overflowed, and the cause.
//!
//! For an overflow, a device writes two files: the operator's dump, and a record with the task and
//! a status. This module finds records in a directory, sorts them, and joins them with the
//! operators' dumps. The ids inside a record count; the ids in its name are documented as
//! meaningless.

mod export;
mod finding;
pub(crate) mod measure;
mod needed;
mod scalar;
mod scan;
pub mod summary;

pub use export::{ExportedFiles, export};
pub use finding::{Finding, findings};
pub use needed::needed;
pub(crate) use scan::records;
pub use scan::{OperatorDump, OverflowOperatorFile, OverflowReport, OverflowScan, ScanError, scan};

/// Context and thread ids that match any.
const ANY: [u64; 2] = [0, 65535];

/// Whether a record's context or thread id matches a file name's. A missing id or a wildcard id
/// matches every file.
pub fn is_same_part(wanted: Option<u64>, found: Option<u32>) -> bool {
    match wanted {
        Some(wanted) if !ANY.contains(&wanted) => found.map(u64::from) == Some(wanted),
        _ => true,
    }
}

/// A key that sorts decimal numbers of any length by value, without parsing them.
pub fn order(digits: &str) -> (usize, String) {
    let digits = digits.trim_start_matches('0');
    (digits.len(), digits.to_owned())
}
