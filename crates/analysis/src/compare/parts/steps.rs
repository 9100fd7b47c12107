//! The ranks and steps of a dump, each opened by itself.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use opscope_store::dump::{self, DumpListing};
use opscope_store::reader::{self, NativeStep, native_steps};
use opscope_store::record::SlotSide;
use opscope_store::tree::native::file_below;
use opscope_store::{StoreError, remote};

use crate::compare::side::ComparedDump;

/// A rank and a step; none where a dump does not say.
pub(super) type RankStep = (Option<u32>, Option<u64>);

/// A dump by ranks and steps.
pub(super) struct DumpSteps {
    root: PathBuf,
    source: StepSource,
}

enum StepSource {
    /// The native form has files for each, and the others are not opened.
    Native(BTreeMap<RankStep, Vec<NativeStep>>),
    /// File names of other forms generally do not identify their content.
    Whole(Box<ComparedDump>),
}

/// The directory of a dump, which paths of its files begin with.
#[derive(Clone, Debug)]
pub(super) struct PathBelow {
    /// As it was given, and from the root of the file system: readers name files in either way.
    roots: [PathBuf; 2],
}

impl PathBelow {
    pub(super) fn new(root: &Path) -> PathBelow {
        let absolute = remote::absolute(root).unwrap_or_else(|_| root.to_owned());
        PathBelow {
            roots: [root.to_owned(), absolute],
        }
    }

    /// A path without the directory.
    pub(super) fn strip<'a>(&self, path: &'a Path) -> &'a Path {
        let mut roots = self.roots.iter();
        let below = roots.find_map(|root| path.strip_prefix(root).ok());
        below.unwrap_or(path)
    }
}

/// A content: its file, and where it is in there.
type Content = (PathBuf, Option<u64>, Option<(SlotSide, usize)>);

/// The files of a step, and the bytes of the elements that it shows.
#[derive(Default)]
pub(super) struct StepFiles {
    paths: BTreeSet<PathBuf>,
    pub(super) n_bytes: u64,
}

impl DumpSteps {
    /// Lists a dump of the native form, and opens one of another.
    ///
    /// # Errors
    /// [`StoreError`] if there is nothing at `root`.
    pub(super) fn open(root: &Path, n_threads: usize) -> Result<DumpSteps, StoreError> {
        let metadata = remote::metadata(root).map_err(|source| StoreError::Io {
            action: "read",
            path: root.to_owned(),
            source,
        })?;
        let listing = if metadata.is_dir() {
            dump::list(root)
        } else {
            dump::list_file(root)
        };
        let source = if reader::reader_of(&listing).form() == reader::NATIVE_FORM {
            let mut steps: BTreeMap<RankStep, Vec<NativeStep>> = BTreeMap::new();
            for step in native_steps(&listing) {
                steps
                    .entry((step.rank, Some(step.step)))
                    .or_default()
                    .push(step);
            }
            StepSource::Native(steps)
        } else {
            StepSource::Whole(Box::new(ComparedDump::open(root, n_threads)?))
        };
        Ok(DumpSteps {
            root: root.to_owned(),
            source,
        })
    }

    /// Messages about files that could not be read so far.
    pub(super) fn problems(&self) -> Vec<String> {
        match &self.source {
            StepSource::Native(_) => Vec::new(),
            StepSource::Whole(side) => side.problems.clone(),
        }
    }

    /// All ranks and steps that there are.
    pub(super) fn places(&self) -> BTreeSet<RankStep> {
        match &self.source {
            StepSource::Native(steps) => steps.keys().copied().collect(),
            StepSource::Whole(side) => {
                // Constants of a graph have no step, and form a separate place.
                let runs = side.runs.iter();
                runs.map(|run| run.place.rank_step()).collect()
            }
        }
    }

    /// The dump with this step of this rank, and nothing else.
    pub(super) fn open_step(&self, place: RankStep, n_threads: usize) -> ComparedDump {
        match &self.source {
            // Files of other steps are not even opened: a run of many ranks has more rows than a
            // process has memory for.
            StepSource::Native(steps) => {
                let files = steps.get(&place).into_iter().flatten();
                let listing = DumpListing {
                    entries: files.map(|step| step.entry.clone()).collect(),
                    ..DumpListing::default()
                };
                ComparedDump::open_listing(&self.root, listing, n_threads)
            }
            StepSource::Whole(side) => {
                // The others are still needed for the units that come after this one.
                let mut side = ComparedDump::clone(side);
                side.retain_runs(|_, run| run.place.rank_step() == place);
                side
            }
        }
    }

    /// The files with the elements of a step, and those that locate them.
    pub(super) fn files(&self, place: RankStep) -> StepFiles {
        let mut files = StepFiles::default();
        let mut contents: HashSet<Content> = HashSet::new();
        match &self.source {
            StepSource::Native(steps) => {
                for step in steps.get(&place).into_iter().flatten() {
                    files.paths.insert(step.path.clone());
                    // A table that cannot be read names nothing, and the comparison reports it.
                    let (rows, _) = step.read_rows().unwrap_or_default();
                    for row in rows {
                        let name = row.file.as_deref();
                        let path = name.and_then(|name| file_below(&step.run_dir, name));
                        let n_bytes = row.n_bytes.and_then(|n| u64::try_from(n).ok());
                        let offset = row.offset.and_then(|at| u64::try_from(at).ok());
                        // Rows of several operators show one content, which is read once.
                        if let Some(path) = path
                            && contents.insert((path, offset, None))
                        {
                            // A damaged table may claim any size.
                            files.n_bytes = files.n_bytes.saturating_add(n_bytes.unwrap_or(0));
                        }
                    }
                }
            }
            StepSource::Whole(side) => {
                let runs = side.runs.iter();
                let runs = runs.filter(|run| run.place.rank_step() == place);
                for slot in runs.flat_map(|run| &run.slots) {
                    files.paths.insert(slot.path.to_path_buf());
                    let path = slot.path.to_path_buf();
                    let content = (path, slot.offset(), slot.place_in_file());
                    if slot.has_elements && contents.insert(content) {
                        files.n_bytes = files.n_bytes.saturating_add(slot.n_bytes);
                    }
                }
            }
        }
        files
            .paths
            .extend(contents.into_iter().map(|(path, ..)| path));
        files
    }

    /// Names below the dump, sizes and times of files, one to a line.
    pub(super) fn stamps(&self, files: &StepFiles) -> String {
        let mut text = String::new();
        let root = PathBelow::new(&self.root);
        for path in &files.paths {
            // A dump that was moved is the same.
            let below = root.strip(path);
            text += &below.display().to_string();
            // A file that cannot be inspected has no size.
            if let Ok(metadata) = remote::metadata(path) {
                let modified = metadata.modified().ok();
                let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let time = since.map(|since| since.as_nanos());
                text += &format!(" {} {time:?}", metadata.len());
            }
            text.push('\n');
        }
        text
    }
}
