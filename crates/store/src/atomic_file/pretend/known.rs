//! The names of a dump that is only counted.
//!
//! A dump gets a new directory for each step and never returns to an old one. So the files of
//! directories that have not been used for long are added up and forgotten.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::{DryRunTotals, PretendedFile};

/// Number of files that are known by name before those of directories that are no longer used are
/// forgotten.
const N_FILES_MAX: usize = 1 << 16;
/// Directories that were used last and keep their files in any case.
const N_DIRS_KEPT: usize = 16;
/// Block sizes that sums are kept for: all powers of two below this one.
const N_BLOCK_SIZES: usize = 32;

/// Directories and files that are there, or would be.
#[derive(Debug)]
pub(super) struct KnownTree {
    dirs: HashMap<PathBuf, KnownDirectory>,
    /// Hashes of new directories whose files were forgotten.
    settled_dirs: HashSet<u64>,
    settled: FileTotals,
    n_files: usize,
    /// How many files there may be before the next look.
    n_files_max: usize,
    /// Number of uses so far.
    clock: u64,
}

#[derive(Debug, Default)]
struct KnownDirectory {
    /// Whether it would be new.
    is_new: bool,
    files: HashMap<OsString, PretendedFile>,
    last_use: u64,
}

/// Totals over files.
#[derive(Clone, Debug, Default)]
struct FileTotals {
    total: DryRunTotals,
    /// Bytes in whole blocks, by the binary logarithm of the block size.
    in_blocks: [u64; N_BLOCK_SIZES],
}

impl Default for KnownTree {
    fn default() -> Self {
        KnownTree {
            dirs: HashMap::new(),
            settled_dirs: HashSet::new(),
            settled: FileTotals::default(),
            n_files: 0,
            n_files_max: N_FILES_MAX,
            clock: 0,
        }
    }
}

impl FileTotals {
    fn add(&mut self, file: &PretendedFile) {
        let total = &mut self.total;
        total.n_files += u64::from(file.is_new);
        if file.is_link {
            total.n_linked += 1;
            total.n_bytes_linked += file.n_bytes;
            return;
        }
        total.n_bytes += file.n_bytes;
        // Callers name the size of a block only at the end, when the sizes of settled files are
        // forgotten: hence a sum for every power of two.
        for (k, sum) in self.in_blocks.iter_mut().enumerate() {
            *sum += file.n_bytes.next_multiple_of(1 << k);
        }
    }
}

impl KnownTree {
    /// A file that would be there, or that was appended to.
    pub(super) fn file(&mut self, path: &Path) -> Option<&mut PretendedFile> {
        self.clock += 1;
        let (dir, name) = split(path);
        let dir = self.dirs.get_mut(dir)?;
        dir.last_use = self.clock;
        dir.files.get_mut(name)
    }

    pub(super) fn add_file(&mut self, path: &Path, file: PretendedFile) {
        self.clock += 1;
        let (dir, name) = split(path);
        if !self.dirs.contains_key(dir) {
            self.dirs.insert(dir.to_owned(), KnownDirectory::default());
        }
        if let Some(dir) = self.dirs.get_mut(dir) {
            dir.last_use = self.clock;
            let is_further = dir.files.insert(name.to_owned(), file).is_none();
            self.n_files += usize::from(is_further);
        }
        if self.n_files > self.n_files_max {
            self.settle();
        }
    }

    /// Whether a directory is known, on disk or not.
    pub(super) fn has_dir(&self, dir: &Path) -> bool {
        self.dirs.contains_key(dir) || self.settled_dirs.contains(&hash(dir))
    }

    /// Whether a directory would be new.
    pub(super) fn is_new_dir(&self, dir: &Path) -> bool {
        let is_new = self.dirs.get(dir).is_some_and(|dir| dir.is_new);
        is_new || self.settled_dirs.contains(&hash(dir))
    }

    pub(super) fn add_dir(&mut self, path: &Path, is_new: bool) {
        self.clock += 1;
        if self.settled_dirs.contains(&hash(path)) {
            return;
        }
        let dir = self.dirs.entry(path.to_owned()).or_default();
        dir.is_new = is_new;
        dir.last_use = self.clock;
    }

    /// Returns the totals of everything, with blocks of this size.
    pub(super) fn total(&self, block_bytes: u64) -> DryRunTotals {
        let mut sum = self.settled.clone();
        for file in self.dirs.values().flat_map(|dir| dir.files.values()) {
            sum.add(file);
        }
        let n_dirs = self.dirs.values().filter(|dir| dir.is_new).count();
        let exponent = block_bytes.max(1).next_power_of_two().ilog2() as usize;
        DryRunTotals {
            n_dirs: (n_dirs + self.settled_dirs.len()) as u64,
            n_bytes_in_blocks: sum.in_blocks[exponent.min(N_BLOCK_SIZES - 1)],
            ..sum.total
        }
    }

    /// Adds up and forgets the files of directories that were used the longest ago, until there are
    /// half as many as there may be.
    fn settle(&mut self) {
        let dirs = self.dirs.values();
        let mut uses: Vec<(u64, usize)> = dirs.map(|dir| (dir.last_use, dir.files.len())).collect();
        uses.sort_unstable_by(|a, b| b.cmp(a));
        let mut n_files = 0;
        let first_too_old = uses.iter().enumerate().find(|(i, (_, n))| {
            n_files += n;
            *i >= N_DIRS_KEPT && n_files > N_FILES_MAX / 2
        });
        let Some((_, &(too_old, _))) = first_too_old else {
            self.n_files_max = 2 * self.n_files;
            return;
        };
        let (settled, settled_dirs) = (&mut self.settled, &mut self.settled_dirs);
        let mut n_left = 0;
        self.dirs.retain(|path, dir| {
            let is_kept = dir.last_use > too_old || dir.files.is_empty() && !dir.is_new;
            if is_kept {
                n_left += dir.files.len();
                return true;
            }
            dir.files.values().for_each(|file| settled.add(file));
            if dir.is_new {
                settled_dirs.insert(hash(path));
            }
            false
        });
        self.n_files = n_left;
        // Where few directories hold most files, looking again soon would be of no use.
        self.n_files_max = (2 * n_left).max(N_FILES_MAX);
    }
}

fn split(path: &Path) -> (&Path, &OsStr) {
    let dir = path.parent().unwrap_or(Path::new(""));
    (dir, path.file_name().unwrap_or_default())
}

fn hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic_file::pretend::FileIdentity;

    fn file(n_bytes: u64) -> PretendedFile {
        PretendedFile {
            stamp: FileIdentity::pretended(n_bytes, n_bytes),
            n_bytes,
            is_new: true,
            is_link: false,
        }
    }

    /// Steps of so many files each, all of them linked to one that is in the first step, and a list
    /// that every step adds to.
    fn after(n_steps: usize, n_files: usize) -> KnownTree {
        let mut known = KnownTree::default();
        known.add_dir(Path::new("dump"), true);
        known.add_file(Path::new("dump/list"), file(1));
        for step in 0..n_steps {
            let dir = PathBuf::from(format!("dump/{step}"));
            known.add_dir(&dir, true);
            for i in 0..n_files {
                known.add_file(&dir.join(i.to_string()), file(10));
            }
            known.file(Path::new("dump/list")).unwrap().n_bytes += 1;
            assert!(known.file(Path::new("dump/0/0")).is_some());
        }
        known
    }

    #[test]
    fn counts_are_those_of_every_file_and_few_are_held() {
        for (n_steps, n_files) in [(3, 10), (500, 1000), (3, N_FILES_MAX)] {
            let mut known = after(n_steps, n_files);
            let n = (n_steps * n_files) as u64;
            let expected = DryRunTotals {
                n_dirs: n_steps as u64 + 1,
                n_files: n + 1,
                n_bytes: 10 * n + 1 + n_steps as u64,
                n_bytes_in_blocks: 16 * n + (1 + n_steps as u64).next_multiple_of(16),
                ..DryRunTotals::default()
            };
            assert_eq!(known.total(16), expected);
            let most = N_FILES_MAX.max((N_DIRS_KEPT + 1) * n_files);
            assert!(known.n_files <= most, "{} of {n}", known.n_files);
            // Recently used entries are still there, and an evicted directory is not new again.
            let last = format!("dump/{}/0", n_steps - 1);
            assert!(known.file(Path::new(&last)).is_some());
            known.add_dir(Path::new("dump/1"), true);
            assert_eq!(known.total(16), expected);
        }
    }
}
