//! The record of a run in its dump: written when the dump begins, replaced when it ends.
//!
//! A run that is killed leaves its record as it was at the beginning: `running`, with a process
//! that is gone. Several runs may share a directory, also at the same time: each keeps its own
//! record, the one that began last has the plain name.

mod clean;
mod find;
mod host;
mod in_place;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::atomic_file::{Creator, PermissionModes};
use crate::file_format::run_json::{self, RunRecord, RunState};
use crate::owner::OwnerProcess;
use crate::tree::run::{RUN_FILE, earlier_run_file, earlier_run_number, run_dir};
use crate::{StoreError, regular_file};

pub use clean::{clean_acl, clean_mindspore};
pub use find::{FoundRun, FoundRuns, RunEnd, find};
pub use host::{this_host, umask};

/// How often, and after which time, it is tried again to be the only one in the directory.
const N_LOCK_ATTEMPTS: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// How often a name is tried that another process takes.
const N_NAME_ATTEMPTS: usize = 100;

/// The record of this run.
#[derive(Debug)]
pub struct RunFile {
    root: PathBuf,
    creator: Creator,
    state: Mutex<RunFileState>,
}

#[derive(Debug)]
struct RunFileState {
    record: RunRecord,
    is_begun: bool,
    /// Why the record could not be begun when the first file was to come.
    error: Option<StoreError>,
}

impl RunFile {
    /// A record of a run that dumps below `root`, a directory inside `dump_path` or the same.
    /// Nothing is written yet. The process, the state and the id of `record` are filled in.
    pub fn new(
        dump_path: &Path,
        root: &Path,
        modes: PermissionModes,
        record: RunRecord,
    ) -> RunFile {
        static N_RUNS: AtomicU64 = AtomicU64::new(0);
        let process = OwnerProcess::current();
        let serial = N_RUNS.fetch_add(1, Ordering::Relaxed);
        RunFile {
            root: root.to_owned(),
            creator: Creator::in_dump(dump_path, modes),
            state: Mutex::new(RunFileState {
                record: RunRecord {
                    version: run_json::VERSION,
                    id: format!("{process}-{serial}"),
                    state: RunState::Running,
                    process,
                    ..record
                },
                is_begun: false,
                error: None,
            }),
        }
    }

    /// The directory of the dump.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes the record. One that is there already becomes `run-{n}.json`.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn begin(&self) -> Result<(), StoreError> {
        self.begin_in(&mut lock(&self.state))
    }

    /// Announces that a file of the dump will be written into `dir`: the first one below the root
    /// creates the record. [`RunFile::finish`] reports an error.
    pub fn note_file(&self, dir: &Path) {
        let mut state = lock(&self.state);
        if state.is_begun || state.error.is_some() || !dir.starts_with(&self.root) {
            return;
        }
        if let Err(error) = self.begin_in(&mut state) {
            state.error = Some(error);
        }
    }

    /// Changes what will be written at the end.
    pub fn update(&self, change: impl FnOnce(&mut RunRecord)) {
        change(&mut lock(&self.state).record);
    }

    /// Replaces the record by its last form. Where the dump has no directory, none is made.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses, or refused at the beginning.
    pub fn finish(&self, end: RunState, ended: String) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        state.record.state = end;
        state.record.ended = Some(ended);
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if !state.is_begun {
            return if self.root.is_dir() {
                self.begin_in(&mut state)
            } else {
                Ok(())
            };
        }
        let dir = run_dir(&self.root);
        // Another run must not rename our record between finding and replacing it.
        let _turn = turn(&dir);
        let text = run_json::encode(&state.record);
        // A run that began later has given our record a number, so that only the id finds it.
        match own_file(&dir, &state.record.id) {
            Some(path) => self
                .creator
                .replace_file(&path, &[text.as_bytes()])
                // A run that ended because nothing more can be written must be able to record this.
                .or_else(|error| in_place::write(&path, &state.record).map_err(|_| error)),
            // It was removed.
            None => self.create(&dir, &text),
        }
    }

    fn begin_in(&self, state: &mut RunFileState) -> Result<(), StoreError> {
        let dir = run_dir(&self.root);
        self.creator.create_dir(&dir)?;
        let _turn = turn(&dir);
        let text = in_place::with_room(run_json::encode(&state.record));
        self.create(&dir, &text)?;
        state.is_begun = true;
        Ok(())
    }

    fn create(&self, dir: &Path, text: &str) -> Result<(), StoreError> {
        let path = dir.join(RUN_FILE);
        for _ in 0..N_NAME_ATTEMPTS {
            if self.creator.create_file(&path, &[text.as_bytes()])? {
                return Ok(());
            }
            self.put_aside(dir, &path)?;
        }
        Err(StoreError::io("write", &path)(io::Error::other(
            "other runs take the name again and again",
        )))
    }

    /// Renames the record of an earlier run to the next number.
    fn put_aside(&self, dir: &Path, path: &Path) -> Result<(), StoreError> {
        let first = earlier_runs(dir).first().map_or(1, |n| n.saturating_add(1));
        for n in (first..).take(N_NAME_ATTEMPTS) {
            match self
                .creator
                .rename_new(path, &dir.join(earlier_run_file(n)))
            {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // Another process has put it aside.
                Err(_) if path.symlink_metadata().is_err() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The numbers of earlier runs, the highest first.
fn earlier_runs(dir: &Path) -> Vec<u64> {
    let entries = crate::remote::read_dir(dir).into_iter().flatten().flatten();
    let mut numbers: Vec<u64> = entries
        .filter_map(|entry| earlier_run_number(entry.file_name().to_str()?))
        .collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers
}

/// The records in a directory, the latest first.
fn record_paths(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let earlier = earlier_runs(dir).into_iter().map(earlier_run_file);
    let dir = dir.to_owned();
    std::iter::once(RUN_FILE.to_owned())
        .chain(earlier)
        .map(move |name| dir.join(name))
}

fn own_file(dir: &Path, id: &str) -> Option<PathBuf> {
    record_paths(dir).find(|path| read(path).is_ok_and(|record| record.id == id))
}

/// Reads a record.
///
/// # Errors
/// [`StoreError`] if the file cannot be read or is not a record.
pub fn read(path: &Path) -> Result<RunRecord, StoreError> {
    let limit = run_json::FILE_BYTES_MAX as u64 + 1;
    let bytes = regular_file::read_in_dump(path, limit).map_err(StoreError::io("read", path))?;
    run_json::parse(&bytes).map_err(StoreError::corrupt("run.json", path))
}

/// Waits until no other process changes records in `dir`. Gives up after a second, and on file
/// systems without locks.
fn turn(dir: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(dir, flags, Mode::empty()).ok()?;
    for _ in 0..N_LOCK_ATTEMPTS {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(file),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(_) => return None,
        }
    }
    None
}

/// Locks the state even after a panic, since no panic leaves it half changed.
fn lock(mutex: &Mutex<RunFileState>) -> MutexGuard<'_, RunFileState> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
