//! Reading dumps, for `opscope.open`, `opscope.convert` and `opscope.compare`.
//!
//! `opscope-analysis` lists dumps and reads their elements; this module converts the results to
//! Python. It releases the interpreter's lock throughout, and keeps no threads or locks, so that a
//! process may fork at any time.

mod array;
mod arrow;
mod compare;
mod convert;
mod error;
mod item;
mod model;
mod page;
mod table;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use opscope_analysis::elements::{self, ElementsAccess, ElementsError, WantedLayout, stats_of};
use opscope_analysis::{default_jobs, read_dump};
use opscope_store::dump::PassedOver;
use opscope_store::reader::{DumpIndex, IndexedTensor};
use opscope_store::{StoreError, remote};
use opscope_tensor::{Layout, Shape};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use array::NumpyElements;
use compare::{DumpComparison, compare_dumps, judge_saved, merge_parts};
use convert::convert_files;
use error::ExceptionContent;
use model::model_inputs;
use page::{ServedPage, view_comparison, view_dumps};
use table::{ComparisonTable, TensorTable};

use crate::functions;

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        open_url,
        convert_files,
        compare_dumps,
        merge_parts,
        judge_saved,
        model_inputs,
        view_dumps,
        view_comparison
    );
    module.add_class::<DumpComparison>()?;
    module.add_class::<ServedPage>()?;
    module.add_class::<TensorCatalogue>()?;
    module.add_class::<TensorTable>()?;
    module.add_class::<ComparisonTable>()?;
    module.add_class::<NumpyElements>()
}

/// The displayable URL of a dump, after something was found there; `None` for any other path. Lists
/// the URL again.
#[pyfunction]
fn open_url(py: Python<'_>, text: String) -> PyResult<Option<String>> {
    let url = remote::without_secrets(&text).unwrap_or(text);
    let path = PathBuf::from(&url);
    if !remote::is_remote(&path) {
        return Ok(None);
    }
    remove_at_exit(py)?;
    let found = work(py, || {
        remote::forget(&path);
        remote::metadata(&path)
    })?;
    match found {
        // `pathlib` would remove one of its slashes.
        Ok(_) => Ok(Some(url)),
        Err(source) => {
            let error = StoreError::io("read", &path)(source);
            Err(ExceptionContent::from(&error).raise(py))
        }
    }
}

/// Makes the interpreter remove temporary files of URLs before it ends.
fn remove_at_exit(py: Python<'_>) -> PyResult<()> {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if !IS_REGISTERED.swap(true, Ordering::Relaxed) {
        let clean = pyo3::wrap_pyfunction!(remove_stand_ins, py)?;
        py.import("atexit")?.call_method1("register", (clean,))?;
    }
    Ok(())
}

#[pyfunction]
fn remove_stand_ins() {
    opscope_cli::remote::clean();
}

/// The tensors of a dump.
#[pyclass(name = "Catalogue", frozen, module = "opscope._native.reading")]
struct TensorCatalogue {
    index: DumpIndex,
}

#[pymethods]
impl TensorCatalogue {
    /// Lists a directory or a single file.
    #[new]
    #[pyo3(signature = (path, jobs=None))]
    fn new(py: Python<'_>, path: PathBuf, jobs: Option<usize>) -> PyResult<TensorCatalogue> {
        let jobs = jobs.unwrap_or_else(default_jobs);
        match work(py, || read_dump(&path, jobs))? {
            Ok(index) => Ok(TensorCatalogue { index }),
            Err(error) => Err(ExceptionContent::from(&error).raise(py)),
        }
    }

    fn __len__(&self) -> usize {
        self.index.tensors.len()
    }

    /// Returns the facts of a tensor except its elements.
    fn item<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        item::describe(py, self.get(index)?)
    }

    /// Returns an exception for each problem.
    fn problems(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let errors = self.index.errors.iter();
        errors
            .map(|error| {
                ExceptionContent::from(error)
                    .raise(py)
                    .into_value(py)
                    .into_any()
            })
            .collect()
    }

    /// Paths that are not part of the dump, with reasons.
    fn passed_over(&self) -> Vec<(OsString, &'static str)> {
        pairs(&self.index.passed_over)
    }

    /// The elements of a tensor in a dtype that numpy supports.
    #[pyo3(signature = (index, layout=None, shape=None))]
    fn array(
        &self,
        py: Python<'_>,
        index: usize,
        layout: Option<&str>,
        shape: Option<Vec<usize>>,
    ) -> PyResult<NumpyElements> {
        let relayout = relayout(py, layout, shape)?;
        self.on_record(py, index, |record| {
            elements::NumpyArray::decoded(record, relayout.as_ref(), ElementsAccess::Mapped)
        })
        .map(NumpyElements::new)
    }

    /// The bytes of a tensor as stored.
    fn raw(&self, py: Python<'_>, index: usize) -> PyResult<NumpyElements> {
        self.on_record(py, index, |record| {
            elements::NumpyArray::raw(record, ElementsAccess::Mapped)
        })
        .map(NumpyElements::new)
    }

    /// Statistics of a tensor's elements.
    fn stats<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.on_record(py, index, stats_of)?;
        item::stats(py, &stats)
    }
}

impl TensorCatalogue {
    fn get(&self, index: usize) -> PyResult<&IndexedTensor> {
        let record = self.index.tensors.get(index);
        record.ok_or_else(|| PyIndexError::new_err("the dump has no such record"))
    }

    fn on_record<T: Send>(
        &self,
        py: Python<'_>,
        index: usize,
        read: impl FnOnce(&IndexedTensor) -> Result<T, ElementsError> + Send,
    ) -> PyResult<T> {
        let record = self.get(index)?;
        let read = work(py, || read(record))?;
        read.map_err(|error| {
            let described = ExceptionContent::from(&error);
            described.in_file(record.path.to_path_buf()).raise(py)
        })
    }
}

fn pairs(passed_over: &[PassedOver]) -> Vec<(OsString, &'static str)> {
    passed_over
        .iter()
        .map(|entry| (entry.path.clone().into_os_string(), entry.reason.name()))
        .collect()
}

/// Does `work` without the interpreter's lock.
fn work<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)))
        .map_err(|_| PyRuntimeError::new_err("reading failed for an unknown reason"))
}

/// The requested layout; the name is case-insensitive.
fn relayout(
    py: Python<'_>,
    layout: Option<&str>,
    shape: Option<Vec<usize>>,
) -> PyResult<Option<WantedLayout>> {
    let Some(name) = layout else {
        return match shape {
            None => Ok(None),
            Some(_) => Err(ExceptionContent::usage("a shape needs a layout").raise(py)),
        };
    };
    let Some(target) = Layout::ALL
        .iter()
        .find(|layout| layout.name().eq_ignore_ascii_case(name))
        .copied()
    else {
        let message = format!(
            "`{name}` is not a layout; expected NCHW, NHWC, ND, NC1HWC0, FRACTAL_NZ and so on"
        );
        return Err(ExceptionContent::usage(message).raise(py));
    };
    let shape = shape.map(Shape::new).transpose();
    let shape = shape.map_err(|error| ExceptionContent::usage(error.to_string()).raise(py))?;
    Ok(Some(WantedLayout { target, shape }))
}
