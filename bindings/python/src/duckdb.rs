//! DuckDB in this interpreter.

use std::ffi::OsString;

use pyo3::prelude::*;

/// The module that runs statements from standard input.
const MODULE: &str = "opscope._duckdb";

/// The command that runs statements in DuckDB, if its package is installed. Does not import it.
pub(crate) fn command() -> Option<Vec<OsString>> {
    Python::try_attach(|py| find(py).ok().flatten()).flatten()
}

fn find(py: Python<'_>) -> PyResult<Option<Vec<OsString>>> {
    let find_spec = py.import("importlib.util")?.getattr("find_spec")?;
    if find_spec.call1(("duckdb",))?.is_none() {
        return Ok(None);
    }
    let python: Option<OsString> = py.import("sys")?.getattr("executable")?.extract()?;
    let file: OsString = find_spec.call1((MODULE,))?.getattr("origin")?.extract()?;
    Ok(python.map(|python| vec![python, file]))
}
