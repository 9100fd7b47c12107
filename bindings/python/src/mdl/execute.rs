//! Executing a model.

use pyo3::prelude::*;

use crate::argument::{Word32Arg, WordArg};
use crate::call::{code, process};
use crate::dims;
use crate::table::table;

table! {
    [also set_input_dynamic_dims]

    codes {
        /// aclmdlExecute.
        execute(model_id: Word32Arg, input: WordArg, output: WordArg)
            => process().execute(model_id.0, input.0, output.0);
        /// aclmdlExecuteAsync.
        execute_async(model_id: Word32Arg, input: WordArg, output: WordArg, stream: WordArg)
            => process().execute_async(model_id.0, input.0, output.0, stream.0);
        /// aclmdlSetDynamicBatchSize.
        set_dynamic_batch_size(model_id: Word32Arg, dataset: WordArg, index: WordArg, batch_size: WordArg)
            => process().set_dynamic_batch_size(
                model_id.0, dataset.0, index.0, batch_size.0 as u64
            );
        /// aclmdlSetDynamicHWSize.
        set_dynamic_hw_size(
            model_id: Word32Arg, dataset: WordArg, index: WordArg, height: WordArg, width: WordArg,
        ) => process().set_dynamic_hw_size(
            model_id.0, dataset.0, index.0, height.0 as u64, width.0 as u64
        );
    }
}

/// aclmdlSetInputDynamicDims: the concatenated shapes of all inputs, as a dictionary with
/// `dimCount` and `dims`.
#[pyfunction]
fn set_input_dynamic_dims(
    py: Python<'_>,
    model_id: Word32Arg,
    dataset: WordArg,
    index: WordArg,
    dims: &Bound<'_, PyAny>,
) -> PyResult<i32> {
    let extents = dims::extents(dims)?;
    Ok(code(py, || {
        process().set_input_dynamic_dims(model_id.0, dataset.0, index.0, &extents)
    }))
}
