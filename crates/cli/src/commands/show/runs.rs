//! How a dump's runs ended.

use std::io::Write;
use std::path::Path;

use opscope_store::file_format::run_json::{RunRecord, RunState};
use opscope_store::run_file::{FoundRun, RunEnd};
use serde_json::{Value, json};

use crate::console::line;
use crate::exit::CommandResult;
use crate::format;

/// One line for each run.
pub(super) fn print(out: &mut impl Write, runs: &[FoundRun]) -> CommandResult {
    for run in runs {
        let record = &run.record;
        let end = match run.end {
            RunEnd::Ended => format!("{} {}", record.state.name(), ended(run)),
            RunEnd::AtWork => "still running".to_owned(),
            RunEnd::CutOff if always_ends(record) => format!(
                "CUT OFF: process {} is gone and never wrote that it ended",
                record.process.pid
            ),
            RunEnd::CutOff => format!(
                "no recorded end: process {} is gone; it was killed, or it ended without switching the \
                 dump off",
                record.process.pid
            ),
            RunEnd::Unknown if record.state == RunState::Running => format!(
                "running or cut off: process {} of `{}` cannot be checked from here",
                record.process.pid, record.host.name
            ),
            RunEnd::Unknown => "in a state that this version does not know".to_owned(),
        };
        line!(
            out,
            "run       began {}, {}",
            record.started,
            // A record of another version may lack the end time.
            end.trim_end()
        )?;
        // A directory of several runs has the operators of all.
        if runs.len() > 1
            && let Some(dir) = run.path.parent().and_then(Path::parent)
        {
            line!(out, "          in `{}`", dir.display())?;
        }
        // The counters are written at the end, so those of unfinished runs are meaningless.
        if run.end == RunEnd::Ended {
            line!(out, "          {}", counts(run))?;
        }
        if let Some(engine) = engine(record) {
            line!(out, "          {engine}")?;
        }
        if let Some(error) = &record.first_error {
            line!(out, "          first error: {error}")?;
        }
    }
    Ok(())
}

/// Whether the run was one of our commands, which record their end unless killed. Programs may end
/// without doing so.
fn always_ends(record: &RunRecord) -> bool {
    ["dump", "op"].contains(&record.command.as_str())
}

/// The engine that ran the models; records of older versions may lack it.
fn engine(record: &RunRecord) -> Option<String> {
    let engine = &record.engine;
    if engine.name.is_empty() {
        return None;
    }
    let mut text = format!("run by {}", engine.name);
    if let Some(version) = &engine.version {
        text.push_str(&format!(" {version}"));
    }
    if let Some(library) = &record.engine_library {
        text.push_str(&format!(" of `{library}`"));
    }
    if let Some(graph) = &record.engine_graph {
        text.push_str(&format!(", the {graph} graph"));
    }
    if !record.engine_providers.is_empty() {
        text.push_str(&format!(", on {}", record.engine_providers.join(", ")));
    }
    Some(text)
}

fn ended(run: &FoundRun) -> &str {
    run.record.ended.as_deref().unwrap_or_default()
}

fn counts(run: &FoundRun) -> String {
    // Earlier versions did not write the sum.
    let n_dropped = run.record.counters.get("n_dropped").copied();
    let n_dropped = n_dropped.unwrap_or_else(|| n_missing(run));
    format!(
        "{}, {} written, {} left out, {n_dropped} dropped, {} failed, {} in {}",
        format::count(run.record.n_steps, "step"),
        format::count(counter(run, "n_written"), "tensor"),
        counter(run, "n_refused"),
        counter(run, "n_failed"),
        format::bytes(counter(run, "n_bytes_written")),
        format::count(counter(run, "n_files"), "file")
    )
}

fn counter(run: &FoundRun, name: &str) -> u64 {
    run.record.counters.get(name).copied().unwrap_or(0)
}

/// Selected tensors that are otherwise unaccounted for.
fn n_missing(run: &FoundRun) -> u64 {
    let known = ["n_written", "n_refused", "n_failed"].map(|name| counter(run, name));
    let n_selected = counter(run, "n_selected");
    known
        .iter()
        .fold(n_selected, |left, n| left.saturating_sub(*n))
}

pub(super) fn to_json(runs: &[FoundRun]) -> Value {
    runs.iter()
        .map(|run| {
            json!({
                "path": run.path,
                "is_cut_off": match run.end {
                    RunEnd::Ended | RunEnd::AtWork => Some(false),
                    RunEnd::CutOff if always_ends(&run.record) => Some(true),
                    RunEnd::CutOff | RunEnd::Unknown => None,
                },
                "record": run.record,
            })
        })
        .collect()
}
