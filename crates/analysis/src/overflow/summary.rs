//! The summary file, in the format of the vendor's tool.

use opscope_tensor::DType;

use super::measure::measure;

/// One part of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverflowPart {
    /// The device unit that raised the flag, as the summary names it.
    pub unit: String,
    /// The task that overflowed.
    pub task_id: u64,
    /// Its stream.
    pub stream_id: u64,
    /// A number or a list of numbers.
    pub status: String,
}

/// The file name, which contains the local time.
pub fn file_name() -> String {
    let time = opscope_store::clock::local().strftime("%Y%m%d%H%M%S");
    format!("overflow_summary_{time}.txt")
}

/// The heading of the overflow with this number: `===[1]===`, with 49 and 50 `=`.
pub fn title(number: usize) -> String {
    format!("{}[{number}]{}\n", "=".repeat(49), "=".repeat(50))
}

/// The line with the operator's type and name.
pub fn operator_line(op_type: &str, op_name: &str) -> String {
    format!("[{op_type}] {op_name}\n")
}

/// The lines of an overflow: one per part of its record, then its time stamp.
pub fn record_lines(parts: &[OverflowPart], timestamp: &str) -> String {
    let mut text = String::new();
    for part in parts {
        text.push_str(&format!(
            " [{}][TaskId:{}][StreamId:{}][Status:{}]\n",
            part.unit, part.task_id, part.stream_id, part.status
        ));
    }
    text.push_str(&format!(" [timestamp:{timestamp}]\n"));
    text
}

/// The two lines of a tensor of a NumPy dtype; `None` if it is empty. `file` is the name of the
/// array file without suffix.
pub fn tensor_lines(
    file: &str,
    layout: &str,
    dims: &[usize],
    dtype: DType,
    bytes: &[u8],
) -> Option<String> {
    let [max, min, mean] = measure(dtype, bytes)?;
    let shape = tuple(dims);
    Some(format!(
        " {file}.npy\n -[Format: {layout}] [Shape: {shape}] [Dtype: {dtype}] [Max: {max}] \
         [Min: {min}] [Mean: {mean}]\n"
    ))
}

/// A shape as Python writes a tuple.
fn tuple(dims: &[usize]) -> String {
    match dims {
        [one] => format!("({one},)"),
        _ => {
            let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
            format!("({})", dims.join(", "))
        }
    }
}
