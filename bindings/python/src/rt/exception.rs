//! Reporting failing operators to the program.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_acl::{ExceptionCallback, ExceptionInfo, PerProcess};
use pyo3::prelude::*;

use crate::argument::{WordArg, callable};
use crate::call::{code, process};
use crate::callback;
use crate::table::table;

/// Result for an unknown exception.
const INVALID: u32 = u32::MAX;

table! {
    [also set_exception_info_callback]

    values {
        /// aclrtGetTaskIdFromExceptionInfo.
        get_task_id_from_exception_info(exception_info: WordArg) -> u32
            => field(exception_info, |info| info.task_id), or INVALID;
        /// aclrtGetStreamIdFromExceptionInfo.
        get_stream_id_from_exception_info(exception_info: WordArg) -> u32
            => field(exception_info, |info| info.stream_id), or INVALID;
        /// aclrtGetThreadIdFromExceptionInfo.
        get_thread_id_from_exception_info(exception_info: WordArg) -> u32
            => field(exception_info, |info| info.thread_id), or INVALID;
        /// aclrtGetDeviceIdFromExceptionInfo.
        get_device_id_from_exception_info(exception_info: WordArg) -> u32
            => field(exception_info, |info| info.device_id), or INVALID;
        /// aclrtGetErrorCodeFromExceptionInfo.
        get_error_code_from_exception_info(exception_info: WordArg) -> u32
            => field(exception_info, |info| info.error_code), or INVALID;
    }
}

/// Exceptions being reported, by the number that replaces C's pointer.
static TOLD: PerProcess<Mutex<(u64, BTreeMap<u64, ExceptionInfo>)>> = PerProcess::new();

fn told() -> MutexGuard<'static, (u64, BTreeMap<u64, ExceptionInfo>)> {
    TOLD.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// aclrtSetExceptionInfoCallback: `callback(exception_info)` is called when an operator fails; None
/// removes it. Its argument is valid until it returns.
#[pyfunction]
#[pyo3(signature = (callback=None))]
fn set_exception_info_callback(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
) -> PyResult<i32> {
    let function = callback
        .map(|function| callable("callback", function))
        .transpose()?;
    let tell = function
        .map(|function| -> ExceptionCallback { Arc::new(move |info| tell(&function, info)) });
    Ok(code(py, || process().set_exception_callback(tell)))
}

fn tell(function: &Py<PyAny>, info: &ExceptionInfo) {
    let mut exceptions = told();
    exceptions.0 += 1;
    let number = exceptions.0;
    exceptions.1.insert(number, *info);
    // The function queries the fields, which takes the lock again.
    drop(exceptions);
    callback::run(function, |_, function| function.call1((number,)));
    told().1.remove(&number);
}

fn field(exception_info: WordArg, read: impl FnOnce(&ExceptionInfo) -> u32) -> u32 {
    let number = u64::try_from(exception_info.0).unwrap_or(0);
    told().1.get(&number).map_or(INVALID, read)
}
