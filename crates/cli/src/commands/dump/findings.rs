//! Findings of special dumps: overflows, failures, overwritten memory.

use std::io::Write;

use opscope_capture::{FirstOverflow, OverwrittenValue, Purpose};
use opscope_store::file_format::op_debug::causes;
use serde_json::{Map, Value, json};

use super::dump_report::DumpReport;
use crate::console::line;
use crate::exit::CommandResult;
use crate::format;

/// Maximum number of changed ranges per value in the table.
const N_RANGES_SHOWN: usize = 3;

impl DumpReport {
    /// Prints the lines of the closing table, and the table of overwritten values.
    pub(super) fn print_findings(&self, out: &mut impl Write) -> CommandResult {
        match self.purpose {
            Purpose::Values => {}
            Purpose::Overflow | Purpose::NonFinite => {
                let n = self.summary.counters.n_operators_overflowed;
                let first = self.summary.first_overflow.as_ref();
                let first =
                    first.map_or_else(String::new, |f| format!("; the first: {}", overflow(f)));
                line!(
                    out,
                    "overflows         {}{first}",
                    format::count(n, "operator")
                )?;
            }
            Purpose::Failures(_) if self.failure_dir.is_none() => {
                writeln!(out, "failed operator   none")?;
            }
            Purpose::Failures(_) => {}
            Purpose::Watch => self.print_overwrites(out)?,
        }
        // The environment may request failing operators in addition to any other dump.
        if let Some(dir) = &self.failure_dir {
            line!(out, "failed operator   {}", dir.display())?;
        }
        Ok(())
    }

    fn print_overwrites(&self, out: &mut impl Write) -> CommandResult {
        let n = self.summary.n_overwrites;
        line!(
            out,
            "overwritten       {}",
            format::count(n, "watched value")
        )?;
        if self.summary.overwrites.is_empty() {
            return Ok(());
        }
        let header = [
            "step",
            "after",
            "operator",
            "output of",
            "slot",
            "bytes",
            "element",
            "before",
            "now",
        ];
        let right = ["step", "element"];
        let rows = self.summary.overwrites.iter().map(|overwrite| {
            vec![
                overwrite.step.to_string(),
                overwrite.seen_after.op_type.clone(),
                overwrite.seen_after.op_name.clone(),
                overwrite.watched.op_name.clone(),
                format!("output.{}", overwrite.output),
                ranges(overwrite),
                overwrite.first_element.to_string(),
                overwrite.before.clone(),
                overwrite.after.clone(),
            ]
        });
        let table = format::table(&header, &right, rows.collect()).trim_fmt();
        writeln!(out, "\n{table}\n")?;
        // All overwrites are counted, but only the first keep their details.
        if n > self.summary.overwrites.len() as u64 {
            writeln!(out, "{} more", n - self.summary.overwrites.len() as u64)?;
        }
        Ok(())
    }

    /// JSON members that only special dumps have.
    pub(super) fn finding_json(&self) -> Map<String, Value> {
        let mut members = Map::new();
        match self.purpose {
            Purpose::Values => {}
            Purpose::Overflow | Purpose::NonFinite => {
                let n = self.summary.counters.n_operators_overflowed;
                members.insert("operators_overflowed".into(), n.into());
                let first = self.summary.first_overflow.as_ref().map(overflow_json);
                members.insert("first_overflow".into(), first.into());
            }
            Purpose::Failures(_) => {}
            Purpose::Watch => {
                members.insert("n_overwrites".into(), self.summary.n_overwrites.into());
                let list = self.summary.overwrites.iter().map(overwrite_json).collect();
                members.insert("overwrites".into(), list);
            }
        }
        members
    }
}

impl DumpReport {
    /// The member with the directory of failed operators, if the run looks for them or there are
    /// any.
    pub(super) fn failure_json(&self) -> Option<(String, Value)> {
        let is_asked_for = matches!(self.purpose, Purpose::Failures(_));
        let is_included = is_asked_for || self.failure_dir.is_some();
        is_included.then(|| ("failure_dir".to_owned(), json!(self.failure_dir)))
    }
}

pub(super) fn cause_names(status: u64) -> String {
    let names: Vec<&str> = causes(status).iter().map(|c| c.description()).collect();
    names.join(" + ")
}

fn overflow(first: &FirstOverflow) -> String {
    let FirstOverflow {
        step,
        op_type,
        op_name,
        status,
        ..
    } = first;
    format!(
        "{op_type} `{op_name}`, step {step}: {status:#x} = {}",
        cause_names(*status)
    )
}

fn overflow_json(first: &FirstOverflow) -> Value {
    json!({
        "step": first.step,
        "task_id": first.task_id,
        "op_type": first.op_type,
        "op_name": first.op_name,
        "status": first.status,
        "causes": cause_names(first.status),
    })
}

/// The changed bytes, such as `0..4, 16..24 and 7 more`.
fn ranges(overwrite: &OverwrittenValue) -> String {
    let shown = overwrite.ranges.iter().take(N_RANGES_SHOWN);
    let shown: Vec<String> = shown
        .map(|range| format!("{}..{}", range.start, range.end))
        .collect();
    let n_more = overwrite.n_ranges.saturating_sub(shown.len() as u64);
    let more = if n_more > 0 {
        format!(" and {n_more} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

fn overwrite_json(overwrite: &OverwrittenValue) -> Value {
    let ranges: Vec<[u64; 2]> = overwrite.ranges.iter().map(|r| [r.start, r.end]).collect();
    json!({
        "step": overwrite.step,
        "seen_after": overwrite.seen_after.op_name,
        "seen_after_type": overwrite.seen_after.op_type,
        "seen_after_task_id": overwrite.seen_after.task_id,
        "watched": overwrite.watched.op_name,
        "watched_type": overwrite.watched.op_type,
        "output": overwrite.output,
        "byte_ranges": ranges,
        "n_byte_ranges": overwrite.n_ranges,
        "n_bytes": overwrite.n_bytes,
        "first_element": overwrite.first_element,
        "before": overwrite.before,
        "after": overwrite.after,
    })
}
