//! Executing a model.

use pyo3::prelude::*;

use crate::argument::{Word, Word32};
use crate::call::{code, process};
use crate::dims;
use crate::table::table;

table! {
    [also set_input_dynamic_dims]

    codes {
        /// aclmdlExecute.
        execute(model_id: Word32, input: Word, output: Word)
            => process().execute(model_id.0, input.0, output.0);
        /// aclmdlExecuteAsync.
        execute_async(model_id: Word32, input: Word, output: Word, stream: Word)
            => process().execute_async(model_id.0, input.0, output.0, stream.0);
        /// aclmdlSetDynamicBatchSize.
        set_dynamic_batch_size(model_id: Word32, dataset: Word, index: Word, batch_size: Word)
            => process().set_dynamic_batch_size(
                model_id.0, dataset.0, index.0, batch_size.0 as u64
            );
        /// aclmdlSetDynamicHWSize.
        set_dynamic_hw_size(
            model_id: Word32, dataset: Word, index: Word, height: Word, width: Word,
        ) => process().set_dynamic_hw_size(
            model_id.0, dataset.0, index.0, height.0 as u64, width.0 as u64
        );
    }
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
    Ok(code(py, || {
        process().set_input_dynamic_dims(model_id.0, dataset.0, index.0, &extents)
    }))
}
