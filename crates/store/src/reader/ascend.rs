//! Dumps of AscendCL, single files, and directories of arrays that dump files were converted to.

mod order;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use order::by_execution;

use super::entries::{ReadEntry, golden_name, is_table, read_entries, request, result_name};
use super::index::{
    DumpIndex, ElementsPlace, ExecutionKind, IndexedExecution, IndexedFile, IndexedTable,
    IndexedTensor, OperatorInFile,
};
use super::tensor_file::{FileContent, FileHead, FileKind};
use super::tensor_statistics::TensorStatistics;
use super::term::DumpTerm;
use super::{DumpReader, FilePlace, ReadFiles, TakeTensors, arrays};
use crate::StoreError;
use crate::dump::{DumpEntry, DumpListing, PassReason, of_step_tables};
use crate::file_format::stats_csv::{self, StatsTable};
use crate::file_format::{hdf5, npy_zst, op_debug, safetensors, torch_save};
use crate::record::SlotSide;
use crate::tree::acl::{DumpFileName, PathOrigin};

/// Digits of a timestamp in microseconds; those with more are local times.
const TIMESTAMP_DIGITS_MAX: usize = 16;

/// Which file a table of statistics describes.
type FileKey = (Option<PathBuf>, String);

/// Reads what no other reader knows.
pub(super) struct AscendReader;

impl DumpReader for AscendReader {
    fn form(&self) -> &'static str {
        "ascendcl"
    }

    fn detect(&self, _: &DumpListing) -> bool {
        true
    }

    fn reason_to_pass(&self, entry: &DumpEntry) -> Option<PassReason> {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        let is_array = npy_zst::split_name(&name).is_some()
            || name.ends_with(safetensors::SUFFIX)
            || hdf5::is_name(&name)
            || torch_save::telling_stem(&name).is_some();
        let is_result = is_array || op_debug::is_json_record_name(&entry.real_name);
        is_result.then_some(PassReason::Converted)
    }

    fn place_of(&self, entry: &DumpEntry) -> Option<FilePlace> {
        let origin = origin_of(entry);
        Some((origin.rank.or(origin.device), Some(origin.step?)))
    }

    fn index(&self, listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
        let (mut index, entries, is_single) = read_all(self.form(), listing, read);
        add_records(&mut index, entries, is_single);
        index
    }

    fn index_into(
        &self,
        listing: DumpListing,
        read: ReadFiles<'_>,
        take: TakeTensors<'_>,
    ) -> DumpIndex {
        let (index, entries, is_single) = read_all(self.form(), listing, read);
        each_record(entries, is_single, take);
        index
    }
}

/// Reads all files; the index lacks the tensors, which are in the entries that come with it. Also
/// returns whether the listing is of a single file.
fn read_all(
    form: &'static str,
    mut listing: DumpListing,
    read: ReadFiles<'_>,
) -> (DumpIndex, Vec<ReadEntry>, bool) {
    let mut index = DumpIndex {
        form,
        passed_over: std::mem::take(&mut listing.passed_over),
        ..DumpIndex::default()
    };
    // The tables of steps append their errors to those of the listing; the count separates them.
    let n_listed_errors = listing.errors.len();
    let of_steps = of_step_tables(&mut listing);
    let of_steps = of_steps.into_iter();
    let of_steps: Vec<ReadEntry> = of_steps
        .map(|(entry, table)| (entry, Some(FileContent::Table(table))))
        .collect();
    let step_errors = listing.errors.split_off(n_listed_errors);
    index.errors.append(&mut listing.errors);
    let mut errors = Vec::new();
    let entries = read_entries(listing.entries, read, &mut errors);
    // Tables come after everything else, whatever their names.
    let (of_tables, others): (Vec<_>, Vec<_>) = errors.into_iter().partition(is_of_table);
    index.errors.extend(others);
    let tables = read_entries(listing.tables, read, &mut index.errors);
    index.errors.extend(of_tables);
    index.errors.extend(step_errors);
    index.files = entries.iter().filter_map(file_record).collect();
    let in_order = tables.iter().chain(&entries).chain(&of_steps);
    index.tables = in_order.filter_map(table_record).collect();
    let mut read_entries: Vec<ReadEntry> = entries;
    read_entries.extend(tables);
    read_entries.extend(of_steps);
    (index, read_entries, listing.is_single)
}

fn is_of_table(error: &StoreError) -> bool {
    matches!(error, StoreError::Corrupt { format, .. } if *format == stats_csv::FORMAT_NAME)
}

/// The tables of statistics in a listing, without its tensors.
///
/// # Errors
/// The first [`StoreError`] of a table that cannot be read.
pub fn read_tables(mut listing: DumpListing) -> Result<Vec<IndexedTable>, StoreError> {
    let mut tables = Vec::new();
    let files = std::mem::take(&mut listing.tables).into_iter();
    for entry in files.chain(std::mem::take(&mut listing.entries)) {
        if let Some(table) = request(&entry).read_table()? {
            tables.push((entry, Some(FileContent::Table(table))));
        }
    }
    let of_steps = of_step_tables(&mut listing).into_iter();
    tables.extend(of_steps.map(|(entry, table)| (entry, Some(FileContent::Table(table)))));
    match listing.errors.pop() {
        Some(error) => Err(error),
        None => Ok(tables.iter().filter_map(table_record).collect()),
    }
}

/// Adds the records of files and tables in the order of execution.
pub(super) fn add_records(index: &mut DumpIndex, entries: Vec<ReadEntry>, is_single: bool) {
    each_record(entries, is_single, &mut |records| {
        index.add_tensors(records);
    });
}

/// Hands over the records of files and tables, file by file, in the order of execution.
fn each_record(mut entries: Vec<ReadEntry>, is_single: bool, take: TakeTensors<'_>) {
    entries.sort_by_cached_key(|(entry, _)| execution_key(entry));
    let entries = by_execution(entries);
    let tables: HashMap<FileKey, &StatsTable> = entries
        .iter()
        .filter_map(|(entry, content)| match content {
            Some(FileContent::Table(table)) => Some((file_key(entry, ""), table)),
            _ => None,
        })
        .collect();
    let described: HashSet<FileKey> = entries
        .iter()
        .filter(|(_, content)| matches!(content, Some(FileContent::Tensors(_))))
        .map(|(entry, _)| file_key(entry, stats_csv::FILE_NAME_SUFFIX))
        .filter(|key| tables.contains_key(key))
        .collect();
    for (entry, content) in &entries {
        let records = match content {
            Some(FileContent::Tensors(head)) if head.kind.is_archive() => {
                arrays::records(entry, head)
            }
            Some(FileContent::Tensors(head)) => {
                let table = tables.get(&file_key(entry, stats_csv::FILE_NAME_SUFFIX));
                tensor_records(entry, head, table.copied())
            }
            // The tensors that a table describes took it over, where they are there.
            Some(FileContent::Table(_)) if described.contains(&file_key(entry, "")) => continue,
            Some(FileContent::Table(table)) => statistics_records(entry, table),
            // The error says that the table is damaged; a record would claim a tensor that was not
            // dumped.
            None if is_table(entry) => continue,
            // Any stray file is unreadable as a dump file: only a name, or the user, makes it a
            // lost tensor.
            None if is_single || is_part_of_dump(entry) => vec![damaged_record(entry)],
            None => continue,
        };
        take(records);
    }
}

/// The order of execution. A converted dump file takes the place of the original.
fn execution_key(entry: &DumpEntry) -> impl Ord + use<> {
    let result = result_name(entry);
    let slot = result.as_ref().map(|result| result.slot);
    let entry = match result {
        None => entry.clone(),
        Some(result) => DumpEntry {
            real_name: result.file.to_string(),
            name: Some(result.file),
            ..entry.clone()
        },
    };
    (entry.order(), slot)
}

fn file_key(entry: &DumpEntry, suffix: &str) -> FileKey {
    // The real name is the key: a file and its table go by different digits where both are too
    // long.
    let dir = entry.path.parent().map(Path::to_owned);
    (dir, format!("{}{suffix}", entry.real_name))
}

/// Whether the name is that of a part of a dump, whatever the file holds.
fn is_part_of_dump(entry: &DumpEntry) -> bool {
    entry.name.is_some() || npy_zst::split_name(&entry.real_name).is_some()
}

/// The record of a file with tensors, by the parts of its name; none of a table.
fn file_record((entry, content): &ReadEntry) -> Option<IndexedFile> {
    let operators = match content {
        Some(FileContent::Table(_)) => return None,
        Some(FileContent::Tensors(head)) if head.kind.is_archive() => {
            arrays::operators_in_file(entry, head)
        }
        Some(FileContent::Tensors(head)) => vec![operator_in_file(entry, head)],
        None => Vec::new(),
    };
    Some(IndexedFile {
        path: entry.path.clone(),
        real_name: entry.real_name.clone(),
        n_bytes: entry.n_bytes,
        rank: rank_of(entry),
        operators,
    })
}

fn rank_of(entry: &DumpEntry) -> Option<u32> {
    PathOrigin::from_path(entry.path.parent()?).rank
}

fn operator_in_file(entry: &DumpEntry, head: &FileHead) -> OperatorInFile {
    let (op_type, op_name, task_id) = match &entry.name {
        Some(name) => (name.op_type.as_str(), &name.op_name, Some(name.task_id)),
        None => ("", &entry.real_name, None),
    };
    let [n_inputs, n_outputs] = [SlotSide::Input, SlotSide::Output]
        .map(|side| head.tensors.iter().filter(|t| t.side == side).count() as u64);
    let op_name = Some(&head.op_name)
        .filter(|name| !name.is_empty())
        .unwrap_or(op_name);
    OperatorInFile {
        op_type: op_type.into(),
        op_name: op_name.into(),
        task_id,
        n_inputs,
        n_outputs,
        n_bytes: entry.n_bytes,
    }
}

/// The table that a file holds; none of a file with tensors.
pub(super) fn table_record((entry, content): &ReadEntry) -> Option<IndexedTable> {
    let Some(FileContent::Table(table)) = content else {
        return None;
    };
    let step = entry.path.parent().and_then(Path::file_name);
    let name = entry.name.as_ref();
    Some(IndexedTable {
        rank: rank_of(entry),
        step: step.and_then(|step| step.to_str()?.parse().ok()),
        task_id: name.map(|name| name.task_id),
        op_type: name.map(|name| name.op_type.clone()),
        op_name: name.map_or(&entry.real_name, |name| &name.op_name).clone(),
        table: table.clone(),
    })
}

/// Rank, model and step of a file, by the directories above it.
fn origin_of(entry: &DumpEntry) -> PathOrigin {
    let dir = entry.path.parent().unwrap_or(Path::new("."));
    // A relative path may lack the directories that identify it.
    let absolute = crate::remote::absolute(dir);
    PathOrigin::from_path(absolute.as_deref().unwrap_or(dir))
}

/// Everything that the path and name of a file say.
struct DescribedFile {
    execution: IndexedExecution,
    tensor: IndexedTensor,
}

impl DescribedFile {
    fn from_entry(entry: &DumpEntry) -> DescribedFile {
        let origin = origin_of(entry);
        let is_record = op_debug::is_record_name(&entry.real_name);
        let execution = IndexedExecution {
            kind: if is_record {
                ExecutionKind::OverflowRecord
            } else {
                ExecutionKind::Operator
            },
            model: origin.model.map(Into::into),
            model_id: origin.model_id,
            rank: origin.rank.or(origin.device),
            step: origin.step,
            ..IndexedExecution::default()
        };
        let tensor = IndexedTensor {
            path: (&entry.path).into(),
            ..IndexedTensor::default()
        };
        let mut named = DescribedFile { execution, tensor };
        if let Some(name) = &entry.name {
            named.take_name(name);
        } else if let Some(result) = result_name(entry) {
            named.take_name(&result.file);
            named.tensor.slot = Some(result.slot);
        } else {
            match npy_zst::split_name(&entry.real_name) {
                Some((stem, _)) => named.take_stem(stem),
                None => named.execution.op_name = (&entry.real_name).into(),
            }
        }
        named
    }

    /// The name of an array without its suffix: `{op_name}.{output}.{timestamp}`, as golden data of
    /// the vendor's comparison have it, or anything.
    fn take_stem(&mut self, stem: &str) {
        let Some((op_name, output, time)) = golden_name(stem) else {
            self.execution.op_name = stem.into();
            return;
        };
        self.execution.op_name = op_name.into();
        self.tensor.slot = Some((SlotSide::Output, output));
        self.tensor.timestamp = microseconds(time);
    }

    fn take_name(&mut self, name: &DumpFileName) {
        self.execution.op_type = (&name.op_type).into();
        self.execution.op_name = (&name.op_name).into();
        self.tensor.task_id = Some(name.task_id);
        self.tensor.stream_id = name.stream_id;
        self.tensor.timestamp = microseconds(&name.timestamp);
    }

    /// The record without a tensor's own facts.
    fn into_record(self) -> IndexedTensor {
        IndexedTensor {
            execution: Arc::new(self.execution),
            ..self.tensor
        }
    }
}

/// Microseconds since 1970-01-01 UTC; none of local times, which have more digits.
fn microseconds(digits: &str) -> Option<u64> {
    let is_time = digits.len() <= TIMESTAMP_DIGITS_MAX;
    is_time.then(|| digits.parse().ok()).flatten()
}

fn tensor_records(
    entry: &DumpEntry,
    head: &FileHead,
    table: Option<&StatsTable>,
) -> Vec<IndexedTensor> {
    let mut named = DescribedFile::from_entry(entry);
    // The name inside the file still has the characters that the name of the file had to replace.
    if !head.op_name.is_empty() {
        named.execution.op_name = (&head.op_name).into();
    }
    // Dumps of failing operators have a local time in their names, which is not a timestamp. A time
    // of 0 in the file means that the field is absent.
    if named.tensor.timestamp.is_none() && head.dump_time > 0 {
        named.tensor.timestamp = Some(head.dump_time);
    }
    let of_file = named.into_record();
    let records = head.tensors.iter().map(|stored| {
        let mut record = of_file.clone();
        record.take_stored(stored);
        // A plain array does not know which side it was on: the slot of its file's name stays.
        if head.kind != FileKind::Npy {
            record.slot = Some(stored.operator_slot());
        }
        record.elements = Some(ElementsPlace::new(&entry.real_name, head.kind, stored));
        if let Some(table) = table {
            take_statistics(&mut record, table);
        }
        record
    });
    records.collect()
}

/// Adopts the row of a table about the record's tensor, if any.
pub(super) fn take_statistics(record: &mut IndexedTensor, table: &StatsTable) {
    let Some(slot) = record.slot else { return };
    let row = (0..table.rows.len()).find(|&row| {
        let subject = table.subject(row);
        subject.is_some_and(|subject| (subject.side, subject.index) == slot)
    });
    if let Some(row) = row {
        record.statistics = statistics(table, row);
    }
}

fn statistics_records(entry: &DumpEntry, table: &StatsTable) -> Vec<IndexedTensor> {
    let of_file = DescribedFile::from_entry(entry).into_record();
    let records = (0..table.rows.len()).filter_map(|row| {
        let subject = table.subject(row)?;
        Some(IndexedTensor {
            slot: Some((subject.side, subject.index)),
            dtype: subject.dtype.map(DumpTerm::Known),
            layout: subject.layout.map(DumpTerm::Known),
            shape: Some(subject.shape),
            n_bytes: Some(subject.n_bytes),
            statistics: statistics(table, row),
            ..of_file.clone()
        })
    });
    records.collect()
}

fn statistics(table: &StatsTable, row: usize) -> TensorStatistics {
    let cells = table.statistics(row);
    cells
        .map(|(column, cell)| {
            // `NA` means that a type has no numbers, or a tensor no elements, to take statistics
            // of.
            let is_value = !cell.is_empty() && cell != "NA";
            (column.to_owned(), is_value.then(|| cell.to_owned()))
        })
        .collect()
}

fn damaged_record(entry: &DumpEntry) -> IndexedTensor {
    IndexedTensor {
        elements: Some(ElementsPlace::in_damaged_file(&entry.real_name)),
        ..DescribedFile::from_entry(entry).into_record()
    }
}
