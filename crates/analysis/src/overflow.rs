//! Which operator overflowed first, and why.
//!
//! When an operator overflows, a device writes two files: the operator's own dump, and a record
//! that names the task and a status. Here records are found in a directory, put in order, and
//! joined with the dumps of their operators. The ids inside a record count; those in its name are
//! said to mean nothing.

mod export;
mod finding;
pub(crate) mod measure;
mod scalar;
mod scan;
pub mod summary;

pub use export::{ExportedFiles, export};
pub use finding::{Finding, findings};
pub(crate) use scan::records;
pub use scan::{OperatorDump, OverflowOperatorFile, OverflowReport, OverflowScan, ScanError, scan};

/// Context and thread numbers that mean any.
const ANY: [u64; 2] = [0, 65535];

/// Whether the context or thread that a record names is the one that a file's name has. A record
/// that names none, or one of the numbers that mean any, fits every file.
pub fn is_same_part(wanted: Option<u64>, found: Option<u32>) -> bool {
    match wanted {
        Some(wanted) if !ANY.contains(&wanted) => found.map(u64::from) == Some(wanted),
        _ => true,
    }
}

/// Returns a key that sorts decimal numbers of any length by their value, without parsing them.
pub fn order(digits: &str) -> (usize, String) {
    let digits = digits.trim_start_matches('0');
    (digits.len(), digits.to_owned())
}
