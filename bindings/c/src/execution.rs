//! Running models.

use opscope_acl::{Answer, Handle, status};

use crate::border::{null, process};
use crate::layout::IoDims;
use crate::pointer::InPointer;
use crate::table::{codes, values};

codes! {
    aclmdlExecute(model_id: u32, inputs: Handle, outputs: Handle)
        => process().execute(model_id, inputs, outputs);
    aclmdlExecuteAsync(model_id: u32, inputs: Handle, outputs: Handle, stream: Handle)
        => process().execute_async(model_id, inputs, outputs, stream);
    aclmdlExecuteV2(
        model_id: u32, inputs: Handle, outputs: Handle, stream: Handle, options: Handle,
    ) => process().execute_with_options(model_id, inputs, outputs, stream, options);
    aclmdlExecuteAsyncV2(
        model_id: u32, inputs: Handle, outputs: Handle, stream: Handle, options: Handle,
    ) => process().execute_async_with_options(model_id, inputs, outputs, stream, options);

    // Sizes for the next run.
    aclmdlSetDynamicBatchSize(model_id: u32, inputs: Handle, index: usize, batch: u64)
        => process().set_dynamic_batch_size(model_id, inputs, index, batch);
    aclmdlSetDynamicHWSize(model_id: u32, inputs: Handle, index: usize, height: u64, width: u64)
        => process().set_dynamic_hw_size(model_id, inputs, index, height, width);
    aclmdlSetInputDynamicDims(model_id: u32, inputs: Handle, index: usize, dims: InPointer<IoDims>) => {
        dims.require("aclmdlSetInputDynamicDims", "dims")?;
        let dims = dims.get().ok_or(status::INVALID_PARAM)?;
        process().set_input_dynamic_dims(model_id, inputs, index, dims.dims()?)
    };

    aclmdlDestroyExecConfigHandle(options: Handle) => {
        require_options("aclmdlDestroyExecConfigHandle", options)?;
        process().destroy_exec_config(options)
    };
    aclmdlSetExecConfigOpt(options: Handle, option: i32, value: InPointer<u8>, size: usize) => {
        require_options("aclmdlSetExecConfigOpt", options)?;
        process().check_exec_config(options)?;
        value.require("aclmdlSetExecConfigOpt", "attrValue")?;
        let option = usize::try_from(option).map_err(|_| status::INVALID_PARAM)?;
        if VALUE_SIZES.get(option) != Some(&size) {
            return Err(status::INVALID_PARAM);
        }
        Ok(())
    };
}

values! {
    aclmdlCreateExecConfigHandle() -> Handle => process().create_exec_config(), or 0;
}

/// Sizes of the values of `aclmdlExecConfigAttr`, in its order.
const VALUE_SIZES: &[usize] = &[4, 4, 8, 8, 8, 8, 8, 8, 4, 4];

fn require_options(function: &'static str, options: Handle) -> Answer {
    if options == 0 {
        return Err(null(function, "handle"));
    }
    Ok(())
}
