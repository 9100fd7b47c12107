//! The record of a dump, beside it.

use std::path::Path;
use std::sync::Arc;

use opscope_capture::{Plan, Summary};
use opscope_dump::{add_summary, now, plan_in_short};
use opscope_store::StoreError;
use opscope_store::atomic_file::Modes;
use opscope_store::file_format::run_json::{ModelFile, Program, RunRecord, RunState};
use opscope_store::run_file::{RunFile, this_host};

/// A record of a dump below `root` that begins now. `dialect` is whose form the dump has.
pub(super) fn begin(
    dialect: &str,
    (place, root): (&Path, &Path),
    plan: &Plan,
    torch_version: &str,
    n_writers: usize,
) -> Arc<RunFile> {
    let program = |name: &str, version: &str| Program {
        name: name.to_owned(),
        version: Some(version.to_owned()),
    };
    let record = RunRecord {
        tool: program("opscope", env!("CARGO_PKG_VERSION")),
        host: this_host(),
        started: now(),
        command: "torch.compile".to_owned(),
        dialect: dialect.to_owned(),
        plan: plan_in_short(plan),
        engine: program("torch", torch_version),
        n_writers: n_writers as u64,
        ..RunRecord::default()
    };
    Arc::new(RunFile::new(place, root, Modes::default(), record))
}

/// Says by what means operators are shown.
pub(super) fn note_command(run: &RunFile, command: &str) {
    run.update(|record| record.command = command.to_owned());
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

/// Writes its last form.
///
/// # Errors
/// As for [`RunFile::finish`].
pub(super) fn end(run: &RunFile, summary: &Summary) -> Result<(), StoreError> {
    run.update(|record| {
        record.n_steps = summary.counters.n_steps;
        add_summary(record, summary);
    });
    run.finish(RunState::Finished, now())
}
