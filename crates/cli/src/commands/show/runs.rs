//! How the runs that made a dump ended.

use std::io::Write;

use opscope_store::file_format::run_json::{RunRecord, RunState};
use opscope_store::run_file::{FoundRun, RunEnd};
use serde_json::{Value, json};

use crate::console::line;
use crate::exit::Failure;
use crate::format;

/// One line for each run.
pub(super) fn print(out: &mut impl Write, runs: &[FoundRun]) -> Result<(), Failure> {
    for run in runs {
        let record = &run.record;
        let end = match run.end {
            RunEnd::Ended => format!("{} {}", record.state.name(), ended(run)),
            RunEnd::AtWork => "still running".to_owned(),
            RunEnd::CutOff => format!(
                "CUT OFF: process {} is gone and never wrote that it ended",
                record.process.pid
            ),
            RunEnd::Unknown if record.state == RunState::Running => format!(
                "running or cut off: process {} of `{}` cannot be looked up from here",
                record.process.pid, record.host.name
            ),
            RunEnd::Unknown => "in a state that this version does not know".to_owned(),
        };
        line!(
            out,
            "run       began {}, {}",
            record.started,
            end.trim_end()
        )?;
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

/// What ran the models; records of older versions may not say it.
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
    let n = |name: &str| run.record.counters.get(name).copied().unwrap_or(0);
    let mut parts = vec![
        format::count(run.record.n_steps, "step"),
        format!("{} written", format::count(n("n_written"), "tensor")),
    ];
    for (name, word) in [
        ("n_refused", "left out"),
        ("n_dropped", "dropped"),
        ("n_failed", "failed"),
    ] {
        parts.push(format!("{} {word}", n(name)));
    }
    parts.push(format!(
        "{} in {}",
        format::bytes(n("n_bytes_written")),
        format::count(n("n_files"), "file")
    ));
    parts.join(", ")
}

pub(super) fn to_json(runs: &[FoundRun]) -> Value {
    runs.iter()
        .map(|run| {
            json!({
                "path": run.path,
                "is_cut_off": match run.end {
                    RunEnd::Ended | RunEnd::AtWork => Some(false),
                    RunEnd::CutOff => Some(true),
                    RunEnd::Unknown => None,
                },
                "record": run.record,
            })
        })
        .collect()
}
