//! Descriptions of models' inputs and outputs.

use std::ffi::c_char;

use opscope_acl::{Answer, Dims, Handle, status};

use crate::border::{Code, call, null, process, value};
use crate::kept::{forget, keep, keep_or_empty};
use crate::layout::{Batch, HeightWidth, IoDims, IoDimsRange};
use crate::model::bytes;
use crate::pointer::{In, Out, Text};

/// `ACL_DT_UNDEFINED` and `ACL_FORMAT_UNDEFINED`.
const UNDEFINED: i32 = -1;

#[unsafe(no_mangle)]
extern "C" fn aclmdlCreateDesc() -> Handle {
    value(0, || process().create_desc())
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlDestroyDesc(desc: Handle) -> Code {
    call(|| {
        process().destroy_desc(desc)?;
        forget(desc);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetDesc(desc: Handle, model_id: u32) -> Code {
    call(|| process().fill_desc(desc, model_id))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetDescFromFile(desc: Handle, path: Text) -> Code {
    call(|| {
        let path = path.path();
        let path = path.ok_or_else(|| null("aclmdlGetDescFromFile", "modelPath"))?;
        process().fill_desc_from_file(desc, path)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetDescFromMem(desc: Handle, model: In<u8>, size: usize) -> Code {
    call(|| process().fill_desc_from_mem(desc, bytes("aclmdlGetDescFromMem", model, size)?))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetNumInputs(desc: Handle) -> usize {
    value(0, || process().n_inputs(desc))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetNumOutputs(desc: Handle) -> usize {
    value(0, || process().n_outputs(desc))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputSizeByIndex(desc: Handle, index: usize) -> usize {
    value(0, || process().input_size(desc, index))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetOutputSizeByIndex(desc: Handle, index: usize) -> usize {
    value(0, || process().output_size(desc, index))
}

// ---- Extents

fn dims(function: &'static str, out: Out<IoDims>, work: impl FnOnce() -> Answer<Dims>) -> Code {
    call(|| {
        if out.is_null() {
            return Err(null(function, "dims"));
        }
        out.set(IoDims::new(&work()?)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputDims(desc: Handle, index: usize, out: Out<IoDims>) -> Code {
    dims("aclmdlGetInputDims", out, || {
        process().input_dims(desc, index)
    })
}

/// Differs from the first version only for models that prepare images in hardware.
#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputDimsV2(desc: Handle, index: usize, out: Out<IoDims>) -> Code {
    dims("aclmdlGetInputDimsV2", out, || {
        process().input_dims(desc, index)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetOutputDims(desc: Handle, index: usize, out: Out<IoDims>) -> Code {
    dims("aclmdlGetOutputDims", out, || {
        process().output_dims(desc, index)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetCurOutputDims(desc: Handle, index: usize, out: Out<IoDims>) -> Code {
    dims("aclmdlGetCurOutputDims", out, || {
        process().current_output_dims(desc, index)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputDimsRange(desc: Handle, index: usize, out: Out<IoDimsRange>) -> Code {
    call(|| {
        if out.is_null() {
            return Err(null("aclmdlGetInputDimsRange", "dimsRange"));
        }
        out.set(IoDimsRange::new(&process().input_dims_range(desc, index)?)?);
        Ok(())
    })
}

// ---- Names, formats, types

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputNameByIndex(desc: Handle, index: usize) -> *const c_char {
    let name = value(None, || process().input_name(desc, index));
    keep_or_empty(desc, format!("input.{index}"), name)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetOutputNameByIndex(desc: Handle, index: usize) -> *const c_char {
    let name = value(None, || process().output_name(desc, index));
    keep_or_empty(desc, format!("output.{index}"), name)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetTensorRealName(desc: Handle, name: Text) -> *const c_char {
    let name = name.name().ok().flatten().unwrap_or_default();
    let real_name = value(None, || process().real_name(desc, name));
    keep(desc, format!("real_name.{name}"), real_name)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetOpAttr(desc: Handle, op_name: Text, attribute: Text) -> *const c_char {
    let read = |text: Text| text.name().ok().flatten();
    let (Some(op_name), Some(attribute)) = (read(op_name), read(attribute)) else {
        return std::ptr::null();
    };
    let found = value(None, || {
        process().operator_attribute(desc, op_name, attribute)
    });
    keep(desc, format!("attribute.{attribute}.{op_name}"), found)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputIndexByName(desc: Handle, name: Text, index: Out<usize>) -> Code {
    call(|| {
        let name = name.required(|| null("aclmdlGetInputIndexByName", "name"))?;
        if index.is_null() {
            return Err(null("aclmdlGetInputIndexByName", "index"));
        }
        index.set(process().input_index(desc, name)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetOutputIndexByName(desc: Handle, name: Text, index: Out<usize>) -> Code {
    call(|| {
        let name = name.required(|| null("aclmdlGetOutputIndexByName", "name"))?;
        if index.is_null() {
            return Err(null("aclmdlGetOutputIndexByName", "index"));
        }
        index.set(process().output_index(desc, name)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputFormat(desc: Handle, index: usize) -> i32 {
    value(UNDEFINED, || process().input_format(desc, index))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetOutputFormat(desc: Handle, index: usize) -> i32 {
    value(UNDEFINED, || process().output_format(desc, index))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputDataType(desc: Handle, index: usize) -> i32 {
    value(UNDEFINED, || process().input_data_type(desc, index))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetOutputDataType(desc: Handle, index: usize) -> i32 {
    value(UNDEFINED, || process().output_data_type(desc, index))
}

// ---- Gears: the sizes that a model is prepared for, which a file beside it lists.

/// Stores what a model's gears are.
fn gears<T>(
    function: &'static str,
    parameter: &'static str,
    desc: Handle,
    out: Out<T>,
    read: impl FnOnce() -> Answer<T>,
) -> Code {
    call(|| {
        if out.is_null() {
            return Err(null(function, parameter));
        }
        if desc == 0 {
            return Err(null(function, "modelDesc"));
        }
        out.set(read()?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetDynamicBatch(desc: Handle, out: Out<Batch>) -> Code {
    gears("aclmdlGetDynamicBatch", "batch", desc, out, || {
        Batch::new(&process().dynamic_batches(desc)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetDynamicHW(desc: Handle, _index: usize, out: Out<HeightWidth>) -> Code {
    gears("aclmdlGetDynamicHW", "hw", desc, out, || {
        HeightWidth::new(&process().dynamic_sizes(desc)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputDynamicGearCount(
    desc: Handle,
    _index: usize,
    count: Out<usize>,
) -> Code {
    const FUNCTION: &str = "aclmdlGetInputDynamicGearCount";
    gears(FUNCTION, "gearCount", desc, count, || {
        Ok(process().dynamic_dims(desc)?.len())
    })
}

/// There has to be room for every gear.
#[unsafe(no_mangle)]
extern "C" fn aclmdlGetInputDynamicDims(
    desc: Handle,
    _index: usize,
    out: Out<IoDims>,
    count: usize,
) -> Code {
    const FUNCTION: &str = "aclmdlGetInputDynamicDims";
    call(|| {
        if out.is_null() {
            return Err(null(FUNCTION, "dims"));
        }
        if desc == 0 {
            return Err(null(FUNCTION, "modelDesc"));
        }
        let gears = process().dynamic_dims(desc)?;
        if count < gears.len() {
            return Err(status::INVALID_PARAM);
        }
        let gears = gears.iter().map(IoDims::new).collect::<Answer<Vec<_>>>()?;
        out.set_all(gears);
        Ok(())
    })
}

/// Descriptions of an operator that failed are not kept.
#[unsafe(no_mangle)]
extern "C" fn aclmdlCreateAndGetOpDesc(
    _device_id: u32,
    _stream_id: u32,
    _task_id: u32,
    _op_name: Out<c_char>,
    _op_name_size: usize,
    _inputs: Out<usize>,
    _n_inputs: Out<usize>,
    _outputs: Out<usize>,
    _n_outputs: Out<usize>,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}
