//! Runs of msProbe below one directory. A process that does not know its rank writes into
//! `proc{N}`, and a program that runs twice into two of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::dump::{DumpListing, PassReason, PassedOver};
use crate::file_format::msprobe::{FILE_BYTES_MAX, parse_dump};
use crate::regular_file;
use crate::tree::msprobe::{self as tree, ProbePlace};

/// The files of one run.
#[derive(Default)]
struct ProbeRun {
    /// Directories that hold a step of a rank, with what they are of.
    dirs: BTreeMap<PathBuf, ProbePlace>,
    /// When the last of its tables was written.
    time: Option<SystemTime>,
    is_complete: bool,
}

impl DumpListing {
    /// Leaves out runs of msProbe of which another one has the same steps and ranks: the newest
    /// complete one stays.
    pub(super) fn leave_older_probes(&mut self, root: &Path) {
        let mut runs = self.probe_runs(root);
        if runs.len() < 2 {
            return;
        }
        for run in runs.values_mut() {
            run.look_at_tables();
        }
        let mut order: Vec<&ProbeRun> = runs.values().collect();
        order.sort_by_key(|run| (run.is_complete, run.time));
        let mut taken: HashSet<ProbePlace> = HashSet::new();
        let mut older: Vec<PathBuf> = Vec::new();
        for run in order.into_iter().rev() {
            let places: BTreeSet<ProbePlace> = run.dirs.values().copied().collect();
            if places.iter().any(|place| taken.contains(place)) {
                older.extend(run.dirs.keys().cloned());
            } else {
                taken.extend(places);
            }
        }
        if older.is_empty() {
            return;
        }
        self.entries
            .retain(|entry| !older.iter().any(|dir| entry.path.starts_with(dir)));
        let reason = PassReason::OtherRun;
        let older = older.into_iter().map(|path| PassedOver { path, reason });
        self.passed_over.extend(older);
        self.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// The runs by their paths without steps and ranks.
    fn probe_runs(&self, root: &Path) -> BTreeMap<PathBuf, ProbeRun> {
        let mut runs: BTreeMap<PathBuf, ProbeRun> = BTreeMap::new();
        for entry in &self.entries {
            let is_table = entry.real_name == tree::DUMP_FILE;
            let Some(mut dir) = entry.path.parent() else {
                continue;
            };
            if dir.file_name().is_some_and(|name| name == tree::DATA_DIR) {
                dir = dir.parent().unwrap_or(dir);
            } else if !is_table {
                continue;
            }
            let below = dir.strip_prefix(root).unwrap_or(dir);
            let words = below.components().filter(|part| {
                let name = part.as_os_str().to_str().unwrap_or_default();
                !tree::is_step_or_rank(name)
            });
            let run = runs.entry(words.collect()).or_default();
            let place = ProbePlace::from_dir(below);
            run.dirs.insert(dir.to_owned(), place);
        }
        runs
    }
}

impl ProbeRun {
    /// Tables are large, and are read again with everything else: here only of several runs.
    fn look_at_tables(&mut self) {
        let tables = self.dirs.keys().map(|dir| dir.join(tree::DUMP_FILE));
        let tables: Vec<PathBuf> = tables.collect();
        let metadata = tables.iter().flat_map(std::fs::metadata);
        self.time = metadata.flat_map(|metadata| metadata.modified()).max();
        self.is_complete = tables.iter().all(|table| {
            let bytes = regular_file::read_in_dump(table, FILE_BYTES_MAX as u64);
            bytes.is_ok_and(|bytes| parse_dump(bytes).is_ok())
        });
    }
}
