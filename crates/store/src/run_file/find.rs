//! The records that apply to a directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{read, record_paths};
use crate::StoreError;
use crate::file_format::run_json::{RunRecord, RunState};
use crate::owner::{self, Liveness};
use crate::temporary::liveness_in;
use crate::tree::run::{is_time, run_dir};

/// Maximum number of records that are read, the latest of each directory first.
const N_RUNS_MAX: usize = 1000;
/// Number of parent directories that are searched.
const N_PARENTS_MAX: usize = 8;

/// A record that was found.
#[derive(Clone, Debug)]
pub struct FoundRun {
    /// Its file.
    pub path: PathBuf,
    /// Its content.
    pub record: RunRecord,
    /// Current state of the run, as far as the record shows it.
    pub end: RunEnd,
}

/// Whether a dump is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The run wrote that it ended.
    Ended,
    /// The run is at work.
    AtWork,
    /// The run was killed: the dump is cut off.
    CutOff,
    /// The run has not ended, and its process cannot be looked up from here.
    Unknown,
}

/// Result of [`find`].
#[derive(Debug, Default)]
pub struct FoundRuns {
    /// Records, in the order in which the runs began.
    pub runs: Vec<FoundRun>,
    /// Records that could not be read.
    pub errors: Vec<StoreError>,
}

/// The records of the dump in `dir`, of the dumps directly below it, and if there are none of the
/// dump that `dir` is a part of.
pub fn find(dir: &Path) -> FoundRuns {
    let mut found = FoundRuns::default();
    found.add(dir);
    for time in times_below(dir) {
        found.add(&time);
    }
    let absolute = crate::remote::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    for parent in absolute.ancestors().skip(1).take(N_PARENTS_MAX) {
        if !found.runs.is_empty() || !found.errors.is_empty() {
            break;
        }
        found.add(parent);
    }
    found
        .runs
        .sort_by(|a, b| a.record.started.cmp(&b.record.started));
    found
}

impl FoundRuns {
    fn add(&mut self, root: &Path) {
        let dir = run_dir(root);
        if !crate::remote::is_dir(&dir) {
            return;
        }
        for path in record_paths(&dir) {
            if self.runs.len() >= N_RUNS_MAX {
                return;
            }
            match read(&path) {
                Ok(record) => {
                    let end = end_of(&path, &record);
                    self.runs.push(FoundRun { path, record, end });
                }
                Err(StoreError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => self.errors.push(error),
            }
        }
    }
}

/// Directories of AscendCL dumps in `dump_path`, the latest first.
pub(super) fn times_below(dump_path: &Path) -> Vec<PathBuf> {
    let entries = crate::remote::read_dir(dump_path)
        .into_iter()
        .flatten()
        .flatten();
    let mut dirs: Vec<PathBuf> = entries
        .filter(|entry| {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            is_dir && entry.file_name().to_str().is_some_and(is_time)
        })
        .map(|entry| dump_path.join(entry.file_name()))
        .collect();
    dirs.sort_unstable_by(|a, b| b.cmp(a));
    dirs.truncate(N_RUNS_MAX);
    dirs
}

/// How the run of a record in this file ended.
pub(super) fn end_of(path: &Path, record: &RunRecord) -> RunEnd {
    if record.state != RunState::Running {
        return match record.state {
            RunState::Unknown => RunEnd::Unknown,
            _ => RunEnd::Ended,
        };
    }
    // Processes of other users may be hidden.
    let user = fs::symlink_metadata(path)
        .ok()
        .map(|metadata| metadata.uid());
    let is_ours = user.is_some() && user == owner::user();
    match liveness_in(path.parent().unwrap_or(path), &record.process) {
        Liveness::Alive => RunEnd::AtWork,
        Liveness::Dead if is_ours => RunEnd::CutOff,
        Liveness::Dead | Liveness::OtherBoot | Liveness::Unknown => RunEnd::Unknown,
    }
}
