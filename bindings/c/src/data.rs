//! Data buffers and data sets of them.

use opscope_acl::Handle;

use crate::border::process;
use crate::table::{codes, values};

codes! {
    aclDestroyDataBuffer(buffer: Handle) => process().destroy_data_buffer(buffer);
    aclUpdateDataBuffer(buffer: Handle, address: usize, size: usize)
        => process().update_data_buffer(buffer, address, size);

    aclmdlDestroyDataset(dataset: Handle) => process().destroy_dataset(dataset);
    aclmdlAddDatasetBuffer(dataset: Handle, buffer: Handle)
        => process().add_dataset_buffer(dataset, buffer);
    aclmdlSetDatasetTensorDesc(dataset: Handle, desc: Handle, index: usize)
        => process().set_dataset_tensor_desc(dataset, desc, index);
}

values! {
    aclCreateDataBuffer(address: usize, size: usize) -> Handle
        => process().create_data_buffer(address, size), or 0;
    aclGetDataBufferAddr(buffer: Handle) -> usize => process().data_buffer_address(buffer), or 0;
    /// The first version returns only 32 bits of the size.
    aclGetDataBufferSize(buffer: Handle) -> u32
        => u32::try_from(process().data_buffer_size(buffer)).unwrap_or(u32::MAX), or 0;
    aclGetDataBufferSizeV2(buffer: Handle) -> usize => process().data_buffer_size(buffer), or 0;

    aclmdlCreateDataset() -> Handle => process().create_dataset(), or 0;
    aclmdlGetDatasetNumBuffers(dataset: Handle) -> usize
        => process().dataset_n_buffers(dataset), or 0;
    aclmdlGetDatasetBuffer(dataset: Handle, index: usize) -> Handle
        => process().dataset_buffer(dataset, index).unwrap_or(0), or 0;
    aclmdlGetDatasetTensorDesc(dataset: Handle, index: usize) -> Handle
        => process().dataset_tensor_desc(dataset, index).unwrap_or(0), or 0;
}
