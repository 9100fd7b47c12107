//! Devices, contexts, streams and events.

use std::ffi::c_char;

use opscope_acl::{Answer, Handle, status};

use crate::border::{Code, call, null, process, value};
use crate::kept::keep;
use crate::pointer::Out;

/// Stores what a call answers, and reports a null pointer before the call is made.
fn store<T>(
    function: &'static str,
    parameter: &'static str,
    out: Out<T>,
    work: impl FnOnce() -> Answer<T>,
) -> Code {
    call(|| {
        if out.is_null() {
            return Err(null(function, parameter));
        }
        out.set(work()?);
        Ok(())
    })
}

// ---- Devices

#[unsafe(no_mangle)]
extern "C" fn aclrtSetDevice(device: i32) -> Code {
    call(|| process().set_device(device))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtResetDevice(device: i32) -> Code {
    call(|| process().reset_device(device))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtResetDeviceForce(device: i32) -> Code {
    call(|| process().reset_device(device))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetDevice(device: Out<i32>) -> Code {
    store("aclrtGetDevice", "deviceId", device, || process().device())
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetDeviceCount(count: Out<u32>) -> Code {
    store("aclrtGetDeviceCount", "count", count, || {
        Ok(process().n_devices())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetRunMode(mode: Out<i32>) -> Code {
    store("aclrtGetRunMode", "runMode", mode, || {
        Ok(process().run_mode())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeDevice() -> Code {
    call(|| process().synchronize_device())
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeDeviceWithTimeout(timeout_ms: i32) -> Code {
    call(|| {
        check_timeout(timeout_ms)?;
        process().synchronize_device()
    })
}

/// Both kinds of cores are one here; only the two numbers that exist are accepted.
#[unsafe(no_mangle)]
extern "C" fn aclrtSetTsDevice(id: i32) -> Code {
    call(|| match id {
        0 | 1 => Ok(()),
        _ => Err(status::INVALID_PARAM),
    })
}

/// Operators have no time limit here.
#[unsafe(no_mangle)]
extern "C" fn aclrtSetOpWaitTimeout(_timeout_s: u32) -> Code {
    call(|| Ok(()))
}

/// Operators have no time limit here.
#[unsafe(no_mangle)]
extern "C" fn aclrtSetOpExecuteTimeOut(_timeout_s: u32) -> Code {
    call(|| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetSocName() -> *const c_char {
    let name = value(None, || Some(process().soc_name().to_owned()));
    keep(0, "soc_name".to_owned(), name)
}

// ---- Contexts

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateContext(context: Out<Handle>, device: i32) -> Code {
    store("aclrtCreateContext", "context", context, || {
        process().create_context(device)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyContext(context: Handle) -> Code {
    call(|| process().destroy_context(context))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSetCurrentContext(context: Handle) -> Code {
    call(|| process().set_current_context(context))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtGetCurrentContext(context: Out<Handle>) -> Code {
    store("aclrtGetCurrentContext", "context", context, || {
        process().current_context()
    })
}

// ---- Streams

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateStream(stream: Out<Handle>) -> Code {
    store("aclrtCreateStream", "stream", stream, || {
        process().create_stream()
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateStreamWithConfig(stream: Out<Handle>, priority: u32, flag: u32) -> Code {
    store("aclrtCreateStreamWithConfig", "stream", stream, || {
        process().create_stream_with_config(priority, flag)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyStream(stream: Handle) -> Code {
    call(|| process().destroy_stream(stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyStreamForce(stream: Handle) -> Code {
    call(|| process().destroy_stream(stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeStream(stream: Handle) -> Code {
    call(|| process().synchronize_stream(stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeStreamWithTimeout(stream: Handle, timeout_ms: i32) -> Code {
    call(|| process().synchronize_stream_with_timeout(stream, timeout_ms))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtStreamQuery(stream: Handle, state: Out<i32>) -> Code {
    store("aclrtStreamQuery", "status", state, || {
        Ok(i32::from(!is_idle(stream)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtStreamWaitEvent(stream: Handle, event: Handle) -> Code {
    call(|| process().stream_wait_event(stream, event))
}

/// Nothing follows a task that failed in either mode, because a call returns its failure.
#[unsafe(no_mangle)]
extern "C" fn aclrtSetStreamFailureMode(stream: Handle, mode: u64) -> Code {
    call(|| {
        if mode > 1 {
            return Err(status::RT_PARAM_INVALID);
        }
        is_idle(stream).map(|_| ())
    })
}

/// Whether a stream has nothing left to do. Only waiting callbacks can keep it busy.
fn is_idle(stream: Handle) -> Answer<bool> {
    match process().synchronize_stream_with_timeout(stream, 1) {
        Ok(()) => Ok(true),
        Err(status::RT_STREAM_SYNC_TIMEOUT) => Ok(false),
        Err(status) => Err(status),
    }
}

/// -1 waits without end, 0 is no time to wait.
fn check_timeout(timeout_ms: i32) -> Answer {
    if timeout_ms == -1 || timeout_ms > 0 {
        Ok(())
    } else {
        Err(status::INVALID_PARAM)
    }
}

// ---- Events

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateEvent(event: Out<Handle>) -> Code {
    store("aclrtCreateEvent", "event", event, || {
        process().create_event()
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateEventWithFlag(event: Out<Handle>, _flag: u32) -> Code {
    store("aclrtCreateEventWithFlag", "event", event, || {
        process().create_event()
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtCreateEventExWithFlag(event: Out<Handle>, _flag: u32) -> Code {
    store("aclrtCreateEventExWithFlag", "event", event, || {
        process().create_event()
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyEvent(event: Handle) -> Code {
    call(|| process().destroy_event(event))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtRecordEvent(event: Handle, stream: Handle) -> Code {
    call(|| process().record_event(event, stream))
}

/// An event that has happened stays recorded until the next record: nothing waits for an event
/// here.
#[unsafe(no_mangle)]
extern "C" fn aclrtResetEvent(event: Handle, stream: Handle) -> Code {
    call(|| {
        process().query_event(event)?;
        is_idle(stream).map(|_| ())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtQueryEvent(event: Handle, state: Out<i32>) -> Code {
    store("aclrtQueryEvent", "status", state, || {
        process().query_event(event)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtQueryEventStatus(event: Handle, state: Out<i32>) -> Code {
    // This enumeration counts the other way round.
    store("aclrtQueryEventStatus", "status", state, || {
        Ok(i32::from(process().query_event(event)? == 0))
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtQueryEventWaitStatus(event: Handle, state: Out<i32>) -> Code {
    store("aclrtQueryEventWaitStatus", "status", state, || {
        process().query_event(event)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeEvent(event: Handle) -> Code {
    call(|| process().synchronize_event(event))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeEventWithTimeout(event: Handle, timeout_ms: i32) -> Code {
    call(|| {
        check_timeout(timeout_ms)?;
        process().synchronize_event(event)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclrtEventElapsedTime(ms: Out<f32>, start: Handle, end: Handle) -> Code {
    store("aclrtEventElapsedTime", "ms", ms, || {
        process().event_elapsed_ms(start, end)
    })
}
