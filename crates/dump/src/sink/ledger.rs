//! The ledger of the files that a sink has written for each step, so that a step can be taken back.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opscope_capture::StepRemoval;
use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::removal::{EmptiedDirectory, WrittenFile, remove_empty_dir};

/// Files by step. Empty until opened; ignores steps that have not begun.
#[derive(Default)]
pub(super) struct Ledger {
    is_open: AtomicBool,
    state: Mutex<LedgerState>,
}

/// The directory of a step, and its number where several steps share a directory.
pub(super) type StepKey = (PathBuf, u64);

#[derive(Default)]
struct LedgerState {
    steps: HashMap<StepKey, LedgerStep>,
    /// Directories that hold those of steps and were not there before.
    upper_dirs: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct LedgerStep {
    /// Directories that only this step has and that were not there before, the innermost first.
    dirs: Vec<PathBuf>,
    files: HashMap<PathBuf, LedgerEntry>,
}

struct LedgerEntry {
    file: WrittenFile,
    /// Its files and bytes that the counters include: none for files without tensors.
    counted: StepRemoval,
}

/// How a file came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOrigin {
    /// It was created.
    New,
    /// Lines were added to it; it is ours only if it was before.
    Appended,
    /// Likewise; no counter knows of it.
    Uncounted,
}

impl Ledger {
    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Begins a step. Of the directories above its own, those below `shared` are the step's alone,
    /// and those between `root` and there are shared with others.
    pub(super) fn begin(&self, key: StepKey, shared: &Path, root: &Path) {
        if !self.is_open() {
            return;
        }
        // A link counts as existing wherever it leads: it was created by others.
        let is_new = |dir: &&Path| fs::symlink_metadata(dir).is_err();
        let above = key.0.ancestors().take_while(is_new);
        let dirs: Vec<PathBuf> = above
            .take_while(|dir| dir.starts_with(shared) && *dir != shared)
            .map(Path::to_owned)
            .collect();
        let upper = shared.ancestors().take_while(is_new);
        let upper: Vec<PathBuf> = upper
            .take_while(|dir| dir.starts_with(root) && *dir != root)
            .map(Path::to_owned)
            .collect();
        let mut state = self.lock();
        state.upper_dirs.extend(upper);
        let step = state.steps.entry(key).or_default();
        step.dirs.extend(dirs);
    }

    /// Notes a directory that was created and holds those of all steps.
    pub(super) fn note_upper_dir(&self, dir: &Path) {
        self.lock().upper_dirs.insert(dir.to_owned());
    }

    /// Notes a file that was written for a step and holds `n_bytes` more since.
    pub(super) fn note(
        &self,
        key: &StepKey,
        path: &Path,
        n_bytes: u64,
        origin: FileOrigin,
    ) -> Result<(), StoreError> {
        if !self.is_open() {
            return Ok(());
        }
        let mut state = self.lock();
        // Constants and graphs lie in directories of no step, and stay.
        let Some(step) = state.steps.get_mut(key) else {
            return Ok(());
        };
        // A list of names in a directory that we created is ours: no other program wrote there
        // before.
        let is_ours = match origin {
            FileOrigin::New => true,
            FileOrigin::Appended => step.files.contains_key(path),
            FileOrigin::Uncounted => !step.dirs.is_empty(),
        };
        // Others may add to the file too: the size is read under the lock, so that the last reading
        // includes everything.
        let Some(file) = WrittenFile::look(path)?.filter(|_| is_ours) else {
            return Ok(());
        };
        let counted = StepRemoval {
            n_files: u64::from(origin == FileOrigin::New),
            n_bytes: if origin == FileOrigin::Uncounted {
                0
            } else {
                n_bytes
            },
            n_left: 0,
        };
        let before = step.files.get(path).map(|entry| entry.counted);
        let counted = before.unwrap_or_default() + counted;
        step.files
            .insert(path.to_owned(), LedgerEntry { file, counted });
        Ok(())
    }

    /// Removes what was noted for a step, and its directories as far as nothing else is in them.
    pub(super) fn remove(
        &self,
        key: &StepKey,
        creator: &Creator,
    ) -> Result<StepRemoval, StoreError> {
        // Taken out first, so that the lock is not held while files are removed and writers of
        // other steps note theirs.
        let Some(step) = self.lock().steps.remove(key) else {
            return Ok(StepRemoval::default());
        };
        let mut removed = StepRemoval::default();
        let mut first_error = None;
        // Files of elements lie above the directory of their step.
        let mut of_dir: HashMap<&Path, Vec<&LedgerEntry>> = HashMap::new();
        for (path, entry) in &step.files {
            let dir = path.parent().unwrap_or(&key.0);
            of_dir.entry(dir).or_default().push(entry);
        }
        for (dir, entries) in of_dir {
            let dir = match EmptiedDirectory::open(dir) {
                Ok(dir) => dir,
                Err(error) => {
                    // The other directories may still be there.
                    first_error = first_error.or(Some(error));
                    continue;
                }
            };
            for entry in entries {
                match dir.remove(&entry.file) {
                    Ok(true) => removed = removed + entry.counted,
                    // The file was changed or replaced since, so it is no longer ours.
                    Ok(false) => removed.n_left += 1,
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
        }
        // The creator makes no directory twice that it knows, so it has to forget these: a step
        // that begins again needs them.
        for dir in &step.dirs {
            creator.forget_dir(dir);
            match remove_empty_dir(dir) {
                Ok(true) => {}
                // As this directory is not empty, none of those above it is.
                Ok(false) => break,
                Err(error) => {
                    first_error = first_error.or(Some(error));
                    break;
                }
            }
        }
        first_error.map_or(Ok(removed), Err)
    }

    /// Lets go of a step that stays.
    pub(super) fn keep(&self, key: &StepKey) {
        self.lock().steps.remove(key);
    }

    /// Removes the directories above those of steps that hold nothing.
    pub(super) fn remove_upper_dirs(&self, creator: &Creator) -> Result<(), StoreError> {
        if !self.is_open() {
            return Ok(());
        }
        let dirs = std::mem::take(&mut self.lock().upper_dirs);
        // Inner directories sort after the ones that they are in.
        for dir in dirs.iter().rev() {
            creator.forget_dir(dir);
            remove_empty_dir(dir)?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        // Every change leaves the maps whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
