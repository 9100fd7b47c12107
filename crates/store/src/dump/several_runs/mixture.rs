//! Files of several runs in the directory of one: each of them looks like a part of the dump.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::super::DumpListing;
use super::in_place::RunWrites;
use crate::StoreError;
use crate::run_file;
use crate::tree::run::is_time;

/// Digits of a time in microseconds; longer ones are local times.
const TIME_DIGITS_MAX: usize = 16;
/// How far the times of a run's files may be outside of the run, in microseconds: times that would
/// be equal are counted up.
const SLACK: u64 = 10_000;

impl DumpListing {
    /// Refuses files of AscendCL that another run than that of their directory wrote.
    ///
    /// # Errors
    /// [`StoreError::Io`] with the first directory.
    pub(super) fn refuse_mixture(&self, dir: &Path) -> Result<(), StoreError> {
        let mut roots: BTreeMap<PathBuf, RunWrites> = BTreeMap::new();
        for entry in &self.entries {
            let Some(name) = &entry.name else { continue };
            let time = Some(name.timestamp.as_str()).filter(|time| time.len() <= TIME_DIGITS_MAX);
            let (Some(root), Some(time)) = (
                root_of(&entry.path),
                time.and_then(|time| time.parse().ok()),
            ) else {
                continue;
            };
            let mut own = name.clone();
            own.timestamp.clear();
            let place = entry.path.parent().unwrap_or(dir).to_owned();
            let writes = roots.entry(root).or_default();
            writes.tensors.push((time, (place, own.to_string())));
        }
        if roots.is_empty() {
            return Ok(());
        }
        let records = run_file::find(dir).runs;
        for (root, writes) in roots {
            let mut own = records.iter().filter(|run| run.path.starts_with(&root));
            // Several processes may write below one time.
            let span = own.next().filter(|_| own.next().is_none()).and_then(|run| {
                let ended = run.record.ended.as_deref()?;
                Some([microseconds(&run.record.started)?, microseconds(ended)?])
            });
            let is_other = |&(time, _): &(u64, _)| {
                span.is_some_and(|[began, ended]| time + SLACK < began || time > ended + SLACK)
            };
            if writes.tensors.iter().any(is_other) || writes.kept(&root)?.is_some() {
                let reason = "it holds files of several runs, of which no one is whole: keep each run in a \
                              directory of its own";
                let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
                return Err(StoreError::io("read", &root)(error));
            }
        }
        Ok(())
    }
}

/// The directory of the run that a file is below.
fn root_of(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors().skip(1);
    let found = above.find(|dir| {
        let name = dir.file_name().and_then(|name| name.to_str());
        name.is_some_and(is_time)
    });
    found.map(Path::to_owned)
}

fn microseconds(time: &str) -> Option<u64> {
    let time: Timestamp = time.parse().ok()?;
    u64::try_from(time.as_microsecond()).ok()
}
