//! The record of a run next to its dump.

use opscope_capture::SessionSummary;
use opscope_dump::{add_steps, now};
use opscope_store::StoreError;
use opscope_store::file_format::run_json::{
    ModelFile, ProcessWorld, ProgramVersion, RunRecord, RunState,
};
use opscope_store::run_file::RunFile;

/// The initial record of a PyTorch dump.
pub(super) fn record(torch_version: &str, n_writers: usize) -> RunRecord {
    RunRecord {
        command: "torch.compile".to_owned(),
        engine: ProgramVersion {
            name: "torch".to_owned(),
            version: Some(torch_version.to_owned()),
        },
        n_writers: n_writers as u64,
        ..RunRecord::default()
    }
}

/// Records how operators are captured.
pub(super) fn note_command(run: &RunFile, command: &str) {
    run.update(|record| record.command = command.to_owned());
}

/// Records the number of processes and this one's rank.
pub(super) fn note_world(run: &RunFile, size: u64, rank: u64) {
    run.update(|record| record.world = Some(ProcessWorld { size, rank }));
}

/// Adds a graph.
pub(super) fn note_graph(run: &RunFile, name: &str) {
    run.update(|record| {
        record.models.push(ModelFile {
            name: name.to_owned(),
            graph: name.to_owned(),
            ..ModelFile::default()
        });
    });
}

/// Writes the final record.
///
/// # Errors
///
/// As for [`RunFile::finish`].
pub(super) fn end(run: &RunFile, summary: &SessionSummary) -> Result<(), StoreError> {
    add_steps(run, summary.counters.n_steps, summary);
    run.finish(RunState::Finished, now())
}
