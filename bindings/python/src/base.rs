//! `opscope.acl`: life cycle, data buffers, types.

use pyo3::prelude::*;

use crate::argument::{FilePath, NumberArg, WordArg};
use crate::call::{Pair, code, process};
use crate::table::table;

table! {
    [also finalize_reference, get_version]

    codes {
        /// aclInit: starts the process, optionally with a configuration file.
        #[pyo3(signature = (path=None))]
        init(path: Option<FilePath>) => process().init(path.as_ref().map(FilePath::as_path));
        /// aclFinalize: ends the process.
        finalize() => process().finalize();
        /// aclDestroyDataBuffer. The memory stays.
        destroy_data_buffer(data_buffer: WordArg) => process().destroy_data_buffer(data_buffer.0);
        /// aclUpdateDataBuffer: points the buffer to other memory.
        update_data_buffer(data_buffer: WordArg, data: WordArg, size: WordArg)
            => process().update_data_buffer(data_buffer.0, data.0, size.0);
    }

    values {
        /// aclrtGetSocName: the hardware that models run on.
        get_soc_name() -> &'static str => process().soc_name(), or "";
        /// aclGetRecentErrMsg: the newest error report and earlier ones, or None. Reading clears
        /// them.
        get_recent_err_msg() -> Option<String> => process().recent_error(), or None;
        /// aclDataTypeSize: bytes of one element.
        data_type_size(data_type: NumberArg<i32>) -> usize
            => opscope_acl::data_type_size(data_type.0), or 0;
        /// aclFloat16ToFloat.
        float16_to_float(value: NumberArg<u16>) -> f32
            => opscope_acl::float16_to_float(value.0), or 0.0;
        /// aclFloatToFloat16.
        float_to_float16(value: NumberArg<f32>) -> u16
            => opscope_acl::float_to_float16(value.0), or 0;
        /// aclCreateDataBuffer: describes the caller's memory; a handle.
        create_data_buffer(data: WordArg, size: WordArg) -> usize
            => process().create_data_buffer(data.0, size.0), or 0;
        /// aclGetDataBufferAddr.
        get_data_buffer_addr(data_buffer: WordArg) -> usize
            => process().data_buffer_address(data_buffer.0), or 0;
        /// aclGetDataBufferSize: 32 bits, as in C.
        get_data_buffer_size(data_buffer: WordArg) -> usize
            => process().data_buffer_size(data_buffer.0) & 0xFFFF_FFFF, or 0;
        /// aclGetDataBufferSizeV2.
        get_data_buffer_size_v2(data_buffer: WordArg) -> usize
            => process().data_buffer_size(data_buffer.0), or 0;
    }
}

/// aclFinalizeReference: releases one user of the process; the number of remaining users, and the
/// code.
#[pyfunction]
fn finalize_reference(py: Python<'_>) -> Pair<u64> {
    let mut n_users = 0;
    let status = code(py, || {
        let (n_left, answer) = process().finalize_reference();
        // The users are also returned on failure, so they bypass `answer`.
        n_users = n_left;
        answer
    });
    (n_users, status)
}

/// aclrtGetVersion: major, minor and patch version of the interface, and the code.
#[pyfunction]
fn get_version() -> (i32, i32, i32, i32) {
    (1, 17, 0, 0)
}
