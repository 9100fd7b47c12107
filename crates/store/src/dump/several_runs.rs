//! Runs that lie next to each other, as two dumps into one place leave them.

mod in_place;
mod mixture;
mod msprobe;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::{DumpListing, PassReason, PassedOver};

use crate::run_file::{self, RunEnd};
use crate::tree::run::is_time;
use crate::{StoreError, dump};

/// The files below `dir`, of a single run where several wrote into it. The others are among those
/// passed over.
///
/// # Errors
/// [`StoreError::Io`] where files of several runs are a mixture that nothing separates.
pub fn list_one_run(dir: &Path) -> Result<DumpListing, StoreError> {
    let mut listing = dump::list(dir);
    listing.leave_older_runs(dir);
    listing.leave_older_probes(dir);
    listing.leave_older_in_place()?;
    listing.refuse_mixture(dir)?;
    Ok(listing)
}

impl DumpListing {
    /// Leaves out runs of which a newer one below `dir` has the same files: both together would be
    /// a mixture. Of runs that are complete the newest stays, and of others if none is. Runs of
    /// other models, ranks or steps have other files, and stay.
    fn leave_older_runs(&mut self, dir: &Path) {
        let mut files: BTreeMap<PathBuf, HashSet<PathBuf>> = BTreeMap::new();
        let all = self.entries.iter().chain(&self.tables).map(|entry| {
            // Names of single files have times in them.
            (
                entry.path.as_path(),
                entry.path.parent().map(Path::to_owned),
            )
        });
        let steps = self.step_tables.iter();
        let steps = steps.map(|entry| (entry.path.as_path(), Some(entry.path.clone())));
        for (path, place) in all.chain(steps) {
            let below = path
                .strip_prefix(dir)
                .ok()
                .and_then(|below| below.iter().next());
            let Some(time) = below.filter(|name| name.to_str().is_some_and(is_time)) else {
                continue;
            };
            let root = dir.join(time);
            let below = place.and_then(|place| Some(place.strip_prefix(&root).ok()?.to_owned()));
            files.entry(root).or_default().extend(below);
        }
        if files.len() < 2 {
            return;
        }
        let found = run_file::find(dir);
        // The newest first, and complete ones before others.
        let mut roots: Vec<&PathBuf> = files.keys().collect();
        roots.sort_by_key(|root| {
            let mut runs = found.runs.iter().filter(|run| run.path.starts_with(root));
            // A device leaves no record, so it is unknown whether its dump is cut off.
            let is_cut_off = runs.any(|run| run.end != RunEnd::Ended);
            (is_cut_off, std::cmp::Reverse(*root))
        });
        let mut taken: Vec<&PathBuf> = Vec::new();
        let mut older: Vec<PathBuf> = Vec::new();
        for root in roots {
            if taken
                .iter()
                .any(|newer| !files[*newer].is_disjoint(&files[root]))
            {
                older.push(root.clone());
            } else {
                taken.push(root);
            }
        }
        if older.is_empty() {
            return;
        }
        let is_older = |path: &Path| older.iter().any(|root| path.starts_with(root));
        self.entries.retain(|entry| !is_older(&entry.path));
        self.tables.retain(|entry| !is_older(&entry.path));
        self.step_tables.retain(|entry| !is_older(&entry.path));
        self.passed_over.retain(|skipped| !is_older(&skipped.path));
        let reason = PassReason::OtherRun;
        let older = older.into_iter().map(|path| PassedOver { path, reason });
        self.passed_over.extend(older);
        self.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
    }
}
