//! The page of `opscope view`, served by the Python process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use opscope_analysis::default_jobs;
use opscope_view::{
    PageServer, PageState, RunningPage, ServerOptions, UnfinishedSurvey, ViewError, ViewedRuns,
};
use pyo3::prelude::*;

use super::compare::{DumpComparison, described};
use super::error::{ExceptionContent, chain};
use super::work;

/// A request for a page, from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct PageRequest {
    dump: PathBuf,
    golden: Option<PathBuf>,
    host: String,
    port: u16,
    may_be_framed: bool,
    jobs: Option<usize>,
}

/// A request for the page of a comparison, from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ComparisonPageRequest {
    host: String,
    port: u16,
    may_be_framed: bool,
}

/// A page that is served until it is closed.
#[pyclass(name = "Page", frozen, module = "opscope._native.reading")]
pub(super) struct ServedPage {
    address: String,
    page: Mutex<Option<RunningPage>>,
}

/// Opens a dump, compares it with a golden one if given, and serves the page.
#[pyfunction]
#[pyo3(name = "view")]
pub(super) fn view_dumps(py: Python<'_>, request: PageRequest) -> PyResult<ServedPage> {
    match work(py, || serve(&request))? {
        Ok(page) => Ok(ServedPage::new(page)),
        Err(error) => Err(content(error).raise(py)),
    }
}

/// Serves the page of an existing comparison: its verdicts, and the tensors of its dumps if
/// available.
#[pyfunction]
pub(super) fn view_comparison(
    py: Python<'_>,
    comparison: &DumpComparison,
    request: ComparisonPageRequest,
) -> PyResult<ServedPage> {
    let options = ServerOptions {
        host: request.host,
        port: request.port,
        n_threads: default_jobs(),
        may_be_framed: request.may_be_framed,
    };
    let page = work(py, || {
        // Its verdicts may depend on limits that a new comparison would not have.
        let runs = Arc::new(comparison.runs()?);
        PageServer::bind(runs, PageState::Whole, &options)?.start()
    })?;
    page.map(ServedPage::new)
        .map_err(|error| content(error).raise(py))
}

fn serve(request: &PageRequest) -> Result<RunningPage, ViewError> {
    let n_threads = request.jobs.unwrap_or_else(default_jobs).max(1);
    let program = format!("opscope {}", env!("CARGO_PKG_VERSION"));
    let (runs, rest) = match &request.golden {
        Some(golden) => {
            let runs = ViewedRuns::open_two([&request.dump, golden], None, n_threads, &program)?;
            (Arc::new(runs), None)
        }
        None => UnfinishedSurvey::begin(&request.dump, Vec::new(), n_threads, &program)?,
    };
    let options = ServerOptions {
        host: request.host.clone(),
        port: request.port,
        n_threads,
        may_be_framed: request.may_be_framed,
    };
    let state = (rest.as_ref()).map_or(PageState::Whole, UnfinishedSurvey::state);
    let page = PageServer::bind(runs, state, &options)?.start()?;
    if let Some(rest) = rest {
        // It ends with the page.
        let shown = page.runs().clone();
        thread::spawn(move || rest.finish(&shown));
    }
    Ok(page)
}

fn content(error: ViewError) -> ExceptionContent {
    let message = chain(&error);
    match error {
        ViewError::Dump(source) => ExceptionContent::from(&source),
        ViewError::Empty { path, .. } => ExceptionContent::nothing(message, path),
        ViewError::Compare(error) => described(error),
        ViewError::Serve { .. } | ViewError::Report(_) => ExceptionContent::usage(message),
    }
}

impl ServedPage {
    fn new(page: RunningPage) -> ServedPage {
        ServedPage {
            address: page.address().to_owned(),
            page: Mutex::new(Some(page)),
        }
    }
}

#[pymethods]
impl ServedPage {
    /// The address, with its token.
    fn address(&self) -> &str {
        &self.address
    }

    /// Stops the server if it is running.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let page = self
            .page
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        work(py, || page.map_or((), RunningPage::stop))
    }

    fn is_open(&self) -> bool {
        self.page
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
}
