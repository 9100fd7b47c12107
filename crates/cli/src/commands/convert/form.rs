//! Rewriting a dump in another form.

use std::io::Write;
use std::path::{Path, PathBuf};

use opscope_analysis::{default_jobs, read_dump};
use opscope_dump::{
    DumpOptions, DumpRequest, OpenDump, RunRecorder, TranscriptionReport, copy_graphs, transcribe,
};
use opscope_store::file_format::run_json::{RunRecord, RunState};
use opscope_store::reader::IndexedTensor;
use opscope_store::run_file::{self, FoundRun};
use opscope_store::temporary::LeftOvers;
use serde_json::json;

use super::ConvertArguments;
use crate::commands::dump::form::FormChoice;
use crate::commands::next_line;
use crate::console::{self, line, report};
use crate::exit::{CommandFailure, CommandResult, PARTIAL, UNREADABLE, USAGE, chain};
use crate::{format, passed_over};

/// Rewrites one dump in another form.
pub(super) fn run(
    arguments: &ConvertArguments,
    form: FormChoice,
    paths: &[PathBuf],
) -> CommandResult {
    let [path] = paths else {
        let message = "`--form` takes one dump at a time";
        return Err(CommandFailure::message(USAGE, message));
    };
    let n_threads = arguments.jobs.unwrap_or_else(default_jobs);
    let mut index = read_dump(path, n_threads)?;
    if index.tensors.is_empty() && index.errors.is_empty() {
        return Err(CommandFailure::nothing_at(path, &index.passed_over));
    }
    // The sort is stable, so that each rank's executions keep their order.
    index.tensors.sort_by_key(rank_of);
    let modes = arguments.modes.modes();
    let request = form.request_for(&arguments.out, modes)?;
    let options = DumpOptions {
        modes,
        ..DumpOptions::default()
    };
    let first_rank = index.tensors.first().map_or(0, rank_of);
    let request = request.for_rank(first_rank);
    let dump = request
        .open(&options)
        .map_err(|error| CommandFailure::new(USAGE, error))?;
    let record = RunRecord {
        command: "convert".to_owned(),
        ..RunRecord::default()
    };
    let left_overs = LeftOvers::default();
    // The new dump's record names the conversion and the run that its values come from.
    let mut recorder = RunRecorder::begin(&dump, &request, record, left_overs);
    let begun = recorder.begun();
    begun.map_err(|error| CommandFailure::new(PARTIAL, error))?;
    let mut report = TranscriptionReport::default();
    for tensors in index.tensors.chunk_by(|a, b| rank_of(a) == rank_of(b)) {
        let of_rank = open_for_rank(rank_of(&tensors[0]), first_rank, &request, &dump, &options)?;
        let written_to = of_rank.as_ref().unwrap_or(&dump);
        report.add(transcribe(tensors, &*written_to.sink()));
        if let Some(of_rank) = of_rank {
            add_refused(&mut report, &of_rank);
        }
    }
    add_refused(&mut report, &dump);
    // Replay and comparison need the graphs; an empty dump gets none.
    let copied = dump
        .written_place()
        .map(|place| copy_graphs(&index.tensors, &place));
    recorder.update(|record| describe(record, path, &report));
    let recorded = recorder.finish(&dump, RunState::Finished);
    let mut failures: Vec<String> = index.errors.iter().map(|error| chain(error)).collect();
    failures.extend(copied.and_then(Result::err).map(|error| chain(&error)));
    failures.extend(report.errors.iter().map(|error| chain(error)));
    print(arguments, &report, &failures)?;
    if !arguments.json {
        passed_over::print(&mut console::out(), &index.passed_over)?;
    }
    recorded.map_err(|error| CommandFailure::new(PARTIAL, error))?;
    if failures.is_empty() && report.left_out.is_empty() {
        return Ok(());
    }
    let code = if report.n_tensors == 0 {
        UNREADABLE
    } else {
        PARTIAL
    };
    Err(CommandFailure::silent(code))
}

/// Records the run that the values come from, and what was written.
fn describe(record: &mut RunRecord, source: &Path, report: &TranscriptionReport) {
    if let Some(FoundRun { record: source, .. }) = run_file::find(source).runs.pop() {
        record.plan = source.plan;
        record.engine = source.engine;
        record.engine_library = source.engine_library;
        record.engine_graph = source.engine_graph;
        record.engine_providers = source.engine_providers;
        record.n_engine_threads = source.n_engine_threads;
        record.models = source.models;
    }
    record.n_steps = report.n_steps;
    record.counters = report.counters();
}

/// Counts tensors that the form cannot store.
fn add_refused(report: &mut TranscriptionReport, dump: &OpenDump) {
    for (reason, n) in dump.refused() {
        *report.left_out.entry(reason).or_default() += n;
        report.n_tensors = report.n_tensors.saturating_sub(n);
    }
}

/// The rank of a tensor; 0 if the dump does not say.
fn rank_of(tensor: &IndexedTensor) -> u32 {
    tensor.execution.rank.unwrap_or(0)
}

/// Opens a rank's dump next to that of the first rank, in the same directory; `None` if ranks share
/// a tree.
fn open_for_rank(
    rank: u32,
    first_rank: u32,
    request: &DumpRequest,
    first: &OpenDump,
    options: &DumpOptions,
) -> CommandResult<Option<OpenDump>> {
    if rank == first_rank || first.is_acl() {
        return Ok(None);
    }
    // The first rank chose the time that names the directory.
    let time = first.place().and_then(|place| {
        let name = place.root.file_name()?;
        Some(name.to_string_lossy().into_owned())
    });
    let options = DumpOptions {
        times: time.map(|time| vec![time]),
        ..options.clone()
    };
    let opened = request.for_rank(rank).open(&options);
    let opened = opened.map_err(|error| CommandFailure::new(USAGE, error))?;
    Ok(Some(opened))
}

fn print(
    arguments: &ConvertArguments,
    report: &TranscriptionReport,
    failures: &[String],
) -> CommandResult {
    if arguments.json {
        let left_out = report.left_out.iter();
        let left_out: Vec<_> = left_out
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
        report!("opscope: {failure}");
    }
    for (reason, n) in &report.left_out {
        report!(
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
    if report.n_tensors > 0 {
        line!(console::out(), "{}", next_line("view", &[&arguments.out]))?;
    }
    Ok(())
}
