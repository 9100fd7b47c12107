//! Loading and unloading.

use opscope_acl::status::INVALID_PARAM;
use opscope_acl::{Answer, Process};
use pyo3::prelude::*;

use crate::argument::{FilePath, Word, Word32};
use crate::call::{Pair, answer, code, pair};
use crate::functions;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        load_from_file,
        load_from_file_with_mem,
        load_from_mem,
        load_from_mem_with_mem,
        unload,
        query_size,
        query_size_from_mem,
    );
    Ok(())
}

/// The bytes of a model at an address.
///
/// # Errors
/// `INVALID_PARAM` for null, no bytes, or bytes beyond an allocation.
pub(super) fn model_at(
    process: &Process,
    function: &'static str,
    address: Word,
    size: Word,
) -> Answer<Vec<u8>> {
    if address.0 == 0 {
        return Err(process.null_argument(function, "model"));
    }
    if size.0 == 0 {
        return Err(INVALID_PARAM);
    }
    process
        .read_memory(address.0, size.0)
        .map_err(|_| INVALID_PARAM)
}

/// aclmdlLoadFromFile: the model's id and the code.
#[pyfunction]
fn load_from_file(py: Python<'_>, model_path: FilePath) -> Pair<u32> {
    pair(py, |process| process.load_from_file(model_path.as_path()))
}

/// aclmdlLoadFromFileWithMem: as `load_from_file`, which manages memory itself.
#[pyfunction]
fn load_from_file_with_mem(
    py: Python<'_>,
    model_path: FilePath,
    _work_ptr: Word,
    _work_size: Word,
    _weight_ptr: Word,
    _weight_size: Word,
) -> Pair<u32> {
    load_from_file(py, model_path)
}

/// aclmdlLoadFromMem: the model's id and the code.
#[pyfunction]
fn load_from_mem(py: Python<'_>, model: Word, model_size: Word) -> Pair<u32> {
    pair(py, |process| {
        let bytes = model_at(process, "aclmdlLoadFromMem", model, model_size)?;
        process.load_from_mem(&bytes)
    })
}

/// aclmdlLoadFromMemWithMem: as `load_from_mem`, which manages memory itself.
#[pyfunction]
fn load_from_mem_with_mem(
    py: Python<'_>,
    model: Word,
    model_size: Word,
    _work_ptr: Word,
    _work_size: Word,
    _weight_ptr: Word,
    _weight_size: Word,
) -> Pair<u32> {
    load_from_mem(py, model, model_size)
}

/// aclmdlUnload.
#[pyfunction]
fn unload(py: Python<'_>, model_id: Word32) -> i32 {
    code(py, |process| process.unload(model_id.0))
}

/// aclmdlQuerySize: bytes of work and of weight memory, and the code.
#[pyfunction]
fn query_size(py: Python<'_>, file_name: FilePath) -> (usize, usize, i32) {
    sizes(answer(py, |process| {
        process.query_size(file_name.as_path())
    }))
}

/// aclmdlQuerySizeFromMem: bytes of work and of weight memory, and the code.
#[pyfunction]
fn query_size_from_mem(py: Python<'_>, model: Word, model_size: Word) -> (usize, usize, i32) {
    sizes(answer(py, |process| {
        let bytes = model_at(process, "aclmdlQuerySizeFromMem", model, model_size)?;
        process.query_size_from_mem(&bytes)
    }))
}

fn sizes(answer: Answer<(usize, usize)>) -> (usize, usize, i32) {
    match answer {
        Ok((work, weight)) => (work, weight, 0),
        Err(status) => (0, 0, status.0),
    }
}
