//! A comparison's result for people and programs.
//!
//! | module | job |
//! | --- | --- |
//! | [`words`] | verdict, causes and numbers in words |
//! | [`ShownPlaces`] | ranks, models and steps, where there are several |
//! | [`chain`] | how NaN and infinities spread |
//! | [`steps`] | the first of several steps that differs |
//! | [`json`] | one JSON document, or typed records line by line; and back |
//! | `columns` | what tables say of a slot |
//! | `csv`, `xlsx` | tables for spreadsheets |
//! | `parquet` | the table `compare` of an index |

pub mod chain;
mod columns;
mod csv;
pub mod json;
mod parquet;
mod places;
pub mod steps;
pub mod words;
mod xlsx;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use thiserror::Error;

pub use self::csv::quoted;
pub use self::parquet::{ComparedRuns, table_columns, write as write_parquet};
pub use self::places::ShownPlaces;
use super::result::Comparison;
use crate::tables::run_names;

/// Kinds of files that a result can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// One JSON document, which can be read again.
    Json,
    /// Typed records, one JSON document in each line, which can be read again.
    Jsonl,
    /// A row for each slot.
    Csv,
    /// A workbook.
    Xlsx,
    /// A row for each slot, with typed columns.
    Parquet,
}

/// Why a report was not written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The file exists.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReportFormat {
    /// The format that a file name's ending stands for.
    pub fn of_path(path: &Path) -> Option<ReportFormat> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match ending.as_str() {
            "json" => ReportFormat::Json,
            "jsonl" => ReportFormat::Jsonl,
            "csv" => ReportFormat::Csv,
            "xlsx" => ReportFormat::Xlsx,
            "parquet" => ReportFormat::Parquet,
            _ => return None,
        })
    }
}

/// Writes a result to `out`.
///
/// # Errors
/// Those of `out`.
pub fn write(comparison: &Comparison, format: ReportFormat, out: &mut dyn Write) -> io::Result<()> {
    match format {
        ReportFormat::Json => json::write(comparison, out),
        ReportFormat::Jsonl => json::write_lines(comparison, out),
        ReportFormat::Csv => csv::write(comparison, out),
        ReportFormat::Xlsx => xlsx::write(comparison, out),
        ReportFormat::Parquet => write_whole_parquet(comparison, out),
    }
}

/// Writes the table under the names that the dumps have in an index.
fn write_whole_parquet(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let config = &comparison.config;
    let names = run_names(&[&config.target, &config.golden]);
    let runs = ComparedRuns {
        target: &names[0],
        golden: &names[1],
    };
    // The library wants a writer that may go to another thread, which this one need not be.
    let mut table = Vec::new();
    parquet::write(comparison, runs, Vec::new(), &mut table)?;
    out.write_all(&table)
}

/// Writes a result as a file that only its owner may read. The file appears whole or not at all.
///
/// # Errors
/// [`ReportError`]; a file that exists is left alone unless `is_replacing`.
pub fn save(
    comparison: &Comparison,
    format: ReportFormat,
    path: &Path,
    is_replacing: bool,
) -> Result<(), ReportError> {
    save_as(path, is_replacing, |out| write(comparison, format, out))
}

/// [`save`] of a text.
///
/// # Errors
/// As [`save`].
pub fn save_text(text: &str, path: &Path, is_replacing: bool) -> Result<(), ReportError> {
    save_as(path, is_replacing, |out| out.write_all(text.as_bytes()))
}

fn save_as(
    path: &Path,
    is_replacing: bool,
    write: impl FnOnce(&mut BufWriter<&mut std::fs::File>) -> io::Result<()>,
) -> Result<(), ReportError> {
    let creator = Creator::default();
    let write = |file: &mut std::fs::File| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        // A `BufWriter` that is dropped says nothing of an error of its last write.
        out.flush()
    };
    // A bare name has no directory to create a file in.
    let is_bare = path.parent().is_some_and(|dir| dir.as_os_str().is_empty());
    let place = if is_bare {
        Path::new(".").join(path)
    } else {
        path.to_owned()
    };
    if is_replacing {
        creator.replace_with(&place, write)?;
    } else if !creator.create_with(&place, write)? {
        return Err(ReportError::Exists(path.to_owned()));
    }
    Ok(())
}
