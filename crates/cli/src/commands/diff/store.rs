//! Storage for a side's tensors: this process, or a dump on disk.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_analysis::compare::run::{self, ComparisonRequest};
use opscope_analysis::compare::side::ComparedDump;
use opscope_capture::{Plan, Sink};
use opscope_diff::{RunOutcome, TargetStore};
use opscope_dump::held::{HeldDump, HeldRoom, describe};
use opscope_dump::{
    DumpForm, DumpOptions, DumpRequest, NativeContent, NativeOptions, OpenDump, RunRecorder,
    model_file,
};
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::run_json::{RunRecord, RunState};
use opscope_store::temporary::LeftOvers;
use tempfile::TempDir;

use super::side::ModelSide;
use crate::commands::compare;
use crate::exit::{CommandFailure, CommandResult, PARTIAL, UNREADABLE, USAGE};

/// Storage for both sides.
pub(super) enum KeepingPlace {
    /// Memory, up to a limit.
    Process(Arc<HeldRoom>),
    /// A directory, which the command removes if it is temporary.
    Directory {
        root: PathBuf,
        modes: PermissionModes,
        temporary: Option<TempDir>,
    },
}

impl KeepingPlace {
    /// A directory named by the user; it must not contain dumps of a comparison yet.
    pub(super) fn directory(root: &Path, modes: PermissionModes) -> CommandResult<KeepingPlace> {
        for side in ["target", "golden"] {
            // A broken link is in the way as well.
            let path = root.join(side);
            if path.symlink_metadata().is_ok() {
                let message = format!("`{}` exists already", path.display());
                let hint = "pass another directory to `--save`";
                return Err(CommandFailure::message(USAGE, message).with_hint(hint));
            }
        }
        Ok(KeepingPlace::Directory {
            root: root.to_owned(),
            modes,
            temporary: None,
        })
    }

    /// A private directory that is removed at the end.
    pub(super) fn temporary() -> CommandResult<KeepingPlace> {
        let directory = tempfile::Builder::new()
            .prefix("opscope-diff-")
            // Without this other users may list it.
            .permissions(Permissions::from_mode(0o700))
            .tempdir();
        let directory = directory.map_err(|error| {
            let place = std::env::temp_dir();
            let error = anyhow::Error::new(error);
            let context = format!("cannot create a directory in `{}`", place.display());
            CommandFailure::new(PARTIAL, error.context(context))
        })?;
        Ok(KeepingPlace::Directory {
            root: directory.path().to_owned(),
            modes: PermissionModes::default(),
            temporary: Some(directory),
        })
    }

    /// Whether the dumps stay after the command.
    pub(super) fn stays(&self) -> bool {
        matches!(
            self,
            KeepingPlace::Directory {
                temporary: None,
                ..
            }
        )
    }

    /// Starts storing a side, `target` or `golden`.
    pub(super) fn begin(&self, side: &'static str, model: &ModelSide) -> CommandResult<SideStore> {
        match self {
            // Both sides share the memory limit.
            KeepingPlace::Process(room) => {
                Ok(SideStore::Held(Arc::new(HeldDump::new(room.clone()))))
            }
            KeepingPlace::Directory { root, modes, .. } => {
                let saved = SavedSide::begin(&root.join(side), *modes, model)?;
                Ok(SideStore::Saved(Box::new(saved)))
            }
        }
    }
}

/// Storage for one side.
pub(super) enum SideStore {
    Held(Arc<HeldDump>),
    Saved(Box<SavedSide>),
}

/// A native dump of a side.
pub(super) struct SavedSide {
    path: PathBuf,
    dump: OpenDump,
    recorder: RunRecorder,
}

impl SavedSide {
    fn begin(path: &Path, modes: PermissionModes, model: &ModelSide) -> CommandResult<SavedSide> {
        let form = NativeOptions {
            places: vec![path.to_owned()],
            content: NativeContent::Tensors,
            rank: 0,
        };
        let request = DumpRequest::new(Plan::everything(), DumpForm::Native(form));
        let options = DumpOptions {
            modes,
            ..DumpOptions::default()
        };
        let dump = request.open(&options);
        let dump = dump.map_err(|error| CommandFailure::new(USAGE, error))?;
        let file = model_file(&model.id.file_stem, Some(&model.path), &model.id.graph_name);
        let mut record = RunRecord {
            command: "diff".to_owned(),
            models: vec![file],
            ..RunRecord::default()
        };
        model.engine.record(&mut record);
        // The record tells the page, and later readers, how the dump was made.
        let mut recorder = RunRecorder::begin(&dump, &request, record, LeftOvers::default());
        // Stores the graph's names, attributes and wiring next to the tensors.
        let described = dump.describe(&*model.model, &model.id);
        described.map_err(partial)?;
        recorder.begun().map_err(partial)?;
        Ok(SavedSide {
            path: path.to_owned(),
            recorder,
            dump,
        })
    }
}

impl SideStore {
    /// The sink of a side that is not compared while it runs.
    pub(super) fn sink(&self) -> Arc<dyn Sink> {
        match self {
            SideStore::Held(held) => held.clone(),
            SideStore::Saved(saved) => saved.dump.sink(),
        }
    }

    /// The same store behind a comparison.
    pub(super) fn target_store(&self) -> TargetStore {
        match self {
            SideStore::Held(held) => TargetStore::Held(held.clone()),
            SideStore::Saved(saved) => TargetStore::Dump(saved.dump.sink()),
        }
    }

    /// The tensors of a finished run, as a dump to compare.
    pub(super) fn finish(
        self,
        side: &'static str,
        model: &ModelSide,
        outcome: &RunOutcome,
        request: &ComparisonRequest,
    ) -> CommandResult<KeptSide> {
        let (mut dump, path) = match self {
            SideStore::Held(held) => {
                let graph = describe(&*model.model, &model.id);
                let graph = graph.map_err(|error| CommandFailure::new(UNREADABLE, error))?;
                let index = held.take_index(vec![graph]);
                (ComparedDump::from_index(&model.label, index), None)
            }
            SideStore::Saved(saved) => {
                let SavedSide {
                    path,
                    dump,
                    recorder,
                } = *saved;
                // Ends the record first; otherwise a reader would consider the dump unfinished.
                recorder.add(outcome.n_steps, &outcome.summary);
                recorder
                    .finish(&dump, RunState::Finished)
                    .map_err(partial)?;
                (ComparedDump::open(&path, request.n_threads)?, Some(path))
            }
        };
        run::narrow(side, &mut dump, request).map_err(compare::failure)?;
        Ok(KeptSide {
            dump: Arc::new(dump),
            path,
        })
    }
}

/// A side that was run or read.
#[derive(Clone)]
pub(super) struct KeptSide {
    pub(super) dump: Arc<ComparedDump>,
    /// Its path, if it is on disk.
    pub(super) path: Option<PathBuf>,
}

impl KeptSide {
    /// Removes a dump made here whose run is repeated.
    pub(super) fn discard(self) -> CommandResult {
        // Its files stay open as long as it exists.
        drop(self.dump);
        self.path
            .map_or(Ok(()), |path| Ok(std::fs::remove_dir_all(path)?))
    }
}

fn partial(error: opscope_store::StoreError) -> CommandFailure {
    CommandFailure::new(PARTIAL, error)
}
