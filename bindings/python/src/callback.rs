//! Functions of Python's that the process calls.

use pyo3::prelude::*;

/// Calls a function of Python's from whichever thread this is.
///
/// Nothing but the answer to "did it return?" can go back: an exception is printed, as Python does
/// for those that nobody can catch. While the interpreter ends nothing is called.
pub(crate) fn run(
    function: &Py<PyAny>,
    call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> bool {
    let returned = Python::try_attach(|py| {
        let function = function.bind(py);
        match call(py, function) {
            Ok(_) => true,
            // The caller may be a thread of the engine's, which has no frame of Python's to raise
            // it in.
            Err(error) => {
                error.write_unraisable(py, Some(function));
                false
            }
        }
    });
    returned.unwrap_or(false)
}
