//! Compiling single operators, which here means checking that they can run.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

use opscope_acl::{Handle, PerProcess, status};

use crate::border::{Code, call, null, process, value};
use crate::op::{Operator, side};
use crate::pointer::{In, Out, Text};

/// The number behind the last of `aclCompileOpt`.
const OPTIONS_END: i32 = 17;
/// `ACL_AUTO_TUNE_MODE`, which the interface has given up.
const AUTO_TUNE_MODE: i32 = 2;

/// Options are kept so that they can be read back; none changes a result.
static OPTIONS: PerProcess<Mutex<BTreeMap<i32, String>>> = PerProcess::new();

#[unsafe(no_mangle)]
extern "C" fn aclopCompile(
    op_type: Text,
    n_inputs: i32,
    input_descs: In<Handle>,
    n_outputs: i32,
    output_descs: In<Handle>,
    attributes: Handle,
    _engine: i32,
    _compile_type: i32,
    _op_path: Text,
) -> Code {
    const FUNCTION: &str = "aclopCompile";
    call(|| {
        let op_type = op_type.required(|| null(FUNCTION, "opType"))?;
        let inputs = side(FUNCTION, "inputDesc", n_inputs, input_descs)?;
        let outputs = side(FUNCTION, "outputDesc", n_outputs, output_descs)?;
        process().compile_op(op_type, &inputs, &outputs, attributes)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopCompileAndExecute(
    op_type: Text,
    n_inputs: i32,
    input_descs: In<Handle>,
    inputs: In<Handle>,
    n_outputs: i32,
    output_descs: In<Handle>,
    outputs: In<Handle>,
    attributes: Handle,
    _engine: i32,
    _compile_type: i32,
    _op_path: Text,
    stream: Handle,
) -> Code {
    let operator = Operator {
        op_type,
        n_inputs,
        input_descs,
        inputs,
        n_outputs,
        output_descs,
        outputs,
        attributes,
    };
    call(|| operator.execute("aclopCompileAndExecute", stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclopCompileAndExecuteV2(
    op_type: Text,
    n_inputs: i32,
    input_descs: In<Handle>,
    inputs: In<Handle>,
    n_outputs: i32,
    output_descs: In<Handle>,
    outputs: In<Handle>,
    attributes: Handle,
    _engine: i32,
    _compile_type: i32,
    _op_path: Text,
    stream: Handle,
) -> Code {
    let operator = Operator {
        op_type,
        n_inputs,
        input_descs,
        inputs,
        n_outputs,
        output_descs,
        outputs,
        attributes,
    };
    call(|| operator.execute("aclopCompileAndExecuteV2", stream))
}

// ---- Options

#[unsafe(no_mangle)]
extern "C" fn aclSetCompileopt(option: i32, value: Text) -> Code {
    call(|| {
        let value = value.required(|| null("aclSetCompileopt", "value"))?;
        match option {
            AUTO_TUNE_MODE => Err(status::FEATURE_UNSUPPORTED),
            0..OPTIONS_END => {
                let mut options = OPTIONS.get().lock().unwrap_or_else(PoisonError::into_inner);
                options.insert(option, value.to_owned());
                Ok(())
            }
            _ => Err(status::INTERNAL_ERROR),
        }
    })
}

/// With the NUL; 0 for an option that was not set.
#[unsafe(no_mangle)]
extern "C" fn aclGetCompileoptSize(option: i32) -> usize {
    value(0, || {
        let options = OPTIONS.get().lock().unwrap_or_else(PoisonError::into_inner);
        options.get(&option).map_or(0, |value| value.len() + 1)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclGetCompileopt(option: i32, value: Out<c_char>, size: usize) -> Code {
    call(|| {
        if value.is_null() {
            return Err(null("aclGetCompileopt", "value"));
        }
        let options = OPTIONS.get().lock().unwrap_or_else(PoisonError::into_inner);
        let text = options.get(&option).ok_or(status::API_NOT_SUPPORT)?;
        value.set_text(text, size)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetCompileFlag(flag: i32) -> Code {
    call(|| match flag {
        0 | 1 => Ok(()),
        _ => Err(status::INVALID_PARAM),
    })
}
