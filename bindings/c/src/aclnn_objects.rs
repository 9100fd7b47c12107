//! Objects that two-stage operators take.

use opscope_acl::{
    Answer, Handle, ListKind, NumberList, TensorViewArguments, data_type_size, status,
};

use crate::border::{call, process};
use crate::pointer::{CText, InPointer, OutPointer};
use crate::table::{codes, values};

/// Maximum number of dimensions of a tensor, or of its storage.
const N_AXES_MAX: usize = 64;

values! {
    /// Null for arguments that describe no tensor; a report says why.
    aclCreateTensor(
        view_dims: InPointer<i64>, n_dims: u64, data_type: i32, strides: InPointer<i64>,
        offset: i64, format: i32, storage_dims: InPointer<i64>, n_storage_dims: u64, data: usize,
    ) -> Handle => {
        created(|| {
            let view = view(
                "aclCreateTensor", view_dims, n_dims, data_type, strides, offset, format,
                storage_dims, n_storage_dims, data,
            )?;
            process().create_tensor(&view)
        })
    }, or 0;
    aclCreateScalar(value: InPointer<u8>, data_type: i32) -> Handle => {
        created(|| {
            if value.is_null() {
                return Err(process().aclnn_null("aclCreateScalar", "value"));
            }
            process().create_scalar(value.bytes(data_type_size(data_type))?, data_type)
        })
    }, or 0;
    aclCreateIntArray(value: InPointer<i64>, size: u64) -> Handle => {
        created(|| Ok(process().create_number_list(NumberList::Ints(
            numbers("aclCreateIntArray", value, size)?,
        ))))
    }, or 0;
    aclCreateFloatArray(value: InPointer<f32>, size: u64) -> Handle => {
        created(|| Ok(process().create_number_list(NumberList::Floats(
            numbers("aclCreateFloatArray", value, size)?,
        ))))
    }, or 0;
    aclCreateBoolArray(value: InPointer<u8>, size: u64) -> Handle => {
        created(|| {
            let flags = numbers("aclCreateBoolArray", value, size)?;
            let flags = flags.into_iter().map(|flag| flag != 0).collect();
            Ok(process().create_number_list(NumberList::Flags(flags)))
        })
    }, or 0;
    aclCreateFp16Array(value: InPointer<u16>, size: u64) -> Handle => {
        created(|| Ok(process().create_number_list(NumberList::Halves(
            numbers("aclCreateFp16Array", value, size)?,
        ))))
    }, or 0;
    aclCreateBf16Array(value: InPointer<u16>, size: u64) -> Handle => {
        created(|| Ok(process().create_number_list(NumberList::Halves(
            numbers("aclCreateBf16Array", value, size)?,
        ))))
    }, or 0;
    aclCreateTensorList(value: InPointer<Handle>, size: u64) -> Handle => {
        created(|| process().create_tensor_list(numbers("aclCreateTensorList", value, size)?))
    }, or 0;
    aclCreateScalarList(value: InPointer<Handle>, size: u64) -> Handle => {
        created(|| process().create_scalar_list(numbers("aclCreateScalarList", value, size)?))
    }, or 0;
}

codes! {
    aclnnInit(config: CText) => process().init_aclnn(config.path());
    aclnnFinalize() => Ok(());

    aclInitTensor(
        tensor: Handle, view_dims: InPointer<i64>, n_dims: u64, data_type: i32,
        strides: InPointer<i64>, offset: i64, format: i32, storage_dims: InPointer<i64>,
        n_storage_dims: u64, data: usize,
    ) => {
        let view = view(
            "aclInitTensor", view_dims, n_dims, data_type, strides, offset, format, storage_dims,
            n_storage_dims, data,
        )?;
        process().init_tensor(tensor, &view)
    };
    aclDestroyTensor(tensor: Handle) => process().destroy_tensor(tensor);
    aclDestroyScalar(scalar: Handle) => process().destroy_scalar(scalar);
    aclDestroyIntArray(list: Handle) => destroy("aclDestroyIntArray", list, ListKind::Ints);
    aclDestroyFloatArray(list: Handle) => destroy("aclDestroyFloatArray", list, ListKind::Floats);
    aclDestroyBoolArray(list: Handle) => destroy("aclDestroyBoolArray", list, ListKind::Flags);
    aclDestroyFp16Array(list: Handle) => destroy("aclDestroyFp16Array", list, ListKind::Halves);
    aclDestroyBf16Array(list: Handle) => destroy("aclDestroyBf16Array", list, ListKind::Halves);
    aclDestroyTensorList(list: Handle) => destroy("aclDestroyTensorList", list, ListKind::Tensors);
    aclDestroyScalarList(list: Handle) => destroy("aclDestroyScalarList", list, ListKind::Scalars);

    aclGetViewShape(tensor: Handle, dims: OutPointer<usize>, n_dims: OutPointer<u64>) => {
        require("aclGetViewShape", "viewDims", dims.is_null() || n_dims.is_null())?;
        hand_out(process().tensor_view_dims(tensor)?, dims, n_dims);
        Ok(())
    };
    aclGetStorageShape(tensor: Handle, dims: OutPointer<usize>, n_dims: OutPointer<u64>) => {
        require("aclGetStorageShape", "storageDims", dims.is_null() || n_dims.is_null())?;
        hand_out(process().tensor_storage_dims(tensor)?, dims, n_dims);
        Ok(())
    };
    aclGetViewStrides(tensor: Handle, strides: OutPointer<usize>, n: OutPointer<u64>) => {
        require("aclGetViewStrides", "stridesValue", strides.is_null() || n.is_null())?;
        hand_out(process().tensor_view_strides(tensor)?, strides, n);
        Ok(())
    };
    aclGetViewOffset(tensor: Handle, offset: OutPointer<i64>) => {
        require("aclGetViewOffset", "offset", offset.is_null())?;
        offset.set(process().tensor_view_offset(tensor)?);
        Ok(())
    };
    aclGetFormat(tensor: Handle, format: OutPointer<i32>) => {
        require("aclGetFormat", "format", format.is_null())?;
        format.set(process().tensor_format(tensor)?);
        Ok(())
    };
    aclGetDataType(tensor: Handle, data_type: OutPointer<i32>) => {
        require("aclGetDataType", "dataType", data_type.is_null())?;
        data_type.set(process().tensor_data_type(tensor)?);
        Ok(())
    };
    aclGetRawTensorAddr(tensor: Handle, address: OutPointer<usize>) => {
        require("aclGetRawTensorAddr", "addr", address.is_null())?;
        address.set(process().tensor_address(tensor)?);
        Ok(())
    };
    aclSetRawTensorAddr(tensor: Handle, address: usize) =>
        process().set_tensor_address(tensor, address);
    aclGetIntArraySize(list: Handle, size: OutPointer<u64>) =>
        size_of_list("aclGetIntArraySize", list, ListKind::Ints, size);
    aclGetFloatArraySize(list: Handle, size: OutPointer<u64>) =>
        size_of_list("aclGetFloatArraySize", list, ListKind::Floats, size);
    aclGetBoolArraySize(list: Handle, size: OutPointer<u64>) =>
        size_of_list("aclGetBoolArraySize", list, ListKind::Flags, size);
    aclGetTensorListSize(list: Handle, size: OutPointer<u64>) =>
        size_of_list("aclGetTensorListSize", list, ListKind::Tensors, size);
    aclGetScalarListSize(list: Handle, size: OutPointer<u64>) =>
        size_of_list("aclGetScalarListSize", list, ListKind::Scalars, size);

    aclSetAclOpExecutorRepeatable(executor: Handle) => process().set_executor_repeatable(executor);
    aclDestroyAclOpExecutor(executor: Handle) => process().destroy_executor(executor);
    aclSetTensorAddr(executor: Handle, _index: usize, tensor: Handle, address: usize) =>
        process().set_executor_address("aclSetTensorAddr", executor, tensor, address);
    aclSetInputTensorAddr(executor: Handle, _index: usize, tensor: Handle, address: usize) =>
        process().set_executor_address("aclSetInputTensorAddr", executor, tensor, address);
    aclSetOutputTensorAddr(executor: Handle, _index: usize, tensor: Handle, address: usize) =>
        process().set_executor_address("aclSetOutputTensorAddr", executor, tensor, address);
    aclSetDynamicTensorAddr(
        executor: Handle, _index: usize, relative: usize, list: Handle, address: usize,
    ) => process()
        .set_executor_list_address("aclSetDynamicTensorAddr", executor, list, relative, address);
    aclSetDynamicInputTensorAddr(
        executor: Handle, _index: usize, relative: usize, list: Handle, address: usize,
    ) => process().set_executor_list_address(
        "aclSetDynamicInputTensorAddr", executor, list, relative, address,
    );
    aclSetDynamicOutputTensorAddr(
        executor: Handle, _index: usize, relative: usize, list: Handle, address: usize,
    ) => process().set_executor_list_address(
        "aclSetDynamicOutputTensorAddr", executor, list, relative, address,
    );
}

/// A new object; null on failure, with a report.
fn created(create: impl FnOnce() -> Answer<Handle>) -> Handle {
    // These functions return no code; a null pointer and a report signal the failure.
    let mut handle = 0;
    call(|| {
        handle = create()?;
        Ok(())
    });
    handle
}

fn require(function: &'static str, parameter: &'static str, is_null: bool) -> Answer {
    if is_null {
        return Err(process().aclnn_null(function, parameter));
    }
    Ok(())
}

/// A list of numbers or handles, which may be null only if it is empty.
fn numbers<T: Copy>(function: &'static str, list: InPointer<T>, size: u64) -> Answer<Vec<T>> {
    // A count beyond the address space is invalid.
    let n = usize::try_from(size).map_err(|_| status::ACLNN_PARAM_INVALID)?;
    require(function, "value", n != 0 && list.is_null())?;
    list.list(n).map_err(|_| status::ACLNN_PARAM_INVALID)
}

fn view(
    function: &'static str,
    dims: InPointer<i64>,
    n_dims: u64,
    data_type: i32,
    strides: InPointer<i64>,
    offset: i64,
    format: i32,
    storage_dims: InPointer<i64>,
    n_storage_dims: u64,
    address: usize,
) -> Answer<TensorViewArguments> {
    let axes = |list: InPointer<i64>, n: u64, parameter: &'static str| {
        let n = usize::try_from(n).map_err(|_| status::ACLNN_PARAM_INVALID)?;
        require(function, parameter, n != 0 && list.is_null())?;
        let list = list.list_up_to(n, N_AXES_MAX);
        list.map_err(|_| status::ACLNN_PARAM_INVALID)
    };
    Ok(TensorViewArguments {
        dims: axes(dims, n_dims, "viewDims")?,
        data_type,
        strides: if strides.is_null() {
            None
        } else {
            Some(axes(strides, n_dims, "stride")?)
        },
        offset,
        format,
        storage_dims: axes(storage_dims, n_storage_dims, "storageDims")?,
        address,
    })
}

fn destroy(function: &str, list: Handle, kind: ListKind) -> Answer {
    process().destroy_list(function, list, kind)
}

fn size_of_list(
    function: &'static str,
    list: Handle,
    kind: ListKind,
    size: OutPointer<u64>,
) -> Answer {
    let n = process().list_size(function, list, kind)?;
    require(function, "size", size.is_null())?;
    size.set(n);
    Ok(())
}

/// Stores numbers in newly allocated memory, which the program frees or leaks, as with the vendor's
/// library. An empty list also gets an allocation.
fn hand_out(mut list: Vec<i64>, address: OutPointer<usize>, n: OutPointer<u64>) {
    n.set(list.len() as u64);
    // A program may free whatever address it gets.
    if list.is_empty() {
        list.push(0);
    }
    let list: &'static mut [i64] = Box::leak(list.into_boxed_slice());
    address.set(list.as_ptr() as usize);
}
