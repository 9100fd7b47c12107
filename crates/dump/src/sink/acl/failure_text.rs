//! The text about an operator that failed.

use std::fmt::Write;

use opscope_capture::{FailureDetail, FailureTrace, OperatorFailure};
use opscope_store::record::Record;
use opscope_store::tree::acl::stream_id;

/// Longest text in a file's header. Attributes may hold whole tensors.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The text in the header: what failed and why; beyond [`FailureDetail::Brief`] also the tensors
/// and attributes; at the end what the engine notes.
pub(super) fn message(record: &Record, failure: &OperatorFailure) -> String {
    let operator = &record.operator;
    let mut text = format!(
        "{} `{}` failed: {}\n",
        operator.op_type, operator.op_name, failure.reason
    );
    if failure.detail != FailureDetail::Brief {
        for (side, index, tensor) in record.slots() {
            let line = format!(
                "{}.{index}: {} {} {}, {} bytes",
                side.name(),
                tensor.dtype(),
                tensor.shape(),
                tensor.layout(),
                tensor.n_bytes()
            );
            push_line(&mut text, &line);
        }
        for (name, value) in &operator.attributes {
            push_line(&mut text, &format!("attribute {name}: {value}"));
        }
    }
    if !failure.notes.is_empty() {
        push_line(&mut text, failure.notes.trim_end_matches('\n'));
    }
    shortened(text)
}

/// The text file that accompanies the tensors.
pub(super) fn with_trace(message: &str, record: &Record, trace: &FailureTrace) -> String {
    let mut text = message.to_owned();
    let model = &record.model;
    for line in [
        format!("model: {} (graph {})", model.file_stem, model.graph_name),
        format!("step: {}", record.step),
        format!("task: {}", record.operator.task_id),
        format!("stream: {}", stream_id(model)),
        format!("device: {}", model.device),
    ] {
        push_line(&mut text, &line);
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{trace}");
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn shortened(mut text: String) -> String {
    if text.len() > MESSAGE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
        text.push_str(" …\n");
    }
    text
}
