//! Callbacks of the program: between tasks, and after a failure.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opscope_acl::{ExceptionCallback, ExceptionInfo, Handle, PerProcess};

use crate::border::{null, process};
use crate::layout::DeviceError;
use crate::pointer::OutPointer;
use crate::table::{codes, refusals, results, values};

unsafe extern "C" {
    /// The C library's thread ID, an `unsigned long`, which has 64 bits on platforms with NPUs.
    safe fn pthread_self() -> u64;
}

type Callback = extern "C" fn(usize);

codes! {
    aclrtSubscribeReport(thread: u64, stream: Handle)
        => process().subscribe_report(thread, stream);
    aclrtUnSubscribeReport(thread: u64, stream: Handle)
        => process().unsubscribe_report(thread, stream);
    aclrtProcessReport(timeout_ms: i32) => process().process_report(pthread_self(), timeout_ms);

    aclrtLaunchCallback(
        callback: Option<Callback>, user_data: usize, block_type: i32, stream: Handle,
    ) => {
        let callback = callback.ok_or_else(|| null("aclrtLaunchCallback", "fn"))?;
        process().launch_callback(Box::new(move || callback(user_data)), block_type, stream)
    };
    aclrtLaunchHostFunc(stream: Handle, function: Option<Callback>, arguments: usize) => {
        let function = function.ok_or_else(|| null("aclrtLaunchHostFunc", "fn"))?;
        process().launch_host_function(Box::new(move || function(arguments)), stream)
    };
}

refusals! {
    because "call aclrtLaunchHostFunc, whose functions run in a thread of the library, or \
             aclrtSubscribeReport and aclrtLaunchCallback";
    aclrtSubscribeHostFunc(u64, Handle);
    aclrtProcessHostFunc(i32);
    aclrtUnSubscribeHostFunc(u64, Handle);
}

// ---- Failures

results! {
    /// A CPU reports no faults.
    aclrtGetErrorVerbose(device: i32, errorInfo: OutPointer<DeviceError>)
        => errorInfo = process().check_device(device).map(|()| DeviceError::NONE)?;
}

refusals! {
    because "a CPU reports no fault that could be repaired";
    aclrtRepairError(i32, usize);
}

/// The getters' answer for a pointer other than to a failure being reported.
const NO_FAILURE: u32 = u32::MAX;

/// The failures currently passed to a callback, by the pointer that it got.
static FAILURES: PerProcess<Mutex<HashMap<usize, ExceptionInfo>>> = PerProcess::new();
static NEXT: AtomicUsize = AtomicUsize::new(1);

codes! {
    aclrtSetExceptionInfoCallback(callback: Option<Callback>) => {
        let callback = callback.map(|callback| {
            Arc::new(move |info: &ExceptionInfo| show(callback, *info)) as ExceptionCallback
        });
        process().set_exception_callback(callback)
    };
}

fn show(callback: Callback, info: ExceptionInfo) {
    let pointer = NEXT.fetch_add(1, Ordering::Relaxed);
    failures().insert(pointer, info);
    // No lock is held during the callback, which queries the fields.
    callback(pointer);
    failures().remove(&pointer);
}

fn failures() -> MutexGuard<'static, HashMap<usize, ExceptionInfo>> {
    FAILURES
        .get()
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn failure_field(info: usize, field: impl FnOnce(&ExceptionInfo) -> u32) -> u32 {
    failures().get(&info).map_or(NO_FAILURE, field)
}

values! {
    aclrtGetTaskIdFromExceptionInfo(info: usize) -> u32
        => failure_field(info, |info| info.task_id), or NO_FAILURE;
    aclrtGetStreamIdFromExceptionInfo(info: usize) -> u32
        => failure_field(info, |info| info.stream_id), or NO_FAILURE;
    aclrtGetThreadIdFromExceptionInfo(info: usize) -> u32
        => failure_field(info, |info| info.thread_id), or NO_FAILURE;
    aclrtGetDeviceIdFromExceptionInfo(info: usize) -> u32
        => failure_field(info, |info| info.device_id), or NO_FAILURE;
    aclrtGetErrorCodeFromExceptionInfo(info: usize) -> u32
        => failure_field(info, |info| info.error_code), or NO_FAILURE;
}
