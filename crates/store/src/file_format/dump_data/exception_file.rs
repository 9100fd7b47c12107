//! The tensor file of an operator that failed.

use crate::record::Record;

use super::DumpHeader;
use super::file::{VERSION, entry, with_length};

/// Marks an input entry as an input, not a workspace or the like.
const INPUT_TYPE_INPUT: u32 = 2;

/// The bytes that precede the tensors of `record` in the file of a failing operator: length and
/// header. `op_name` may be empty, `message` is text about the failure.
///
/// In addition to the output of [`prelude`](super::prelude), inputs are marked as inputs, and every
/// tensor has its position among the operator's arguments: inputs first, then outputs. There are no
/// attribute entries: a widespread reader cannot open files that have them.
pub fn exception_prelude(record: &Record, op_name: &str, message: &str) -> Vec<u8> {
    // These are all inputs of the operator, not those in the record: positions among its arguments
    // count inputs that are absent, too.
    let n_inputs = record.operator.inputs.len();
    let inputs = record.inputs.iter().map(|(position, tensor)| {
        let mut input = entry(tensor);
        input.input_type = INPUT_TYPE_INPUT;
        input.arg_index = u32::try_from(*position).unwrap_or(u32::MAX);
        input
    });
    let outputs = record.outputs.iter().map(|(position, tensor)| {
        let mut output = entry(tensor);
        output.arg_index = u32::try_from(position.saturating_add(n_inputs)).unwrap_or(u32::MAX);
        output
    });
    with_length(&DumpHeader {
        version: VERSION.to_owned(),
        dump_time: record.timestamp_us,
        outputs: outputs.collect(),
        inputs: inputs.collect(),
        op_name: op_name.to_owned(),
        dfx_message: message.to_owned(),
        ..DumpHeader::default()
    })
}
