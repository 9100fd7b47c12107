//! Calling the process that this interpreter shares: without the interpreter's lock, and so that no
//! panic gets out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use opscope_acl::status::INTERNAL_ERROR;
use opscope_acl::{Answer, Process, engine_of_environment};
use pyo3::prelude::*;

/// Return type of functions with one result beside the code.
pub(crate) type Pair<T> = (T, i32);

/// Calls the process and returns what it gives; `None` after a panic.
fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce(&Process) -> T + Send) -> Option<T> {
    py.detach(|| {
        let work = || work(Process::global(engine_of_environment));
        catch_unwind(AssertUnwindSafe(work)).ok()
    })
}

/// Calls the process; an error gives its status, a panic 500000.
pub(crate) fn answer<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Process) -> Answer<T> + Send,
) -> Answer<T> {
    guarded(py, work).unwrap_or(Err(INTERNAL_ERROR))
}

/// For functions that return a code.
pub(crate) fn code(py: Python<'_>, work: impl FnOnce(&Process) -> Answer + Send) -> i32 {
    opscope_acl::status::code(answer(py, work))
}

/// For functions that return a value and a code; the value is zero or empty where the call fails.
pub(crate) fn pair<T: Default + Send>(
    py: Python<'_>,
    work: impl FnOnce(&Process) -> Answer<T> + Send,
) -> Pair<T> {
    match answer(py, work) {
        Ok(value) => (value, 0),
        Err(status) => (T::default(), status.0),
    }
}

/// For functions that return a value alone.
pub(crate) fn value<T: Default + Send>(
    py: Python<'_>,
    work: impl FnOnce(&Process) -> T + Send,
) -> T {
    guarded(py, work).unwrap_or_default()
}
