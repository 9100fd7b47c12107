//! The engine package in this interpreter.

use std::path::PathBuf;

use pyo3::prelude::*;

/// The directory of the package `onnxruntime`, as an import would find it. Does not import it.
///
/// Called when an engine is chosen; errors count as not installed.
pub(crate) fn package() -> Option<PathBuf> {
    Python::try_attach(|py| find(py).ok().flatten()).flatten()
}

fn find(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    let find_spec = py.import("importlib.util")?.getattr("find_spec")?;
    let spec = find_spec.call1(("onnxruntime",))?;
    // Importing would load the library, which the engine does on its own terms.
    if spec.is_none() {
        return Ok(None);
    }
    let places = spec.getattr("submodule_search_locations")?;
    places.get_item(0)?.extract().map(Some)
}
