//! Loading models.
//!
//! The engine sets aside its own memory, so memory that a program brings along is not touched, and
//! the sizes that it asks for are honest but not needed.

use opscope_acl::{Answer, ConfigValue, Handle, status};

use crate::border::{Code, call, null, process};
use crate::pointer::{In, Out, Text};

/// Bits of `aclmdlConfigAttr` by what a value is.
mod option {
    pub(super) const PATH: i32 = 2;
    pub(super) const WEIGHT_PATH: i32 = 14;
    /// Options whose value is an address.
    pub(super) const ADDRESSES: &[i32] = &[3, 5, 7, 10, 12, 15, 17, 19, 21, 23, 26];
    /// Options whose value is an `int32_t`.
    pub(super) const INTEGERS: &[i32] = &[0, 28];
}

/// Checks the pointers that every way of loading has, loads, and stores the model's number.
fn load(function: &'static str, model_id: Out<u32>, work: impl FnOnce() -> Answer<u32>) -> Code {
    call(|| {
        if model_id.is_null() {
            return Err(null(function, "modelId"));
        }
        model_id.set(work()?);
        Ok(())
    })
}

fn load_file(function: &'static str, path: Text, model_id: Out<u32>) -> Code {
    load(function, model_id, || {
        let path = path.path().ok_or_else(|| null(function, "modelPath"))?;
        process().load_from_file(path)
    })
}

fn load_memory(function: &'static str, model: In<u8>, size: usize, model_id: Out<u32>) -> Code {
    load(function, model_id, || {
        process().load_from_mem(bytes(function, model, size)?)
    })
}

/// The bytes of a model.
pub(crate) fn bytes<'a>(function: &'static str, model: In<u8>, size: usize) -> Answer<&'a [u8]> {
    if model.is_null() {
        return Err(null(function, "model"));
    }
    if size == 0 {
        return Err(status::INVALID_PARAM);
    }
    model.bytes(size)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlLoadFromFile(path: Text, model_id: Out<u32>) -> Code {
    load_file("aclmdlLoadFromFile", path, model_id)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlLoadFromFileWithMem(
    path: Text,
    model_id: Out<u32>,
    _work: usize,
    _work_size: usize,
    _weights: usize,
    _weights_size: usize,
) -> Code {
    load_file("aclmdlLoadFromFileWithMem", path, model_id)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlLoadFromMem(model: In<u8>, size: usize, model_id: Out<u32>) -> Code {
    load_memory("aclmdlLoadFromMem", model, size, model_id)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlLoadFromMemWithMem(
    model: In<u8>,
    size: usize,
    model_id: Out<u32>,
    _work: usize,
    _work_size: usize,
    _weights: usize,
    _weights_size: usize,
) -> Code {
    load_memory("aclmdlLoadFromMemWithMem", model, size, model_id)
}

/// Queues between models are a device's.
#[unsafe(no_mangle)]
extern "C" fn aclmdlLoadFromFileWithQ(
    _path: Text,
    _model_id: Out<u32>,
    _input_queues: In<u32>,
    _n_input_queues: usize,
    _output_queues: In<u32>,
    _n_output_queues: usize,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

/// Queues between models are a device's.
#[unsafe(no_mangle)]
extern "C" fn aclmdlLoadFromMemWithQ(
    _model: In<u8>,
    _size: usize,
    _model_id: Out<u32>,
    _input_queues: In<u32>,
    _n_input_queues: usize,
    _output_queues: In<u32>,
    _n_output_queues: usize,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlUnload(model_id: u32) -> Code {
    call(|| process().unload(model_id))
}

// ---- Sizes

fn query(
    function: &'static str,
    work_size: Out<usize>,
    weights_size: Out<usize>,
    work: impl FnOnce() -> Answer<(usize, usize)>,
) -> Code {
    call(|| {
        for (out, name) in [(work_size, "workSize"), (weights_size, "weightSize")] {
            if out.is_null() {
                return Err(null(function, name));
            }
        }
        let (work, weights) = work()?;
        work_size.set(work);
        weights_size.set(weights);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlQuerySize(path: Text, work_size: Out<usize>, weights_size: Out<usize>) -> Code {
    query("aclmdlQuerySize", work_size, weights_size, || {
        let path = path.path();
        process().query_size(path.ok_or_else(|| null("aclmdlQuerySize", "fileName"))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlQuerySizeFromMem(
    model: In<u8>,
    size: usize,
    work_size: Out<usize>,
    weights_size: Out<usize>,
) -> Code {
    query("aclmdlQuerySizeFromMem", work_size, weights_size, || {
        process().query_size_from_mem(bytes("aclmdlQuerySizeFromMem", model, size)?)
    })
}

// ---- Loading by options

#[unsafe(no_mangle)]
extern "C" fn aclmdlCreateConfigHandle() -> Handle {
    crate::border::value(0, || process().create_config_handle())
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlDestroyConfigHandle(handle: Handle) -> Code {
    call(|| process().destroy_config_handle(handle))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetConfigOpt(handle: Handle, option: i32, value: In<u8>, size: usize) -> Code {
    call(|| {
        if value.is_null() {
            return Err(null("aclmdlSetConfigOpt", "attrValue"));
        }
        let bytes = value.bytes(size)?;
        let number = || {
            let bytes = bytes.try_into().map_err(|_| status::INVALID_PARAM)?;
            Ok(usize::from_ne_bytes(bytes))
        };
        let process = process();
        if matches!(option, option::PATH | option::WEIGHT_PATH) {
            // The value is the address of a pointer to the text.
            let text = value.text_behind(size)?;
            let path = text.path().ok_or(status::INVALID_PARAM)?;
            process.set_config_option(handle, option, ConfigValue::Path(path))
        } else if option::ADDRESSES.contains(&option) {
            process.set_config_option(handle, option, ConfigValue::Address(number()?))
        } else if option::INTEGERS.contains(&option) {
            let bytes = bytes.try_into().map_err(|_| status::INVALID_PARAM)?;
            let number = u64::from(u32::from_ne_bytes(bytes));
            process.set_config_option(handle, option, ConfigValue::Number(number))
        } else {
            let number = number()? as u64;
            process.set_config_option(handle, option, ConfigValue::Number(number))
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlLoadWithConfig(handle: Handle, model_id: Out<u32>) -> Code {
    load("aclmdlLoadWithConfig", model_id, || {
        process().load_with_config(handle)
    })
}
