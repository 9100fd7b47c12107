//! The run's record in the dump, and the leftovers of killed runs.

use opscope_dump::{DumpRequest, OpenDump, RunRecorder};
use opscope_store::file_format::run_json::{ModelFile, RunRecord, RunState};
use opscope_store::temporary::LeftOvers;

use super::RunArguments;
use crate::console::report;
use crate::engine::EngineInUse;
use crate::exit::{CommandFailure, CommandResult, INTERRUPTED, PARTIAL, chain};
use crate::format;

/// Cleans up after killed runs and writes the record. A run without a dump has none.
pub(crate) fn begin(
    (command, engine): (&str, &EngineInUse),
    arguments: &RunArguments,
    request: &DumpRequest,
    dump: &OpenDump,
    models: Vec<ModelFile>,
) -> RunRecorder {
    let left_overs = dump
        .written_place()
        .map_or_else(LeftOvers::default, |place| {
            place.clean().unwrap_or_else(|error| {
                // Leftovers do not harm this run, so a failed cleanup does not stop it.
                report!("opscope: warning: {}", chain(&error));
                LeftOvers::default()
            })
        });
    let mut record = RunRecord {
        command: command.to_owned(),
        n_writers: request.n_writers(arguments.writers.into()) as u64,
        models,
        ..RunRecord::default()
    };
    engine.record(&mut record);
    RunRecorder::begin(dump, request, record, left_overs)
}

/// Writes the end of the run; reports what was cleaned up.
pub(crate) fn finish(
    recorder: RunRecorder,
    dump: &OpenDump,
    result: &CommandResult,
) -> CommandResult {
    report_left_overs(recorder.left_overs(dump));
    let end = match result {
        Ok(()) => RunState::Finished,
        Err(failure) if failure.code == INTERRUPTED => RunState::Interrupted,
        Err(_) => RunState::Failed,
    };
    let finished = recorder.finish(dump, end);
    finished.map_err(|error| CommandFailure::new(PARTIAL, error))
}

fn report_left_overs(left_overs: LeftOvers) {
    if left_overs.n_files > 0 {
        report!(
            "opscope: removed {} ({}) that killed runs had left unfinished",
            format::count(left_overs.n_files, "file"),
            format::bytes(left_overs.n_bytes)
        );
    }
    if left_overs.n_kept > 0 {
        report!(
            "opscope: left {} alone that a process on another machine, or in another container, had begun",
            format::count(left_overs.n_kept, "unfinished file"),
        );
    }
}
