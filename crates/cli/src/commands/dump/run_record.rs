//! The record of the run beside the dump, and what killed runs before it left.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_dump::{add_summary, now, plan_in_short};
use opscope_engine::Signature;
use opscope_store::StoreError;
use opscope_store::atomic_file::Modes;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::run_json::{
    CONFIGURATION_BYTES_MAX, ConfigurationFile, ModelFile, Program, RunRecord, RunState,
};
use opscope_store::run_file::{RunFile, clean_acl, clean_mindspore, this_host};
use opscope_store::temporary::LeftOvers;
use opscope_tensor::digest::{hex, xxh3_128};

use super::request::Target;
use super::{Outcome, Request, RunArguments, Sinks};
use crate::console::tell;
use crate::engine::EngineInUse;
use crate::exit::{Failure, INTERRUPTED, PARTIAL, chain};
use crate::format;

/// The record while the run is at work. Dropped without an end, it says that the run failed.
pub(crate) struct Recording {
    file: Option<Arc<RunFile>>,
    left_overs: LeftOvers,
    is_ended: bool,
}

impl Recording {
    /// Cleans up after killed runs and writes the record; where no directory is made before there is
    /// something to write, the record waits for that too. A run without a dump has none.
    pub(crate) fn begin(
        (command, engine): (&str, &EngineInUse),
        arguments: &RunArguments,
        request: &Request,
        sinks: &Sinks,
        models: Vec<ModelFile>,
    ) -> Result<Recording, Failure> {
        let modes = arguments.modes.modes();
        // What is only tried leaves nothing behind.
        let place = sinks.place().filter(|_| !arguments.volume.dry_run);
        let left_overs = place.as_ref().map_or_else(LeftOvers::default, |place| {
            place.clean(modes).unwrap_or_else(|error| {
                warn(&error);
                LeftOvers::default()
            })
        });
        let file = place.map(|place| {
            let mut record = record(command, arguments, request, place.dialect, models);
            engine.record(&mut record);
            Arc::new(RunFile::new(&place.dump_path, &place.root, modes, record))
        });
        if let Some(file) = &file {
            if let Target::Acl(sink) = &sinks.target {
                sink.set_run(file.clone());
            }
            if file.root().is_dir() {
                file.begin().map_err(|error| Failure::new(PARTIAL, error))?;
            }
        }
        Ok(Recording {
            file,
            left_overs,
            is_ended: false,
        })
    }

    /// Adds what one model did.
    pub(crate) fn add(&self, outcome: &Outcome) {
        if let Some(file) = &self.file {
            file.update(|record| {
                record.n_steps += outcome.n_steps;
                add_summary(record, &outcome.summary);
            });
        }
    }

    /// Writes the end; tells what was cleaned up.
    pub(crate) fn finish(
        mut self,
        sinks: &Sinks,
        result: &Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.left_overs = self.left_overs + sinks.left_overs();
        tell(self.left_overs);
        let end = match result {
            Ok(()) => RunState::Finished,
            Err(failure) if failure.code == INTERRUPTED => RunState::Interrupted,
            Err(_) => RunState::Failed,
        };
        self.end(end).map_err(|error| Failure::new(PARTIAL, error))
    }

    /// Returns the counts of the unfinished files cleaned up so far.
    pub(crate) fn left_overs(&self, sinks: &Sinks) -> LeftOvers {
        self.left_overs + sinks.left_overs()
    }

    fn end(&mut self, end: RunState) -> Result<(), StoreError> {
        self.is_ended = true;
        let Some(file) = &self.file else {
            return Ok(());
        };
        let left_overs = self.left_overs;
        file.update(|record| record.left_overs = left_overs);
        file.finish(end, now())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Whoever drops it has an error to tell already.
        if !self.is_ended {
            let _ = self.end(RunState::Failed);
        }
    }
}

/// Where a dump lies.
pub(super) struct DumpPlace {
    pub(super) dialect: &'static str,
    pub(super) dump_path: PathBuf,
    pub(super) root: PathBuf,
}

impl DumpPlace {
    fn clean(&self, modes: Modes) -> Result<LeftOvers, StoreError> {
        match self.dialect {
            "acl" => clean_acl(&self.dump_path, modes, &now()),
            _ => clean_mindspore(&self.dump_path, modes, &now()),
        }
    }
}

impl Sinks {
    /// Where the dump goes; none if nothing is written.
    pub(super) fn place(&self) -> Option<DumpPlace> {
        match &self.target {
            Target::Acl(sink) => Some(DumpPlace {
                dialect: "acl",
                dump_path: sink.tree().dump_path().to_owned(),
                root: sink.tree().root().to_owned(),
            }),
            Target::MindSpore(sink) => Some(DumpPlace {
                dialect: "mindspore",
                dump_path: sink.path().to_owned(),
                root: sink.path().to_owned(),
            }),
            Target::Stats(_) | Target::Nothing => None,
        }
    }

    fn left_overs(&self) -> LeftOvers {
        match &self.target {
            Target::MindSpore(sink) => sink.left_overs(),
            Target::Acl(_) | Target::Stats(_) | Target::Nothing => LeftOvers::default(),
        }
    }
}

/// Describes a model for the record. A file that cannot be read any more has no digest.
pub(crate) fn model_file(name: &str, path: Option<&Path>, signature: &Signature) -> ModelFile {
    let bytes = path.and_then(|path| FileBytes::open(path).ok());
    ModelFile {
        name: name.to_owned(),
        file: path
            .and_then(Path::file_name)
            .map(|name| name.to_string_lossy().into_owned()),
        n_bytes: bytes.as_ref().map(|bytes| bytes.as_ref().len() as u64),
        xxh3_128: bytes.map(|bytes| hex(&xxh3_128(bytes.as_ref()))),
        graph: signature.graph_name.clone(),
    }
}

fn record(
    command: &str,
    arguments: &RunArguments,
    request: &Request,
    dialect: &str,
    models: Vec<ModelFile>,
) -> RunRecord {
    RunRecord {
        tool: Program {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        },
        host: this_host(),
        started: now(),
        command: command.to_owned(),
        configuration: request.configuration.as_deref().map(configuration),
        dialect: dialect.to_owned(),
        plan: plan_in_short(&request.plan),
        n_writers: request.n_writers(arguments.writers.into()) as u64,
        models,
        ..RunRecord::default()
    }
}

/// The file was read before; one that has vanished since has a path only.
fn configuration(path: &Path) -> ConfigurationFile {
    let bytes = FileBytes::open(path).ok();
    let bytes = bytes.as_ref().map(AsRef::as_ref).unwrap_or_default();
    let is_short = bytes.len() <= CONFIGURATION_BYTES_MAX;
    ConfigurationFile {
        path: path.to_string_lossy().into_owned(),
        xxh3_128: hex(&xxh3_128(bytes)),
        text: is_short.then(|| String::from_utf8_lossy(bytes).into_owned()),
    }
}

fn tell(left_overs: LeftOvers) {
    if left_overs.n_files > 0 {
        tell!(
            "opscope: removed {} ({}) that killed runs had left unfinished",
            format::count(left_overs.n_files, "file"),
            format::bytes(left_overs.n_bytes)
        );
    }
    if left_overs.n_kept > 0 {
        tell!(
            "opscope: left {} alone that a process on another machine, or in another container, had begun",
            format::count(left_overs.n_kept, "unfinished file"),
        );
    }
}

fn warn(error: &StoreError) {
    tell!("opscope: warning: {}", chain(error));
}
