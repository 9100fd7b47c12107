//! A directory of dump files, listed for reading.

pub mod mindspore;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::file_format::mapping_csv;
use crate::file_format::stats_csv::{self, Table, step_table};
use crate::tree::acl::{DumpFileName, OVERWRITES_FILE, TRACE_SUFFIX};

/// Deepest nesting of directories that is followed.
pub const DEPTH_MAX: usize = 64;

/// One file of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// Its name, the real one where `mapping.csv` gives it.
    pub real_name: String,
    /// The parts of the name, if it follows the pattern.
    pub name: Option<DumpFileName>,
    /// Size in bytes.
    pub n_bytes: u64,
}

impl Entry {
    /// What the files of a dump are sorted by: directory (numbers in numeric order), task, time and name.
    pub fn order(&self) -> impl Ord + use<> {
        sort_key(self)
    }

    /// Whether the file goes by digits because its real name is too long.
    pub fn is_mapped(&self) -> bool {
        self.path
            .file_name()
            .is_none_or(|name| name != self.real_name.as_str())
    }
}

/// What [`list`] found.
#[derive(Debug, Default)]
pub struct Listing {
    /// Files that are, or may be, dump files; sorted by directory (numbers in numeric order), task
    /// and timestamp.
    pub entries: Vec<Entry>,
    /// Files of statistics, in the same order.
    pub tables: Vec<Entry>,
    /// Tables of whole steps.
    pub step_tables: Vec<Entry>,
    /// Directories that could not be read.
    pub errors: Vec<StoreError>,
}

/// Lists the dump files below `dir`, following no symbolic links to directories.
///
/// Passed over: `mapping.csv`, hidden files and temporary files, and texts about failures. A directory that cannot be read is
/// noted in [`Listing::errors`] and the others are listed all the same.
pub fn list(dir: &Path) -> Listing {
    let mut listing = Listing::default();
    walk(dir, 0, &mut listing);
    listing.entries.sort_by_cached_key(sort_key);
    listing.tables.sort_by_cached_key(sort_key);
    listing.step_tables.sort_by_cached_key(sort_key);
    listing
}

/// The rows of the tables of whole steps, as if each execution of an operator had a file of its own. Notes
/// what cannot be read.
pub fn of_step_tables(listing: &mut Listing) -> Vec<(Entry, Table)> {
    let mut found = Vec::new();
    for entry in &listing.step_tables {
        match step_table::read_file(&entry.path) {
            Ok(operators) => found.extend(operators.into_iter().map(|one| as_file(entry, one))),
            Err(error) => listing.errors.push(error),
        }
    }
    found
}

fn as_file(entry: &Entry, operator: step_table::OperatorTable) -> (Entry, Table) {
    let name = DumpFileName {
        op_type: operator.op_type,
        op_name: operator.op_name,
        task_id: operator.task_id,
        stream_id: Some(operator.stream_id),
        timestamp: operator.timestamp.to_string(),
        sub_task: None,
    };
    let entry = Entry {
        real_name: format!("{name}{}", stats_csv::FILE_NAME_SUFFIX),
        name: Some(name),
        ..entry.clone()
    };
    (entry, operator.table)
}

/// [`list`] of a single file. Its real name is looked up in the `mapping.csv` beside it.
pub fn list_file(path: &Path) -> Listing {
    let mut listing = Listing::default();
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let real_name = read_mapping(dir.unwrap_or(Path::new("."))).remove(&*file_name);
    match std::fs::metadata(path) {
        Ok(metadata) => {
            let real_name = real_name.unwrap_or_else(|| file_name.into_owned());
            listing.add(path.to_owned(), real_name, metadata.len());
        }
        Err(error) => listing.errors.push(StoreError::io("read", path)(error)),
    }
    listing
}

fn walk(dir: &Path, depth: usize, listing: &mut Listing) {
    let read = std::fs::read_dir(dir).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = match read {
        Ok(entries) => entries,
        Err(error) => {
            listing.errors.push(StoreError::io("list", dir)(error));
            return;
        }
    };
    let real_names = read_mapping(dir);
    for entry in entries {
        let path = entry.path();
        let file_name = entry.file_name().to_string_lossy().into_owned();
        // What a run leaves about itself and what is being written are hidden too.
        let is_hidden = file_name.starts_with('.');
        if is_hidden || [mapping_csv::FILE_NAME, OVERWRITES_FILE].contains(&&*file_name) {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => walk(&path, depth + 1, listing),
            Ok(kind) if kind.is_dir() => {
                let error = std::io::Error::other(format!("nested deeper than {DEPTH_MAX}"));
                listing.errors.push(StoreError::io("list", &path)(error));
            }
            Ok(_) => match std::fs::metadata(&path) {
                Ok(metadata) if metadata.is_file() => {
                    let real_name = real_names.get(&file_name).cloned().unwrap_or(file_name);
                    let n_bytes = metadata.len();
                    listing.add(path, real_name, n_bytes);
                }
                Ok(_) => {}
                Err(error) => listing.errors.push(StoreError::io("read", &path)(error)),
            },
            Err(error) => listing.errors.push(StoreError::io("read", &path)(error)),
        }
    }
}

impl Listing {
    /// Puts a file where it belongs; texts about failures belong nowhere.
    fn add(&mut self, path: PathBuf, real_name: String, n_bytes: u64) {
        let named = |suffix| real_name.strip_suffix(suffix).and_then(DumpFileName::parse);
        if named(TRACE_SUFFIX).is_some() {
            return;
        }
        let table = named(stats_csv::FILE_NAME_SUFFIX);
        let is_table = table.is_some();
        let is_step_table = real_name == step_table::FILE_NAME;
        let name = table.or_else(|| DumpFileName::parse(&real_name));
        let list = match (is_table, is_step_table) {
            (true, _) => &mut self.tables,
            (false, true) => &mut self.step_tables,
            (false, false) => &mut self.entries,
        };
        list.push(Entry {
            path,
            real_name,
            name,
            n_bytes,
        });
    }
}

/// The real names that `mapping.csv` in `dir` gives; empty if there is none.
pub fn read_mapping(dir: &Path) -> HashMap<String, String> {
    let Ok(bytes) = std::fs::read(dir.join(mapping_csv::FILE_NAME)) else {
        return HashMap::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    mapping_csv::parse(&text)
        .map(|(short, real)| (short.to_owned(), real.to_owned()))
        .collect()
}

type SortKey = (Vec<(u64, String)>, u32, String, String);

fn sort_key(entry: &Entry) -> SortKey {
    let dirs = entry
        .path
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .map(|component| {
            let text = component.as_os_str().to_string_lossy().into_owned();
            (text.parse().unwrap_or(u64::MAX), text)
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
            ["C.c.1.0.5", "A.a.9.0.5", "A.a.10.0.5", "x.txt", "B.b.2.0.5"]
        );
        assert!(listing.errors.is_empty());
        assert!(!list(&dir.path().join("absent")).errors.is_empty());
    }
}
