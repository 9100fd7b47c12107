//! Devices, contexts, streams and events.

use opscope_acl::{Answer, Handle, status};

use crate::border::process;
use crate::pointer::OutPointer;
use crate::table::{codes, refusals, results, texts};

// ---- Devices

codes! {
    aclrtSetDevice(device: i32) => process().set_device(device);
    aclrtResetDevice(device: i32) => process().reset_device(device);
    aclrtResetDeviceForce(device: i32) => process().reset_device(device);
    aclrtSynchronizeDevice() => process().synchronize_device();
    aclrtSynchronizeDeviceWithTimeout(timeout_ms: i32)
        => check_timeout(timeout_ms).and_then(|()| process().synchronize_device());
    /// Both kinds of cores are the same here; only the two valid numbers are accepted.
    aclrtSetTsDevice(id: i32)
        => if matches!(id, 0 | 1) { Ok(()) } else { Err(status::INVALID_PARAM) };
    /// Operators have no time limit here.
    aclrtSetOpWaitTimeout(_timeout_s: u32) => Ok(());
    /// Operators have no time limit here.
    aclrtSetOpExecuteTimeOut(_timeout_s: u32) => Ok(());
    /// Operators have no time limit here.
    aclrtSetOpExecuteTimeOutWithMs(_timeout_ms: u32) => Ok(());
    aclrtDeviceGetStreamPriorityRange(least: OutPointer<i32>, greatest: OutPointer<i32>) => {
        least.require("aclrtDeviceGetStreamPriorityRange", "leastPriority")?;
        greatest.require("aclrtDeviceGetStreamPriorityRange", "greatestPriority")?;
        // Streams run their tasks at once, so there are no priorities.
        least.set(0);
        greatest.set(0);
        Ok(())
    };
}

results! {
    aclrtGetDevice(deviceId: OutPointer<i32>) => deviceId = process().device()?;
    aclrtGetDeviceCount(count: OutPointer<u32>) => count = process().n_devices();
    aclrtGetRunMode(runMode: OutPointer<i32>) => runMode = process().run_mode();
    /// A CPU that runs this is working.
    aclrtQueryDeviceStatus(device: i32, deviceStatus: OutPointer<i32>)
        => deviceStatus = process().check_device(device).map(|()| 0)?;
    aclrtGetDeviceInfo(device: u32, attribute: i32, value: OutPointer<i64>)
        => value = process().device_info(device, attribute)?;
    /// Both features are ways to change or queue tasks of a device.
    aclrtGetDeviceCapability(device: i32, feature: i32, value: OutPointer<i32>) => value = {
        process().check_device(device)?;
        if !matches!(feature, 1 | 21) {
            return Err(status::INVALID_PARAM);
        }
        0
    };
    /// There is only one device.
    aclrtDeviceCanAccessPeer(canAccessPeer: OutPointer<i32>, device: i32, peer: i32)
        => canAccessPeer = {
            process().check_device(device)?;
            process().check_device(peer)?;
            0
        };
}

refusals! {
    because "the CPU is the only device: it has no peers and no utilisation to report";
    aclrtDeviceEnablePeerAccess(i32, u32);
    aclrtDeviceDisablePeerAccess(i32);
    aclrtGetDeviceUtilizationRate(i32, usize);
}

texts! {
    aclrtGetSocName()
        => Some(process().soc_name().to_owned()), for 0, as "soc_name".to_owned(), or null;
}

// ---- Contexts

codes! {
    aclrtDestroyContext(context: Handle) => process().destroy_context(context);
    aclrtSetCurrentContext(context: Handle) => process().set_current_context(context);
}

results! {
    aclrtCreateContext(context: OutPointer<Handle>, device: i32)
        => context = process().create_context(device)?;
    aclrtGetCurrentContext(context: OutPointer<Handle>) => context = process().current_context()?;
}

// ---- Streams

codes! {
    aclrtDestroyStream(stream: Handle) => process().destroy_stream(stream);
    aclrtDestroyStreamForce(stream: Handle) => process().destroy_stream(stream);
    aclrtSynchronizeStream(stream: Handle) => process().synchronize_stream(stream);
    aclrtSynchronizeStreamWithTimeout(stream: Handle, timeout_ms: i32)
        => process().synchronize_stream_with_timeout(stream, timeout_ms);
    aclrtStreamWaitEvent(stream: Handle, event: Handle)
        => process().stream_wait_event(stream, event);
    aclrtStreamWaitEventWithTimeout(stream: Handle, event: Handle, timeout_ms: i32)
        => check_timeout(timeout_ms).and_then(|()| process().stream_wait_event(stream, event));
    aclrtStreamWaitEventWithFlag(stream: Handle, event: Handle, flag: u32)
        => check_event_flag(flag).and_then(|()| process().stream_wait_event(stream, event));
    /// The mode does not matter, because a call returns its failure and no task follows.
    aclrtSetStreamFailureMode(stream: Handle, mode: u64) => {
        if mode > 1 {
            return Err(status::RT_PARAM_INVALID);
        }
        is_idle(stream).map(drop)
    };
}

results! {
    aclrtCreateStream(stream: OutPointer<Handle>) => stream = process().create_stream()?;
    aclrtCreateStreamWithConfig(stream: OutPointer<Handle>, priority: u32, flag: u32)
        => stream = process().create_stream_with_config(priority, flag)?;
    aclrtStreamQuery(stream: Handle, status: OutPointer<i32>) => status = i32::from(!is_idle(stream)?);
    aclrtCtxGetCurrentDefaultStream(stream: OutPointer<Handle>) => stream = process().default_stream()?;
    aclrtStreamGetPriority(stream: Handle, priority: OutPointer<u32>)
        => priority = process().stream_priority_and_flags(stream)?.0;
    aclrtStreamGetFlags(stream: Handle, flags: OutPointer<u32>)
        => flags = process().stream_priority_and_flags(stream)?.1;
}

// ---- Overflows

codes! {
    aclrtGetOverflowStatus(address: usize, size: usize, stream: Handle)
        => process().store_overflow_status(address, size, stream);
    aclrtResetOverflowStatus(stream: Handle) => process().reset_overflow_status(stream);
    aclrtSetStreamOverflowSwitch(stream: Handle, switch: u32)
        => process().set_stream_overflow_switch(stream, switch);
    aclrtSetDeviceSatMode(mode: i32) => process().set_overflow_mode(mode);
}

results! {
    aclrtGetStreamOverflowSwitch(stream: Handle, flag: OutPointer<u32>)
        => flag = process().stream_overflow_switch(stream)?;
    aclrtGetDeviceSatMode(mode: OutPointer<i32>) => mode = process().overflow_mode()?;
}

/// Whether a stream is idle. Only waiting callbacks can keep it busy.
fn is_idle(stream: Handle) -> Answer<bool> {
    // One millisecond, because 0 is not a valid time-out.
    match process().synchronize_stream_with_timeout(stream, 1) {
        Ok(()) => Ok(true),
        Err(status::RT_STREAM_SYNC_TIMEOUT) => Ok(false),
        Err(status) => Err(status),
    }
}

/// -1 waits forever; 0 is invalid.
fn check_timeout(timeout_ms: i32) -> Answer {
    if timeout_ms == -1 || timeout_ms > 0 {
        Ok(())
    } else {
        Err(status::INVALID_PARAM)
    }
}

/// Recording and waiting work the same inside and outside of a captured graph.
fn check_event_flag(flag: u32) -> Answer {
    if flag > 1 {
        return Err(status::INVALID_PARAM);
    }
    Ok(())
}

// ---- Events

codes! {
    aclrtDestroyEvent(event: Handle) => process().destroy_event(event);
    aclrtRecordEvent(event: Handle, stream: Handle) => process().record_event(event, stream);
    aclrtRecordEventWithFlag(event: Handle, stream: Handle, flag: u32)
        => check_event_flag(flag).and_then(|()| process().record_event(event, stream));
    /// A recorded event stays recorded: nothing waits for an event here.
    aclrtResetEvent(event: Handle, stream: Handle)
        => process().query_event(event).and_then(|_| is_idle(stream).map(drop));
    aclrtSynchronizeEvent(event: Handle) => process().synchronize_event(event);
    aclrtSynchronizeEventWithTimeout(event: Handle, timeout_ms: i32)
        => check_timeout(timeout_ms).and_then(|()| process().synchronize_event(event));
}

results! {
    aclrtCreateEvent(event: OutPointer<Handle>) => event = process().create_event()?;
    aclrtCreateEventWithFlag(event: OutPointer<Handle>, _flag: u32) => event = process().create_event()?;
    aclrtCreateEventExWithFlag(event: OutPointer<Handle>, _flag: u32)
        => event = process().create_event()?;
    aclrtQueryEvent(event: Handle, status: OutPointer<i32>) => status = process().query_event(event)?;
    /// This enumeration has the opposite order.
    aclrtQueryEventStatus(event: Handle, status: OutPointer<i32>)
        => status = i32::from(process().query_event(event)? == 0);
    aclrtQueryEventWaitStatus(event: Handle, status: OutPointer<i32>)
        => status = process().query_event(event)?;
    aclrtEventElapsedTime(ms: OutPointer<f32>, start: Handle, end: Handle)
        => ms = process().event_elapsed_ms(start, end)?;
}
