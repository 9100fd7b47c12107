//! Running and compiling single operators. Compiling only checks that an operator can run.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_acl::{Answer, Handle, PerProcess, status};

use crate::border::{Code, call, count, null, process};
use crate::pointer::{CText, InPointer, OutPointer};
use crate::table::{actions, codes, refusals, results, values};

/// One past the last value of `aclCompileOpt`.
const OPTIONS_END: i32 = 17;
/// `ACL_AUTO_TUNE_MODE`, which the interface has dropped.
const AUTO_TUNE_MODE: i32 = 2;

/// Functions that run an operator by name. All take the operator and the stream, and some take
/// compile parameters in between, which have no effect: `name(types of those parameters);`
macro_rules! executions {
    ($($name:ident($($unused:ty),*);)+) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            op_type: CText,
            n_inputs: i32,
            input_descs: InPointer<Handle>,
            inputs: InPointer<Handle>,
            n_outputs: i32,
            output_descs: InPointer<Handle>,
            outputs: InPointer<Handle>,
            attributes: Handle,
            $(_: $unused,)*
            stream: Handle,
        ) -> Code {
            const FUNCTION: &str = stringify!($name);
            call(|| {
                let op_type = op_type.require_name(FUNCTION, "opType")?;
                let input_descs = handles(FUNCTION, "inputDesc", n_inputs, input_descs)?;
                let inputs = handles(FUNCTION, "inputs", n_inputs, inputs)?;
                let output_descs = handles(FUNCTION, "outputDesc", n_outputs, output_descs)?;
                let outputs = handles(FUNCTION, "outputs", n_outputs, outputs)?;
                let inputs: Vec<_> = input_descs.into_iter().zip(inputs).collect();
                let outputs: Vec<_> = output_descs.into_iter().zip(outputs).collect();
                process().execute_op(op_type, &inputs, &outputs, attributes, stream)
            })
        }
    )+};
}

executions! {
    aclopExecute();
    aclopExecuteV2();
    aclopCompileAndExecute(i32, i32, CText);
    aclopCompileAndExecuteV2(i32, i32, CText);
}

codes! {
    aclopCompile(
        op_type: CText, n_inputs: i32, input_descs: InPointer<Handle>,
        n_outputs: i32, output_descs: InPointer<Handle>, attributes: Handle,
        _engine: i32, _compile_type: i32, _op_path: CText,
    ) => {
        const FUNCTION: &str = "aclopCompile";
        let op_type = op_type.require_name(FUNCTION, "opType")?;
        let inputs = handles(FUNCTION, "inputDesc", n_inputs, input_descs)?;
        let outputs = handles(FUNCTION, "outputDesc", n_outputs, output_descs)?;
        process().compile_op(op_type, &inputs, &outputs, attributes)
    };
    aclopCast(
        from_desc: Handle, from: Handle, to_desc: Handle, to: Handle, truncate: u8, stream: Handle,
    ) => process().cast((from_desc, from), (to_desc, to), truncate, stream);
    aclopExecWithHandle(
        handle: Handle, n_inputs: i32, inputs: InPointer<Handle>,
        n_outputs: i32, outputs: InPointer<Handle>, stream: Handle,
    ) => {
        let inputs = handles("aclopExecWithHandle", "inputs", n_inputs, inputs)?;
        let outputs = handles("aclopExecWithHandle", "outputs", n_outputs, outputs)?;
        process().execute_op_handle(handle, &inputs, &outputs, stream)
    };
    aclopSetModelDir(dir: CText) => set_model_dir(dir);
    aclopSetMaxOpQueueNum(max: u64) => accept(max != 0);

    aclSetCompileopt(option: i32, value: CText) => set_compile_option(option, value);
    aclGetCompileopt(option: i32, value: OutPointer<c_char>, size: usize) => {
        value.require("aclGetCompileopt", "value")?;
        let options = compile_options();
        value.set_text(options.get(&option).ok_or(status::API_NOT_SUPPORT)?, size)
    };
    aclopSetCompileFlag(flag: i32) => accept(matches!(flag, 0 | 1));
}

results! {
    aclopCreateHandle(
        op_type: CText, n_inputs: i32, input_descs: InPointer<Handle>,
        n_outputs: i32, output_descs: InPointer<Handle>, attributes: Handle, handle: OutPointer<Handle>,
    ) => handle = {
        let op_type = op_type.require_name(FUNCTION, "opType")?;
        let inputs = handles(FUNCTION, "inputDesc", n_inputs, input_descs)?;
        let outputs = handles(FUNCTION, "outputDesc", n_outputs, output_descs)?;
        process().create_op_handle(op_type, &inputs, &outputs, attributes)?
    };
}

values! {
    /// With the NUL; 0 for an unset option.
    aclGetCompileoptSize(option: i32) -> usize
        => compile_options().get(&option).map_or(0, |value| value.len() + 1), or 0;
}

refusals! {
    because "call aclopCast or aclopCreateHandle with `Cast`, and set the shapes of the outputs";
    aclopCreateHandleForCast(Handle, Handle, u8, OutPointer<Handle>);
    aclopInferShape(CText, i32, InPointer<Handle>, InPointer<Handle>, i32, InPointer<Handle>, Handle);
}

refusals! {
    because "it takes machine code of an NPU; operators run by their ONNX or Ascend names";
    aclopLoad(InPointer<u8>, usize);
    aclopUpdateParams(CText, i32, InPointer<Handle>, i32, InPointer<Handle>, Handle);
    aclopCreateKernel(CText, CText, CText, usize, i32, i32, usize);
    aclopRegisterCompileFunc(CText, usize);
    aclopUnregisterCompileFunc(CText);
    aclopSetKernelArgs(usize, CText, u32, usize, u32);
    aclopSetKernelWorkspaceSizes(usize, i32, InPointer<usize>);
}

actions! {
    aclopDestroyHandle(handle: Handle) => process().destroy_op_handle(handle);
}

/// Descriptions or buffers of an operator's inputs or outputs, none of them null.
fn handles(
    function: &'static str,
    parameter: &'static str,
    n: i32,
    list: InPointer<Handle>,
) -> Answer<Vec<Handle>> {
    let n = count(n)?;
    // An empty list may be null.
    if n != 0 {
        list.require(function, parameter)?;
    }
    let list = list.list(n)?;
    if list.contains(&0) {
        return Err(null(function, parameter));
    }
    Ok(list)
}

fn accept(is_valid: bool) -> Answer {
    if is_valid {
        Ok(())
    } else {
        Err(status::INVALID_PARAM)
    }
}

static HAS_MODEL_DIR: AtomicBool = AtomicBool::new(false);

/// Operators need no models here, so the directory only has to exist. It can be set once.
fn set_model_dir(dir: CText) -> Answer {
    if !dir.require_path("aclopSetModelDir", "modelDir")?.is_dir() {
        return Err(status::READ_MODEL_FAILURE);
    }
    if HAS_MODEL_DIR.swap(true, Ordering::Relaxed) {
        return Err(status::REPEAT_INITIALIZE);
    }
    Ok(())
}

/// Compiler options are stored only to be read back; none changes a result.
fn compile_options() -> MutexGuard<'static, BTreeMap<i32, String>> {
    static OPTIONS: PerProcess<Mutex<BTreeMap<i32, String>>> = PerProcess::new();
    OPTIONS.get().lock().unwrap_or_else(PoisonError::into_inner)
}

fn set_compile_option(option: i32, value: CText) -> Answer {
    let value = value.require_name("aclSetCompileopt", "value")?;
    match option {
        AUTO_TUNE_MODE => Err(status::FEATURE_UNSUPPORTED),
        0..OPTIONS_END => {
            compile_options().insert(option, value.to_owned());
            Ok(())
        }
        _ => Err(status::INTERNAL_ERROR),
    }
}
