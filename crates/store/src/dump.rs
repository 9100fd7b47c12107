//! A directory of dump files, listed for reading.

pub mod mindspore;
mod passed_over;
mod several_runs;

use std::collections::HashMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use crate::decimal::is_digits;
use crate::file_format::stats_csv::{self, StatsTable, step_table};
use crate::file_format::{mapping_csv, op_debug};
use crate::tree::acl::{DumpFileName, TRACE_SUFFIX};
use crate::tree::mindspore::TensorFileName;
use crate::{StoreError, regular_file, remote};

pub use passed_over::{PassReason, PassedOver};
pub use several_runs::list_one_run;

/// Maximum nesting of directories.
pub const DEPTH_MAX: usize = 64;
/// Digits of the largest number in a directory's name.
const N_DIGITS: usize = 20;
/// Maximum size of a `mapping.csv`.
const MAPPING_BYTES_MAX: u64 = 256 << 20;

/// One file of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpEntry {
    /// Where it is.
    pub path: PathBuf,
    /// Its real name if `mapping.csv` has one, else its own.
    pub real_name: String,
    /// The parts of the name, if it follows the pattern.
    pub name: Option<DumpFileName>,
    /// Size in bytes.
    pub n_bytes: u64,
}

impl DumpEntry {
    /// Returns the key that sorts a dump's files: directory (numbers in numeric order), task, time
    /// and name.
    pub fn order(&self) -> impl Ord + use<> {
        sort_key(self)
    }

    /// Whether the file has a number as its name because its real name is too long.
    pub fn is_mapped(&self) -> bool {
        self.path
            .file_name()
            .is_none_or(|name| name != self.real_name.as_str())
    }

    /// Whether the file's name is a number, and its real name is unknown.
    pub fn has_lost_name(&self) -> bool {
        let stem = self.real_name.split('.').next().unwrap_or_default();
        is_digits(stem) && self.name.is_none()
    }
}

/// Result of [`list`].
#[derive(Debug, Default)]
pub struct DumpListing {
    /// Whether the user named a file, and not a directory.
    pub is_single: bool,
    /// Files that are, or may be, dump files; sorted by directory (numbers in numeric order), task
    /// and timestamp.
    pub entries: Vec<DumpEntry>,
    /// Files of statistics, in the same order.
    pub tables: Vec<DumpEntry>,
    /// Tables of whole steps.
    pub step_tables: Vec<DumpEntry>,
    /// Files and directories that are not part of a dump, or are not searched.
    pub passed_over: Vec<PassedOver>,
    /// Entries that could not be read: directories, links, pipes and devices.
    pub errors: Vec<StoreError>,
    /// The times of the run that is read, if tables also have rows of other runs.
    pub kept_times: Vec<KeptTimes>,
}

/// The times of one run of several that wrote into a directory, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTimes {
    /// The directory.
    pub root: PathBuf,
    /// The first time, in microseconds since 1970-01-01 UTC.
    pub first: u64,
    /// The last time.
    pub last: u64,
}

/// Lists the dump files below `dir`, following no symbolic links.
///
/// Every entry appears once: as a file to read, as [skipped](DumpListing::passed_over), or among
/// the [errors](DumpListing::errors). An unreadable directory does not prevent listing the others.
pub fn list(dir: &Path) -> DumpListing {
    let mut listing = DumpListing::default();
    walk(dir, 0, &mut listing);
    listing.errors.extend(remote::unlisted(dir));
    listing.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
    listing.entries.sort_by_cached_key(sort_key);
    listing.tables.sort_by_cached_key(sort_key);
    listing.step_tables.sort_by_cached_key(sort_key);
    listing
}

/// The rows of the tables of whole steps, as if each execution of an operator had a separate file.
/// Notes unreadable rows.
pub fn of_step_tables(listing: &mut DumpListing) -> Vec<(DumpEntry, StatsTable)> {
    let mut rows = Vec::new();
    for entry in &listing.step_tables {
        match step_table::read_file(&entry.path) {
            Ok(operators) => rows.extend(operators.into_iter().map(|table| as_file(entry, table))),
            Err(error) => listing.errors.push(error),
        }
    }
    rows
}

fn as_file(entry: &DumpEntry, operator: step_table::OperatorTable) -> (DumpEntry, StatsTable) {
    let name = DumpFileName {
        op_type: operator.op_type,
        op_name: operator.op_name,
        task_id: operator.task_id,
        stream_id: Some(operator.stream_id),
        timestamp: operator.timestamp.to_string(),
        sub_task: None,
    };
    let entry = DumpEntry {
        real_name: format!("{name}{}", stats_csv::FILE_NAME_SUFFIX),
        name: Some(name),
        ..entry.clone()
    };
    (entry, operator.table)
}

/// [`list`] for a single file, whatever its name. Its real name is looked up in `mapping.csv` in
/// the same directory.
pub fn list_file(path: &Path) -> DumpListing {
    let mut listing = DumpListing {
        is_single: true,
        ..DumpListing::default()
    };
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let real_name = real_name_of(path).unwrap_or_else(|error| {
        listing.errors.push(error);
        None
    });
    match regular_file::check(path) {
        Ok(metadata) => {
            let real_name = real_name.unwrap_or_else(|| file_name.into_owned());
            listing.add(path.to_owned(), real_name, metadata.len());
        }
        Err(error) => listing.errors.push(StoreError::io("read", path)(error)),
    }
    listing
}

fn walk(dir: &Path, depth: usize, listing: &mut DumpListing) {
    let entries = match remote::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            listing.errors.push(StoreError::io("list", dir)(error));
            return;
        }
    };
    let real_names = mapping(dir).unwrap_or_else(|error| {
        listing.errors.push(error);
        HashMap::new()
    });
    for entry in entries {
        match entry {
            Ok(entry) => visit(dir, &entry, depth, &real_names, listing),
            Err(error) => listing.errors.push(StoreError::io("list", dir)(error)),
        }
    }
}

fn visit(
    dir: &Path,
    entry: &DirEntry,
    depth: usize,
    real_names: &HashMap<String, String>,
    listing: &mut DumpListing,
) {
    // Not the entry's own path: for a remote directory that is the local placeholder.
    let path = dir.join(entry.file_name());
    let file_name = entry.file_name().to_string_lossy().into_owned();
    if let Some(reason) = passed_over::reason_of_name(&file_name) {
        listing.passed_over.push(PassedOver { path, reason });
        return;
    }
    // The metadata is that of a link itself, not of its target, so links are errors.
    let error = match entry.metadata() {
        Ok(metadata) if metadata.is_dir() && depth < DEPTH_MAX => {
            return walk(&path, depth + 1, listing);
        }
        Ok(metadata) if metadata.is_dir() => {
            let reason = format!("nested deeper than {DEPTH_MAX}");
            StoreError::io("list", &path)(std::io::Error::other(reason))
        }
        Ok(metadata) if metadata.is_file() => {
            let real_name = real_names.get(&file_name).cloned().unwrap_or(file_name);
            listing.add(path, real_name, metadata.len());
            return;
        }
        Ok(metadata) => {
            StoreError::io("read", &path)(regular_file::not_regular(metadata.file_type()))
        }
        Err(error) => StoreError::io("read", &path)(error),
    };
    listing.errors.push(error);
}

impl DumpListing {
    /// Adds a file to the list for its kind. Texts about failures are not part of a dump.
    fn add(&mut self, path: PathBuf, real_name: String, n_bytes: u64) {
        let [trace, table] = [TRACE_SUFFIX, stats_csv::FILE_NAME_SUFFIX]
            .map(|suffix| real_name.strip_suffix(suffix).and_then(DumpFileName::parse));
        if trace.is_some() {
            let reason = PassReason::FailureText;
            self.passed_over.push(PassedOver { path, reason });
            return;
        }
        let is_table = table.is_some();
        let is_step_table = real_name == step_table::FILE_NAME;
        let name = table.or_else(|| {
            if op_debug::is_json_record_name(&real_name) {
                DumpFileName::parse_json(&real_name)
            } else {
                DumpFileName::parse(&real_name)
            }
        });
        let list = match (is_table, is_step_table) {
            (true, _) => &mut self.tables,
            (false, true) => &mut self.step_tables,
            (false, false) => &mut self.entries,
        };
        list.push(DumpEntry {
            path,
            real_name,
            name,
            n_bytes,
        });
    }
}

/// The name in `mapping.csv` for a file; `None` if the file's own name is descriptive.
///
/// # Errors
/// As for [`mapping`].
pub fn real_name_of(path: &Path) -> Result<Option<String>, StoreError> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    if DumpFileName::parse(&file_name).is_some() || TensorFileName::parse(&file_name).is_some() {
        return Ok(None);
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    Ok(mapping(dir.unwrap_or(Path::new(".")))?.remove(&*file_name))
}

/// The real names in the `mapping.csv` of `dir`; empty if there is none.
///
/// # Errors
/// [`StoreError::Io`] if it cannot be read, or is too large.
pub fn mapping(dir: &Path) -> Result<HashMap<String, String>, StoreError> {
    let path = dir.join(mapping_csv::FILE_NAME);
    let bytes = match regular_file::read_in_dump(&path, MAPPING_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(StoreError::io("read", &path)(error)),
    };
    // Lossy like the names of the listed files, so that a name that is not UTF-8 finds its row.
    let text = String::from_utf8_lossy(&bytes);
    let pairs = mapping_csv::parse(&text);
    Ok(pairs
        .map(|(short, real)| (short.to_owned(), real.to_owned()))
        .collect())
}

/// [`mapping`], empty if it cannot be read either.
pub fn read_mapping(dir: &Path) -> HashMap<String, String> {
    mapping(dir).unwrap_or_default()
}

/// The name with zeros before its final number, so that `rank_10` sorts after `rank_9`.
fn with_long_number(name: String) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    if digits.is_empty() {
        return name;
    }
    format!("{stem}{digits:0>N_DIGITS$}")
}

type SortKey = (Vec<(u64, String)>, u32, String, String);

fn sort_key(entry: &DumpEntry) -> SortKey {
    let dirs = entry
        .path
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .map(|component| {
            let text = component.as_os_str().to_string_lossy().into_owned();
            (text.parse().unwrap_or(u64::MAX), with_long_number(text))
        });
    let (task_id, timestamp) = match &entry.name {
        Some(name) => (name.task_id, name.timestamp.clone()),
        None => (u32::MAX, String::new()),
    };
    (dirs.collect(), task_id, timestamp, entry.real_name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_by_step_then_task() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "10/B.b.2.0.5",
            "2/A.a.10.0.5",
            "2/A.a.9.0.5",
            "2/77",
            "2/.hidden",
            "2/x.txt",
            "2/A.a.9.0.5.csv",
            "2/A.a.9.5.txt",
            ".opscope/run.json",
            "rank_10/A.a.0.0.5",
            "rank_9/B.b.0.0.5",
            "2/.opscope-tmp-1-2-0000000000000003-4-5",
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        std::fs::write(dir.path().join("2/mapping.csv"), "77,C.c.1.0.5\n").unwrap();
        let listing = list(dir.path());
        let names: Vec<_> = listing
            .entries
            .iter()
            .map(|e| e.real_name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "C.c.1.0.5",
                "A.a.9.0.5",
                "A.a.10.0.5",
                "x.txt",
                "B.b.2.0.5",
                "B.b.0.0.5",
                "A.a.0.0.5"
            ]
        );
        assert!(listing.errors.is_empty());
        assert!(!list(&dir.path().join("absent")).errors.is_empty());
    }

    #[test]
    fn everything_comes_up_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in [
            "A.a.1.0.5",
            "A.a.1.0.5.csv",
            "A.a.1.5.txt",
            "statistics.csv",
            "x.h5",
            "",
        ] {
            if name.is_empty() {
                std::fs::create_dir_all(path("below/.opscope")).unwrap();
            } else {
                std::fs::write(path(name), "x").unwrap();
            }
        }
        for name in [
            "mapping.csv",
            ".hidden",
            ".opscope-tmp-1",
            "overwrites.json",
        ] {
            std::fs::write(path(name), "x").unwrap();
        }
        for (target, link) in [
            ("A.a.1.0.5", "B.b.2.0.5"),
            ("below", "dir"),
            ("gone", "C.c.3.0.5"),
        ] {
            std::os::unix::fs::symlink(path(target), path(link)).unwrap();
        }
        let listing = list(dir.path());
        let names = |entries: &[DumpEntry]| entries.len();
        assert_eq!(
            [&listing.entries, &listing.tables, &listing.step_tables].map(|list| names(list)),
            [2, 1, 1]
        );
        let reasons: Vec<_> = listing
            .passed_over
            .iter()
            .map(|skipped| skipped.reason)
            .collect();
        assert_eq!(
            reasons,
            [
                PassReason::Hidden,
                PassReason::Unfinished,
                PassReason::FailureText,
                PassReason::OwnRecords,
                PassReason::RealNames,
                PassReason::Overwrites,
            ]
        );
        assert_eq!(listing.errors.len(), 3, "{:?}", listing.errors);
        let text = format!("{:?}", listing.errors);
        assert_eq!(text.matches("found a symbolic link").count(), 3, "{text}");
    }
}
