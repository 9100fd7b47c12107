//! Running an operator that is in no model.

use opscope_acl::Handle;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::argument::{Byte, FilePath, List, Text, Word, Word32};
use crate::call::{Pair, code, pair};
use crate::functions;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        execute,
        execute_v2,
        create_handle,
        destroy_handle,
        execute_with_handle,
        cast,
        start_dump_args,
        stop_dump_args,
    );
    Ok(())
}

/// aclopExecute: as `execute_v2`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "pyACL's interface")]
fn execute(
    py: Python<'_>,
    op_type: Text,
    input_desc: List<Word>,
    inputs: List<Word>,
    output_desc: List<Word>,
    outputs: List<Word>,
    attr: Word,
    stream: Word,
) -> PyResult<i32> {
    execute_v2(
        py,
        op_type,
        input_desc,
        inputs,
        output_desc,
        outputs,
        attr,
        stream,
    )
}

/// aclopExecuteV2: runs one operator on a stream.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "pyACL's interface")]
fn execute_v2(
    py: Python<'_>,
    op_type: Text,
    input_desc: List<Word>,
    inputs: List<Word>,
    output_desc: List<Word>,
    outputs: List<Word>,
    attr: Word,
    stream: Word,
) -> PyResult<i32> {
    let inputs = pairs("input", &input_desc.0, &inputs.0)?;
    let outputs = pairs("output", &output_desc.0, &outputs.0)?;
    Ok(code(py, |process| {
        process.execute_op(&op_type.0, &inputs, &outputs, attr.0, stream.0)
    }))
}

/// A description and a buffer for each tensor.
///
/// # Errors
/// `ValueError` if there are more of one than of the other, which C cannot say.
fn pairs(side: &str, descs: &[Word], buffers: &[Word]) -> PyResult<Vec<(Handle, Handle)>> {
    if descs.len() != buffers.len() {
        let message = format!(
            "{} descriptions and {} buffers of {side} tensors",
            descs.len(),
            buffers.len()
        );
        return Err(PyValueError::new_err(message));
    }
    Ok(descs
        .iter()
        .map(|desc| desc.0)
        .zip(handles(buffers))
        .collect())
}

fn handles(words: &[Word]) -> Vec<Handle> {
    words.iter().map(|word| word.0).collect()
}

/// aclopCreateHandle: a handle for running an operator more than once, and the code.
#[pyfunction]
fn create_handle(
    py: Python<'_>,
    op_type: Text,
    input_desc: List<Word>,
    output_desc: List<Word>,
    attr: Word,
) -> Pair<usize> {
    let (inputs, outputs) = (handles(&input_desc.0), handles(&output_desc.0));
    pair(py, |process| {
        process.create_op_handle(&op_type.0, &inputs, &outputs, attr.0)
    })
}

/// aclopDestroyHandle. Returns nothing, as it does in C.
#[pyfunction]
fn destroy_handle(py: Python<'_>, handle: Word) {
    code(py, |process| process.destroy_op_handle(handle.0));
}

/// aclopExecWithHandle.
#[pyfunction]
fn execute_with_handle(
    py: Python<'_>,
    handle: Word,
    inputs: List<Word>,
    outputs: List<Word>,
    stream: Word,
) -> i32 {
    let (inputs, outputs) = (handles(&inputs.0), handles(&outputs.0));
    code(py, |process| {
        process.execute_op_handle(handle.0, &inputs, &outputs, stream.0)
    })
}

/// aclopCast: writes the values of one tensor as another type.
#[pyfunction]
fn cast(
    py: Python<'_>,
    src_desc: Word,
    src_buffer: Word,
    dst_desc: Word,
    dst_buffer: Word,
    truncate: Byte,
    stream: Word,
) -> i32 {
    let (from, to) = ((src_desc.0, src_buffer.0), (dst_desc.0, dst_buffer.0));
    code(py, |process| process.cast(from, to, truncate.0, stream.0))
}

/// aclopStartDumpArgs.
#[pyfunction]
fn start_dump_args(py: Python<'_>, dump_type: Word32, path: FilePath) -> i32 {
    code(py, |process| {
        process.start_dump_args(dump_type.0, Some(path.as_path()))
    })
}

/// aclopStopDumpArgs.
#[pyfunction]
fn stop_dump_args(py: Python<'_>, dump_type: Word32) -> i32 {
    code(py, |process| process.stop_dump_args(dump_type.0))
}
