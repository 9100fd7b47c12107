//! The files of a dump of msProbe: those that list executions, and those with elements.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::head_of;
use crate::dump::{DumpEntry, DumpListing, PassReason, PassedOver};
use crate::file_format::msprobe::{self as format, ProbeDump};
use crate::reader::ReadFiles;
use crate::reader::entries::request;
use crate::reader::index::DumpIndex;
use crate::reader::tensor_file::FileHead;
use crate::tree::msprobe::{self as tree, ProbePlace};
use crate::{FormatError, StoreError, regular_file};

/// The content of one file about the calls of one step in one process.
pub(super) struct ProbeStep {
    /// `dump.json` or `debug.json`.
    pub(super) entry: DumpEntry,
    pub(super) place: ProbePlace,
    pub(super) dump: ProbeDump,
    /// The key of the module that a call is made in.
    pub(super) parents: HashMap<String, String>,
    /// Lines of the program.
    pub(super) sources: HashMap<String, String>,
}

/// A directory and the name of a file in it.
type FileKey = (PathBuf, OsString);

/// The files of a dump.
#[derive(Default)]
pub(super) struct ProbeFiles {
    /// Whether the user named a file, so that the other files are unknown.
    pub(super) is_single: bool,
    /// By rank and step.
    pub(super) steps: Vec<ProbeStep>,
    /// All other files, which may hold elements; no head of damaged ones.
    pub(super) data: Vec<(DumpEntry, Option<FileHead>)>,
    positions: HashMap<FileKey, usize>,
}

impl ProbeFiles {
    /// Reads everything but elements, and notes what cannot be read.
    pub(super) fn from_listing(
        listing: DumpListing,
        read: ReadFiles<'_>,
        index: &mut DumpIndex,
    ) -> ProbeFiles {
        index.passed_over = listing.passed_over;
        index.errors = listing.errors;
        let mut files = ProbeFiles {
            is_single: listing.is_single,
            ..ProbeFiles::default()
        };
        // The tool writes no tables; any tables here were derived from the dump.
        for entry in listing.tables.into_iter().chain(listing.step_tables) {
            pass_over(index, entry, PassReason::Statistics);
        }
        let mut dumps = Vec::new();
        let mut beside: HashMap<FileKey, DumpEntry> = HashMap::new();
        let mut data = Vec::new();
        for entry in listing.entries {
            match entry.real_name.as_str() {
                tree::DUMP_FILE | tree::DEBUG_FILE => dumps.push(entry),
                tree::CONSTRUCT_FILE | tree::STACK_FILE => {
                    beside.extend(key_of(&entry.path).map(|key| (key, entry)));
                }
                tree::ERROR_FILE => pass_over(index, entry, PassReason::FailureText),
                tree::CONFIG_FILE => pass_over(index, entry, PassReason::Configuration),
                _ => data.push(entry),
            }
        }
        for entry in dumps {
            let step = ProbeStep::read(entry, &mut beside, &mut index.errors);
            files.steps.extend(step);
        }
        files.steps.sort_by_key(|step| step.place);
        // The tables of a damaged dump are meaningless by themselves.
        for entry in beside.into_values() {
            pass_over(index, entry, PassReason::Graph);
        }
        index.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
        files.read_data(data, read, &mut index.errors);
        files
    }

    fn read_data(
        &mut self,
        entries: Vec<DumpEntry>,
        read: ReadFiles<'_>,
        errors: &mut Vec<StoreError>,
    ) {
        let requests: Vec<_> = entries.iter().map(request).collect();
        let contents = read(&requests).into_iter();
        for (entry, content) in entries.into_iter().zip(contents) {
            let position = self.data.len();
            self.positions
                .extend(key_of(&entry.path).map(|key| (key, position)));
            self.data.push((entry, head_of(content, errors)));
        }
    }

    /// The position of a file that the dump at `path` names.
    pub(super) fn position_of(&self, path: &Path, name: &str) -> Option<usize> {
        let key = (path.with_file_name(tree::DATA_DIR), OsString::from(name));
        self.positions.get(&key).copied()
    }
}

impl ProbeStep {
    fn read(
        entry: DumpEntry,
        beside: &mut HashMap<FileKey, DumpEntry>,
        errors: &mut Vec<StoreError>,
    ) -> Option<ProbeStep> {
        let dump = read_json(&entry.path, format::parse_dump);
        let dump = dump.map_err(|error| errors.push(error)).ok()?;
        errors.extend(unknown_part(&entry.path, &dump));
        let mut texts = |name, parse: fn(Vec<u8>) -> Result<_, FormatError>| {
            let key = key_of(&entry.path.with_file_name(name))?;
            let found = beside.remove(&key)?;
            let texts = read_json(&found.path, parse);
            texts.map_err(|error| errors.push(error)).ok()
        };
        let parents = texts(tree::CONSTRUCT_FILE, format::parse_construct);
        let sources = texts(tree::STACK_FILE, format::parse_stack);
        Some(ProbeStep {
            place: place_of(&entry.path),
            entry,
            dump,
            parents: parents.unwrap_or_default(),
            sources: sources.unwrap_or_default(),
        })
    }
}

/// Whether a file is a dump of msProbe, by its name and the beginning of its content.
pub(super) fn is_probe_dump(entry: &DumpEntry) -> bool {
    if ![tree::DUMP_FILE, tree::DEBUG_FILE].contains(&entry.real_name.as_str()) {
        return false;
    }
    // Other tools write a `dump.json` too, so that the name alone proves nothing.
    let Ok((file, _)) = regular_file::open_in_dump(&entry.path) else {
        return false;
    };
    let mut head = Vec::new();
    let read = file.take(format::HEAD_BYTES as u64).read_to_end(&mut head);
    read.is_ok() && format::is_dump(&head)
}

/// The rank and the step of a file, by the directories above it.
pub(super) fn place_of(path: &Path) -> ProbePlace {
    let dir = path.parent().unwrap_or(Path::new("."));
    // A relative path may lack the directories that identify it.
    let absolute = crate::remote::absolute(dir);
    ProbePlace::from_dir(absolute.as_deref().unwrap_or(dir))
}

fn read_json<T>(
    path: &Path,
    parse: impl FnOnce(Vec<u8>) -> Result<T, FormatError>,
) -> Result<T, StoreError> {
    let bytes = regular_file::read_in_dump(path, format::FILE_BYTES_MAX as u64);
    let bytes = bytes.map_err(StoreError::io("read", path))?;
    parse(bytes).map_err(StoreError::corrupt(format::FORMAT_NAME, path))
}

/// The first part of a call that nothing is known of.
fn unknown_part(path: &Path, dump: &ProbeDump) -> Option<StoreError> {
    let mut unknown = dump
        .entries
        .iter()
        .filter(|entry| !entry.unknown.is_empty());
    let first = unknown.next()?;
    let reason = format!(
        "`{}`: expected inputs, outputs and parameters, found `{}`; the same in {} further calls",
        first.key,
        first.unknown.join("`, `"),
        unknown.count(),
    );
    let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
    Some(StoreError::io("read", path)(error))
}

fn key_of(path: &Path) -> Option<FileKey> {
    let dir = path.parent()?.to_owned();
    Some((dir, path.file_name()?.to_owned()))
}

fn pass_over(index: &mut DumpIndex, entry: DumpEntry, reason: PassReason) {
    let path = entry.path;
    index.passed_over.push(PassedOver { path, reason });
}
