//! Our own form: a table for each step, and files of elements that its rows name.

mod statistics_rows;
mod step_operators;

use std::path::{Path, PathBuf};

use self::step_operators::{KnownParts, RowUse, StepOperators};
use super::index::DumpIndex;
use super::{DumpReader, FilePlace, ReadFiles, TakeTensors};
use crate::StoreError;
use crate::dump::{DumpEntry, DumpListing, PassReason, PassedOver};
use crate::file_bytes::FileBytes;
use crate::remote;
use crate::slot_table::{SlotRow, SlotTable, journal};
use crate::tree::native::{StepFile, is_elements_file, rank_of, run_dir_of};

/// The form's name, for programs.
pub const FORM: &str = "native";

/// Reads directories in which a file has the name of a step's table and lies where it belongs.
pub(super) struct NativeReader;

impl DumpReader for NativeReader {
    fn form(&self) -> &'static str {
        FORM
    }

    fn detect(&self, listing: &DumpListing) -> bool {
        let mut entries = listing.entries.iter();
        entries.any(|entry| StepFile::parse(&absolute(&entry.path)).is_some())
    }

    fn reason_to_pass(&self, entry: &DumpEntry) -> Option<PassReason> {
        let is_part = is_elements_file(&entry.path) || StepFile::parse(&entry.path).is_some();
        (!is_part).then_some(PassReason::Converted)
    }

    fn place_of(&self, entry: &DumpEntry) -> Option<FilePlace> {
        let path = absolute(&entry.path);
        let (_, step) = StepFile::parse(&path)?;
        Some((rank_of(&path), Some(step)))
    }

    fn index(&self, listing: DumpListing, _read: ReadFiles<'_>) -> DumpIndex {
        let mut tensors = Vec::new();
        let mut index = read(self.form(), listing, RowUse::All, &mut |more| {
            tensors.push(more);
        });
        for more in tensors {
            index.add_tensors(more);
        }
        index
    }

    fn index_into(
        &self,
        listing: DumpListing,
        _read: ReadFiles<'_>,
        take: TakeTensors<'_>,
    ) -> DumpIndex {
        read(self.form(), listing, RowUse::Tensors, take)
    }

    fn overview(&self, listing: DumpListing, _read: ReadFiles<'_>) -> DumpIndex {
        read(self.form(), listing, RowUse::Operators, &mut |_| {})
    }
}

/// Reads the rows of all steps.
fn read(
    form: &'static str,
    listing: DumpListing,
    row_use: RowUse,
    take: TakeTensors<'_>,
) -> DumpIndex {
    let mut index = DumpIndex {
        form,
        passed_over: listing.passed_over,
        errors: listing.errors,
        ..DumpIndex::default()
    };
    let mut steps = Vec::new();
    let entries = listing.entries.into_iter();
    for entry in entries.chain(listing.tables).chain(listing.step_tables) {
        match StepFile::parse(&absolute(&entry.path)) {
            Some((kind, step)) => steps.push((step, kind, entry)),
            None if is_elements_file(&absolute(&entry.path)) => {
                let reason = PassReason::Elements;
                index.passed_over.push(PassedOver {
                    path: entry.path,
                    reason,
                });
            }
            None => index.passed_over.push(PassedOver {
                path: entry.path,
                reason: PassReason::Converted,
            }),
        }
    }
    // Listings are in no order, and `step-10` comes before `step-9` by name.
    steps.sort_by(|a, b| order(a).cmp(&order(b)));
    let mut known = KnownParts::default();
    for (_, kind, entry) in steps {
        if is_repeated(kind, &entry) {
            index.passed_over.push(PassedOver {
                path: entry.path,
                reason: PassReason::Unfinished,
            });
            continue;
        }
        let added = match kind {
            // A table is sorted, a journal is not.
            StepFile::Table => add_table(&mut index, &mut known, &entry, (row_use, take)),
            StepFile::Journal => add_journal(&mut index, &mut known, &entry, (row_use, take)),
        };
        if let Err(error) = added {
            index.errors.push(error);
        }
    }
    index.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
    index
}

/// A file of a step, which holds its rows.
#[derive(Clone, Debug)]
pub struct NativeStep {
    /// The table, or the journal of a step that is not whole.
    pub path: PathBuf,
    /// The directory of the run: files are named in rows from here.
    pub run_dir: PathBuf,
    /// The rank in the directory's name.
    pub rank: Option<u32>,
    /// The number of the step.
    pub step: u64,
    /// The same file as it was listed.
    pub entry: DumpEntry,
    /// Whether the step is whole.
    pub is_whole: bool,
}

/// The steps of a listed dump: runs and models by their directories, then by their numbers.
pub fn native_steps(listing: &DumpListing) -> Vec<NativeStep> {
    let entries = listing.entries.iter();
    let entries = entries
        .chain(&listing.tables)
        .chain(&listing.step_tables)
        .filter_map(|entry| {
            let (kind, step) = StepFile::parse(&absolute(&entry.path))?;
            Some((step, kind, entry.clone()))
        });
    let mut steps: Vec<_> = entries.collect();
    steps.sort_by(|a, b| order(a).cmp(&order(b)));
    let steps = steps
        .into_iter()
        .filter(|(_, kind, entry)| !is_repeated(*kind, entry));
    let steps = steps.map(|(step, kind, entry)| {
        let path = absolute(&entry.path);
        NativeStep {
            run_dir: run_dir_of(&path).to_owned(),
            rank: rank_of(&path),
            step,
            entry,
            path,
            is_whole: kind == StepFile::Table,
        }
    });
    steps.collect()
}

impl NativeStep {
    /// The rows, in execution order, and the damage after them, if any.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub fn read_rows(&self) -> Result<(Vec<SlotRow>, Option<StoreError>), StoreError> {
        let corrupt = StoreError::corrupt(crate::slot_table::FORMAT_NAME, &self.path);
        if !self.is_whole {
            let bytes = FileBytes::open_in_dump(&self.path);
            let bytes = bytes.map_err(StoreError::io("read", &self.path))?;
            let mut content = journal::decode(bytes.as_ref());
            content.rows.sort_by_key(|row| row.time_us);
            return Ok((content.rows, content.error.map(corrupt)));
        }
        let table = SlotTable::open(&self.path)?;
        let mut rows = Vec::new();
        for group in 0..table.n_groups() {
            // Groups before the damaged one are sound.
            match table.read_group(group) {
                Ok(more) => rows.extend(more),
                Err(error) => return Ok((rows, Some(corrupt(error)))),
            }
        }
        Ok((rows, None))
    }
}

/// Whether it is the journal of a step whose table was written; it could not be removed any more.
fn is_repeated(kind: StepFile, entry: &DumpEntry) -> bool {
    kind == StepFile::Journal && remote::exists(&entry.path.with_extension("parquet"))
}

/// Runs and models by their directories, then steps by their numbers.
fn order((step, _, entry): &(u64, StepFile, DumpEntry)) -> (Option<&Path>, u64, &Path) {
    (entry.path.parent(), *step, &entry.path)
}

/// A relative path may lack the directories that identify it.
fn absolute(path: &Path) -> PathBuf {
    remote::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The path of a listed file as the user gave it, relative or not, where that is long enough.
fn whole_path(entry: &DumpEntry) -> PathBuf {
    match entry.path.ancestors().nth(3) {
        Some(_) if entry.path.components().count() > 3 => entry.path.clone(),
        _ => absolute(&entry.path),
    }
}

/// Number of tensors that are passed on at once.
const N_HANDED_OVER: usize = 4096;

fn add_table(
    index: &mut DumpIndex,
    known: &mut KnownParts,
    entry: &DumpEntry,
    (row_use, take): (RowUse, TakeTensors<'_>),
) -> Result<(), StoreError> {
    let table = SlotTable::open(&entry.path)?;
    let mut file = StepOperators::new(entry, whole_path(entry), row_use);
    for group in 0..table.n_groups() {
        let rows = table.read_group(group);
        let rows = rows.map_err(StoreError::corrupt(
            crate::slot_table::FORMAT_NAME,
            &entry.path,
        ));
        // Tensors take as much memory as rows, so neither is kept completely.
        let mut rows = rows?.into_iter();
        while rows.len() > 0 {
            let next = rows.by_ref().take(N_HANDED_OVER);
            take(file.add(index, known, next));
        }
    }
    file.finish(index);
    Ok(())
}

/// The rows that were reported written. Unfinished rows after them were not; the file's name says
/// that the step is incomplete.
fn add_journal(
    index: &mut DumpIndex,
    known: &mut KnownParts,
    entry: &DumpEntry,
    (row_use, take): (RowUse, TakeTensors<'_>),
) -> Result<(), StoreError> {
    let bytes = FileBytes::open_in_dump(&entry.path);
    let bytes = bytes.map_err(StoreError::io("read", &entry.path))?;
    let mut content = journal::decode(bytes.as_ref());
    // Threads append in the order in which they come to it, which need not be that of execution.
    content.rows.sort_by_key(|row| row.time_us);
    let mut file = StepOperators::new(entry, whole_path(entry), row_use);
    take(file.add(index, known, content.rows.into_iter()));
    file.finish(index);
    let corrupt = StoreError::corrupt(crate::slot_table::FORMAT_NAME, &entry.path);
    content.error.map_or(Ok(()), |error| Err(corrupt(error)))
}
