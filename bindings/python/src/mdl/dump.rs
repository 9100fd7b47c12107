//! Dumping during a part of the process.

use std::sync::Arc;

use opscope_acl::{DumpCallback, FilePiece};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument::{FilePath, NumberArg, WordArg, callable};
use crate::call::{code, process};
use crate::callback;
use crate::table::table;

/// "Append", as the unsigned number that pyACL converts -1 to.
const APPEND: u64 = u64::MAX;
/// Result of a failing C callback.
const FAILED: i32 = -1;

table! {
    [also dump_reg_callback]

    codes {
        /// aclmdlInitDump.
        init_dump() => process().init_dump();
        /// aclmdlSetDump: the configuration file for models loaded from now on.
        #[pyo3(signature = (dump_cfg_path=None))]
        set_dump(dump_cfg_path: Option<FilePath>)
            => process().set_dump(dump_cfg_path.as_ref().map(FilePath::as_path));
        /// aclmdlFinalizeDump.
        finalize_dump() => process().finalize_dump();
    }

    actions {
        /// acldumpUnregCallback.
        dump_unreg_callback() => {
            process().unregister_callback();
            Ok(())
        };
    }

    values {
        /// acldumpGetPath: the path of a kind of dump, or None. pyACL lacks this one.
        dump_get_path(dump_type: NumberArg<i32>) -> Option<String>
            => process().dump_path(dump_type.0), or None;
    }

    pairs {
        /// acldumpGetExceptionInfoPath: the path of dumps of failing operators, and the code. pyACL
        /// lacks this one.
        dump_get_exception_info_path(max_len: WordArg) -> String
            => process().exception_info_path(max_len.0);
    }
}

/// acldumpRegCallback: `callback(dump_chunk)` receives the content of dump files in chunks.
///
/// A chunk is a dictionary with `file_name`, `data_buf` (an address that is valid until the
/// callback returns), `buf_len`, `is_last_chunk`, `offset` and `flag`.
#[pyfunction]
fn dump_reg_callback(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    flag: NumberArg<i32>,
) -> PyResult<i32> {
    let function = callback
        .map(|function| callable("callback", function))
        .transpose()?;
    let receive = function
        .map(|function| -> DumpCallback { Arc::new(move |chunk| receive(&function, chunk)) });
    Ok(code(py, || process().register_callback(receive, flag.0)))
}

fn receive(function: &Py<PyAny>, chunk: &FilePiece<'_>) -> i32 {
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
