//! The summary file, as the vendor's tool writes it.

use opscope_tensor::DType;

use super::measure::measure;

/// One part of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverflowPart {
    /// The unit of the device that raised the flag, as the summary names it.
    pub unit: String,
    /// The task that overflowed.
    pub task_id: u64,
    /// The stream that the task ran on.
    pub stream_id: u64,
    /// A number or a list of numbers.
    pub status: String,
}

/// The file's name, which holds the local time.
pub fn file_name() -> String {
    let time = opscope_store::clock::local().strftime("%Y%m%d%H%M%S");
    format!("overflow_summary_{time}.txt")
}

/// The line above the section of the overflow with this number: `===[1]===`, with 49 and 50 `=`.
pub fn title(number: usize) -> String {
    format!("{}[{number}]{}\n", "=".repeat(49), "=".repeat(50))
}

/// The line with type and name of the operator.
pub fn operator_line(op_type: &str, op_name: &str) -> String {
    format!("[{op_type}] {op_name}\n")
}

/// The lines of an overflow: one for each part of its record, then its time stamp.
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

/// The two lines of a tensor in a dtype that numpy has, or `None` if it is empty. `file` is the
/// name of the array's file without suffix.
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
