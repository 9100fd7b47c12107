//! Running single operators.

use std::sync::atomic::{AtomicBool, Ordering};

use opscope_acl::{Answer, Handle, status};

use crate::border::{Code, call, count, null, process};
use crate::pointer::{In, Out, Text};

/// Descriptions or buffers of one side of an operator.
pub(crate) fn side(
    function: &'static str,
    parameter: &'static str,
    n: i32,
    list: In<Handle>,
) -> Answer<Vec<Handle>> {
    let n = count(n)?;
    if n != 0 && list.is_null() {
        return Err(null(function, parameter));
    }
    let list = list.list(n)?;
    if list.contains(&0) {
        return Err(null(function, parameter));
    }
    Ok(list)
}

/// Descriptions and their buffers.
fn pairs(
    function: &'static str,
    names: (&'static str, &'static str),
    n: i32,
    descs: In<Handle>,
    buffers: In<Handle>,
) -> Answer<Vec<(Handle, Handle)>> {
    let descs = side(function, names.0, n, descs)?;
    let buffers = side(function, names.1, n, buffers)?;
    Ok(descs.into_iter().zip(buffers).collect())
}

/// The arguments that all functions take that run an operator by name.
pub(crate) struct Operator {
    pub(crate) op_type: Text,
    pub(crate) n_inputs: i32,
    pub(crate) input_descs: In<Handle>,
    pub(crate) inputs: In<Handle>,
    pub(crate) n_outputs: i32,
    pub(crate) output_descs: In<Handle>,
    pub(crate) outputs: In<Handle>,
    pub(crate) attributes: Handle,
}

impl Operator {
    pub(crate) fn execute(&self, function: &'static str, stream: Handle) -> Answer {
        let op_type = self.op_type.required(|| null(function, "opType"))?;
        let inputs = pairs(
            function,
            ("inputDesc", "inputs"),
            self.n_inputs,
            self.input_descs,
            self.inputs,
        )?;
        let outputs = pairs(
            function,
            ("outputDesc", "outputs"),
            self.n_outputs,
            self.output_descs,
            self.outputs,
        )?;
        process().execute_op(op_type, &inputs, &outputs, self.attributes, stream)
    }
}

fn execute(function: &'static str, operator: &Operator, stream: Handle) -> Code {
    call(|| operator.execute(function, stream))
}

#[unsafe(no_mangle)]
extern "C" fn aclopExecute(
    op_type: Text,
    n_inputs: i32,
    input_descs: In<Handle>,
    inputs: In<Handle>,
    n_outputs: i32,
    output_descs: In<Handle>,
    outputs: In<Handle>,
    attributes: Handle,
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
    execute("aclopExecute", &operator, stream)
}

#[unsafe(no_mangle)]
extern "C" fn aclopExecuteV2(
    op_type: Text,
    n_inputs: i32,
    input_descs: In<Handle>,
    inputs: In<Handle>,
    n_outputs: i32,
    output_descs: In<Handle>,
    outputs: In<Handle>,
    attributes: Handle,
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
    execute("aclopExecuteV2", &operator, stream)
}

#[unsafe(no_mangle)]
extern "C" fn aclopCast(
    from_desc: Handle,
    from: Handle,
    to_desc: Handle,
    to: Handle,
    truncate: u8,
    stream: Handle,
) -> Code {
    call(|| process().cast((from_desc, from), (to_desc, to), truncate, stream))
}

// ---- Handles: an operator that is checked once and run often

#[unsafe(no_mangle)]
extern "C" fn aclopCreateHandle(
    op_type: Text,
    n_inputs: i32,
    input_descs: In<Handle>,
    n_outputs: i32,
    output_descs: In<Handle>,
    attributes: Handle,
    handle: Out<Handle>,
) -> Code {
    const FUNCTION: &str = "aclopCreateHandle";
    call(|| {
        if handle.is_null() {
            return Err(null(FUNCTION, "handle"));
        }
        let op_type = op_type.required(|| null(FUNCTION, "opType"))?;
        let inputs = side(FUNCTION, "inputDesc", n_inputs, input_descs)?;
        let outputs = side(FUNCTION, "outputDesc", n_outputs, output_descs)?;
        handle.set(process().create_op_handle(op_type, &inputs, &outputs, attributes)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopDestroyHandle(handle: Handle) {
    call(|| process().destroy_op_handle(handle));
}

#[unsafe(no_mangle)]
extern "C" fn aclopExecWithHandle(
    handle: Handle,
    n_inputs: i32,
    inputs: In<Handle>,
    n_outputs: i32,
    outputs: In<Handle>,
    stream: Handle,
) -> Code {
    const FUNCTION: &str = "aclopExecWithHandle";
    call(|| {
        let inputs = side(FUNCTION, "inputs", n_inputs, inputs)?;
        let outputs = side(FUNCTION, "outputs", n_outputs, outputs)?;
        process().execute_op_handle(handle, &inputs, &outputs, stream)
    })
}

// ---- Where operators come from

static HAS_MODEL_DIR: AtomicBool = AtomicBool::new(false);

/// Operators need no models here, so the directory only has to exist. It can be set once.
#[unsafe(no_mangle)]
extern "C" fn aclopSetModelDir(dir: Text) -> Code {
    call(|| {
        let dir = dir
            .path()
            .ok_or_else(|| null("aclopSetModelDir", "modelDir"))?;
        if !dir.is_dir() {
            return Err(status::READ_MODEL_FAILURE);
        }
        if HAS_MODEL_DIR.swap(true, Ordering::Relaxed) {
            return Err(status::REPEAT_INITIALIZE);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetMaxOpQueueNum(max: u64) -> Code {
    call(|| match max {
        0 => Err(status::INVALID_PARAM),
        _ => Ok(()),
    })
}

// ---- Compiled operators and shape inference, which are a device's

#[unsafe(no_mangle)]
extern "C" fn aclopLoad(_model: In<u8>, _size: usize) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclopCreateHandleForCast(
    _from_desc: Handle,
    _to_desc: Handle,
    _truncate: u8,
    _handle: Out<Handle>,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclopInferShape(
    _op_type: Text,
    _n_inputs: i32,
    _input_descs: In<Handle>,
    _inputs: In<Handle>,
    _n_outputs: i32,
    _output_descs: In<Handle>,
    _attributes: Handle,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclopUpdateParams(
    _op_type: Text,
    _n_inputs: i32,
    _input_descs: In<Handle>,
    _n_outputs: i32,
    _output_descs: In<Handle>,
    _attributes: Handle,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclopCreateKernel(
    _op_type: Text,
    _kernel_id: Text,
    _kernel_name: Text,
    _code: usize,
    _code_size: i32,
    _engine: i32,
    _deallocate: usize,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclopRegisterCompileFunc(_op_type: Text, _function: usize) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclopUnregisterCompileFunc(_op_type: Text) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetKernelArgs(
    _kernel: usize,
    _kernel_id: Text,
    _n_blocks: u32,
    _args: usize,
    _args_size: u32,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetKernelWorkspaceSizes(
    _kernel: usize,
    _n_workspaces: i32,
    _sizes: In<usize>,
) -> Code {
    call(|| Err(status::API_NOT_SUPPORT))
}
