//! An overflow record, read from its JSON file.

use std::path::Path;

use opscope_analysis::overflow::summary::OverflowPart;
use opscope_store::regular_file;
use serde_json::Value;

use crate::failure::{ErrorCode, ToolFailure};

/// Maximum size of a file.
const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Accelerators in records.
const ACC_TYPES: [&str; 4] = ["AIC", "AIV", "AICPU", "SDMA"];

/// The parts of a record for the summary.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SummaryRecord {
    /// Unit, task, stream and status of each part with an overflow.
    pub(super) parts: Vec<OverflowPart>,
    /// The task of the dump to find.
    pub(super) task_id: u64,
    /// Its stream.
    pub(super) stream_id: u64,
    /// Its context, if the record has one.
    pub(super) context_id: Option<u64>,
    /// Its thread, if the record has one.
    pub(super) thread_id: Option<u64>,
}

impl SummaryRecord {
    /// Reads a JSON file.
    ///
    /// # Errors
    /// A failure with the reference's code if it is not a record, or has no overflow.
    pub(super) fn read(path: &Path) -> Result<SummaryRecord, ToolFailure> {
        let bytes = regular_file::read(path, RECORD_BYTES_MAX);
        let bytes = bytes.map_err(|error| ToolFailure::unexpected(error.to_string()))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("Failed to read '{}'. {error}", path.display());
            ToolFailure::new(ErrorCode::Json, message)
        })?;
        SummaryRecord::parse(&value)
    }

    fn parse(value: &Value) -> Result<SummaryRecord, ToolFailure> {
        match value.get("acc_list") {
            Some(list) => SummaryRecord::from_accelerator(list),
            None => SummaryRecord::from_blocks(value),
        }
    }

    fn from_accelerator(list: &Value) -> Result<SummaryRecord, ToolFailure> {
        let unit = list
            .get("acc_type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !ACC_TYPES.contains(&unit) {
            let message = format!("[Overflow] The acc_type '{unit}' is invalid!");
            return Err(ToolFailure::new(ErrorCode::OverflowType, message));
        }
        let data = list.get("data").unwrap_or(&Value::Null);
        let part = part(unit, data)?;
        // The four words of a version 1 status are a list, which the reference treats as an
        // overflow even if all are zero.
        if part.status == "0" {
            let message = "[Overflow] The OpDebug file exists, but the value of status is 0!";
            return Err(ToolFailure::new(ErrorCode::OverflowStatus, message));
        }
        Ok(SummaryRecord {
            task_id: part.task_id,
            stream_id: part.stream_id,
            context_id: data.get("context_id").and_then(Value::as_u64),
            thread_id: data.get("thread_id").and_then(Value::as_u64),
            parts: vec![part],
        })
    }

    /// The last block with an overflow determines the task.
    fn from_blocks(value: &Value) -> Result<SummaryRecord, ToolFailure> {
        let blocks = value.as_object().into_iter().flatten();
        let parts = blocks.map(|(unit, data)| part(unit, data));
        let mut parts = parts.collect::<Result<Vec<OverflowPart>, ToolFailure>>()?;
        parts.retain(|part| part.status != "0");
        match parts.last() {
            Some(&OverflowPart {
                task_id, stream_id, ..
            }) => Ok(SummaryRecord {
                parts,
                task_id,
                stream_id,
                context_id: None,
                thread_id: None,
            }),
            None => {
                let message =
                    "[Overflow] Invalid json_txt, overflow type invalid or status is zero!";
                Err(ToolFailure::new(ErrorCode::OverflowType, message))
            }
        }
    }
}

/// Reads one part of a record.
fn part(unit: &str, data: &Value) -> Result<OverflowPart, ToolFailure> {
    let missing = |key: &str| ToolFailure::unexpected(format!("there is no '{key}' in '{unit}'"));
    let number = |key: &str| {
        data.get(key)
            .and_then(Value::as_u64)
            .ok_or_else(|| missing(key))
    };
    let status = match data.get("status") {
        Some(Value::Array(words)) => {
            let words: Vec<String> = words.iter().map(Value::to_string).collect();
            format!("[{}]", words.join(", "))
        }
        Some(status) => status.to_string(),
        None => return Err(missing("status")),
    };
    Ok(OverflowPart {
        unit: unit.to_owned(),
        task_id: number("task_id")?,
        stream_id: number("stream_id")?,
        status,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_block_names_the_task() {
        let block = |task_id: u64, status: u64| json!({"task_id": task_id, "stream_id": 9, "status": status});
        let value = json!({"DHA": block(1, 4), "L2": block(2, 5), "AI Core": block(3, 0)});
        let record = SummaryRecord::parse(&value).unwrap();
        assert_eq!((record.task_id, record.parts.len()), (2, 2));
        let zero = json!({"DHA": block(1, 0)});
        assert_eq!(SummaryRecord::parse(&zero).unwrap_err().status(), 35);
        assert_eq!(SummaryRecord::parse(&json!([])).unwrap_err().status(), 35);
        assert_eq!(
            SummaryRecord::parse(&json!({"DHA": 7}))
                .unwrap_err()
                .status(),
            1
        );
    }

    #[test]
    fn four_status_words_are_an_overflow_even_if_zero() {
        let record = |acc_type: &str, status: Value| {
            let data = json!({"task_id": 1, "stream_id": 2, "thread_id": 3, "status": status});
            SummaryRecord::parse(&json!({"acc_list": {"acc_type": acc_type, "data": data}}))
        };
        let wide = record("AIV", json!([0, 0, 0, 0])).unwrap();
        assert_eq!(wide.parts[0].status, "[0, 0, 0, 0]");
        assert_eq!((wide.context_id, wide.thread_id), (None, Some(3)));
        assert_eq!(record("AIC", json!(0)).unwrap_err().status(), 36);
        assert_eq!(record("X", json!(1)).unwrap_err().status(), 35);
    }
}
