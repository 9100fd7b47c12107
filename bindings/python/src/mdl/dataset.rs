//! The buffers of a model's inputs and outputs.

use pyo3::prelude::*;

use crate::argument::WordArg;
use crate::call::{Pair, code, process};
use crate::table::table;

table! {
    [also add_dataset_buffer, set_dataset_tensor_desc]

    values {
        /// aclmdlCreateDataset: a handle.
        create_dataset() -> usize => process().create_dataset(), or 0;
        /// aclmdlGetDatasetNumBuffers.
        get_dataset_num_buffers(dataset: WordArg) -> usize
            => process().dataset_n_buffers(dataset.0), or 0;
        /// aclmdlGetDatasetBuffer: a handle; 0 if there is no such buffer.
        get_dataset_buffer(dataset: WordArg, index: WordArg) -> usize
            => process().dataset_buffer(dataset.0, index.0).unwrap_or(0), or 0;
        /// aclmdlGetDatasetTensorDesc: a handle; 0 if there is none.
        get_dataset_tensor_desc(dataset: WordArg, index: WordArg) -> usize
            => process().dataset_tensor_desc(dataset.0, index.0).unwrap_or(0), or 0;
    }

    codes {
        /// aclmdlDestroyDataset. Its buffers stay.
        destroy_dataset(dataset: WordArg) => process().destroy_dataset(dataset.0);
    }
}

/// aclmdlAddDatasetBuffer: the given dataset, and the code.
#[pyfunction]
fn add_dataset_buffer(py: Python<'_>, dataset: WordArg, data_buffer: WordArg) -> Pair<usize> {
    let status = code(py, || {
        process().add_dataset_buffer(dataset.0, data_buffer.0)
    });
    (dataset.0, status)
}

/// aclmdlSetDatasetTensorDesc: the given dataset, and the code.
#[pyfunction]
fn set_dataset_tensor_desc(
    py: Python<'_>,
    dataset: WordArg,
    tensor_desc: WordArg,
    index: WordArg,
) -> Pair<usize> {
    let status = code(py, || {
        process().set_dataset_tensor_desc(dataset.0, tensor_desc.0, index.0)
    });
    (dataset.0, status)
}
