//! Reporting an operator that fails to the program.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_acl::{ExceptionCallback, ExceptionInfo, PerProcess};
use pyo3::prelude::*;

use crate::argument::{Word, callable};
use crate::call::code;
use crate::{callback, functions};

/// Answer about an exception that is not there.
const INVALID: u32 = u32::MAX;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        set_exception_info_callback,
        get_task_id_from_exception_info,
        get_stream_id_from_exception_info,
        get_thread_id_from_exception_info,
        get_device_id_from_exception_info,
        get_error_code_from_exception_info,
    );
    Ok(())
}

/// Exceptions that are being told, by the number that stands for the pointer of C.
static TOLD: PerProcess<Mutex<(u64, BTreeMap<u64, ExceptionInfo>)>> = PerProcess::new();

fn told() -> MutexGuard<'static, (u64, BTreeMap<u64, ExceptionInfo>)> {
    TOLD.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// aclrtSetExceptionInfoCallback: `callback(exception_info)` is called when an operator fails; None
/// takes it back. The number it gets is good until it returns.
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
    Ok(code(py, |process| process.set_exception_callback(tell)))
}

fn tell(function: &Py<PyAny>, info: &ExceptionInfo) {
    let number = {
        let mut told = told();
        told.0 += 1;
        let number = told.0;
        told.1.insert(number, *info);
        number
    };
    callback::run(function, |_, function| function.call1((number,)));
    told().1.remove(&number);
}

fn ask(exception_info: Word, of: impl FnOnce(&ExceptionInfo) -> u32) -> u32 {
    let number = u64::try_from(exception_info.0).unwrap_or(0);
    told().1.get(&number).map_or(INVALID, of)
}

/// aclrtGetTaskIdFromExceptionInfo.
#[pyfunction]
fn get_task_id_from_exception_info(exception_info: Word) -> u32 {
    ask(exception_info, |info| info.task_id)
}

/// aclrtGetStreamIdFromExceptionInfo.
#[pyfunction]
fn get_stream_id_from_exception_info(exception_info: Word) -> u32 {
    ask(exception_info, |info| info.stream_id)
}

/// aclrtGetThreadIdFromExceptionInfo.
#[pyfunction]
fn get_thread_id_from_exception_info(exception_info: Word) -> u32 {
    ask(exception_info, |info| info.thread_id)
}

/// aclrtGetDeviceIdFromExceptionInfo.
#[pyfunction]
fn get_device_id_from_exception_info(exception_info: Word) -> u32 {
    ask(exception_info, |info| info.device_id)
}

/// aclrtGetErrorCodeFromExceptionInfo.
#[pyfunction]
fn get_error_code_from_exception_info(exception_info: Word) -> u32 {
    ask(exception_info, |info| info.error_code)
}
