//! Running models.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use opscope_acl::{Answer, Handle, PerProcess, status};

use crate::border::{Code, call, null, process, value};
use crate::layout::IoDims;
use crate::pointer::In;

#[unsafe(no_mangle)]
extern "C" fn aclmdlExecute(model_id: u32, inputs: Handle, outputs: Handle) -> Code {
    call(|| process().execute(model_id, inputs, outputs))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlExecuteAsync(
    model_id: u32,
    inputs: Handle,
    outputs: Handle,
    stream: Handle,
) -> Code {
    call(|| process().execute_async(model_id, inputs, outputs, stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlExecuteV2(
    model_id: u32,
    inputs: Handle,
    outputs: Handle,
    stream: Handle,
    options: Handle,
) -> Code {
    call(|| {
        check_options(options)?;
        // Only where the model runs would differ, so the stream has to be one.
        if stream == 0 {
            process().execute(model_id, inputs, outputs)
        } else {
            process().execute_async(model_id, inputs, outputs, stream)?;
            process().synchronize_stream(stream)
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlExecuteAsyncV2(
    model_id: u32,
    inputs: Handle,
    outputs: Handle,
    stream: Handle,
    options: Handle,
) -> Code {
    call(|| {
        check_options(options)?;
        process().execute_async(model_id, inputs, outputs, stream)
    })
}

// ---- Options of a run

/// Sets of options. Their values are checked and have no effect on an engine of the CPU.
static OPTIONS: PerProcess<Mutex<BTreeSet<Handle>>> = PerProcess::new();
/// Beyond every number of other objects, so that they are not taken for these.
static NEXT: AtomicUsize = AtomicUsize::new(usize::MAX / 2);

/// Sizes of the values of `aclmdlExecConfigAttr`, in its order.
const VALUE_SIZES: &[usize] = &[4, 4, 8, 8, 8, 8, 8, 8, 4, 4];

#[unsafe(no_mangle)]
extern "C" fn aclmdlCreateExecConfigHandle() -> Handle {
    value(0, || {
        let handle = NEXT.fetch_add(16, Ordering::Relaxed);
        let mut options = OPTIONS.get().lock().unwrap_or_else(PoisonError::into_inner);
        options.insert(handle);
        handle
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlDestroyExecConfigHandle(options: Handle) -> Code {
    call(|| {
        let mut all = OPTIONS.get().lock().unwrap_or_else(PoisonError::into_inner);
        if all.remove(&options) {
            return Ok(());
        }
        drop(all);
        Err(wrong("aclmdlDestroyExecConfigHandle", options))
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetExecConfigOpt(
    options: Handle,
    option: i32,
    value: In<u8>,
    size: usize,
) -> Code {
    call(|| {
        if options == 0 {
            return Err(null("aclmdlSetExecConfigOpt", "handle"));
        }
        check_options(options)?;
        if value.is_null() {
            return Err(null("aclmdlSetExecConfigOpt", "attrValue"));
        }
        let option = usize::try_from(option).ok();
        match option.and_then(|option| VALUE_SIZES.get(option)) {
            Some(expected) if *expected == size => Ok(()),
            _ => Err(status::INVALID_PARAM),
        }
    })
}

fn check_options(options: Handle) -> Answer {
    let all = OPTIONS.get().lock().unwrap_or_else(PoisonError::into_inner);
    if options == 0 || all.contains(&options) {
        Ok(())
    } else {
        Err(status::INVALID_PARAM)
    }
}

fn wrong(function: &'static str, handle: Handle) -> opscope_acl::Status {
    if handle == 0 {
        null(function, "handle")
    } else {
        status::INVALID_PARAM
    }
}

// ---- Sizes of the next run

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetDynamicBatchSize(
    model_id: u32,
    inputs: Handle,
    index: usize,
    batch: u64,
) -> Code {
    call(|| process().set_dynamic_batch_size(model_id, inputs, index, batch))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetDynamicHWSize(
    model_id: u32,
    inputs: Handle,
    index: usize,
    height: u64,
    width: u64,
) -> Code {
    call(|| process().set_dynamic_hw_size(model_id, inputs, index, height, width))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetInputDynamicDims(
    model_id: u32,
    inputs: Handle,
    index: usize,
    dims: In<IoDims>,
) -> Code {
    call(|| {
        let dims = dims.get();
        let dims = dims.ok_or_else(|| null("aclmdlSetInputDynamicDims", "dims"))?;
        process().set_input_dynamic_dims(model_id, inputs, index, dims.dims()?)
    })
}
