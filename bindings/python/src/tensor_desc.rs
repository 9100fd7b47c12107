//! `opscope.acl`: descriptions of tensors.

use opscope_acl::status::INVALID_PARAM;
use pyo3::prelude::*;

use crate::argument::{List, Number, Text, Word};
use crate::call::{Pair, code, pair, value};
use crate::functions;

/// Answer for the type or the format of something that is not there.
const UNDEFINED: i32 = -1;

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        create_tensor_desc,
        destroy_tensor_desc,
        get_tensor_desc_type,
        get_tensor_desc_format,
        get_tensor_desc_size,
        get_tensor_desc_element_count,
        get_tensor_desc_num_dims,
        get_tensor_desc_dim,
        get_tensor_desc_dim_v2,
        get_tensor_desc_name,
        set_tensor_desc_name,
        set_tensor_format,
        set_tensor_origin_format,
        set_tensor_shape,
        set_tensor_origin_shape,
        set_tensor_const,
    );
    Ok(())
}

/// aclCreateTensorDesc: a handle; 0 if the extents make no shape.
#[pyfunction]
fn create_tensor_desc(
    py: Python<'_>,
    data_type: Number<i32>,
    dims: List<i64>,
    format: Number<i32>,
) -> usize {
    value(py, |process| {
        process.create_tensor_desc(data_type.0, &dims.0, format.0)
    })
    .unwrap_or(0)
}

/// aclDestroyTensorDesc. Returns nothing, as it does in C.
#[pyfunction]
fn destroy_tensor_desc(py: Python<'_>, desc: Word) {
    code(py, |process| process.destroy_tensor_desc(desc.0));
}

/// aclGetTensorDescType: -1 for a wrong handle.
#[pyfunction]
fn get_tensor_desc_type(py: Python<'_>, desc: Word) -> i32 {
    value(py, |process| Some(process.tensor_desc_data_type(desc.0))).unwrap_or(UNDEFINED)
}

/// aclGetTensorDescFormat: -1 for a wrong handle.
#[pyfunction]
fn get_tensor_desc_format(py: Python<'_>, desc: Word) -> i32 {
    value(py, |process| Some(process.tensor_desc_format(desc.0))).unwrap_or(UNDEFINED)
}

/// aclGetTensorDescSize: bytes.
#[pyfunction]
fn get_tensor_desc_size(py: Python<'_>, desc: Word) -> usize {
    value(py, |process| process.tensor_desc_size(desc.0))
}

/// aclGetTensorDescElementCount.
#[pyfunction]
fn get_tensor_desc_element_count(py: Python<'_>, desc: Word) -> usize {
    value(py, |process| process.tensor_desc_n_elements(desc.0))
}

/// aclGetTensorDescNumDims.
#[pyfunction]
fn get_tensor_desc_num_dims(py: Python<'_>, desc: Word) -> usize {
    value(py, |process| process.tensor_desc_n_dims(desc.0))
}

/// aclGetTensorDescDim: the extent of an axis; -1 for a wrong one.
#[pyfunction]
fn get_tensor_desc_dim(py: Python<'_>, desc: Word, index: Word) -> i64 {
    value(py, |process| process.tensor_desc_dim(desc.0, index.0).ok()).unwrap_or(-1)
}

/// aclGetTensorDescDimV2: the extent of an axis, and the code.
#[pyfunction]
fn get_tensor_desc_dim_v2(py: Python<'_>, desc: Word, index: Word) -> Pair<i64> {
    pair(py, |process| process.tensor_desc_dim(desc.0, index.0))
}

/// aclGetTensorDescName: None for a wrong handle.
#[pyfunction]
fn get_tensor_desc_name(py: Python<'_>, desc: Word) -> Option<String> {
    value(py, |process| process.tensor_desc_name(desc.0))
}

/// aclSetTensorDescName. Returns nothing, as it does in C.
#[pyfunction]
fn set_tensor_desc_name(py: Python<'_>, desc: Word, name: Text) {
    code(py, |process| process.set_tensor_desc_name(desc.0, &name.0));
}

/// aclSetTensorFormat.
#[pyfunction]
fn set_tensor_format(py: Python<'_>, desc: Word, format: Number<i32>) -> i32 {
    code(py, |process| process.set_tensor_format(desc.0, format.0))
}

/// aclSetTensorOriginFormat.
#[pyfunction]
fn set_tensor_origin_format(py: Python<'_>, desc: Word, format: Number<i32>) -> i32 {
    code(py, |process| {
        process.set_tensor_origin_format(desc.0, format.0)
    })
}

/// aclSetTensorShape.
#[pyfunction]
fn set_tensor_shape(py: Python<'_>, desc: Word, dims: List<i64>) -> i32 {
    code(py, |process| process.set_tensor_shape(desc.0, &dims.0))
}

/// aclSetTensorOriginShape.
#[pyfunction]
fn set_tensor_origin_shape(py: Python<'_>, desc: Word, dims: List<i64>) -> i32 {
    code(py, |process| {
        process.set_tensor_origin_shape(desc.0, &dims.0)
    })
}

/// aclSetTensorConst: gives a tensor the bytes at an address.
#[pyfunction]
fn set_tensor_const(py: Python<'_>, desc: Word, data: Word, size: Word) -> i32 {
    code(py, |process| {
        let bytes = process
            .read_memory(data.0, size.0)
            .map_err(|_| INVALID_PARAM)?;
        process.set_tensor_const(desc.0, &bytes)
    })
}
