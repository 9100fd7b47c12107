//! `opscope.acl`: descriptions of tensors.

use opscope_acl::status::INVALID_PARAM;

use crate::argument::{ListArg, NumberArg, TextArg, WordArg};
use crate::call::process;
use crate::table::table;

/// Result for the type or format of a missing item.
const UNDEFINED: i32 = -1;

table! {
    values {
        /// aclCreateTensorDesc: a handle; 0 for an invalid shape.
        create_tensor_desc(data_type: NumberArg<i32>, dims: ListArg<i64>, format: NumberArg<i32>) -> usize
            => process().create_tensor_desc(data_type.0, &dims.0, format.0).unwrap_or(0), or 0;
        /// aclGetTensorDescType: -1 for a wrong handle.
        get_tensor_desc_type(desc: WordArg) -> i32
            => process().tensor_desc_data_type(desc.0), or UNDEFINED;
        /// aclGetTensorDescFormat: -1 for a wrong handle.
        get_tensor_desc_format(desc: WordArg) -> i32
            => process().tensor_desc_format(desc.0), or UNDEFINED;
        /// aclGetTensorDescSize: bytes.
        get_tensor_desc_size(desc: WordArg) -> usize => process().tensor_desc_size(desc.0), or 0;
        /// aclGetTensorDescElementCount.
        get_tensor_desc_element_count(desc: WordArg) -> usize
            => process().tensor_desc_n_elements(desc.0), or 0;
        /// aclGetTensorDescNumDims.
        get_tensor_desc_num_dims(desc: WordArg) -> usize
            => process().tensor_desc_n_dims(desc.0), or 0;
        /// aclGetTensorDescDim: the size of an axis; -1 for a wrong axis.
        get_tensor_desc_dim(desc: WordArg, index: WordArg) -> i64
            => process().tensor_desc_dim(desc.0, index.0).unwrap_or(-1), or -1;
        /// aclGetTensorDescName: None for a wrong handle.
        get_tensor_desc_name(desc: WordArg) -> Option<String>
            => process().tensor_desc_name(desc.0), or None;
    }

    pairs {
        /// aclGetTensorDescDimV2: the size of an axis, and the code.
        get_tensor_desc_dim_v2(desc: WordArg, index: WordArg) -> i64
            => process().tensor_desc_dim(desc.0, index.0);
    }

    actions {
        /// aclDestroyTensorDesc. Returns nothing, as in C.
        destroy_tensor_desc(desc: WordArg) => process().destroy_tensor_desc(desc.0);
        /// aclSetTensorDescName. Returns nothing, as in C.
        set_tensor_desc_name(desc: WordArg, name: TextArg)
            => process().set_tensor_desc_name(desc.0, &name.0);
    }

    codes {
        /// aclSetTensorFormat.
        set_tensor_format(desc: WordArg, format: NumberArg<i32>)
            => process().set_tensor_format(desc.0, format.0);
        /// aclSetTensorOriginFormat.
        set_tensor_origin_format(desc: WordArg, format: NumberArg<i32>)
            => process().set_tensor_origin_format(desc.0, format.0);
        /// aclSetTensorShape.
        set_tensor_shape(desc: WordArg, dims: ListArg<i64>)
            => process().set_tensor_shape(desc.0, &dims.0);
        /// aclSetTensorOriginShape.
        set_tensor_origin_shape(desc: WordArg, dims: ListArg<i64>)
            => process().set_tensor_origin_shape(desc.0, &dims.0);
        /// aclSetTensorConst: sets a tensor's bytes from an address.
        set_tensor_const(desc: WordArg, data: WordArg, size: WordArg) => {
            let bytes = process().read_memory(data.0, size.0).map_err(|_| INVALID_PARAM)?;
            process().set_tensor_const(desc.0, &bytes)
        };
    }
}
