//! Overflows, overwritten memory, and the first NaN or infinity of a capture.

use std::fmt::Write;

use opscope_analysis::ElementValue;
use opscope_analysis::events::{self, ChangedBytes, DumpEvent, EventKind};
use opscope_analysis::overflow::Finding;
use opscope_store::file_format::op_debug::{KNOWN_CAUSES, StatusCause, causes};
use opscope_store::file_format::overwrites_json::OverwriteEntry;
use opscope_store::file_format::run_json::NonFiniteFinding;
use serde_json::{Value, json};

use super::{AnswerError, Query, number_or};
use crate::json::number;
use crate::viewed::ViewedRuns;

/// Maximum number of events in an answer.
const N_EVENTS_MAX: usize = 1000;
/// Maximum number of events shown with their operator.
const N_OF_OPERATOR: usize = 16;
/// Maximum number of messages in an answer.
const N_PROBLEMS_MAX: usize = 200;

pub(super) fn answer(runs: &ViewedRuns, query: &Query) -> Result<Value, AnswerError> {
    let offset: usize = number_or(query, "offset", 0)?;
    let limit: usize = number_or(query, "limit", 200)?;
    let found = &runs.target.events;
    let listed = found.events.iter().enumerate().skip(offset);
    let listed = listed.take(limit.min(N_EVENTS_MAX));
    let problems = found.problems.iter().take(N_PROBLEMS_MAX);
    Ok(json!({
        "total": found.events.len(),
        "n_unlisted": found.n_unlisted,
        "events": listed.map(|(id, event)| row(runs, id, event)).collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
    }))
}

/// One event, with the bytes that it changed if the dump has them.
pub(super) fn event(runs: &ViewedRuns, id: usize) -> Result<Value, AnswerError> {
    let event = runs.target.events.events.get(id);
    let event = event.ok_or_else(|| AnswerError::Missing(format!("there is no event {id}")))?;
    let mut answer = row(runs, id, event);
    let changed = events::changed_bytes(&runs.target.dump, event);
    answer["bytes"] = changed.map_or(Value::Null, |changed| bytes(runs, &changed));
    Ok(answer)
}

/// The events of an operator.
pub(super) fn of_operator(runs: &ViewedRuns, id: usize) -> Value {
    let all = runs.target.events.events.iter().enumerate();
    let own = all.filter(|(_, event)| operator(runs, event) == Some(id));
    own.take(N_OF_OPERATOR)
        .map(|(number, event)| row(runs, number, event))
        .collect()
}

fn operator(runs: &ViewedRuns, event: &DumpEvent) -> Option<usize> {
    runs.operator_of(event.run?)
}

fn row(runs: &ViewedRuns, id: usize, event: &DumpEvent) -> Value {
    let path = event.path.strip_prefix(&runs.target.path);
    let mut row = json!({
        "id": id,
        "kind": "overflow",
        "op": operator(runs, event),
        "op_type": event.op_type,
        "op_name": event.op_name,
        "rank": event.rank,
        "step": event.step,
        "time_us": event.time_us,
        "task": event.task_id,
        "stream": event.stream_id,
        "file": path.unwrap_or(&event.path).display().to_string(),
        "overflow": null, "overwrite": null, "non_finite": null,
    });
    match &event.kind {
        EventKind::Overflow(found) => row["overflow"] = overflow(found),
        EventKind::Overwrite(entry) => {
            row["kind"] = "overwrite".into();
            row["overwrite"] = overwrite(entry);
        }
        EventKind::NonFinite(finding) => {
            row["kind"] = "non_finite".into();
            row["non_finite"] = non_finite(finding);
        }
        EventKind::Finding(text) => {
            row["kind"] = "finding".into();
            row["text"] = text.as_str().into();
        }
    }
    row
}

/// The units of a record, each with its documented status bits.
pub(super) fn overflow(found: &[Finding]) -> Value {
    let units = found.iter().map(|finding| {
        let words = finding.status.iter().map(|word| format!("{word:#x}"));
        let core = finding.core_status();
        let bits = core.map(|status| {
            let bits = KNOWN_CAUSES.map(StatusCause::bit);
            bits.map(|bit| json!({ "bit": bit, "is_set": status & bit != 0 }))
        });
        // Undocumented set bits get their own box.
        let others = causes(core.unwrap_or(0)).into_iter();
        let others = others.filter_map(|cause| match cause {
            StatusCause::Unknown(bit) => Some(format!("{bit:#x}")),
            _ => None,
        });
        json!({
            "unit": finding.unit,
            "status": finding.status_text(),
            "words": words.collect::<Vec<_>>(),
            "causes": finding.causes,
            "bits": bits,
            "other_bits": others.collect::<Vec<_>>(),
            "task": finding.task_id,
            "stream": finding.stream_id,
            "context": finding.context_id,
            "thread": finding.thread_id,
        })
    });
    json!({ "units": units.collect::<Vec<_>>() })
}

fn overwrite(entry: &OverwriteEntry) -> Value {
    json!({
        "watched_type": entry.watched_type,
        "watched": entry.watched,
        "slot": format!("out{}", entry.output),
        "ranges": entry.byte_ranges,
        "n_ranges": entry.n_byte_ranges,
        "n_bytes": entry.n_bytes,
        "first_element": entry.first_element,
        "before": entry.before,
        "after": entry.after,
        "how": entry.kind,
        "seen_before": entry.seen_before,
        "seen_before_type": entry.seen_before_type,
        "source": entry.source,
        "watched_source": entry.watched_source,
    })
}

fn non_finite(finding: &NonFiniteFinding) -> Value {
    // Addresses use the form `output.0`.
    let slot = match finding.slot.split_once('.') {
        Some(("input", index)) => Some(format!("in{index}")),
        Some(("output", index)) => Some(format!("out{index}")),
        _ => None,
    };
    json!({
        "slot": slot,
        "element": finding.element,
        "value": finding.value,
        "origin": finding.origin,
        "n_nan": finding.nan,
        "n_pos_inf": finding.pos_inf,
        "n_neg_inf": finding.neg_inf,
        "module": finding.module,
        "source": finding.source,
    })
}

fn bytes(runs: &ViewedRuns, changed: &ChangedBytes) -> Value {
    let ranges = changed.ranges.iter().map(|range| {
        json!({
            "start": range.start,
            "end": range.end,
            "before": hex(&range.before),
            "after": hex(&range.after),
        })
    });
    let elements = changed.elements.iter().map(|element| {
        json!({
            "index": element.index,
            "before": value(element.before),
            "after": value(element.after),
        })
    });
    json!({
        "dtype": changed.dtype.name(),
        "before": runs.operator_of(changed.before),
        "after": runs.operator_of(changed.after),
        "ranges": ranges.collect::<Vec<_>>(),
        "elements": elements.collect::<Vec<_>>(),
    })
}

/// Floats as numbers with all digits; others as text, because JSON numbers cannot hold 64-bit
/// integers.
fn value(element: ElementValue) -> Value {
    match element {
        ElementValue::Float(float) => number(float),
        other => other.to_string().into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
