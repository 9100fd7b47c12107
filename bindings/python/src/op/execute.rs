//! Running an operator outside a model.

use opscope_acl::Handle;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::argument::{ByteArg, FilePath, ListArg, TextArg, Word32Arg, WordArg};
use crate::call::{code, process};
use crate::table::table;

table! {
    [also execute, execute_v2]

    pairs {
        /// aclopCreateHandle: a handle for running an operator more than once, and the code.
        create_handle(
            op_type: TextArg, input_desc: ListArg<WordArg>, output_desc: ListArg<WordArg>, attr: WordArg,
        ) -> usize => process().create_op_handle(
            &op_type.0, &handles(&input_desc.0), &handles(&output_desc.0), attr.0
        );
    }

    actions {
        /// aclopDestroyHandle. Returns nothing, as in C.
        destroy_handle(handle: WordArg) => process().destroy_op_handle(handle.0);
    }

    codes {
        /// aclopExecWithHandle.
        execute_with_handle(
            handle: WordArg, inputs: ListArg<WordArg>, outputs: ListArg<WordArg>, stream: WordArg,
        ) => process().execute_op_handle(
            handle.0, &handles(&inputs.0), &handles(&outputs.0), stream.0
        );
        /// aclopCast: writes the values of one tensor as another type.
        cast(
            src_desc: WordArg, src_buffer: WordArg, dst_desc: WordArg, dst_buffer: WordArg,
            truncate: ByteArg, stream: WordArg,
        ) => process().cast(
            (src_desc.0, src_buffer.0), (dst_desc.0, dst_buffer.0), truncate.0, stream.0
        );
        /// aclopStartDumpArgs.
        start_dump_args(dump_type: Word32Arg, path: FilePath)
            => process().start_dump_args(dump_type.0, Some(path.as_path()));
        /// aclopStopDumpArgs.
        stop_dump_args(dump_type: Word32Arg) => process().stop_dump_args(dump_type.0);
    }
}

/// Both functions that run an operator by name: `/// documentation, name;`
macro_rules! executions {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[expect(clippy::too_many_arguments, reason = "pyACL's interface")]
        fn $name(
            py: Python<'_>,
            op_type: TextArg,
            input_desc: ListArg<WordArg>,
            inputs: ListArg<WordArg>,
            output_desc: ListArg<WordArg>,
            outputs: ListArg<WordArg>,
            attr: WordArg,
            stream: WordArg,
        ) -> PyResult<i32> {
            let inputs = pairs("input", &input_desc.0, &inputs.0)?;
            let outputs = pairs("output", &output_desc.0, &outputs.0)?;
            Ok(code(py, || {
                process().execute_op(&op_type.0, &inputs, &outputs, attr.0, stream.0)
            }))
        }
    )+};
}

executions! {
    /// aclopExecute: like `execute_v2`.
    execute;
    /// aclopExecuteV2: runs one operator on a stream.
    execute_v2;
}

/// A description and a buffer for each tensor.
///
/// # Errors
///
/// `ValueError` if their numbers differ, which C cannot express.
fn pairs(side: &str, descs: &[WordArg], buffers: &[WordArg]) -> PyResult<Vec<(Handle, Handle)>> {
    if descs.len() != buffers.len() {
        let message = format!(
            "{} descriptions and {} buffers of {side} tensors",
            descs.len(),
            buffers.len()
        );
        return Err(PyValueError::new_err(message));
    }
    let tensors = descs.iter().zip(buffers);
    Ok(tensors.map(|(desc, buffer)| (desc.0, buffer.0)).collect())
}

fn handles(words: &[WordArg]) -> Vec<Handle> {
    words.iter().map(|word| word.0).collect()
}
