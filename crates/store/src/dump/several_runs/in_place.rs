//! Runs of MindSpore that wrote into one directory: names of files differ by their times alone, and
//! tables grow.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::dump::{DumpListing, KeptTimes, PassReason, PassedOver};
use crate::file_format::{execution_order, statistic_csv};
use crate::tree::mindspore::{
    STATISTIC_FILE_NAME, TensorFileName, is_global_execution_order, is_rank,
};
use crate::{StoreError, regular_file};

/// Largest list or table that is read to find out.
const BESIDE_BYTES_MAX: u64 = 1 << 30;
/// Shortest time between two runs, in microseconds, where no list has them: a program takes
/// longer to start.
const PAUSE_MIN: u64 = 1_000_000;
/// How many times longer than all other pauses it is.
const PAUSE_FACTOR: u64 = 5;

/// A tensor that was written, but for its time.
type WrittenKey = (PathBuf, String);

/// Everything that was written into one directory.
#[derive(Default)]
struct RunWrites {
    tensors: Vec<(u64, WrittenKey)>,
    /// Whether a list of iterations has one twice, which a single process does not write.
    is_repeated: bool,
}

impl DumpListing {
    /// Leaves out what older runs wrote below the directory of a rank. Of the last run and of those
    /// before it, that with all tensors stays; the last where all have them.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there were several runs, and no time separates a complete one.
    pub(super) fn leave_older_in_place(&mut self) -> Result<(), StoreError> {
        for (rank, writes) in self.rank_writes() {
            let Some(kept) = writes.kept(&rank)? else {
                continue;
            };
            let (first, last) = (kept.first, kept.last);
            self.entries.retain(|entry| {
                let time = TensorFileName::parse(&entry.real_name).map(|name| name.timestamp);
                let is_kept = time.is_none_or(|time| (first..=last).contains(&time));
                is_kept || !entry.path.starts_with(&rank)
            });
            let (path, reason) = (rank, PassReason::OtherRun);
            self.passed_over.push(PassedOver { path, reason });
            self.kept_times.push(kept);
        }
        self.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    fn rank_writes(&self) -> BTreeMap<PathBuf, RunWrites> {
        let mut ranks: BTreeMap<PathBuf, RunWrites> = BTreeMap::new();
        let mut tables: Vec<(&Path, PathBuf)> = Vec::new();
        for entry in &self.entries {
            let Some(rank) = rank_dir(&entry.path) else {
                continue;
            };
            let name = entry.real_name.as_str();
            if is_global_execution_order(name) {
                ranks.entry(rank).or_default().is_repeated |= has_iteration_twice(&entry.path);
            } else if name == STATISTIC_FILE_NAME {
                tables.push((&entry.path, rank));
            } else if let Some(mut array) = TensorFileName::parse(name) {
                let time = std::mem::take(&mut array.timestamp);
                let dir = entry.path.parent().unwrap_or(Path::new("")).to_owned();
                let tensors = &mut ranks.entry(rank).or_default().tensors;
                tensors.push((time, (dir, array.to_string())));
            }
        }
        // Tables are large, and are read again with everything else.
        for (path, rank) in tables {
            let Some(writes) = ranks.get_mut(&rank).filter(|writes| writes.is_repeated) else {
                continue;
            };
            writes.tensors.extend(rows_of(path));
        }
        ranks
    }
}

impl RunWrites {
    /// The times of the run that is read; none if there was one alone.
    fn kept(mut self, rank: &Path) -> Result<Option<KeptTimes>, StoreError> {
        self.tensors.sort();
        let mut counts: HashMap<&WrittenKey, usize> = HashMap::new();
        for (_, key) in &self.tensors {
            *counts.entry(key).or_default() += 1;
        }
        if !counts.values().any(|&n| n > 1) {
            return Ok(None);
        }
        let pauses: Vec<u64> = self
            .tensors
            .windows(2)
            .map(|pair| pair[1].0 - pair[0].0)
            .collect();
        let mut longest: Vec<usize> = (0..pauses.len()).collect();
        longest.sort_by_key(|&at| std::cmp::Reverse(pauses[at]));
        let Some(&first) = longest.first() else {
            return Ok(None);
        };
        let others = longest.get(1).map_or(0, |&at| pauses[at]);
        let is_pause = pauses[first] >= PAUSE_MIN && pauses[first] / PAUSE_FACTOR >= others;
        if !self.is_repeated && !is_pause {
            // A loop runs operators again within one run.
            return Ok(None);
        }
        // The last of those pauses is the beginning of the last run.
        let likely = longest
            .iter()
            .filter(|&&at| pauses[at] >= pauses[first] / 2);
        let mut cuts: Vec<usize> = likely.map(|&at| at + 1).collect();
        cuts.sort_unstable();
        for &cut in cuts.iter().rev() {
            let (older, newer) = self.tensors.split_at(cut);
            let keys =
                [older, newer].map(|part| part.iter().map(|(_, key)| key).collect::<BTreeSet<_>>());
            let part = if keys[1].is_superset(&keys[0]) {
                newer
            } else if keys[0].is_superset(&keys[1]) {
                // The last run was cut off, or wrote less than the one before.
                older
            } else {
                continue;
            };
            if !self.is_repeated && keys[0] != keys[1] {
                continue;
            }
            if let ([(first, _), ..], [.., (last, _)]) = (part, part) {
                let (first, last, root) = (*first, *last, rank.to_owned());
                return Ok(Some(KeptTimes { root, first, last }));
            }
        }
        if !self.is_repeated {
            return Ok(None);
        }
        let reason = "several runs wrote into it, and no time separates them: dump into a directory of its own";
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
        Err(StoreError::io("read", rank)(error))
    }
}

/// The directory of the rank that a file is below.
fn rank_dir(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors().skip(1);
    let found = above.find(|dir| {
        let name = dir.file_name().and_then(|name| name.to_str());
        name.is_some_and(is_rank)
    });
    found.map(Path::to_owned)
}

fn has_iteration_twice(path: &Path) -> bool {
    let Ok(bytes) = regular_file::read_in_dump(path, BESIDE_BYTES_MAX) else {
        return false;
    };
    let iterations = execution_order::parse_iterations(&String::from_utf8_lossy(&bytes));
    let mut seen = BTreeSet::new();
    !iterations
        .into_iter()
        .all(|iteration| seen.insert(iteration))
}

/// The tensors that a table of statistics has rows of, with their times. Damage is reported when
/// the table is read.
fn rows_of(path: &Path) -> Vec<(u64, WrittenKey)> {
    let Ok(bytes) = regular_file::read_in_dump(path, BESIDE_BYTES_MAX) else {
        return Vec::new();
    };
    let Ok(table) = statistic_csv::parse(&String::from_utf8_lossy(&bytes)) else {
        return Vec::new();
    };
    let rows = table.rows.into_iter().map(|(subject, _)| {
        let name = format!(
            "{}.{}.{}",
            subject.op_name,
            subject.side.name(),
            subject.slot
        );
        (subject.timestamp, (path.to_owned(), name))
    });
    rows.collect()
}
