//! Device and host memory, which are the same here.

use crate::argument::{NumberArg, Word32Arg, WordArg};
use crate::call::process;
use crate::table::table;

table! {
    pairs {
        /// aclrtMalloc: an address and the code.
        malloc(size: WordArg, policy: Word32Arg) -> usize => process().malloc(size.0, policy.0);
        /// aclrtMallocHost: an address and the code.
        malloc_host(size: WordArg) -> usize => process().malloc_host(size.0);
    }

    codes {
        /// aclrtFree.
        free(dev_ptr: WordArg) => process().free(dev_ptr.0);
        /// aclrtFreeHost.
        free_host(host_ptr: WordArg) => process().free_host(host_ptr.0);
        /// aclrtMemcpy. A size beyond an allocation returns an error code; an address outside the
        /// process's allocations is used unchecked, as in C.
        memcpy(dst: WordArg, dest_max: WordArg, src: WordArg, count: WordArg, kind: NumberArg<i32>)
            => process().memcpy(dst.0, dest_max.0, src.0, count.0, kind.0);
        /// aclrtMemcpyAsync.
        memcpy_async(
            dst: WordArg, dest_max: WordArg, src: WordArg, count: WordArg, kind: NumberArg<i32>, stream: WordArg,
        ) => process().memcpy_async(dst.0, dest_max.0, src.0, count.0, kind.0, stream.0);
        /// aclrtMemset.
        memset(dev_ptr: WordArg, max_count: WordArg, value: NumberArg<i32>, count: WordArg)
            => process().memset(dev_ptr.0, max_count.0, value.0, count.0);
        /// aclrtMemsetAsync.
        memset_async(
            dev_ptr: WordArg, max_count: WordArg, value: NumberArg<i32>, count: WordArg, stream: WordArg,
        ) => process().memset_async(dev_ptr.0, max_count.0, value.0, count.0, stream.0);
    }

    sizes {
        /// aclrtGetMemInfo: free and total bytes, and the code.
        get_mem_info(attr: NumberArg<i32>) => process().mem_info(attr.0);
    }
}
