//! Functions of the program that are called from here: between tasks, and after a failure.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use opscope_acl::{ExceptionCallback, ExceptionInfo, Handle, PerProcess};

use crate::border::{Code, call, null, process, value};

unsafe extern "C" {
    /// The C library's number of a thread, an `unsigned long`, which has 64 bits where NPUs are used.
    safe fn pthread_self() -> u64;
}

type Callback = extern "C" fn(usize);

#[unsafe(no_mangle)]
extern "C" fn aclrtSubscribeReport(thread: u64, stream: Handle) -> Code {
    call(|| process().subscribe_report(thread, stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtUnSubscribeReport(thread: u64, stream: Handle) -> Code {
    call(|| process().unsubscribe_report(thread, stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtLaunchCallback(
    callback: Option<Callback>,
    user_data: usize,
    block_type: i32,
    stream: Handle,
) -> Code {
    call(|| {
        let callback = callback.ok_or_else(|| null("aclrtLaunchCallback", "fn"))?;
        let work = Box::new(move || callback(user_data));
        process().launch_callback(work, block_type, stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtProcessReport(timeout_ms: i32) -> Code {
    call(|| process().process_report(pthread_self(), timeout_ms))
}

// ---- Failures

/// Answer of getters about anything but a failure that is being shown.
const NO_FAILURE: u32 = u32::MAX;

/// The failures that are being shown to a callback at this moment, by the pointer that it got.
static SHOWN: PerProcess<Mutex<HashMap<usize, ExceptionInfo>>> = PerProcess::new();
static NEXT: AtomicUsize = AtomicUsize::new(1);

#[unsafe(no_mangle)]
extern "C" fn aclrtSetExceptionInfoCallback(callback: Option<Callback>) -> Code {
    call(|| {
        let callback = callback.map(|callback| {
            let show = move |info: &ExceptionInfo| show(callback, *info);
            Arc::new(show) as ExceptionCallback
        });
        process().set_exception_callback(callback)
    })
}

fn show(callback: Callback, info: ExceptionInfo) {
    let shown = || SHOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
    let pointer = NEXT.fetch_add(1, Ordering::Relaxed);
    shown().insert(pointer, info);
    callback(pointer);
    shown().remove(&pointer);
}

fn failure_field(info: usize, field: impl FnOnce(&ExceptionInfo) -> u32) -> u32 {
    value(NO_FAILURE, || {
        let shown = SHOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
        shown.get(&info).map_or(NO_FAILURE, field)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetTaskIdFromExceptionInfo(info: usize) -> u32 {
    failure_field(info, |info| info.task_id)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetStreamIdFromExceptionInfo(info: usize) -> u32 {
    failure_field(info, |info| info.stream_id)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetThreadIdFromExceptionInfo(info: usize) -> u32 {
    failure_field(info, |info| info.thread_id)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetDeviceIdFromExceptionInfo(info: usize) -> u32 {
    failure_field(info, |info| info.device_id)
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetErrorCodeFromExceptionInfo(info: usize) -> u32 {
    failure_field(info, |info| info.error_code)
}
