//! Loading models.
//!
//! The engine allocates its memory, so memory provided by the program is not used, and the reported
//! sizes are correct but not required.

use opscope_acl::{Answer, ConfigValue, Handle, status};

use crate::border::process;
use crate::pointer::{CText, InPointer, OutPointer};
use crate::table::{codes, refusals, results, values};

/// Values of `aclmdlConfigAttr`, by the type of the option.
mod option {
    pub(super) const PATH: i32 = 2;
    pub(super) const WEIGHT_PATH: i32 = 14;
    /// Options with an address.
    pub(super) const ADDRESSES: &[i32] = &[3, 5, 7, 10, 12, 15, 17, 19, 21, 23, 26];
    /// Options with an `int32_t`.
    pub(super) const INTEGERS: &[i32] = &[0, 28];
}

results! {
    aclmdlLoadFromFile(path: CText, modelId: OutPointer<u32>)
        => modelId = process().load_from_file(path.require_path(FUNCTION, "modelPath")?)?;
    aclmdlLoadFromFileWithMem(
        path: CText, modelId: OutPointer<u32>,
        _work: usize, _work_size: usize, _weights: usize, _weights_size: usize,
    ) => modelId = process().load_from_file(path.require_path(FUNCTION, "modelPath")?)?;
    aclmdlLoadFromMem(model: InPointer<u8>, size: usize, modelId: OutPointer<u32>)
        => modelId = process().load_from_mem(bytes(FUNCTION, model, size)?)?;
    aclmdlLoadFromMemWithMem(
        model: InPointer<u8>, size: usize, modelId: OutPointer<u32>,
        _work: usize, _work_size: usize, _weights: usize, _weights_size: usize,
    ) => modelId = process().load_from_mem(bytes(FUNCTION, model, size)?)?;
    aclmdlLoadWithConfig(handle: Handle, modelId: OutPointer<u32>)
        => modelId = process().load_with_config(handle)?;
}

refusals! {
    because "queues belong to a device; load the model with aclmdlLoadFromFile and run it with datasets";
    // Queues between models belong to a device.
    aclmdlLoadFromFileWithQ(CText, OutPointer<u32>, InPointer<u32>, usize, InPointer<u32>, usize);
    aclmdlLoadFromMemWithQ(InPointer<u8>, usize, OutPointer<u32>, InPointer<u32>, usize, InPointer<u32>, usize);
}

codes! {
    aclmdlUnload(model_id: u32) => process().unload(model_id);
    aclmdlDestroyConfigHandle(handle: Handle) => process().destroy_config_handle(handle);

    aclmdlQuerySize(path: CText, work_size: OutPointer<usize>, weights_size: OutPointer<usize>)
        => store_sizes("aclmdlQuerySize", work_size, weights_size, |function| {
            process().query_size(path.require_path(function, "fileName")?)
        });
    aclmdlQuerySizeFromMem(
        model: InPointer<u8>, size: usize, work_size: OutPointer<usize>, weights_size: OutPointer<usize>,
    ) => store_sizes("aclmdlQuerySizeFromMem", work_size, weights_size, |function| {
            process().query_size_from_mem(bytes(function, model, size)?)
        });
}

values! {
    aclmdlCreateConfigHandle() -> Handle => process().create_config_handle(), or 0;
}

/// The bytes of a model.
pub(crate) fn bytes<'a>(
    function: &'static str,
    model: InPointer<u8>,
    size: usize,
) -> Answer<&'a [u8]> {
    model.require(function, "model")?;
    if size == 0 {
        return Err(status::INVALID_PARAM);
    }
    model.bytes(size)
}

fn store_sizes(
    function: &'static str,
    work_size: OutPointer<usize>,
    weights_size: OutPointer<usize>,
    query: impl FnOnce(&'static str) -> Answer<(usize, usize)>,
) -> Answer {
    work_size.require(function, "workSize")?;
    weights_size.require(function, "weightSize")?;
    let (work, weights) = query(function)?;
    work_size.set(work);
    weights_size.set(weights);
    Ok(())
}

codes! {
    aclmdlSetConfigOpt(handle: Handle, option: i32, value: InPointer<u8>, size: usize) => {
        value.require("aclmdlSetConfigOpt", "attrValue")?;
        let bytes = value.bytes(size)?;
        let value = match option {
            // The value is the address of a pointer to the string.
            option::PATH | option::WEIGHT_PATH => {
                let text = value.text_behind(size)?;
                ConfigValue::Path(text.path().ok_or(status::INVALID_PARAM)?)
            }
            _ if option::ADDRESSES.contains(&option) => ConfigValue::Address(word(bytes)?),
            _ if option::INTEGERS.contains(&option) => {
                let bytes = bytes.try_into().map_err(|_| status::INVALID_PARAM)?;
                ConfigValue::Number(u32::from_ne_bytes(bytes).into())
            }
            _ => ConfigValue::Number(word(bytes)? as u64),
        };
        process().set_config_option(handle, option, value)
    };
}

fn word(bytes: &[u8]) -> Answer<usize> {
    let bytes = bytes.try_into().map_err(|_| status::INVALID_PARAM)?;
    Ok(usize::from_ne_bytes(bytes))
}
