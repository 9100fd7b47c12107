//! Dumping for a stretch of the process.

use std::sync::Arc;

use opscope_acl::{Chunk, DumpCallback};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument::{FilePath, Number, Word, callable};
use crate::call::{Pair, code, pair, value};
use crate::{callback, functions};

/// "After what came before", as the unsigned number that pyACL makes of -1.
const APPEND: u64 = u64::MAX;
/// Answer of a callback that fails, in C.
const FAILED: i32 = -1;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        init_dump,
        set_dump,
        finalize_dump,
        dump_reg_callback,
        dump_unreg_callback,
        dump_get_path,
        dump_get_exception_info_path,
    );
    Ok(())
}

/// aclmdlInitDump.
#[pyfunction]
fn init_dump(py: Python<'_>) -> i32 {
    code(py, |process| process.init_dump())
}

/// aclmdlSetDump: the configuration file that models loaded from now on follow.
#[pyfunction]
#[pyo3(signature = (dump_cfg_path=None))]
fn set_dump(py: Python<'_>, dump_cfg_path: Option<FilePath>) -> i32 {
    code(py, |process| {
        process.set_dump(dump_cfg_path.as_ref().map(FilePath::as_path))
    })
}

/// aclmdlFinalizeDump.
#[pyfunction]
fn finalize_dump(py: Python<'_>) -> i32 {
    code(py, |process| process.finalize_dump())
}

/// acldumpRegCallback: `callback(dump_chunk)` gets, piece by piece, what would be written to files.
///
/// A chunk is a dictionary with `file_name`, `data_buf` (an address that is good until the callback
/// returns), `buf_len`, `is_last_chunk`, `offset` and `flag`.
#[pyfunction]
fn dump_reg_callback(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    flag: Number<i32>,
) -> PyResult<i32> {
    let function = callback
        .map(|function| callable("callback", function))
        .transpose()?;
    let receive = function
        .map(|function| -> DumpCallback { Arc::new(move |chunk| receive(&function, chunk)) });
    Ok(code(py, |process| {
        process.register_callback(receive, flag.0)
    }))
}

fn receive(function: &Py<PyAny>, chunk: &Chunk<'_>) -> i32 {
    let has_returned = callback::run(function, |py, function| {
        let dict = PyDict::new(py);
        dict.set_item("file_name", chunk.file_name)?;
        dict.set_item("data_buf", chunk.bytes.as_ptr().addr())?;
        dict.set_item("buf_len", chunk.bytes.len())?;
        dict.set_item("is_last_chunk", u32::from(chunk.is_last))?;
        dict.set_item("offset", APPEND)?;
        dict.set_item("flag", 0)?;
        function.call1((dict,))
    });
    if has_returned { 0 } else { FAILED }
}

/// acldumpUnregCallback.
#[pyfunction]
fn dump_unreg_callback(py: Python<'_>) {
    value(py, |process| process.unregister_callback());
}

/// acldumpGetPath: where a kind of dump goes, or None. pyACL lacks this one.
#[pyfunction]
fn dump_get_path(py: Python<'_>, dump_type: Number<i32>) -> Option<String> {
    value(py, |process| process.dump_path(dump_type.0))
}

/// acldumpGetExceptionInfoPath: where dumps of failing operators go, and the code. pyACL lacks this
/// one.
#[pyfunction]
fn dump_get_exception_info_path(py: Python<'_>, max_len: Word) -> Pair<String> {
    pair(py, |process| process.exception_info_path(max_len.0))
}
