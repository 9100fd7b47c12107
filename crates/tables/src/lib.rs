//! Exports the tables of a dump (tensors, operators, edges and events) as Parquet for other tools,
//! and the table of a comparison of two dumps.
//!
//! `docs/formats/tables.md` lists the columns. A table has one part per rank, model and step, so
//! that many processes can write at once and existing parts are reused.

mod compared;
mod derived;
mod parts;
mod ranges;
mod rows;
mod statistics;
mod tensor_rows;
mod views;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use opscope_store::atomic_file::{Creator, PermissionModes};
use opscope_store::dump::{self, PassedOver};
use opscope_store::slot_table::{
    INDEX_LEVEL, N_GROUP_ROWS, SlotTable, TableWriter, compression_of, write_flat,
};
use opscope_store::tree::own;
use opscope_store::{StoreError, reader, remote, temporary};

use self::derived::DerivedTables;
use self::parts::{DumpParts, Fingerprints, TablePart};
use opscope_analysis::Shard;
use opscope_analysis::error_chain::chain;
use opscope_analysis::job;

pub use compared::{COMPARE_TABLE, ComparePart, has_comparisons};
pub use ranges::{PartRange, PartRanges, RangeComparison, RangeCondition};
pub use tensor_rows::{PartOfRows, TensorRows};
pub use views::{FUNCTIONS, NamedQuery, VIEWS, write_views};

/// The names of the tables; each is a directory.
pub const TABLES: [&str; 4] = ["tensors", "operators", "edges", "events"];
/// File extension of parts.
const EXTENSION: &str = "parquet";
/// Metadata key of the digest of a part's source files.
const SOURCES_KEY: &str = "opscope.sources";
/// Metadata key of the problems while reading a part, as a JSON list.
const PROBLEMS_KEY: &str = "opscope.problems";

/// Options for writing tables.
#[derive(Clone, Debug)]
pub struct TablesOptions {
    /// Number of threads.
    pub n_threads: usize,
    /// Whether missing statistics and digests are computed.
    pub has_stats: bool,
    /// Permissions of new files.
    pub modes: PermissionModes,
    /// The parts to write.
    pub share: TablesShare,
}

/// The parts that a process writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TablesShare {
    /// All parts and the common files; existing parts are reused.
    #[default]
    All,
    /// The share of one of several processes.
    Shard(Shard),
    /// The part with this name.
    Part(String),
    /// No parts: all must exist, and only the common files are written.
    Merge,
}

/// A part of a dump's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablesUnit {
    /// Its name: its file name without extension.
    pub name: String,
    /// Bytes of the files that describe its content.
    pub n_bytes: u64,
    /// Whether it exists and matches the dump's current files.
    pub is_current: bool,
}

/// The outcome of [`write_tables`].
#[derive(Debug, Default)]
pub struct TablesReport {
    /// Parts that were written.
    pub n_written: u64,
    /// Parts that existed and are current.
    pub n_current: u64,
    /// Parts that were removed because the dump no longer has the step.
    pub n_removed: u64,
    /// Rows of tensors in the written parts.
    pub n_rows: u64,
    /// Tensors whose statistics were computed.
    pub n_computed: u64,
    /// Names of missing parts.
    pub missing: Vec<String>,
    /// Read and write errors.
    pub errors: Vec<String>,
    /// Files that were not read as part of the dump.
    pub passed_over: Vec<PassedOver>,
    /// A digest of the names, sizes and times of all source files.
    sources: String,
}

/// Writes the tables of a dump below `out`, each part to `{table}/{label}`. Parts that match the
/// dump's current files are kept.
///
/// # Errors
/// [`StoreError`] if there is nothing at `path`. All other errors are in the report.
pub fn write_tables(
    path: &Path,
    label: &str,
    out: &Path,
    options: &TablesOptions,
) -> Result<TablesReport, StoreError> {
    let parts = open_parts(path, label, options.n_threads)?;
    let place = TablesPlace {
        out,
        label,
        creator: &creator(out, options.modes),
        options,
    };
    let mut report = TablesReport {
        errors: parts.problems.clone(),
        passed_over: parts.passed_over.clone(),
        ..TablesReport::default()
    };
    // With statistics the tensors of a part share the threads: a dump may have a single step.
    let n_parts_at_once = if options.has_stats {
        1
    } else {
        options.n_threads
    };
    if options.share == TablesShare::Merge {
        report.missing = place.missing(&parts);
    }
    // For an incomplete table only the missing parts are reported.
    let own = if report.missing.is_empty() {
        place.own_parts(&parts)
    } else {
        Vec::new()
    };
    let outcomes = job::map(&own, n_parts_at_once, |part| place.write_part(&parts, part));
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => report.add(outcome),
            Err(error) => report.errors.push(chain(&error)),
        }
    }
    report.sources = parts.common_fingerprint();
    let is_all = matches!(options.share, TablesShare::All | TablesShare::Merge);
    if !(is_all && report.missing.is_empty()) {
        // Common files are left to the process that has all parts.
        return Ok(report);
    }
    // Done last, so that an unreadable dump deletes nothing.
    report.n_removed = place.remove_others(&parts)?;
    temporary::clean(out);
    PartRanges::update(out, TABLES[0], label, place.creator)?;
    Ok(report)
}

/// Lists the parts of a dump's tables.
///
/// # Errors
/// As [`write_tables`].
pub fn tables_units(
    path: &Path,
    label: &str,
    out: &Path,
    options: &TablesOptions,
) -> Result<Vec<TablesUnit>, StoreError> {
    let parts = open_parts(path, label, options.n_threads)?;
    let place = TablesPlace {
        out,
        label,
        creator: &creator(out, options.modes),
        options,
    };
    let units = parts.parts.iter().map(|part| TablesUnit {
        name: part.name.clone(),
        n_bytes: parts.n_bytes(part),
        is_current: place.current(&parts, part).is_some(),
    });
    Ok(units.collect())
}

/// A file creator for tables in `out`. It follows no symbolic link below the dump that contains
/// `out`, or below `out` itself outside of a dump.
pub fn creator(out: &Path, modes: PermissionModes) -> Creator {
    Creator::in_dump(own::dump_of_index(out).unwrap_or(out), modes)
}

/// Lists a dump and its parts.
fn open_parts(path: &Path, label: &str, n_threads: usize) -> Result<DumpParts, StoreError> {
    // An empty listing is not an error, so check that the path exists.
    remote::metadata(path).map_err(StoreError::io("read", path))?;
    let listing = if remote::is_dir(path) {
        dump::list(path)
    } else {
        dump::list_file(path)
    };
    if reader::reader_of(&listing).form() == reader::NATIVE_FORM {
        Ok(DumpParts::of_native(path, label, &listing))
    } else {
        DumpParts::of_other(path, label, n_threads)
    }
}

/// The names of the dumps with tables in the directory `index`; empty if there are none.
pub fn labels_in(index: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(index.join(TABLES[0])) else {
        return Vec::new();
    };
    let dirs = entries.flatten().filter(|entry| has_part(&entry.path()));
    let labels = dirs.filter_map(|entry| entry.file_name().into_string().ok());
    let mut labels: Vec<String> = labels.collect();
    labels.sort();
    labels
}

/// Whether a directory contains a file with the tensor columns.
fn has_part(dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(dir) else {
        return false;
    };
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.any(|path| {
        path.extension().is_some_and(|end| end == EXTENSION) && fingerprint_in(&path).is_some()
    })
}

/// The outcome for one part.
#[derive(Default)]
struct PartOutcome {
    is_current: bool,
    n_rows: u64,
    n_computed: u64,
    errors: Vec<String>,
}

impl TablesReport {
    /// Number of parts that exist now.
    pub fn n_parts(&self) -> u64 {
        self.n_written + self.n_current
    }

    fn add(&mut self, outcome: PartOutcome) {
        self.n_current += u64::from(outcome.is_current);
        self.n_written += u64::from(!outcome.is_current);
        self.n_rows += outcome.n_rows;
        self.n_computed += outcome.n_computed;
        self.errors.extend(outcome.errors);
    }
}

/// The target directory of a dump's parts.
struct TablesPlace<'a> {
    out: &'a Path,
    label: &'a str,
    creator: &'a Creator,
    options: &'a TablesOptions,
}

impl TablesPlace<'_> {
    fn file(&self, table: &str, part: &TablePart) -> PathBuf {
        part_file(self.out, table, self.label, part)
    }

    /// The parts of this process.
    fn own_parts<'p>(&self, parts: &'p DumpParts) -> Vec<&'p TablePart> {
        match &self.options.share {
            TablesShare::All | TablesShare::Merge => parts.parts.iter().collect(),
            // Divided by table size, which reflects the number of tensors.
            TablesShare::Shard(shard) => {
                let sizes: Vec<u64> = parts.parts.iter().map(|part| parts.n_bytes(part)).collect();
                let own = shard.share(&sizes).into_iter();
                own.map(|at| &parts.parts[at]).collect()
            }
            TablesShare::Part(name) => {
                let named = parts.parts.iter();
                named.filter(|part| part.name == *name).collect()
            }
        }
    }

    /// Names of parts that do not exist or are outdated.
    fn missing(&self, parts: &DumpParts) -> Vec<String> {
        // Checked against the current files: an outdated part counts as missing.
        let gone = parts.parts.iter();
        let gone = gone.filter(|part| self.current(parts, part).is_none());
        gone.map(|part| part.name.clone()).collect()
    }

    fn current(&self, parts: &DumpParts, part: &TablePart) -> Option<SlotTable> {
        let sources = parts.fingerprints(part);
        current_part(
            &self.file(TABLES[0], part),
            &sources,
            self.options.has_stats,
        )
    }

    fn write_part(&self, parts: &DumpParts, part: &TablePart) -> Result<PartOutcome, StoreError> {
        // Tensors are written last, so their file stands for all tables.
        let tensors = self.file(TABLES[0], part);
        // Taken before the files are read: if a file changes meanwhile, the part is outdated.
        let sources = parts.fingerprints(part);
        if let Some(table) = current_part(&tensors, &sources, self.options.has_stats) {
            return Ok(PartOutcome {
                is_current: true,
                // Problems from then still apply to the tables.
                errors: problems_in(&table),
                ..PartOutcome::default()
            });
        }
        let mut found = parts.rows(part)?;
        let mut outcome = PartOutcome {
            errors: std::mem::take(&mut found.problems),
            n_rows: found.rows.len() as u64,
            ..PartOutcome::default()
        };
        if self.options.has_stats {
            let (n, errors) = statistics::compute(&mut found, self.options.n_threads);
            outcome.n_computed = n;
            outcome.errors.extend(errors);
        }
        let derived = DerivedTables::new(&found);
        let mut metadata = vec![(
            SOURCES_KEY.to_owned(),
            sources.with(self.options.has_stats).to_owned(),
        )];
        if !outcome.errors.is_empty() {
            let list = serde_json::json!(outcome.errors).to_string();
            metadata.push((PROBLEMS_KEY.to_owned(), list));
        }
        for (table, columns) in TABLES[1..].iter().zip(derived.into_columns()) {
            let file = self.file(table, part);
            self.creator.replace_with(&file, |file| {
                write_flat(&mut BufWriter::new(file), metadata.clone(), columns)
            })?;
        }
        self.creator.replace_with(&tensors, |file| {
            let mut out = BufWriter::new(file);
            let level = compression_of(found.rows.len(), INDEX_LEVEL);
            let mut writer = TableWriter::new(&mut out, metadata.clone(), level)?;
            // The library's limit of rows per call.
            for rows in found.rows.chunks_mut(N_GROUP_ROWS) {
                writer.write_group(rows)?;
            }
            writer.finish()?;
            out.flush()
        })?;
        Ok(outcome)
    }

    /// Removes parts of steps that the dump no longer has.
    fn remove_others(&self, parts: &DumpParts) -> Result<u64, StoreError> {
        let mut n_removed = 0;
        for table in TABLES {
            let dir = self.out.join(table).join(self.label);
            temporary::clean(&dir);
            // A dump without parts has no such directory.
            let Ok(entries) = fs::read_dir(&dir) else {
                continue;
            };
            for entry in entries.flatten() {
                let path = entry.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let stem = name.strip_suffix(&format!(".{EXTENSION}"));
                // Files that we did not create are left alone.
                let is_gone =
                    stem.is_some_and(|stem| !parts.has(stem)) && fingerprint_in(&path).is_some();
                if is_gone {
                    fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
                    n_removed += u64::from(table == TABLES[0]);
                }
            }
        }
        Ok(n_removed)
    }
}

fn part_file(index: &Path, table: &str, label: &str, part: &TablePart) -> PathBuf {
    let dir = index.join(table).join(label);
    dir.join(format!("{}.{EXTENSION}", part.name))
}

/// The part in the file `path`, if it matches the dump's current files. With `needs_stats` its
/// statistics must have been computed; without, they may have been.
fn current_part(path: &Path, sources: &Fingerprints, needs_stats: bool) -> Option<SlotTable> {
    // Damaged parts and those of other versions have no sources and are rewritten.
    let table = SlotTable::open(path).ok()?;
    let known = table.fact(SOURCES_KEY)?;
    // Computed statistics are kept even if they are not needed.
    let is_current = known == sources.with_stats || !needs_stats && known == sources.without;
    is_current.then_some(table)
}

/// The problems that occurred while a part was written.
fn problems_in(table: &SlotTable) -> Vec<String> {
    let list = table.fact(PROBLEMS_KEY);
    list.and_then(|list| serde_json::from_str(list).ok())
        .unwrap_or_default()
}

/// The digest of a part's source files; `None` if it is missing, damaged or not a part.
fn fingerprint_in(path: &Path) -> Option<String> {
    let table = SlotTable::open(path).ok()?;
    table.fact(SOURCES_KEY).map(str::to_owned)
}
