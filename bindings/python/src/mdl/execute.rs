//! Executing a model.

use pyo3::prelude::*;

use crate::argument::{Word, Word32};
use crate::call::code;
use crate::{dims, functions};

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        execute,
        execute_async,
        set_dynamic_batch_size,
        set_dynamic_hw_size,
        set_input_dynamic_dims,
    );
    Ok(())
}

/// aclmdlExecute.
#[pyfunction]
fn execute(py: Python<'_>, model_id: Word32, input: Word, output: Word) -> i32 {
    code(py, |process| process.execute(model_id.0, input.0, output.0))
}

/// aclmdlExecuteAsync.
#[pyfunction]
fn execute_async(py: Python<'_>, model_id: Word32, input: Word, output: Word, stream: Word) -> i32 {
    code(py, |process| {
        process.execute_async(model_id.0, input.0, output.0, stream.0)
    })
}

/// aclmdlSetDynamicBatchSize.
#[pyfunction]
fn set_dynamic_batch_size(
    py: Python<'_>,
    model_id: Word32,
    dataset: Word,
    index: Word,
    batch_size: Word,
) -> i32 {
    code(py, |process| {
        process.set_dynamic_batch_size(model_id.0, dataset.0, index.0, batch_size.0 as u64)
    })
}

/// aclmdlSetDynamicHWSize.
#[pyfunction]
fn set_dynamic_hw_size(
    py: Python<'_>,
    model_id: Word32,
    dataset: Word,
    index: Word,
    height: Word,
    width: Word,
) -> i32 {
    let (height, width) = (height.0 as u64, width.0 as u64);
    code(py, |process| {
        process.set_dynamic_hw_size(model_id.0, dataset.0, index.0, height, width)
    })
}

/// aclmdlSetInputDynamicDims: extents of all inputs in a row, as a dictionary with `dimCount` and
/// `dims`.
#[pyfunction]
fn set_input_dynamic_dims(
    py: Python<'_>,
    model_id: Word32,
    dataset: Word,
    index: Word,
    dims: &Bound<'_, PyAny>,
) -> PyResult<i32> {
    let extents = dims::extents(dims)?;
    Ok(code(py, |process| {
        process.set_input_dynamic_dims(model_id.0, dataset.0, index.0, &extents)
    }))
}
