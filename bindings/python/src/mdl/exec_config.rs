//! Executing with options, which have no effect on the CPU.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_acl::status::INVALID_PARAM;
use opscope_acl::{Answer, Handle, PerProcess};
use pyo3::prelude::*;

use crate::argument::{Number, Word, Word32};
use crate::call::{code, value};
use crate::functions;

/// Options of `aclmdlExecConfigAttr`.
const N_OPTIONS: i32 = 10;
/// The first handle: beyond every number of other objects, so that they are not taken for these.
const FIRST: Handle = Handle::MAX / 2;

/// Sets of options, and the next handle.
static OPTIONS: PerProcess<Mutex<(BTreeSet<Handle>, Handle)>> = PerProcess::new();

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        create_exec_config_handle,
        destroy_exec_config_handle,
        set_exec_config_opt,
        execute_v2,
        execute_async_v2,
    );
    Ok(())
}

fn options() -> MutexGuard<'static, (BTreeSet<Handle>, Handle)> {
    let options = OPTIONS.get_or_init(|_| Mutex::new((BTreeSet::new(), FIRST)));
    options.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a handle stands for a set of options; 0 stands for none.
fn check(handle: Word) -> Answer {
    if handle.0 == 0 || options().0.contains(&handle.0) {
        Ok(())
    } else {
        Err(INVALID_PARAM)
    }
}

/// aclmdlCreateExecConfigHandle: a handle.
#[pyfunction]
fn create_exec_config_handle(py: Python<'_>) -> usize {
    value(py, |_| {
        let mut options = options();
        let handle = options.1;
        options.1 += 1;
        options.0.insert(handle);
        handle
    })
}

/// aclmdlDestroyExecConfigHandle.
#[pyfunction]
fn destroy_exec_config_handle(py: Python<'_>, handle: Word) -> i32 {
    code(py, |_| {
        if options().0.remove(&handle.0) {
            Ok(())
        } else {
            Err(INVALID_PARAM)
        }
    })
}

/// aclmdlSetExecConfigOpt: no option has an effect on the CPU.
#[pyfunction]
fn set_exec_config_opt(
    py: Python<'_>,
    handle: Word,
    attr: Number<i32>,
    _attr_value: Word32,
) -> i32 {
    code(py, |_| {
        if handle.0 == 0 || !(0..N_OPTIONS).contains(&attr.0) {
            return Err(INVALID_PARAM);
        }
        check(handle)
    })
}

/// aclmdlExecuteV2: executes a model and waits for the stream.
#[pyfunction]
fn execute_v2(
    py: Python<'_>,
    model_id: Word32,
    input: Word,
    output: Word,
    stream: Word,
    handle: Word,
) -> i32 {
    code(py, |process| {
        check(handle)?;
        if stream.0 == 0 {
            return process.execute(model_id.0, input.0, output.0);
        }
        process.execute_async(model_id.0, input.0, output.0, stream.0)?;
        process.synchronize_stream(stream.0)
    })
}

/// aclmdlExecuteAsyncV2: executes a model on a stream.
#[pyfunction]
fn execute_async_v2(
    py: Python<'_>,
    model_id: Word32,
    input: Word,
    output: Word,
    stream: Word,
    handle: Word,
) -> i32 {
    code(py, |process| {
        check(handle)?;
        process.execute_async(model_id.0, input.0, output.0, stream.0)
    })
}
