//! `opscope.acl`: life cycle, data buffers, types.

use pyo3::prelude::*;

use crate::argument::{FilePath, Number, Word};
use crate::call::{Pair, code, value};
use crate::{functions, tensor_desc};

pub(crate) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        init,
        finalize,
        finalize_reference,
        get_version,
        get_soc_name,
        get_recent_err_msg,
        data_type_size,
        float16_to_float,
        float_to_float16,
        create_data_buffer,
        destroy_data_buffer,
        get_data_buffer_addr,
        get_data_buffer_size,
        get_data_buffer_size_v2,
        update_data_buffer,
    );
    tensor_desc::fill(module)
}

/// aclInit: starts the process, with the configuration of a file if a path is given.
#[pyfunction]
#[pyo3(signature = (path=None))]
fn init(py: Python<'_>, path: Option<FilePath>) -> i32 {
    code(py, |process| {
        process.init(path.as_ref().map(FilePath::as_path))
    })
}

/// aclFinalize: ends the process.
#[pyfunction]
fn finalize(py: Python<'_>) -> i32 {
    code(py, |process| process.finalize())
}

/// aclFinalizeReference: one user of the process less; the users that remain, and the code.
#[pyfunction]
fn finalize_reference(py: Python<'_>) -> Pair<u64> {
    let mut n_users = 0;
    let status = code(py, |process| {
        let (n_left, answer) = process.finalize_reference();
        n_users = n_left;
        answer
    });
    (n_users, status)
}

/// aclrtGetVersion: major, minor and patch version of the interface, and the code.
#[pyfunction]
fn get_version() -> (i32, i32, i32, i32) {
    (1, 17, 0, 0)
}

/// aclrtGetSocName: what the models run on.
#[pyfunction]
fn get_soc_name(py: Python<'_>) -> &'static str {
    value(py, |process| process.soc_name())
}

/// aclGetRecentErrMsg: the newest error report and those before it, or None. Reading clears them.
#[pyfunction]
fn get_recent_err_msg(py: Python<'_>) -> Option<String> {
    value(py, |process| process.recent_error())
}

/// aclDataTypeSize: bytes of one element.
#[pyfunction]
fn data_type_size(data_type: Number<i32>) -> usize {
    opscope_acl::data_type_size(data_type.0)
}

/// aclFloat16ToFloat.
#[pyfunction]
fn float16_to_float(value: Number<u16>) -> f32 {
    opscope_acl::float16_to_float(value.0)
}

/// aclFloatToFloat16.
#[pyfunction]
fn float_to_float16(value: Number<f32>) -> u16 {
    opscope_acl::float_to_float16(value.0)
}

/// aclCreateDataBuffer: describes memory of the caller's; a handle.
#[pyfunction]
fn create_data_buffer(py: Python<'_>, data: Word, size: Word) -> usize {
    value(py, |process| process.create_data_buffer(data.0, size.0))
}

/// aclDestroyDataBuffer. The memory stays.
#[pyfunction]
fn destroy_data_buffer(py: Python<'_>, data_buffer: Word) -> i32 {
    code(py, |process| process.destroy_data_buffer(data_buffer.0))
}

/// aclGetDataBufferAddr.
#[pyfunction]
fn get_data_buffer_addr(py: Python<'_>, data_buffer: Word) -> usize {
    value(py, |process| process.data_buffer_address(data_buffer.0))
}

/// aclGetDataBufferSize: 32 bits, as it is in C.
#[pyfunction]
fn get_data_buffer_size(py: Python<'_>, data_buffer: Word) -> usize {
    get_data_buffer_size_v2(py, data_buffer) & 0xFFFF_FFFF
}

/// aclGetDataBufferSizeV2.
#[pyfunction]
fn get_data_buffer_size_v2(py: Python<'_>, data_buffer: Word) -> usize {
    value(py, |process| process.data_buffer_size(data_buffer.0))
}

/// aclUpdateDataBuffer: describes other memory from now on.
#[pyfunction]
fn update_data_buffer(py: Python<'_>, data_buffer: Word, data: Word, size: Word) -> i32 {
    code(py, |process| {
        process.update_data_buffer(data_buffer.0, data.0, size.0)
    })
}
