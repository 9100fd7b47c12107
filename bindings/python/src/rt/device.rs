//! Devices, contexts and streams.

use pyo3::prelude::*;

use crate::argument::{Number, Word, Word32};
use crate::call::{Pair, code, pair};
use crate::functions;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        set_device,
        reset_device,
        get_device,
        get_device_count,
        synchronize_device,
        get_run_mode,
        create_context,
        destroy_context,
        set_context,
        get_context,
        create_stream,
        create_stream_with_config,
        destroy_stream,
        synchronize_stream,
        synchronize_stream_with_timeout,
    );
    Ok(())
}

/// aclrtSetDevice.
#[pyfunction]
fn set_device(py: Python<'_>, device_id: Number<i32>) -> i32 {
    code(py, |process| process.set_device(device_id.0))
}

/// aclrtResetDevice.
#[pyfunction]
fn reset_device(py: Python<'_>, device_id: Number<i32>) -> i32 {
    code(py, |process| process.reset_device(device_id.0))
}

/// aclrtGetDevice: the device of the calling thread, and the code.
#[pyfunction]
fn get_device(py: Python<'_>) -> Pair<i32> {
    pair(py, |process| process.device())
}

/// aclrtGetDeviceCount: how many devices there are, and the code.
#[pyfunction]
fn get_device_count(py: Python<'_>) -> Pair<u32> {
    pair(py, |process| Ok(process.n_devices()))
}

/// aclrtSynchronizeDevice: waits for every stream.
#[pyfunction]
fn synchronize_device(py: Python<'_>) -> i32 {
    code(py, |process| process.synchronize_device())
}

/// aclrtGetRunMode: 1, as the program runs on a host, and the code.
#[pyfunction]
fn get_run_mode(py: Python<'_>) -> Pair<i32> {
    pair(py, |process| Ok(process.run_mode()))
}

/// aclrtCreateContext: a handle and the code.
#[pyfunction]
fn create_context(py: Python<'_>, device_id: Number<i32>) -> Pair<usize> {
    pair(py, |process| process.create_context(device_id.0))
}

/// aclrtDestroyContext.
#[pyfunction]
fn destroy_context(py: Python<'_>, context: Word) -> i32 {
    code(py, |process| process.destroy_context(context.0))
}

/// aclrtSetCurrentContext.
#[pyfunction]
fn set_context(py: Python<'_>, context: Word) -> i32 {
    code(py, |process| process.set_current_context(context.0))
}

/// aclrtGetCurrentContext: the context of the calling thread, and the code.
///
/// Programs written for early versions pass a device, which has no effect.
#[pyfunction]
#[pyo3(signature = (_device_id=None))]
fn get_context(py: Python<'_>, _device_id: Option<Number<i32>>) -> Pair<usize> {
    pair(py, |process| process.current_context())
}

/// aclrtCreateStream: a handle and the code.
#[pyfunction]
fn create_stream(py: Python<'_>) -> Pair<usize> {
    pair(py, |process| process.create_stream())
}

/// aclrtCreateStreamWithConfig: a handle and the code.
#[pyfunction]
fn create_stream_with_config(py: Python<'_>, priority: Word32, flag: Word32) -> Pair<usize> {
    pair(py, |process| {
        process.create_stream_with_config(priority.0, flag.0)
    })
}

/// aclrtDestroyStream.
#[pyfunction]
fn destroy_stream(py: Python<'_>, stream: Word) -> i32 {
    code(py, |process| process.destroy_stream(stream.0))
}

/// aclrtSynchronizeStream: waits for what was given to a stream.
#[pyfunction]
fn synchronize_stream(py: Python<'_>, stream: Word) -> i32 {
    code(py, |process| process.synchronize_stream(stream.0))
}

/// aclrtSynchronizeStreamWithTimeout: waits for so many milliseconds, or without end for -1.
#[pyfunction]
fn synchronize_stream_with_timeout(py: Python<'_>, stream: Word, timeout: Number<i32>) -> i32 {
    code(py, |process| {
        process.synchronize_stream_with_timeout(stream.0, timeout.0)
    })
}
