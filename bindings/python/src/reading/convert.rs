//! Converting dumps to other file formats.

use std::path::{Path, PathBuf};

use opscope_analysis::convert::{self, ConvertReport, ConvertSource, ConvertedForm, PickedTensor};
use opscope_analysis::default_jobs;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::zstd::CompressionLevel;
use opscope_store::record::SlotSide;
use opscope_store::{StoreError, regular_file, remote};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error::ExceptionContent;
use super::{pairs, relayout, work};

/// Files between two checks for signals.
const N_FILES_AT_ONCE: usize = 256;
const KINDS: &[(&str, ConvertedForm)] = &[
    ("npy", ConvertedForm::Npy),
    ("msnpy", ConvertedForm::MsNpy),
    ("bin", ConvertedForm::Bin),
    ("txt", ConvertedForm::Txt),
    ("safetensors", ConvertedForm::Safetensors),
    ("pt", ConvertedForm::Pt),
];

/// A request for a conversion, from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ConvertRequest {
    out: PathBuf,
    kind: String,
    layout: Option<String>,
    target_shape: Option<Vec<usize>>,
    only_output: Option<usize>,
    only_input: Option<usize>,
    /// The level.
    compress: Option<u8>,
    jobs: Option<usize>,
    keep_existing: bool,
    dir_mode: u32,
    file_mode: u32,
}

/// Converts everything at `paths`; returns the results, with failures as exceptions.
#[pyfunction]
#[pyo3(name = "convert")]
pub(super) fn convert_files<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    request: ConvertRequest,
) -> PyResult<Bound<'py, PyDict>> {
    let options = request.options(py, &paths)?;
    let mut failures: Vec<ExceptionContent> = Vec::new();
    let mut sources = Vec::new();
    let mut passed_over = Vec::new();
    for path in paths {
        check_path(&path).map_err(|error| ExceptionContent::from(&error).raise(py))?;
        let found = work(py, || convert::sources(&path))?;
        // Unreadable files are in the report.
        if found.sources.is_empty() && found.errors.is_empty() {
            let message = format!("`{}` holds no dump files", path.display());
            return Err(ExceptionContent::nothing(message, path).raise(py));
        }
        sources.extend(found.sources);
        passed_over.extend(found.passed_over);
        failures.extend(found.errors.iter().map(ExceptionContent::from));
    }
    if let Some((a, b)) = convert::collision(&sources) {
        let (a, b) = (a.path.display(), b.path.display());
        let message = format!(
            "`{a}` and `{b}` would produce the same file names; convert them to different directories"
        );
        return Err(ExceptionContent::usage(message).raise(py));
    }
    let report = run(py, &sources, &options)?;
    let of_files = report.failures.iter();
    failures.extend(of_files.map(|f| ExceptionContent::from(&f.error).in_file(f.path.clone())));
    let result = PyDict::new(py);
    for (name, count) in [
        ("files", sources.len() as u64),
        ("converted", report.n_converted),
        ("arrays", report.n_arrays),
        ("records", report.n_records),
        ("buffers", report.n_rest),
        ("bytes_read", report.n_bytes_read),
        ("bytes_written", report.n_bytes_written),
    ] {
        result.set_item(name, count)?;
    }
    let failures = failures.into_iter().map(|f| f.raise(py).into_value(py));
    result.set_item("failures", failures.collect::<Vec<_>>())?;
    result.set_item("passed_over", pairs(&passed_over))?;
    Ok(result)
}

/// Whether a directory or a regular file is at `path`.
fn check_path(path: &Path) -> Result<(), StoreError> {
    if remote::is_dir(path) {
        return Ok(());
    }
    regular_file::check(path)
        .map(drop)
        .map_err(StoreError::io("read", path))
}

fn run(
    py: Python<'_>,
    sources: &[ConvertSource],
    options: &convert::ConversionOptions,
) -> PyResult<ConvertReport> {
    let mut total = ConvertReport::default();
    // The directory is created even if there is nothing to convert.
    let parts = sources.chunks(N_FILES_AT_ONCE);
    let parts: Vec<&[ConvertSource]> = match sources {
        [] => vec![&[]],
        _ => parts.collect(),
    };
    for part in parts {
        py.check_signals()?;
        let report = work(py, || convert::run(part, options, |_| ()))?;
        let report = report.map_err(|error| ExceptionContent::from(&error).raise(py))?;
        total.n_converted += report.n_converted;
        total.n_arrays += report.n_arrays;
        total.n_records += report.n_records;
        total.n_rest += report.n_rest;
        total.n_bytes_read += report.n_bytes_read;
        total.n_bytes_written += report.n_bytes_written;
        total.failures.extend(report.failures);
    }
    Ok(total)
}

impl ConvertRequest {
    fn options(self, py: Python<'_>, paths: &[PathBuf]) -> PyResult<convert::ConversionOptions> {
        let usage = |message: String| Err(ExceptionContent::usage(message).raise(py));
        let kind = KINDS.iter().find(|(name, _)| *name == self.kind);
        let Some(&(_, kind)) = kind else {
            let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
            return usage(format!("type: expected one of {}", names.join(", ")));
        };
        let pick = match (self.only_output, self.only_input) {
            (Some(_), Some(_)) => return usage("only_output excludes only_input".to_owned()),
            (Some(index), None) => Some((SlotSide::Output, index)),
            (None, Some(index)) => Some((SlotSide::Input, index)),
            (None, None) => None,
        };
        let is_one_file = matches!(paths, [path] if !remote::is_dir(path));
        if (pick.is_some() || self.target_shape.is_some()) && !is_one_file {
            let message = "target_shape, only_output and only_input take a single file";
            return usage(message.to_owned());
        }
        let compression = self.compress.map(CompressionLevel::new);
        if compression == Some(None) {
            let (min, max) = (CompressionLevel::MIN, CompressionLevel::MAX);
            return usage(format!("compress: expected a level from {min} to {max}"));
        }
        if compression.is_some() && ![ConvertedForm::Npy, ConvertedForm::MsNpy].contains(&kind) {
            return usage("compress is for numpy arrays: type npy or msnpy".to_owned());
        }
        for (name, mode) in [("dir_mode", self.dir_mode), ("file_mode", self.file_mode)] {
            if mode > 0o777 {
                return usage(format!("{name}: expected permissions, such as 0o750"));
            }
        }
        Ok(convert::ConversionOptions {
            out: self.out,
            kind,
            compression: compression.flatten(),
            relayout: relayout(py, self.layout.as_deref(), self.target_shape)?,
            pick: pick.map(|(side, index)| PickedTensor { side, index }),
            n_threads: self.jobs.unwrap_or_else(default_jobs),
            modes: PermissionModes {
                dir: self.dir_mode,
                file: self.file_mode,
            },
            is_replacing: !self.keep_existing,
        })
    }
}
