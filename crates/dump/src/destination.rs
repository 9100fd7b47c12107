//! The destination of a dump: its directories, and a name that no other dump in them has.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Span;
use opscope_capture::Plan;
use opscope_store::atomic_file::PermissionModes;
use opscope_store::file_format::run_json::{ProgramVersion, RunRecord};
use opscope_store::run_file::{RunFile, clean_acl, clean_mindspore, this_host};
use opscope_store::temporary::LeftOvers;
use opscope_store::{StoreError, clock};

use crate::run_facts::{now, plan_in_short};

/// Seconds after now that are tried as names of a dump's directory.
const N_TIMES_MAX: i64 = 3600;

/// Names for the directory of a dump, `YYYYMMDDhhmmss`: the local second that it is now, and those
/// that follow.
pub fn dump_times() -> impl Iterator<Item = String> {
    let now = clock::local();
    (0..N_TIMES_MAX).map(move |seconds| {
        // The names have no fraction of a second, so a dump that begins in the same second as
        // another takes the name of a later one.
        let time = now.saturating_add(Span::new().seconds(seconds));
        time.strftime("%Y%m%d%H%M%S").to_string()
    })
}

/// The first of `times` that is free below `dump_path` and not reserved otherwise; the first of all
/// if none is free.
pub fn free_time(
    dump_path: &Path,
    times: impl IntoIterator<Item = String>,
    is_taken: impl Fn(&Path) -> bool,
) -> String {
    let mut first = None;
    for time in times {
        let root = dump_path.join(&time);
        if !is_taken(&root) && !root.exists() {
            return time;
        }
        first.get_or_insert(time);
    }
    // Two dumps in one directory are better than none.
    first.unwrap_or_default()
}

/// Whose form a dump has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpDialect {
    /// AscendCL's.
    Acl,
    /// MindSpore's.
    MindSpore,
    /// Our own.
    Native,
}

impl DumpDialect {
    /// The name in records of runs.
    pub fn name(self) -> &'static str {
        match self {
            DumpDialect::Acl => "acl",
            DumpDialect::MindSpore => "mindspore",
            DumpDialect::Native => "native",
        }
    }
}

/// The directories of a dump, and whose form it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpPlace {
    /// Whose form it has.
    pub dialect: DumpDialect,
    /// The directory that the user named.
    pub dump_path: PathBuf,
    /// The directory of this dump: `dump_path`, or one in it.
    pub root: PathBuf,
    /// Permissions of what is created.
    pub modes: PermissionModes,
}

impl DumpPlace {
    /// The record of a run that dumps here under `plan`. Nothing is written yet. The tool, the
    /// host, the time, the dialect and the plan of `record` are filled in.
    pub fn run_file(&self, plan: &Plan, record: RunRecord) -> Arc<RunFile> {
        let record = RunRecord {
            tool: ProgramVersion {
                name: "opscope".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            },
            host: this_host(),
            started: now(),
            dialect: self.dialect.name().to_owned(),
            plan: plan_in_short(plan),
            ..record
        };
        Arc::new(RunFile::new(
            &self.dump_path,
            &self.root,
            self.modes,
            record,
        ))
    }

    /// Removes what killed runs left unfinished here; how much there was.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the operating system refuses.
    pub fn clean(&self) -> Result<LeftOvers, StoreError> {
        match self.dialect {
            // Directories of times with as many levels below them.
            DumpDialect::Acl | DumpDialect::Native => {
                clean_acl(&self.dump_path, self.modes, &now())
            }
            DumpDialect::MindSpore => clean_mindspore(&self.dump_path, self.modes, &now()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_taken_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("1")).unwrap();
        for (times, taken, expected) in [
            (&["1", "2", "3"][..], "", "2"),
            (&["1", "2", "3"], "2", "3"),
            (&["3", "1"], "", "3"),
            // Two dumps in one directory are better than none.
            (&["1"], "", "1"),
            (&["2", "1"], "2", "2"),
            (&[], "", ""),
        ] {
            let names = times.iter().map(|time| (*time).to_owned());
            assert_eq!(
                free_time(dir.path(), names, |root| root.ends_with(taken)
                    && !taken.is_empty()),
                expected,
                "{times:?}"
            );
        }
        assert_eq!(dump_times().count(), 3600);
        assert!(dump_times().is_sorted());
    }
}
