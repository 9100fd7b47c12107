//! Calling the interpreter's shared process, without the interpreter's lock and without letting
//! panics escape.

use std::panic::{AssertUnwindSafe, catch_unwind};

use opscope_acl::status::INTERNAL_ERROR;
use opscope_acl::{AclProcess, Answer, engine_of_environment};
use pyo3::prelude::*;

/// Return type of functions with one result in addition to the code.
pub(crate) type Pair<T> = (T, i32);

/// Return type of functions with two sizes in addition to the code.
pub(crate) type Sizes = (usize, usize, i32);

/// The process behind every function.
pub(crate) fn process() -> &'static AclProcess {
    AclProcess::global(engine_of_environment)
}

/// For functions that only return a value; `None` after a panic.
pub(crate) fn value<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> Option<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)).ok())
}

/// An error becomes its status, a panic 500000.
pub(crate) fn answer<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Answer<T> + Send,
) -> Answer<T> {
    value(py, work).unwrap_or(Err(INTERNAL_ERROR))
}

/// For functions that return a code.
pub(crate) fn code(py: Python<'_>, work: impl FnOnce() -> Answer + Send) -> i32 {
    opscope_acl::status::code(answer(py, work))
}

/// For functions that return a value and a code; the value is zero or empty on failure.
pub(crate) fn pair<T: Default + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Answer<T> + Send,
) -> Pair<T> {
    match answer(py, work) {
        Ok(value) => (value, 0),
        Err(status) => (T::default(), status.0),
    }
}

/// For functions that return two sizes and a code; the sizes are 0 on failure.
pub(crate) fn sizes(py: Python<'_>, work: impl FnOnce() -> Answer<(usize, usize)> + Send) -> Sizes {
    let ((first, second), code) = pair(py, work);
    (first, second, code)
}
