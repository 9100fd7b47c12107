//! Numbers and descriptions of tensors.

use std::ffi::c_char;

use opscope_acl::{Answer, Handle, data_type_size, float_to_float16, float16_to_float, status};

use crate::border::{Code, call, count, null, process, value};
use crate::kept::{forget, keep_or_empty};
use crate::pointer::{In, N_DIMS_MAX, Out, Text};

/// `ACL_DT_UNDEFINED` and `ACL_FORMAT_UNDEFINED`.
const UNDEFINED: i32 = -1;
/// An extent that is known when the operator runs only.
const UNKNOWN: i64 = -1;

#[unsafe(no_mangle)]
extern "C" fn aclFloat16ToFloat(number: u16) -> f32 {
    value(0.0, || float16_to_float(number))
}

#[unsafe(no_mangle)]
extern "C" fn aclFloatToFloat16(number: f32) -> u16 {
    value(0, || float_to_float16(number))
}

#[unsafe(no_mangle)]
extern "C" fn aclDataTypeSize(data_type: i32) -> usize {
    value(0, || data_type_size(data_type))
}

#[unsafe(no_mangle)]
extern "C" fn aclCreateTensorDesc(
    data_type: i32,
    n_dims: i32,
    dims: In<i64>,
    format: i32,
) -> Handle {
    let desc = value(None, || {
        let dims = shape(n_dims, dims).ok()?;
        process().create_tensor_desc(data_type, &dims, format)
    });
    desc.unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn aclDestroyTensorDesc(desc: Handle) {
    call(|| {
        process().destroy_tensor_desc(desc)?;
        forget(desc);
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescType(desc: Handle) -> i32 {
    value(UNDEFINED, || process().tensor_desc_data_type(desc))
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescFormat(desc: Handle) -> i32 {
    value(UNDEFINED, || process().tensor_desc_format(desc))
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescSize(desc: Handle) -> usize {
    value(0, || process().tensor_desc_size(desc))
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescElementCount(desc: Handle) -> usize {
    value(0, || process().tensor_desc_n_elements(desc))
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescNumDims(desc: Handle) -> usize {
    value(0, || process().tensor_desc_n_dims(desc))
}

/// The first version says -1 for what is not there.
#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescDim(desc: Handle, index: usize) -> i64 {
    value(UNKNOWN, || {
        process().tensor_desc_dim(desc, index).unwrap_or(UNKNOWN)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescDimV2(desc: Handle, index: usize, dim: Out<i64>) -> Code {
    call(|| {
        if dim.is_null() {
            return Err(null("aclGetTensorDescDimV2", "dimSize"));
        }
        dim.set(process().tensor_desc_dim(desc, index)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescDimRange(
    desc: Handle,
    index: usize,
    n_range: usize,
    range: Out<i64>,
) -> Code {
    call(|| {
        if range.is_null() {
            return Err(null("aclGetTensorDescDimRange", "dimRange"));
        }
        if n_range != 2 {
            return Err(status::INVALID_PARAM);
        }
        let extent = process().tensor_desc_dim(desc, index)?;
        // Anything from 1 up, or exactly what is known.
        let least = if extent == UNKNOWN { 1 } else { extent };
        range.set_all([least, extent]);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorDescName(desc: Handle, name: Text) {
    call(|| process().set_tensor_desc_name(desc, name.name()?.unwrap_or_default()));
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescName(desc: Handle) -> *const c_char {
    let name = value(None, || process().tensor_desc_name(desc));
    keep_or_empty(desc, "name".to_owned(), name)
}

// ---- What the tensor is on the device, and what it was before

fn shape(n_dims: i32, dims: In<i64>) -> Answer<Vec<i64>> {
    dims.list_up_to(count(n_dims)?, N_DIMS_MAX)
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorShape(desc: Handle, n_dims: i32, dims: In<i64>) -> Code {
    call(|| process().set_tensor_shape(desc, &shape(n_dims, dims)?))
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorStorageShape(desc: Handle, n_dims: i32, dims: In<i64>) -> Code {
    call(|| process().set_tensor_shape(desc, &shape(n_dims, dims)?))
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorOriginShape(desc: Handle, n_dims: i32, dims: In<i64>) -> Code {
    call(|| process().set_tensor_origin_shape(desc, &shape(n_dims, dims)?))
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorFormat(desc: Handle, format: i32) -> Code {
    call(|| process().set_tensor_format(desc, format))
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorStorageFormat(desc: Handle, format: i32) -> Code {
    call(|| process().set_tensor_format(desc, format))
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorOriginFormat(desc: Handle, format: i32) -> Code {
    call(|| process().set_tensor_origin_format(desc, format))
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorConst(desc: Handle, data: In<u8>, size: usize) -> Code {
    call(|| {
        if data.is_null() {
            return Err(null("aclSetTensorConst", "dataBuffer"));
        }
        process().set_tensor_const(desc, data.bytes(size)?)
    })
}

// ---- Hints for an operator compiler. Operators are not compiled, so the description only has to be
// one, and the hint possible.

fn check(desc: Handle) -> Answer {
    // The format is not changed, but a wrong handle gives its code.
    let format = process().tensor_desc_format(desc);
    process().set_tensor_format(desc, format)
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorShapeRange(desc: Handle, n_dims: usize, ranges: In<[i64; 2]>) -> Code {
    call(|| {
        check(desc)?;
        ranges.list_up_to(n_dims, N_DIMS_MAX).map(|_| ())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorValueRange(desc: Handle, n_values: usize, ranges: In<[i64; 2]>) -> Code {
    call(|| {
        check(desc)?;
        ranges.list(n_values).map(|_| ())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorPlaceMent(desc: Handle, memory_type: i32) -> Code {
    call(|| {
        check(desc)?;
        match memory_type {
            0..=2 => Ok(()),
            _ => Err(status::INVALID_PARAM),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclSetTensorDynamicInput(desc: Handle, name: Text) -> Code {
    call(|| {
        name.required(|| null("aclSetTensorDynamicInput", "dynamicInputName"))?;
        check(desc)
    })
}

// ---- Lists of descriptions, which only `aclmdlCreateAndGetOpDesc` makes

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescByIndex(_desc: Handle, _index: usize) -> Handle {
    0
}

#[unsafe(no_mangle)]
extern "C" fn aclGetTensorDescAddress(_desc: Handle) -> usize {
    0
}

#[unsafe(no_mangle)]
extern "C" fn aclTransTensorDescFormat(
    _source: Handle,
    _format: i32,
    _result: Out<Handle>,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}
