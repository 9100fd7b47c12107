//! The lines of the summary file.

use super::super::failure::{Code, Failure};
use super::super::source::Source;
use super::super::{dtype, formats};
use super::measure::measure;
use super::record::Record;

/// `===[1]===`.
pub(super) fn title(number: usize) -> String {
    format!("{}[{number}]{}\n", "=".repeat(49), "=".repeat(50))
}

/// Type and name of the operator.
pub(super) fn operator_line(op_type: &str, op_name: &str) -> String {
    format!("[{op_type}] {op_name}\n")
}

/// Which unit overflowed in which task, and when.
pub(super) fn record_lines(record: &Record, timestamp: &str) -> String {
    let mut text = String::new();
    for part in &record.parts {
        text.push_str(&format!(
            " [{}][TaskId:{}][StreamId:{}][Status:{}]\n",
            part.unit, part.task_id, part.stream_id, part.status
        ));
    }
    text.push_str(&format!(" [timestamp:{timestamp}]\n"));
    text
}

/// Two lines for each tensor of the operator.
///
/// The reference has nothing to say about empty tensors and stumbles over buffers.
pub(super) fn tensor_lines(source: &Source) -> Result<String, Failure> {
    let mut text = String::new();
    for tensor in source.tensors() {
        let decoded = dtype::decode(&tensor)?;
        let Some([max, min, mean]) = measure(&decoded.array) else {
            let message = format!("The data of {} is empty.", tensor.label());
            return Err(Failure::new(Code::InvalidDumpData, message));
        };
        let (_, format) = formats::from_code(tensor.entry.format)?;
        let (file, side, i) = (&source.file_name, tensor.side.name(), tensor.index);
        let (shape, dtype) = (tuple(&decoded.dims), decoded.array.dtype());
        text.push_str(&format!(
            " {file}.{side}.{i}.npy\n -[Format: {format}] [Shape: {shape}] [Dtype: {dtype}] \
             [Max: {max}] [Min: {min}] [Mean: {mean}]\n"
        ));
    }
    if source.buffers().next().is_some() {
        return Err(Failure::unexpected(
            "'OpBuffer' object has no attribute 'tensor_format'",
        ));
    }
    Ok(text)
}

/// Extents as Python writes a tuple.
fn tuple(dims: &[usize]) -> String {
    match dims {
        [one] => format!("({one},)"),
        _ => {
            let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
            format!("({})", dims.join(", "))
        }
    }
}
