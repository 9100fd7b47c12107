//! The buffers that a model reads and writes.

use pyo3::prelude::*;

use crate::argument::Word;
use crate::call::{Pair, code, value};
use crate::functions;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        create_dataset,
        destroy_dataset,
        add_dataset_buffer,
        get_dataset_num_buffers,
        get_dataset_buffer,
        set_dataset_tensor_desc,
        get_dataset_tensor_desc,
    );
    Ok(())
}

/// aclmdlCreateDataset: a handle.
#[pyfunction]
fn create_dataset(py: Python<'_>) -> usize {
    value(py, |process| process.create_dataset())
}

/// aclmdlDestroyDataset. Its buffers stay.
#[pyfunction]
fn destroy_dataset(py: Python<'_>, dataset: Word) -> i32 {
    code(py, |process| process.destroy_dataset(dataset.0))
}

/// aclmdlAddDatasetBuffer: the dataset that was given, and the code.
#[pyfunction]
fn add_dataset_buffer(py: Python<'_>, dataset: Word, data_buffer: Word) -> Pair<usize> {
    let status = code(py, |process| {
        process.add_dataset_buffer(dataset.0, data_buffer.0)
    });
    (dataset.0, status)
}

/// aclmdlGetDatasetNumBuffers.
#[pyfunction]
fn get_dataset_num_buffers(py: Python<'_>, dataset: Word) -> usize {
    value(py, |process| process.dataset_n_buffers(dataset.0))
}

/// aclmdlGetDatasetBuffer: a handle; 0 if there is no such buffer.
#[pyfunction]
fn get_dataset_buffer(py: Python<'_>, dataset: Word, index: Word) -> usize {
    value(py, |process| process.dataset_buffer(dataset.0, index.0)).unwrap_or(0)
}

/// aclmdlSetDatasetTensorDesc: the dataset that was given, and the code.
#[pyfunction]
fn set_dataset_tensor_desc(
    py: Python<'_>,
    dataset: Word,
    tensor_desc: Word,
    index: Word,
) -> Pair<usize> {
    let status = code(py, |process| {
        process.set_dataset_tensor_desc(dataset.0, tensor_desc.0, index.0)
    });
    (dataset.0, status)
}

/// aclmdlGetDatasetTensorDesc: a handle; 0 if there is none.
#[pyfunction]
fn get_dataset_tensor_desc(py: Python<'_>, dataset: Word, index: Word) -> usize {
    value(py, |process| {
        process.dataset_tensor_desc(dataset.0, index.0)
    })
    .unwrap_or(0)
}
