//! Execution options, which have no effect on the CPU.

use opscope_acl::status::INVALID_PARAM;

use crate::argument::{NumberArg, Word32Arg, WordArg};
use crate::call::process;
use crate::table::table;

/// Options of `aclmdlExecConfigAttr`.
const N_OPTIONS: i32 = 10;

table! {
    values {
        /// aclmdlCreateExecConfigHandle: a handle.
        create_exec_config_handle() -> usize => process().create_exec_config(), or 0;
    }

    codes {
        /// aclmdlDestroyExecConfigHandle.
        destroy_exec_config_handle(handle: WordArg) => process().destroy_exec_config(handle.0);
        /// aclmdlSetExecConfigOpt: no option has an effect on the CPU.
        set_exec_config_opt(handle: WordArg, attr: NumberArg<i32>, _attr_value: Word32Arg) => {
            if handle.0 == 0 || !(0..N_OPTIONS).contains(&attr.0) {
                return Err(INVALID_PARAM);
            }
            process().check_exec_config(handle.0)
        };
        /// aclmdlExecuteV2: executes a model and waits for the stream.
        execute_v2(model_id: Word32Arg, input: WordArg, output: WordArg, stream: WordArg, handle: WordArg)
            => process().execute_with_options(
                model_id.0, input.0, output.0, stream.0, handle.0
            );
        /// aclmdlExecuteAsyncV2: executes a model on a stream.
        execute_async_v2(
            model_id: Word32Arg, input: WordArg, output: WordArg, stream: WordArg, handle: WordArg,
        ) => process().execute_async_with_options(
            model_id.0, input.0, output.0, stream.0, handle.0
        );
    }
}
