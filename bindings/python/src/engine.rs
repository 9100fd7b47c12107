//! Where this interpreter has an engine for models.

use std::path::PathBuf;

use pyo3::prelude::*;

/// The directory of the package `onnxruntime`, as an import would find it. It is not imported.
///
/// Asked when an engine is chosen; what cannot be found out then is as if it were not installed.
pub(crate) fn package() -> Option<PathBuf> {
    Python::try_attach(|py| find(py).ok().flatten()).flatten()
}

fn find(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    let find_spec = py.import("importlib.util")?.getattr("find_spec")?;
    let spec = find_spec.call1(("onnxruntime",))?;
    // Not imported, because that would load the library, which the engine does on its own terms.
    if spec.is_none() {
        return Ok(None);
    }
    let places = spec.getattr("submodule_search_locations")?;
    places.get_item(0)?.extract().map(Some)
}
