//! The command line, for `python -m opscope`.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use crate::functions;

/// Exit code of a Rust program that panics; standard error has the message.
const PANICKED: u8 = 101;

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module, run);
    Ok(())
}

/// Runs a command, whose first argument is the program's name; returns the exit code.
///
/// Handles signals as a separate program does.
#[pyfunction]
fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| catch_unwind(AssertUnwindSafe(|| opscope_cli::run(arguments))))
        .unwrap_or(PANICKED)
}
