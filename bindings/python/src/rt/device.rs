//! Devices, contexts and streams.

use crate::argument::{NumberArg, Word32Arg, WordArg};
use crate::call::process;
use crate::table::table;

table! {
    codes {
        /// aclrtSetDevice.
        set_device(device_id: NumberArg<i32>) => process().set_device(device_id.0);
        /// aclrtResetDevice.
        reset_device(device_id: NumberArg<i32>) => process().reset_device(device_id.0);
        /// aclrtSynchronizeDevice: waits for every stream.
        synchronize_device() => process().synchronize_device();
        /// aclrtDestroyContext.
        destroy_context(context: WordArg) => process().destroy_context(context.0);
        /// aclrtSetCurrentContext.
        set_context(context: WordArg) => process().set_current_context(context.0);
        /// aclrtDestroyStream.
        destroy_stream(stream: WordArg) => process().destroy_stream(stream.0);
        /// aclrtSynchronizeStream: waits for a stream's work.
        synchronize_stream(stream: WordArg) => process().synchronize_stream(stream.0);
        /// aclrtSynchronizeStreamWithTimeout: waits for so many milliseconds, or indefinitely for
        /// -1.
        synchronize_stream_with_timeout(stream: WordArg, timeout: NumberArg<i32>)
            => process().synchronize_stream_with_timeout(stream.0, timeout.0);
        /// aclrtGetOverflowStatus: writes 64 bytes, of which the first four are the number 1 if an
        /// operator overflowed since the last reset. Executions are checked from the first call on.
        get_overflow_status(output_addr: WordArg, output_size: WordArg, stream: WordArg)
            => process().store_overflow_status(output_addr.0, output_size.0, stream.0);
        /// aclrtResetOverflowStatus: forgets overflows, and checks executions from now on.
        reset_overflow_status(stream: WordArg) => process().reset_overflow_status(stream.0);
        /// aclrtSetStreamOverflowSwitch: 1 checks executions from now on.
        set_stream_overflow_switch(stream: WordArg, flag: Word32Arg)
            => process().set_stream_overflow_switch(stream.0, flag.0);
        /// aclrtSetDeviceSatMode: 1, infinities, is the only mode of a CPU.
        set_device_sat_mode(mode: NumberArg<i32>) => process().set_overflow_mode(mode.0);
    }

    pairs {
        /// aclrtGetStreamOverflowSwitch: 0 or 1, and the code.
        get_stream_overflow_switch(stream: WordArg) -> u32
            => process().stream_overflow_switch(stream.0);
        /// aclrtGetDeviceSatMode: 1, infinities, and the code.
        get_device_sat_mode() -> i32 => process().overflow_mode();
        /// aclrtCtxGetCurrentDefaultStream: the stream behind 0, and the code.
        ctx_get_current_default_stream() -> usize => process().default_stream();
        /// aclrtGetDevice: the device of the calling thread, and the code.
        get_device() -> i32 => process().device();
        /// aclrtGetDeviceCount: the number of devices, and the code.
        get_device_count() -> u32 => Ok(process().n_devices());
        /// aclrtGetRunMode: 1, because the program runs on a host, and the code.
        get_run_mode() -> i32 => Ok(process().run_mode());
        /// aclrtCreateContext: a handle and the code.
        create_context(device_id: NumberArg<i32>) -> usize => process().create_context(device_id.0);
        /// aclrtGetCurrentContext: the context of the calling thread, and the code.
        ///
        /// Programs written for early versions pass a device, which has no effect.
        #[pyo3(signature = (_device_id=None))]
        get_context(_device_id: Option<NumberArg<i32>>) -> usize => process().current_context();
        /// aclrtCreateStream: a handle and the code.
        create_stream() -> usize => process().create_stream();
        /// aclrtCreateStreamWithConfig: a handle and the code.
        create_stream_with_config(priority: Word32Arg, flag: Word32Arg) -> usize
            => process().create_stream_with_config(priority.0, flag.0);
    }
}
