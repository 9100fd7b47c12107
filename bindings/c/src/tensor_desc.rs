//! Numbers and descriptions of tensors.

use opscope_acl::{Answer, Handle, data_type_size, float_to_float16, float16_to_float, status};

use crate::border::{count, process};
use crate::pointer::{CText, InPointer, N_DIMS_MAX, OutPointer};
use crate::strings::forget;
use crate::table::{actions, codes, refusals, results, texts, values};

/// `ACL_DT_UNDEFINED` and `ACL_FORMAT_UNDEFINED`.
const UNDEFINED: i32 = -1;
/// A dimension that is known only when the operator runs.
const UNKNOWN: i64 = -1;

values! {
    aclFloat16ToFloat(number: u16) -> f32 => float16_to_float(number), or 0.0;
    aclFloatToFloat16(number: f32) -> u16 => float_to_float16(number), or 0;
    aclDataTypeSize(data_type: i32) -> usize => data_type_size(data_type), or 0;

    aclCreateTensorDesc(data_type: i32, n_dims: i32, dims: InPointer<i64>, format: i32) -> Handle
        => create(data_type, n_dims, dims, format).unwrap_or(0), or 0;
    aclGetTensorDescType(desc: Handle) -> i32
        => process().tensor_desc_data_type(desc), or UNDEFINED;
    aclGetTensorDescFormat(desc: Handle) -> i32
        => process().tensor_desc_format(desc), or UNDEFINED;
    aclGetTensorDescSize(desc: Handle) -> usize => process().tensor_desc_size(desc), or 0;
    aclGetTensorDescElementCount(desc: Handle) -> usize
        => process().tensor_desc_n_elements(desc), or 0;
    aclGetTensorDescNumDims(desc: Handle) -> usize => process().tensor_desc_n_dims(desc), or 0;
    /// The first version returns -1 for a missing dimension.
    aclGetTensorDescDim(desc: Handle, index: usize) -> i64
        => process().tensor_desc_dim(desc, index).unwrap_or(UNKNOWN), or UNKNOWN;

    // Only `aclmdlCreateAndGetOpDesc`, which is not supported, makes lists of descriptions.
    aclGetTensorDescByIndex(_desc: Handle, _index: usize) -> Handle => 0, or 0;
    aclGetTensorDescAddress(_desc: Handle) -> usize => 0, or 0;
}

results! {
    aclGetTensorDescDimV2(desc: Handle, index: usize, dimSize: OutPointer<i64>)
        => dimSize = process().tensor_desc_dim(desc, index)?;
}

codes! {
    aclGetTensorDescDimRange(desc: Handle, index: usize, n_range: usize, range: OutPointer<i64>) => {
        range.require("aclGetTensorDescDimRange", "dimRange")?;
        if n_range != 2 {
            return Err(status::INVALID_PARAM);
        }
        let extent = process().tensor_desc_dim(desc, index)?;
        // Any size from 1 up, or exactly the known one.
        let least = if extent == UNKNOWN { 1 } else { extent };
        range.set_all([least, extent]);
        Ok(())
    };

    // The tensor's shape on the device, and its original shape.
    aclSetTensorShape(desc: Handle, n_dims: i32, dims: InPointer<i64>)
        => process().set_tensor_shape(desc, &shape(n_dims, dims)?);
    aclSetTensorStorageShape(desc: Handle, n_dims: i32, dims: InPointer<i64>)
        => process().set_tensor_shape(desc, &shape(n_dims, dims)?);
    aclSetTensorOriginShape(desc: Handle, n_dims: i32, dims: InPointer<i64>)
        => process().set_tensor_origin_shape(desc, &shape(n_dims, dims)?);
    aclSetTensorFormat(desc: Handle, format: i32) => process().set_tensor_format(desc, format);
    aclSetTensorStorageFormat(desc: Handle, format: i32)
        => process().set_tensor_format(desc, format);
    aclSetTensorOriginFormat(desc: Handle, format: i32)
        => process().set_tensor_origin_format(desc, format);
    aclSetTensorConst(desc: Handle, data: InPointer<u8>, size: usize) => {
        data.require("aclSetTensorConst", "dataBuffer")?;
        process().set_tensor_const(desc, data.bytes(size)?)
    };

    // Hints for an operator compiler. Operators are not compiled, so only the handle and the hint
    // are checked.
    aclSetTensorShapeRange(desc: Handle, n_dims: usize, ranges: InPointer<[i64; 2]>)
        => check(desc).and_then(|()| ranges.list_up_to(n_dims, N_DIMS_MAX).map(drop));
    aclSetTensorValueRange(desc: Handle, n_values: usize, ranges: InPointer<[i64; 2]>)
        => check(desc).and_then(|()| ranges.list(n_values).map(drop));
    aclSetTensorPlaceMent(desc: Handle, memory_type: i32) => {
        check(desc)?;
        match memory_type {
            0..=2 => Ok(()),
            _ => Err(status::INVALID_PARAM),
        }
    };
    aclSetTensorDynamicInput(desc: Handle, name: CText) => {
        name.require_name("aclSetTensorDynamicInput", "dynamicInputName")?;
        check(desc)
    };
}

refusals! {
    because "create a description with the other format";
    aclTransTensorDescFormat(Handle, i32, OutPointer<Handle>);
}

actions! {
    aclDestroyTensorDesc(desc: Handle)
        => process().destroy_tensor_desc(desc).map(|()| forget(desc));
    aclSetTensorDescName(desc: Handle, name: CText)
        => process().set_tensor_desc_name(desc, name.name()?.unwrap_or_default());
}

texts! {
    aclGetTensorDescName(desc: Handle)
        => process().tensor_desc_name(desc), for desc, as "name".to_owned(), or empty;
}

fn create(data_type: i32, n_dims: i32, dims: InPointer<i64>, format: i32) -> Option<Handle> {
    let dims = shape(n_dims, dims).ok()?;
    process().create_tensor_desc(data_type, &dims, format)
}

fn shape(n_dims: i32, dims: InPointer<i64>) -> Answer<Vec<i64>> {
    dims.list_up_to(count(n_dims)?, N_DIMS_MAX)
}

fn check(desc: Handle) -> Answer {
    // The format stays, but an invalid handle returns its code.
    let format = process().tensor_desc_format(desc);
    process().set_tensor_format(desc, format)
}
