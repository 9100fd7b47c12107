//! Executing with options, which have no effect on the CPU.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_acl::status::INVALID_PARAM;
use opscope_acl::{Answer, Handle, PerProcess};

use crate::argument::{Number, Word, Word32};
use crate::call::process;
use crate::table::table;

/// Options of `aclmdlExecConfigAttr`.
const N_OPTIONS: i32 = 10;
/// The first handle: beyond every number of other objects, so that they are not taken for these.
const FIRST: Handle = Handle::MAX / 2;

table! {
    values {
        /// aclmdlCreateExecConfigHandle: a handle.
        create_exec_config_handle() -> usize => create(), or 0;
    }

    codes {
        /// aclmdlDestroyExecConfigHandle.
        destroy_exec_config_handle(handle: Word) => destroy(handle);
        /// aclmdlSetExecConfigOpt: no option has an effect on the CPU.
        set_exec_config_opt(handle: Word, attr: Number<i32>, _attr_value: Word32) => {
            if handle.0 == 0 || !(0..N_OPTIONS).contains(&attr.0) {
                return Err(INVALID_PARAM);
            }
            check(handle)
        };
        /// aclmdlExecuteV2: executes a model and waits for the stream.
        execute_v2(model_id: Word32, input: Word, output: Word, stream: Word, handle: Word) => {
            check(handle)?;
            if stream.0 == 0 {
                return process().execute(model_id.0, input.0, output.0);
            }
            process().execute_async(model_id.0, input.0, output.0, stream.0)?;
            process().synchronize_stream(stream.0)
        };
        /// aclmdlExecuteAsyncV2: executes a model on a stream.
        execute_async_v2(
            model_id: Word32, input: Word, output: Word, stream: Word, handle: Word,
        ) => {
            check(handle)?;
            process().execute_async(model_id.0, input.0, output.0, stream.0)
        };
    }
}

/// Sets of options, and the next handle.
fn options() -> MutexGuard<'static, (BTreeSet<Handle>, Handle)> {
    static OPTIONS: PerProcess<Mutex<(BTreeSet<Handle>, Handle)>> = PerProcess::new();
    let options = OPTIONS.get_or_init(|_| Mutex::new((BTreeSet::new(), FIRST)));
    options.lock().unwrap_or_else(PoisonError::into_inner)
}

fn create() -> Handle {
    let mut options = options();
    let handle = options.1;
    options.1 += 1;
    options.0.insert(handle);
    handle
}

fn destroy(handle: Word) -> Answer {
    if options().0.remove(&handle.0) {
        Ok(())
    } else {
        Err(INVALID_PARAM)
    }
}

/// Whether a handle stands for a set of options; 0 stands for none.
fn check(handle: Word) -> Answer {
    if handle.0 == 0 || options().0.contains(&handle.0) {
        Ok(())
    } else {
        Err(INVALID_PARAM)
    }
}
