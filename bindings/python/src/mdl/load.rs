//! Loading and unloading.

use opscope_acl::Answer;
use opscope_acl::status::INVALID_PARAM;

use crate::argument::{FilePath, Word32Arg, WordArg};
use crate::call::process;
use crate::table::table;

table! {
    pairs {
        /// aclmdlLoadFromFile: the model's id and the code.
        load_from_file(model_path: FilePath) -> u32
            => process().load_from_file(model_path.as_path());
        /// aclmdlLoadFromFileWithMem: like `load_from_file`, which manages memory itself.
        load_from_file_with_mem(
            model_path: FilePath,
            _work_ptr: WordArg, _work_size: WordArg, _weight_ptr: WordArg, _weight_size: WordArg,
        ) -> u32 => process().load_from_file(model_path.as_path());
        /// aclmdlLoadFromMem: the model's id and the code.
        load_from_mem(model: WordArg, model_size: WordArg) -> u32 => load_at(model, model_size);
        /// aclmdlLoadFromMemWithMem: like `load_from_mem`, which manages memory itself.
        load_from_mem_with_mem(
            model: WordArg, model_size: WordArg,
            _work_ptr: WordArg, _work_size: WordArg, _weight_ptr: WordArg, _weight_size: WordArg,
        ) -> u32 => load_at(model, model_size);
    }

    codes {
        /// aclmdlUnload.
        unload(model_id: Word32Arg) => process().unload(model_id.0);
    }

    sizes {
        /// aclmdlQuerySize: bytes of work and of weight memory, and the code.
        query_size(file_name: FilePath) => process().query_size(file_name.as_path());
        /// aclmdlQuerySizeFromMem: bytes of work and of weight memory, and the code.
        query_size_from_mem(model: WordArg, model_size: WordArg) => process()
            .query_size_from_mem(&model_at("aclmdlQuerySizeFromMem", model, model_size)?);
    }
}

fn load_at(model: WordArg, size: WordArg) -> Answer<u32> {
    process().load_from_mem(&model_at("aclmdlLoadFromMem", model, size)?)
}

/// The bytes of a model at an address.
///
/// # Errors
/// `INVALID_PARAM` for null, no bytes, or bytes beyond an allocation.
pub(super) fn model_at(function: &'static str, address: WordArg, size: WordArg) -> Answer<Vec<u8>> {
    if address.0 == 0 {
        return Err(process().null_argument(function, "model"));
    }
    if size.0 == 0 {
        return Err(INVALID_PARAM);
    }
    process()
        .read_memory(address.0, size.0)
        .map_err(|_| INVALID_PARAM)
}
