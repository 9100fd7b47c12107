//! Memory of the device and of the host, which here are the same.

use crate::argument::{Number, Word, Word32};
use crate::call::process;
use crate::table::table;

table! {
    pairs {
        /// aclrtMalloc: an address and the code.
        malloc(size: Word, policy: Word32) -> usize => process().malloc(size.0, policy.0);
        /// aclrtMallocHost: an address and the code.
        malloc_host(size: Word) -> usize => process().malloc_host(size.0);
    }

    codes {
        /// aclrtFree.
        free(dev_ptr: Word) => process().free(dev_ptr.0);
        /// aclrtFreeHost.
        free_host(host_ptr: Word) => process().free_host(host_ptr.0);
        /// aclrtMemcpy. A size that is larger than an allocation gives a code; an address that the process did
        /// not give out is followed as it is, as in C.
        memcpy(dst: Word, dest_max: Word, src: Word, count: Word, kind: Number<i32>)
            => process().memcpy(dst.0, dest_max.0, src.0, count.0, kind.0);
        /// aclrtMemcpyAsync.
        memcpy_async(
            dst: Word, dest_max: Word, src: Word, count: Word, kind: Number<i32>, stream: Word,
        ) => process().memcpy_async(dst.0, dest_max.0, src.0, count.0, kind.0, stream.0);
        /// aclrtMemset.
        memset(dev_ptr: Word, max_count: Word, value: Number<i32>, count: Word)
            => process().memset(dev_ptr.0, max_count.0, value.0, count.0);
        /// aclrtMemsetAsync.
        memset_async(
            dev_ptr: Word, max_count: Word, value: Number<i32>, count: Word, stream: Word,
        ) => process().memset_async(dev_ptr.0, max_count.0, value.0, count.0, stream.0);
    }

    sizes {
        /// aclrtGetMemInfo: free and total bytes, and the code.
        get_mem_info(attr: Number<i32>) => process().mem_info(attr.0);
    }
}
