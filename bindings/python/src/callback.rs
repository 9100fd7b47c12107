//! Python functions that the process calls.

use pyo3::prelude::*;

/// Calls a Python function from any thread.
///
/// Returns only whether it succeeded: an exception is printed, as Python does for uncatchable ones.
/// Nothing is called during interpreter shutdown.
pub(crate) fn run(
    function: &Py<PyAny>,
    call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> bool {
    let returned = Python::try_attach(|py| {
        let function = function.bind(py);
        match call(py, function) {
            Ok(_) => true,
            // The caller may be an engine thread without a Python frame to raise it in.
            Err(error) => {
                error.write_unraisable(py, Some(function));
                false
            }
        }
    });
    returned.unwrap_or(false)
}
