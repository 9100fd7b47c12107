//! Running models.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_acl::{Answer, Handle, PerProcess, status};

use crate::border::{null, process};
use crate::layout::IoDims;
use crate::pointer::In;
use crate::table::{codes, values};

codes! {
    aclmdlExecute(model_id: u32, inputs: Handle, outputs: Handle)
        => process().execute(model_id, inputs, outputs);
    aclmdlExecuteAsync(model_id: u32, inputs: Handle, outputs: Handle, stream: Handle)
        => process().execute_async(model_id, inputs, outputs, stream);
    aclmdlExecuteV2(
        model_id: u32, inputs: Handle, outputs: Handle, stream: Handle, options: Handle,
    ) => {
        check_options(options)?;
        // Only where the model runs would differ, so the stream has to be one.
        if stream == 0 {
            return process().execute(model_id, inputs, outputs);
        }
        process().execute_async(model_id, inputs, outputs, stream)?;
        process().synchronize_stream(stream)
    };
    aclmdlExecuteAsyncV2(
        model_id: u32, inputs: Handle, outputs: Handle, stream: Handle, options: Handle,
    ) => {
        check_options(options)?;
        process().execute_async(model_id, inputs, outputs, stream)
    };

    // The sizes of the next run.
    aclmdlSetDynamicBatchSize(model_id: u32, inputs: Handle, index: usize, batch: u64)
        => process().set_dynamic_batch_size(model_id, inputs, index, batch);
    aclmdlSetDynamicHWSize(model_id: u32, inputs: Handle, index: usize, height: u64, width: u64)
        => process().set_dynamic_hw_size(model_id, inputs, index, height, width);
    aclmdlSetInputDynamicDims(model_id: u32, inputs: Handle, index: usize, dims: In<IoDims>) => {
        dims.require("aclmdlSetInputDynamicDims", "dims")?;
        let dims = dims.get().ok_or(status::INVALID_PARAM)?;
        process().set_input_dynamic_dims(model_id, inputs, index, dims.dims()?)
    };

    aclmdlDestroyExecConfigHandle(options: Handle) => {
        if option_sets().remove(&options) {
            Ok(())
        } else if options == 0 {
            Err(null("aclmdlDestroyExecConfigHandle", "handle"))
        } else {
            Err(status::INVALID_PARAM)
        }
    };
    aclmdlSetExecConfigOpt(options: Handle, option: i32, value: In<u8>, size: usize) => {
        if options == 0 {
            return Err(null("aclmdlSetExecConfigOpt", "handle"));
        }
        check_options(options)?;
        value.require("aclmdlSetExecConfigOpt", "attrValue")?;
        let option = usize::try_from(option).map_err(|_| status::INVALID_PARAM)?;
        if VALUE_SIZES.get(option) != Some(&size) {
            return Err(status::INVALID_PARAM);
        }
        Ok(())
    };
}

values! {
    aclmdlCreateExecConfigHandle() -> Handle => create_options(), or 0;
}

/// Sizes of the values of `aclmdlExecConfigAttr`, in its order.
const VALUE_SIZES: &[usize] = &[4, 4, 8, 8, 8, 8, 8, 8, 4, 4];

/// Sets of options of a run. Their values are checked and have no effect on an engine of the CPU.
fn option_sets() -> MutexGuard<'static, BTreeSet<Handle>> {
    static OPTIONS: PerProcess<Mutex<BTreeSet<Handle>>> = PerProcess::new();
    OPTIONS.get().lock().unwrap_or_else(PoisonError::into_inner)
}

fn create_options() -> Handle {
    // Beyond every number of other objects, so that they are not taken for these.
    static NEXT: AtomicUsize = AtomicUsize::new(usize::MAX / 2);
    let handle = NEXT.fetch_add(16, Ordering::Relaxed);
    option_sets().insert(handle);
    handle
}

fn check_options(options: Handle) -> Answer {
    if options == 0 || option_sets().contains(&options) {
        Ok(())
    } else {
        Err(status::INVALID_PARAM)
    }
}
