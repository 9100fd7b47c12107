//! Memory of the device and of the host, which here are the same.

use pyo3::prelude::*;

use crate::argument::{Number, Word, Word32};
use crate::call::{Pair, answer, code, pair};
use crate::functions;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        malloc,
        malloc_host,
        free,
        free_host,
        memcpy,
        memcpy_async,
        memset,
        memset_async,
        get_mem_info,
    );
    Ok(())
}

/// aclrtMalloc: an address and the code.
#[pyfunction]
fn malloc(py: Python<'_>, size: Word, policy: Word32) -> Pair<usize> {
    pair(py, |process| process.malloc(size.0, policy.0))
}

/// aclrtMallocHost: an address and the code.
#[pyfunction]
fn malloc_host(py: Python<'_>, size: Word) -> Pair<usize> {
    pair(py, |process| process.malloc_host(size.0))
}

/// aclrtFree.
#[pyfunction]
fn free(py: Python<'_>, dev_ptr: Word) -> i32 {
    code(py, |process| process.free(dev_ptr.0))
}

/// aclrtFreeHost.
#[pyfunction]
fn free_host(py: Python<'_>, host_ptr: Word) -> i32 {
    code(py, |process| process.free_host(host_ptr.0))
}

/// aclrtMemcpy. A size that is larger than an allocation gives a code; an address that the process did
/// not give out is followed as it is, as in C.
#[pyfunction]
fn memcpy(
    py: Python<'_>,
    dst: Word,
    dest_max: Word,
    src: Word,
    count: Word,
    kind: Number<i32>,
) -> i32 {
    code(py, |process| {
        process.memcpy(dst.0, dest_max.0, src.0, count.0, kind.0)
    })
}

/// aclrtMemcpyAsync.
#[pyfunction]
fn memcpy_async(
    py: Python<'_>,
    dst: Word,
    dest_max: Word,
    src: Word,
    count: Word,
    kind: Number<i32>,
    stream: Word,
) -> i32 {
    code(py, |process| {
        process.memcpy_async(dst.0, dest_max.0, src.0, count.0, kind.0, stream.0)
    })
}

/// aclrtMemset.
#[pyfunction]
fn memset(py: Python<'_>, dev_ptr: Word, max_count: Word, value: Number<i32>, count: Word) -> i32 {
    code(py, |process| {
        process.memset(dev_ptr.0, max_count.0, value.0, count.0)
    })
}

/// aclrtMemsetAsync.
#[pyfunction]
fn memset_async(
    py: Python<'_>,
    dev_ptr: Word,
    max_count: Word,
    value: Number<i32>,
    count: Word,
    stream: Word,
) -> i32 {
    code(py, |process| {
        process.memset_async(dev_ptr.0, max_count.0, value.0, count.0, stream.0)
    })
}

/// aclrtGetMemInfo: free and total bytes, and the code.
#[pyfunction]
fn get_mem_info(py: Python<'_>, attr: Number<i32>) -> (usize, usize, i32) {
    match answer(py, |process| process.mem_info(attr.0)) {
        Ok((free, total)) => (free, total, 0),
        Err(status) => (0, 0, status.0),
    }
}
