//! A comparison's result for people and programs.
//!
//! | module | job |
//! | --- | --- |
//! | [`words`] | verdict, causes and numbers in words |
//! | [`ShownPlaces`] | ranks, models and steps, where there are several |
//! | [`chain`] | how NaN and infinities spread |
//! | [`steps`] | the first of several steps that differs |
//! | [`json`] | one JSON document, or typed records line by line; and back |
//! | [`node_notes`] | the result by the nodes of a model, for viewers of models |
//! | `columns` | what tables say of a slot |
//! | `csv`, `xlsx` | tables for spreadsheets |
//! | `parquet` | the table `compare` of an index |

pub mod chain;
mod columns;
mod csv;
pub mod json;
pub mod node_notes;
mod parquet;
mod places;
pub mod steps;
pub mod words;
mod xlsx;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use opscope_store::atomic_file::Creator;
use opscope_store::{StoreError, regular_file};
use thiserror::Error;

pub use self::csv::quoted;
pub use self::parquet::{ComparedRuns, table_columns, write as write_parquet};
pub use self::places::ShownPlaces;
use super::result::Comparison;
use crate::run_names;

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
    /// The format needs a file.
    #[error("`{}` is a pipe or a device, and this format needs a file", .0.display())]
    Stream(PathBuf),
    /// The file cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReportFormat {
    /// The format of a file name's extension.
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

/// Writes a result to a file that only its owner may read. The file appears atomically. Pipes and
/// devices are written to directly.
///
/// # Errors
/// [`ReportError`]; an existing file is kept unless `is_replacing`.
pub fn save(
    comparison: &Comparison,
    format: ReportFormat,
    path: &Path,
    is_replacing: bool,
) -> Result<(), ReportError> {
    // Readers of these formats start at the end of the file.
    let needs_file = matches!(format, ReportFormat::Xlsx | ReportFormat::Parquet);
    if needs_file && is_stream(path) {
        return Err(ReportError::Stream(path.to_owned()));
    }
    let creator = Creator::default();
    save_with(path, &creator, is_replacing, |out| {
        write(comparison, format, out)
    })
}

/// [`save`] of a text.
///
/// # Errors
/// As [`save`].
pub fn save_text(text: &str, path: &Path, is_replacing: bool) -> Result<(), ReportError> {
    save_with(path, &Creator::default(), is_replacing, |out| {
        out.write_all(text.as_bytes())
    })
}

/// [`save`] of whatever `write` writes, as a file that `creator` makes.
///
/// # Errors
/// As [`save`].
pub fn save_with(
    path: &Path,
    creator: &Creator,
    is_replacing: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ReportError> {
    let write = |file: &mut File| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        // A `BufWriter` that is dropped says nothing of an error of its last write.
        out.flush()
    };
    if is_stream(path) {
        let file = regular_file::open_stream(path);
        let written = file.and_then(|mut file| write(&mut file));
        return Ok(written.map_err(|source| StoreError::Io {
            action: "write",
            path: path.to_owned(),
            source,
        })?);
    }
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

/// Whether a path leads to something that is written to and not replaced: a pipe, a socket or a
/// device, or what the system shows of an open file, such as `/dev/stdout`.
pub fn is_stream(path: &Path) -> bool {
    let is_of_system = ["/dev", "/proc"].iter().any(|dir| path.starts_with(dir));
    std::fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo()
            || kind.is_socket()
            || kind.is_char_device()
            || is_of_system && kind.is_file()
    })
}
