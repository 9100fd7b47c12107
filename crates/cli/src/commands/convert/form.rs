//! A dump in another form.

use std::io::Write;
use std::path::PathBuf;

use opscope_analysis::{default_jobs, read_dump};
use opscope_dump::{DumpOptions, RunRecorder, TranscriptionReport, copy_graphs, transcribe};
use opscope_store::file_format::run_json::{RunRecord, RunState};
use opscope_store::temporary::LeftOvers;
use serde_json::json;

use super::ConvertArguments;
use crate::commands::dump::form::FormChoice;
use crate::console::{self, line, tell};
use crate::exit::{CommandFailure, PARTIAL, UNREADABLE, USAGE, chain};
use crate::{format, passed_over};

/// Writes one dump again in another form.
pub(super) fn run(
    arguments: &ConvertArguments,
    form: FormChoice,
    paths: &[PathBuf],
) -> Result<(), CommandFailure> {
    let [path] = paths else {
        let message = "`--form` takes one dump at a time";
        return Err(CommandFailure::message(USAGE, message));
    };
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs);
    let index = read_dump(path, n_threads)?;
    if index.tensors.is_empty() && index.errors.is_empty() {
        return Err(CommandFailure::nothing_at(path, &index.passed_over));
    }
    let modes = arguments.modes.modes();
    let request = form.request_for(&arguments.out, modes)?;
    let options = DumpOptions {
        modes,
        ..DumpOptions::default()
    };
    let dump = request
        .open(&options)
        .map_err(|error| CommandFailure::new(USAGE, error))?;
    let record = RunRecord {
        command: "convert".to_owned(),
        ..RunRecord::default()
    };
    let left_overs = LeftOvers::default();
    // The new dump says that a conversion made it, not a run.
    let recorder = RunRecorder::begin(&dump, &request, record, left_overs)
        .map_err(|error| CommandFailure::new(PARTIAL, error))?;
    let report = transcribe(&index.tensors, &*dump.sink());
    // Replay and comparison need the graphs; a dump of nothing gets none.
    let copied = dump
        .written_place()
        .map(|place| copy_graphs(&index.tensors, &place));
    let recorded = recorder.finish(&dump, RunState::Finished);
    let mut failures: Vec<String> = index.errors.iter().map(|error| chain(error)).collect();
    failures.extend(copied.and_then(Result::err).map(|error| chain(&error)));
    failures.extend(report.errors.iter().map(|error| chain(error)));
    let refused = dump.refused();
    print(arguments, &report, &refused, &failures)?;
    if !arguments.json {
        passed_over::print(&mut console::out(), &index.passed_over)?;
    }
    recorded.map_err(|error| CommandFailure::new(PARTIAL, error))?;
    if failures.is_empty() && report.left_out.is_empty() && refused.is_empty() {
        return Ok(());
    }
    let code = if report.n_tensors == 0 {
        UNREADABLE
    } else {
        PARTIAL
    };
    Err(CommandFailure::silent(code))
}

fn print(
    arguments: &ConvertArguments,
    report: &TranscriptionReport,
    refused: &[(String, u64)],
    failures: &[String],
) -> Result<(), CommandFailure> {
    let left_out: Vec<(String, u64)> = report.left_out.clone().into_iter().collect();
    let left_out = [&left_out[..], refused].concat();
    if arguments.json {
        let left_out: Vec<_> = left_out
            .iter()
            .map(|(reason, n)| json!({ "reason": reason, "tensors": n }))
            .collect();
        return Ok(console::print_json(&json!({
            "out": arguments.out,
            "executions": report.n_executions,
            "tensors": report.n_tensors,
            "files": report.written.n_files,
            "bytes_written": report.written.n_bytes,
            "left_out": left_out,
            "failures": failures,
        }))?);
    }
    for failure in failures {
        tell!("opscope: {failure}");
    }
    for (reason, n) in &left_out {
        tell!(
            "opscope: {} left out: {reason}",
            format::count(*n, "tensor")
        );
    }
    let tensors = format::count(report.n_tensors, "tensor");
    let executions = format::count(report.n_executions, "execution");
    let files = format::count(report.written.n_files, "file");
    let bytes = format::bytes(report.written.n_bytes);
    let out = arguments.out.display();
    line!(
        console::out(),
        "{tensors} of {executions} written to {files}, {bytes}, in {out}"
    )?;
    Ok(())
}
