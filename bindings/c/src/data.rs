//! Data buffers and the data sets that they make up.

use opscope_acl::Handle;

use crate::border::{Code, call, process, value};

// ---- Buffers

#[unsafe(no_mangle)]
extern "C" fn aclCreateDataBuffer(address: usize, size: usize) -> Handle {
    value(0, || process().create_data_buffer(address, size))
}

#[unsafe(no_mangle)]
extern "C" fn aclDestroyDataBuffer(buffer: Handle) -> Code {
    call(|| process().destroy_data_buffer(buffer))
}

#[unsafe(no_mangle)]
extern "C" fn aclUpdateDataBuffer(buffer: Handle, address: usize, size: usize) -> Code {
    call(|| process().update_data_buffer(buffer, address, size))
}

#[unsafe(no_mangle)]
extern "C" fn aclGetDataBufferAddr(buffer: Handle) -> usize {
    value(0, || process().data_buffer_address(buffer))
}

/// The first version has 32 bits for it.
#[unsafe(no_mangle)]
extern "C" fn aclGetDataBufferSize(buffer: Handle) -> u32 {
    let size = value(0, || process().data_buffer_size(buffer));
    u32::try_from(size).unwrap_or(u32::MAX)
}

#[unsafe(no_mangle)]
extern "C" fn aclGetDataBufferSizeV2(buffer: Handle) -> usize {
    value(0, || process().data_buffer_size(buffer))
}

// ---- Data sets

#[unsafe(no_mangle)]
extern "C" fn aclmdlCreateDataset() -> Handle {
    value(0, || process().create_dataset())
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlDestroyDataset(dataset: Handle) -> Code {
    call(|| process().destroy_dataset(dataset))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlAddDatasetBuffer(dataset: Handle, buffer: Handle) -> Code {
    call(|| process().add_dataset_buffer(dataset, buffer))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetDatasetNumBuffers(dataset: Handle) -> usize {
    value(0, || process().dataset_n_buffers(dataset))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetDatasetBuffer(dataset: Handle, index: usize) -> Handle {
    value(None, || process().dataset_buffer(dataset, index)).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlSetDatasetTensorDesc(dataset: Handle, desc: Handle, index: usize) -> Code {
    call(|| process().set_dataset_tensor_desc(dataset, desc, index))
}

#[unsafe(no_mangle)]
extern "C" fn aclmdlGetDatasetTensorDesc(dataset: Handle, index: usize) -> Handle {
    value(None, || process().dataset_tensor_desc(dataset, index)).unwrap_or(0)
}
