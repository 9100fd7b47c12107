//! Files of several runs in the directory of one: each of them looks like a part of the dump.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::dump::DumpListing;
use crate::file_format::run_json::RunRecord;
use crate::tree::acl::DumpFileName;
use crate::tree::run::is_time;
use crate::{StoreError, run_file};

/// Digits of a time in microseconds; longer ones are local times.
const TIME_DIGITS_MAX: usize = 16;
/// How far the times of a run's files may be outside of the run, in microseconds: times that would
/// be equal are counted up.
const SLACK: u64 = 10_000;
/// The command of records that conversions write.
const CONVERT: &str = "convert";

impl DumpListing {
    /// Refuses files of AscendCL that were written by another run than their directory's. Only the
    /// record of a run contains when it wrote: a vendor's dump may pause, or run an operator again.
    ///
    /// # Errors
    /// [`StoreError::Io`] with the first directory.
    pub(super) fn refuse_mixture(&self, dir: &Path) -> Result<(), StoreError> {
        let mut times: BTreeMap<PathBuf, (u64, u64)> = BTreeMap::new();
        for entry in &self.entries {
            let Some(time) = entry.name.as_ref().and_then(microseconds_in_name) else {
                continue;
            };
            let Some(root) = root_of(&entry.path) else {
                continue;
            };
            let (first, last) = times.entry(root).or_insert((time, time));
            *first = time.min(*first);
            *last = time.max(*last);
        }
        if times.is_empty() {
            return Ok(());
        }
        let records = run_file::find(dir).runs;
        for (root, (first, last)) in times {
            let mut own = records.iter().filter(|run| run.path.starts_with(&root));
            // Several processes may write below one time.
            let (Some(run), None) = (own.next(), own.next()) else {
                continue;
            };
            let is_other = span(&run.record)
                .is_some_and(|[began, ended]| first + SLACK < began || last > ended + SLACK);
            if is_other {
                let reason = "it holds files of several runs, and no one is complete: keep each run in a \
                              directory of its own";
                let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
                return Err(StoreError::io("read", &root)(error));
            }
        }
        Ok(())
    }
}

/// When a run wrote its files; none for a conversion, which keeps the times of another run.
fn span(record: &RunRecord) -> Option<[u64; 2]> {
    if record.command == CONVERT {
        return None;
    }
    let ended = record.ended.as_deref()?;
    Some([microseconds(&record.started)?, microseconds(ended)?])
}

fn microseconds_in_name(name: &DumpFileName) -> Option<u64> {
    let time = name.timestamp.as_str();
    let time = Some(time).filter(|time| time.len() <= TIME_DIGITS_MAX)?;
    time.parse().ok()
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
