//! The inputs of a model, for those who bring the tensors.

use std::io;
use std::path::PathBuf;

use opscope_engine::{DeclaredDim, EngineError, ValueInfo, onnx};
use pyo3::prelude::*;

use super::error::ExceptionContent;
use super::work;

/// An input: its name, its dtype, and its extents, `None` where the model leaves one open. Without
/// extents not even the number of axes is known.
type DeclaredInput = (String, &'static str, Option<Vec<Option<usize>>>);

/// The values that a caller of the model has to provide, in the order of the file.
#[pyfunction]
pub(super) fn model_inputs(py: Python<'_>, path: PathBuf) -> PyResult<Vec<DeclaredInput>> {
    match work(py, || onnx::read_signature(&path))? {
        Ok(signature) => Ok(signature.inputs.into_iter().map(declared).collect()),
        Err(error) => Err(content(&error, path).raise(py)),
    }
}

fn declared(value: ValueInfo) -> DeclaredInput {
    // A name that extents have in common is left to the engine to check.
    let extents = value.dims.map(|dims| {
        let dims = dims.into_iter().map(|dim| match dim {
            DeclaredDim::Fixed(n) => Some(n),
            DeclaredDim::Named(_) | DeclaredDim::Unknown => None,
        });
        dims.collect()
    });
    (value.name, value.dtype.name(), extents)
}

fn content(error: &EngineError, path: PathBuf) -> ExceptionContent {
    // Whether a file is missing is an exception of its own in Python.
    let source: Option<&io::Error> = match error {
        EngineError::Read { source, .. } => Some(source),
        _ => None,
    };
    ExceptionContent::of_model(error, source, path)
}
