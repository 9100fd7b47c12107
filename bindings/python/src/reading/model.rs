//! The inputs of a model, for callers that provide the tensors.

use std::io;
use std::path::PathBuf;

use opscope_engine::{DeclaredDim, EngineError, ValueInfo, onnx};
use pyo3::prelude::*;

use super::error::ExceptionContent;
use super::work;

/// An input: name, dtype and shape, with `None` for a dynamic dimension. Without a shape even the
/// rank is unknown.
type DeclaredInput = (String, &'static str, Option<Vec<Option<usize>>>);

/// The inputs that a caller of the model must provide, in file order.
#[pyfunction]
pub(super) fn model_inputs(py: Python<'_>, path: PathBuf) -> PyResult<Vec<DeclaredInput>> {
    match work(py, || onnx::read_signature(&path))? {
        Ok(signature) => Ok(signature.inputs.into_iter().map(declared).collect()),
        Err(error) => Err(content(&error, path).raise(py)),
    }
}

fn declared(value: ValueInfo) -> DeclaredInput {
    // The engine checks dimensions that share a name.
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
    // A missing file has its own exception in Python.
    let source: Option<&io::Error> = match error {
        EngineError::Read { source, .. } => Some(source),
        _ => None,
    };
    ExceptionContent::of_model(error, source, path)
}
