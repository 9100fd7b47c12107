//! Elements for numpy arrays.

use opscope_analysis::elements;
use opscope_store::file_format::npy;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Memory of a numpy array, alive as long as the array.
#[pyclass(name = "Array", frozen, module = "opscope._native.reading")]
pub(super) struct NumpyElements {
    array: elements::NumpyArray,
}

impl NumpyElements {
    pub(super) fn new(array: elements::NumpyArray) -> NumpyElements {
        NumpyElements { array }
    }
}

#[pymethods]
impl NumpyElements {
    /// numpy's array interface, version 3: the address is valid while this object lives, which the
    /// array references. It must not be written, as it may be a file.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let descr = npy::descr(self.array.dtype);
        let descr = descr.ok_or_else(|| PyTypeError::new_err("numpy has no such type"))?;
        // numpy converts the number back to a pointer, which requires exposed provenance.
        let address = self.array.bytes().as_ptr().expose_provenance();
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", descr)?;
        interface.set_item("shape", PyTuple::new(py, self.array.shape.dims())?)?;
        interface.set_item("data", (address, true))?;
        Ok(interface)
    }
}
