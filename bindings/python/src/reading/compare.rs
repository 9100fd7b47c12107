//! Comparing two dumps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_analysis::compare::document::read_document;
use opscope_analysis::compare::parts::merge::{MissingParts, merge};
use opscope_analysis::compare::parts::units::PartsError;
use opscope_analysis::compare::report::{self, ReportError, ReportFormat, json, words};
use opscope_analysis::compare::run::{self, CompareError, VerdictOptions};
use opscope_analysis::compare::verdict::Thresholds;
use opscope_analysis::compare::{Selection, SkipPattern, matching, result};
use opscope_analysis::default_jobs;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_tensor::difference;
use opscope_view::report as view_report;
use opscope_view::{ViewError, ViewedRuns};
use pyo3::prelude::*;

use super::error::ExceptionContent;
use super::table::ComparisonTable;
use super::work;

/// A request for a comparison, from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct CompareRequest {
    target: PathBuf,
    golden: PathBuf,
    reference: Option<PathBuf>,
    steps: Vec<u64>,
    ranks: Vec<u64>,
    step_offset: Option<i64>,
    names: Vec<String>,
    op_types: Vec<String>,
    outputs_only: bool,
    mapping: Option<PathBuf>,
    whole: bool,
    weights: bool,
    kl: bool,
    jobs: Option<usize>,
}

/// Judging options.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct JudgementRequest {
    thresholds: Option<PathBuf>,
    atol: Option<f64>,
    top: usize,
    allow_skip: Vec<String>,
}

/// A comparison's result.
#[pyclass(name = "Comparison", frozen, module = "opscope._native.reading")]
pub(super) struct DumpComparison {
    comparison: Arc<result::Comparison>,
    /// Both dumps, unless the comparison was read from a file.
    dumps: Option<[PathBuf; 2]>,
}

/// Compares two dumps.
#[pyfunction]
#[pyo3(name = "compare")]
pub(super) fn compare_dumps(
    py: Python<'_>,
    request: CompareRequest,
    judgement: JudgementRequest,
) -> PyResult<DumpComparison> {
    let request = comparison_request(py, request, judgement)?;
    match work(py, || run::run(&request, None))? {
        Ok(comparison) => Ok(DumpComparison {
            comparison: Arc::new(comparison),
            dumps: Some([request.target, request.golden]),
        }),
        Err(error) => Err(described(error).raise(py)),
    }
}

/// Compares two dumps from the parts in `parts`, measured by tasks on other machines.
#[pyfunction]
pub(super) fn merge_parts(
    py: Python<'_>,
    request: CompareRequest,
    judgement: JudgementRequest,
    parts: PathBuf,
) -> PyResult<DumpComparison> {
    let request = comparison_request(py, request, judgement)?;
    let creator = Creator::new(PermissionModes::default());
    let merged = work(py, || {
        merge(&request, &parts, &creator, MissingParts::Refuse)
    })?;
    match merged {
        Ok(merged) => Ok(DumpComparison {
            comparison: Arc::new(merged.comparison),
            dumps: Some([request.target, request.golden]),
        }),
        Err(PartsError::Compare(error)) => Err(described(error).raise(py)),
        Err(error) => Err(ExceptionContent::nothing(super::error::chain(&error), parts).raise(py)),
    }
}

fn comparison_request(
    py: Python<'_>,
    request: CompareRequest,
    judgement: JudgementRequest,
) -> PyResult<run::ComparisonRequest> {
    Ok(run::ComparisonRequest {
        target: request.target,
        golden: request.golden,
        reference: request.reference,
        selection: Selection {
            steps: request.steps.into_iter().map(|n| n..=n).collect(),
            ranks: request.ranks.into_iter().map(|n| n..=n).collect(),
            names: request.names,
            op_types: request.op_types,
            is_outputs_only: request.outputs_only,
        },
        matching: matching::MatchingOptions {
            mapping: mapping(py, request.mapping.as_deref())?,
            step_offset: request.step_offset,
            ..matching::MatchingOptions::default()
        },
        is_whole: request.whole,
        has_parameters: request.weights,
        n_threads: request.jobs.unwrap_or_else(default_jobs).max(1),
        difference: difference::DifferenceOptions { has_kl: request.kl },
        judging: judging(py, judgement)?,
        program: format!("opscope {}", env!("CARGO_PKG_VERSION")),
        options: Vec::new(),
        progress: None,
    })
}

/// Judges a saved result again.
#[pyfunction]
#[pyo3(name = "judge")]
pub(super) fn judge_saved(
    py: Python<'_>,
    path: PathBuf,
    judgement: JudgementRequest,
) -> PyResult<DumpComparison> {
    let judging = judging(py, judgement)?;
    let comparison = work(py, || {
        let mut comparison = json::read(&path)?;
        run::rejudge(&mut comparison, &judging);
        Ok(comparison)
    })?;
    let comparison = comparison
        .map_err(|error: json::ReadError| ExceptionContent::of_result(&error, path).raise(py))?;
    Ok(DumpComparison {
        comparison: Arc::new(comparison),
        dumps: None,
    })
}

fn mapping(py: Python<'_>, path: Option<&Path>) -> PyResult<Option<matching::Mapping>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let read = read_document::<matching::Mapping>(path);
    Ok(Some(read.map_err(|error| {
        ExceptionContent::usage(super::error::chain(&error)).raise(py)
    })?))
}

fn judging(py: Python<'_>, judgement: JudgementRequest) -> PyResult<VerdictOptions> {
    let thresholds = match &judgement.thresholds {
        Some(path) => Thresholds::read(path)
            .map_err(|error| ExceptionContent::usage(super::error::chain(&error)).raise(py))?,
        None => Thresholds::default(),
    };
    let thresholds = Thresholds {
        atol: judgement.atol.unwrap_or(thresholds.atol),
        ..thresholds
    };
    let allowed = judgement.allow_skip.iter();
    Ok(VerdictOptions {
        thresholds,
        n_ranked: judgement.top,
        allowed: allowed.map(|text| SkipPattern::new(text)).collect(),
        is_strict: false,
        limit: None,
    })
}

pub(super) fn described(error: CompareError) -> ExceptionContent {
    let message = error.to_string();
    match error {
        CompareError::Open { source, .. } => ExceptionContent::from(&source),
        CompareError::Empty { path, .. } => ExceptionContent::nothing(message, path),
        CompareError::NothingChosen { .. } | CompareError::Mapping(_) => {
            ExceptionContent::usage(message)
        }
    }
}

#[pymethods]
impl DumpComparison {
    /// `pass`, `warn`, `fail` or `skip`.
    fn level(&self) -> &'static str {
        words::level(self.comparison.summary.level)
    }

    /// The verdict in one line.
    fn verdict(&self) -> String {
        words::verdict(&self.comparison)
    }

    /// The complete result as one JSON document.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = Vec::new();
        work(py, || {
            report::write(&self.comparison, ReportFormat::Json, &mut text)
        })??;
        Ok(String::from_utf8(text)?)
    }

    /// Its slots as a table.
    fn table(&self) -> ComparisonTable {
        ComparisonTable::new(self.comparison.clone())
    }

    /// Writes the format of the name's suffix.
    fn save(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        if view_report::is_page_name(&path) {
            return self.save_page(py, &path, force);
        }
        let Some(format) = ReportFormat::of_path(&path) else {
            let message =
                "expected a name that ends in .json, .jsonl, .csv, .xlsx, .html or .parquet";
            return Err(ExceptionContent::usage(message).raise(py));
        };
        let done = work(py, || report::save(&self.comparison, format, &path, force))?;
        done.map_err(|error| unwritten(error).raise(py))
    }
}

impl DumpComparison {
    /// The runs for a page, with the dumps' elements if available.
    pub(super) fn runs(&self) -> Result<ViewedRuns, ViewError> {
        let comparison = result::Comparison::clone(&self.comparison);
        match &self.dumps {
            Some([target, golden]) => {
                ViewedRuns::open_compared(comparison, [target, golden], default_jobs())
            }
            None => Ok(ViewedRuns::of_saved(comparison)),
        }
    }

    /// Writes the page, which reads the dumps' elements again.
    fn save_page(&self, py: Python<'_>, path: &Path, force: bool) -> PyResult<()> {
        // Checked before reading anything.
        if !force && path.symlink_metadata().is_ok() {
            return Err(ExceptionContent::exists(path.to_owned()).raise(py));
        }
        let page = work(py, || view_report::write(&self.runs()?))?;
        let page = page.map_err(|error| unshown(error).raise(py))?;
        let done = work(py, || report::save_text(&page, path, force))?;
        done.map_err(|error| unwritten(error).raise(py))
    }
}

fn unwritten(error: ReportError) -> ExceptionContent {
    match error {
        ReportError::Exists(path) => ExceptionContent::exists(path),
        ReportError::Stream(_) => ExceptionContent::usage(error.to_string()),
        ReportError::Store(error) => ExceptionContent::from(&error),
    }
}

fn unshown(error: ViewError) -> ExceptionContent {
    match error {
        ViewError::Dump(source) => ExceptionContent::from(&source),
        ViewError::Compare(error) => described(error),
        ViewError::Empty { ref path, .. } => {
            ExceptionContent::nothing(error.to_string(), path.clone())
        }
        ViewError::Report(_) | ViewError::Serve { .. } => ExceptionContent::damaged(&error),
    }
}
