//! `opscope.acl.util`: bytes at addresses. The functions for numpy and threads are in Python.

use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::argument::{WordArg, wrong_type};
use crate::call::{answer, process};
use crate::functions;

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module, bytes_to_ptr, ptr_to_bytes);
    Ok(())
}

/// The address of a bytes object's first byte, valid while the object exists.
#[pyfunction]
fn bytes_to_ptr(bytes_data: &Bound<'_, PyAny>) -> PyResult<usize> {
    let bytes = bytes_data.cast::<PyBytes>();
    let bytes = bytes.map_err(|_| wrong_type("bytes_data", bytes_data, "an object of bytes"))?;
    Ok(bytes.as_bytes().as_ptr().addr())
}

/// A copy of the bytes at an address.
#[pyfunction]
fn ptr_to_bytes<'py>(
    py: Python<'py>,
    ptr: WordArg,
    size: WordArg,
) -> PyResult<Bound<'py, PyBytes>> {
    if ptr.0 == 0 && size.0 != 0 {
        return Err(PyValueError::new_err("a null pointer has no bytes"));
    }
    match answer(py, || process().read_memory(ptr.0, size.0)) {
        Ok(bytes) => Ok(PyBytes::new(py, &bytes)),
        // No Python object is larger, whatever is at the address.
        Err(_) if isize::try_from(size.0).is_err() => {
            Err(PyMemoryError::new_err(format!("{} bytes", size.0)))
        }
        Err(_) => Err(PyValueError::new_err(format!(
            "no {} bytes at this address: they exceed the memory allocated there",
            size.0
        ))),
    }
}
