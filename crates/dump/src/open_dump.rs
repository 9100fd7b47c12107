//! An open dump: its sinks, its directories and the files that accompany the records.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::sink::NoSink;
use opscope_capture::{CaptureSession, Plan, SessionOptions, Sink, SinkError};
use opscope_engine::LoadedModel;
use opscope_store::StoreError;
use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::file_format::graph_json;
use opscope_store::record::ModelId;
use opscope_store::run_file::RunFile;
use opscope_store::temporary::LeftOvers;
use opscope_store::tree::acl::OVERWRITES_FILE;
use opscope_store::tree::own;
use opscope_tensor::DType;

use crate::destination::{DumpDialect, DumpPlace, dump_times, free_time};
use crate::dry_run::DryRun;
use crate::failure_dump::FailureDump;
use crate::model::{graph_text, input_names, result_names};
use crate::request::{DumpForm, DumpRequest, NativeOptions};
use crate::sink::{
    AclSink, MindSporeSink, NativeSink, RangeReport, RangeSink, StatsRows, StatsSink,
};

/// How a dump is opened.
#[derive(Clone, Debug, Default)]
pub struct DumpOptions {
    /// Permissions of new files and directories.
    pub modes: PermissionModes,
    /// Candidate names for the dump's directory. The first free one is used: two dumps never share
    /// a tree. `None` means [`dump_times`].
    pub times: Option<Vec<String>>,
    /// Whether nothing is written, only counted.
    pub is_dry_run: bool,
    /// Whether a dump without a place keeps a row of statistics for each tensor.
    pub has_rows: bool,
    /// Dtypes to check the range of each tensor against, each once.
    pub narrow: Vec<DType>,
}

impl DumpOptions {
    fn times(&self) -> Box<dyn Iterator<Item = String> + '_> {
        match &self.times {
            Some(times) => Box::new(times.iter().cloned()),
            None => Box::new(dump_times()),
        }
    }

    /// `write` where something is written.
    fn creator(&self, write: impl FnOnce() -> Creator) -> Arc<Creator> {
        Arc::new(if self.is_dry_run {
            Creator::pretending(self.modes)
        } else {
            write()
        })
    }
}

/// A dump that has begun. Sessions write to it one after the other.
pub struct OpenDump {
    tree: DumpTree,
    creator: Arc<Creator>,
    modes: PermissionModes,
    rows: Option<Arc<StatsSink>>,
    ranges: Option<Arc<RangeSink>>,
    dry_run: Option<DryRun>,
    failures: Option<FailureDump>,
    /// The sink that sessions write to: inspecting and counting sinks around that of the tree.
    sink: Arc<dyn Sink>,
}

/// The sink of the tree that is written.
enum DumpTree {
    Acl(Arc<AclSink>),
    MindSpore(Arc<MindSporeSink>),
    Native(Arc<NativeSink>),
    /// No file is written.
    None,
}

impl DumpRequest {
    /// Begins the dump: creates its directory at the first usable place, so that an unusable one is
    /// found before a model runs. Where files may never come, no directory is made for them before
    /// they do.
    ///
    /// # Errors
    /// [`StoreError::Io`] of the first place if no place is usable.
    pub fn open(&self, options: &DumpOptions) -> Result<OpenDump, StoreError> {
        let modes = options.modes;
        let (tree, creator) = match &self.form {
            DumpForm::MindSpore(form) => {
                let creator = options.creator(|| Creator::in_shared_dump(&form.path, modes));
                let sink = MindSporeSink::create_by(creator.clone(), form.clone())?;
                let sink = sink.with_tensors_where(self.tensors.clone());
                (DumpTree::MindSpore(Arc::new(sink)), creator)
            }
            DumpForm::Native(form) => match self.open_native(form, options)? {
                None => (DumpTree::None, Arc::new(Creator::new(modes))),
                Some((sink, creator)) => (DumpTree::Native(Arc::new(sink)), creator),
            },
            DumpForm::Acl { places, content } => match self.open_first(places, options)? {
                None => (DumpTree::None, Arc::new(Creator::new(modes))),
                Some((sink, creator)) => {
                    let sink = sink
                        .with_content(content.clone())
                        .with_tensors_where(self.tensors.clone());
                    (DumpTree::Acl(Arc::new(sink)), creator)
                }
            },
        };
        // The dump of failures has a separate creator, which writes; a dry run leaves nothing.
        let failures = self.failures.as_ref().filter(|_| !options.is_dry_run);
        Ok(OpenDump {
            failures: failures.and_then(|dump| FailureDump::new(dump, modes)),
            ..OpenDump::new(tree, creator, options)
        })
    }

    /// The sink of an AscendCL tree at the first place that is usable; `None` if there are no
    /// places.
    fn open_first(
        &self,
        places: &[PathBuf],
        options: &DumpOptions,
    ) -> Result<Option<(AclSink, Arc<Creator>)>, StoreError> {
        first_usable(places, |place| self.open_place(place, options))
    }

    /// The same for a native dump.
    fn open_native(
        &self,
        form: &NativeOptions,
        options: &DumpOptions,
    ) -> Result<Option<(NativeSink, Arc<Creator>)>, StoreError> {
        first_usable(&form.places, |place| {
            let creator = options.creator(|| Creator::in_dump(place, options.modes));
            let sink = if self.is_lazy() {
                creator.create_dir(place)?;
                let time = free_time(place, options.times(), |_| false);
                NativeSink::lazy_by(creator.clone(), place, &time, form.rank)
            } else {
                NativeSink::create_by(creator.clone(), place, options.times(), form.rank)?
            };
            let sink = sink.with_content(form.content);
            Ok((sink.with_tensors_where(self.tensors.clone()), creator))
        })
    }

    fn open_place(
        &self,
        place: &Path,
        options: &DumpOptions,
    ) -> Result<(AclSink, Arc<Creator>), StoreError> {
        let creator = options.creator(|| Creator::in_dump(place, options.modes));
        let sink = if self.is_lazy() {
            // The place itself is created all the same, to see whether it is usable.
            creator.create_dir(place)?;
            let time = free_time(place, options.times(), |_| false);
            AclSink::lazy_by(creator.clone(), place, &time)
        } else {
            AclSink::create_by(creator.clone(), place, options.times())?
        };
        Ok((sink, creator))
    }
}

/// Opens the first place that is usable.
fn first_usable<T>(
    places: &[PathBuf],
    open: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut first_error = None;
    for place in places {
        match open(place) {
            Ok(opened) => return Ok(Some(opened)),
            Err(error) => {
                // The later places are only fallbacks for the first one, so the first error is
                // reported.
                first_error.get_or_insert(error);
            }
        }
    }
    first_error.map_or(Ok(None), Err)
}

impl OpenDump {
    fn new(tree: DumpTree, creator: Arc<Creator>, options: &DumpOptions) -> OpenDump {
        let mut rows = None;
        let mut sink: Option<Arc<dyn Sink>> = match &tree {
            DumpTree::Acl(sink) => Some(sink.clone()),
            DumpTree::MindSpore(sink) => Some(sink.clone()),
            DumpTree::Native(sink) => Some(sink.clone()),
            DumpTree::None if options.has_rows => {
                let sink = rows.insert(Arc::new(StatsSink::default()));
                Some(sink.clone())
            }
            DumpTree::None => None,
        };
        // Each sink wraps the one before: the dry run counts the tree's files, and ranges are checked
        // before anything is written.
        let dry_run = options.is_dry_run.then(|| {
            let place = match &tree {
                DumpTree::Acl(sink) => sink.tree().root().to_owned(),
                DumpTree::MindSpore(sink) => sink.tree().rank_dir(),
                DumpTree::Native(sink) => sink.tree().root().to_owned(),
                DumpTree::None => PathBuf::from("."),
            };
            let next = sink.take().unwrap_or_else(|| Arc::new(NoSink));
            DryRun::new(creator.clone(), next, place)
        });
        if let Some(run) = &dry_run {
            sink = Some(run.sink());
        }
        let targets = options.narrow.clone();
        let ranges = (!targets.is_empty()).then(|| Arc::new(RangeSink::new(targets, sink.take())));
        if let Some(ranges) = &ranges {
            sink = Some(ranges.clone());
        }
        OpenDump {
            tree,
            creator,
            modes: options.modes,
            rows,
            ranges,
            dry_run,
            failures: None,
            sink: sink.unwrap_or_else(|| Arc::new(NoSink)),
        }
    }

    /// Starts a session that writes to this dump. A ring of steps requires a dump with files:
    /// otherwise there is nothing to remove.
    ///
    /// # Errors
    /// As for [`CaptureSession::start`].
    pub fn start_session(&self, plan: Plan, options: SessionOptions) -> io::Result<CaptureSession> {
        let has_files = self.place().is_some() && self.dry_run.is_none();
        // A session refuses a ring with a sink that cannot take steps back, as that of rows. A dry
        // run counts the steps that a ring would remove, too.
        let ring = options.ring.filter(|_| has_files);
        CaptureSession::start(plan, self.sink.clone(), SessionOptions { ring, ..options })
    }

    /// The sink that sessions write to.
    pub fn sink(&self) -> Arc<dyn Sink> {
        self.sink.clone()
    }

    /// The creator of its files, which knows the directories that are there already.
    pub fn creator(&self) -> Arc<Creator> {
        self.creator.clone()
    }

    /// The directories of the dump; `None` if nothing is written.
    pub fn place(&self) -> Option<DumpPlace> {
        let (dialect, dump_path, root) = match &self.tree {
            DumpTree::Acl(sink) => (
                DumpDialect::Acl,
                sink.tree().dump_path(),
                sink.tree().root(),
            ),
            DumpTree::MindSpore(sink) => (DumpDialect::MindSpore, sink.path(), sink.path()),
            DumpTree::Native(sink) => (
                DumpDialect::Native,
                sink.tree().dump_path(),
                sink.tree().root(),
            ),
            DumpTree::None => return None,
        };
        Some(DumpPlace {
            dialect,
            dump_path: dump_path.to_owned(),
            root: root.to_owned(),
            modes: self.modes,
        })
    }

    /// [`OpenDump::place`] of a dump that writes: a dry run leaves no files.
    pub fn written_place(&self) -> Option<DumpPlace> {
        self.place().filter(|_| self.dry_run.is_none())
    }

    /// Lets the record of the run come just before the first file, if it is not there by then.
    pub fn set_run(&self, run: &Arc<RunFile>) {
        match &self.tree {
            DumpTree::Acl(sink) => sink.set_run(run.clone()),
            DumpTree::Native(sink) => sink.set_run(run.clone()),
            // Its directory is there as soon as it is opened, so the record need not wait.
            DumpTree::MindSpore(_) | DumpTree::None => {}
        }
    }

    /// The run that counts what would be written, if nothing is.
    pub fn dry_run(&self) -> Option<&DryRun> {
        self.dry_run.as_ref()
    }

    /// The dump of failures, for repeating a step with a failing operator, if nothing else keeps
    /// it.
    pub fn failures(&self) -> Option<&FailureDump> {
        self.failures.as_ref()
    }

    /// Takes the rows of statistics so far, if they are kept.
    pub fn take_rows(&self) -> Option<StatsRows> {
        self.rows.as_ref().map(|sink| sink.take_rows())
    }

    /// Takes the report on ranges so far, if ranges are checked.
    ///
    /// # Errors
    /// [`SinkError`] if a file that holds rows cannot be read.
    pub fn take_ranges(&self) -> Result<Option<RangeReport>, SinkError> {
        let ranges = self.ranges.as_ref().map(|sink| sink.take_report());
        ranges.transpose()
    }

    /// Whether the tree is MindSpore's.
    pub fn is_mindspore(&self) -> bool {
        matches!(self.tree, DumpTree::MindSpore(_))
    }

    /// Whether the tree is AscendCL's.
    pub fn is_acl(&self) -> bool {
        matches!(self.tree, DumpTree::Acl(_))
    }

    /// The directories that the first `n_steps` steps of `id` wrote to.
    pub fn step_dirs(&self, id: &ModelId, n_steps: u64) -> Vec<PathBuf> {
        let mut dirs: Vec<PathBuf> = (0..n_steps)
            .filter_map(|step| match &self.tree {
                DumpTree::Acl(sink) => Some(sink.tree().step_dir(id, step)),
                DumpTree::MindSpore(sink) => Some(sink.step_dir(id, step)),
                // Tables of all steps lie side by side.
                DumpTree::Native(sink) => Some(sink.tree().model_dir(id)),
                DumpTree::None => None,
            })
            .collect();
        // Operators that run on their own have one directory for all steps.
        dirs.dedup();
        // Steps that the plan leaves out, or that a ring has removed, have none.
        dirs.retain(|dir| dir.is_dir());
        dirs
    }

    /// The directory of operators that fail in a step of `id`; it need not be there.
    pub fn failure_dir(&self, id: &ModelId, step: u64) -> Option<PathBuf> {
        match &self.tree {
            DumpTree::Acl(sink) => Some(sink.tree().failure_dir(id.device)),
            DumpTree::MindSpore(sink) => Some(sink.failure_dir(id, step)),
            DumpTree::Native(_) | DumpTree::None => None,
        }
    }

    /// The directory that holds a tree of MindSpore.
    pub fn rank_dir(&self) -> Option<PathBuf> {
        match &self.tree {
            DumpTree::MindSpore(sink) => Some(sink.tree().rank_dir()),
            DumpTree::Acl(_) | DumpTree::Native(_) | DumpTree::None => None,
        }
    }

    /// Why tensors have no place in the dump, and how many.
    pub fn refused(&self) -> Vec<(String, u64)> {
        match &self.tree {
            DumpTree::MindSpore(sink) => sink.refused(),
            DumpTree::Acl(sink) => sink.refused(),
            DumpTree::Native(_) | DumpTree::None => Vec::new(),
        }
    }

    /// The counts of unfinished files of killed runs that were found on the way.
    pub fn left_overs(&self) -> LeftOvers {
        match &self.tree {
            DumpTree::MindSpore(sink) => sink.left_overs(),
            DumpTree::Acl(_) | DumpTree::Native(_) | DumpTree::None => LeftOvers::default(),
        }
    }

    /// Writes the list of overwritten values into an AscendCL tree.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn write_overwrites(&self, text: &str) -> Result<(), StoreError> {
        if let DumpTree::Acl(sink) = &self.tree {
            let path = sink.tree().root().join(OVERWRITES_FILE);
            self.creator.create_file(&path, &[text.as_bytes()])?;
        }
        Ok(())
    }

    /// Writes the description of the graph of `model`, if there is a directory for it by now;
    /// returns whether it was written.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn describe(&self, model: &dyn LoadedModel, id: &ModelId) -> Result<bool, StoreError> {
        let place = self.written_place().filter(|place| place.root.is_dir());
        let Some(place) = place else {
            return Ok(false);
        };
        let (arguments, results) = (input_names(model), result_names(model));
        let graph = graph_text(model, id, &arguments, &results);
        let path = own::graph_file(&place.root, graph.name);
        // The model may have been described before, by an earlier load or by a run in the same
        // directory.
        self.creator.replace_with(&path, |file| {
            let mut out = BufWriter::new(file);
            graph_json::write(&mut out, &graph)?;
            out.flush()
        })?;
        Ok(true)
    }
}
