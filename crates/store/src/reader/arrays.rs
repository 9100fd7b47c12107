//! Archives of named arrays, and arrays whose file names say the operator and slot, as users of
//! frameworks make them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entries::{golden_name, read_entries, result_name};
use super::index::{
    DumpIndex, ElementsPlace, IndexedExecution, IndexedFile, IndexedTensor, OperatorInFile,
};
use super::tensor_file::{FileContent, FileHead, FileKind, StoredTensor};
use super::{DumpReader, ReadFiles};
use crate::dump::{DumpEntry, DumpListing, PassReason, PassedOver};
use crate::file_format::{
    hdf5, npy_zst, npz, onnx_tensor, op_debug, ort_trace, polygraphy_json, safetensors, sqlite,
    torch_save,
};
use crate::record::SlotSide;
use crate::tree::acl::DumpFileName;
use crate::tree::arrays::{ArrayName, ArraysPlace};

/// Reads directories in which no file has a vendor's name, and at least one is an archive, or an
/// array whose path says a slot or step.
pub(super) struct ArraysReader;

impl DumpReader for ArraysReader {
    fn form(&self) -> &'static str {
        "arrays"
    }

    fn detect(&self, listing: &DumpListing) -> bool {
        // Tables have a vendor's name as well, but the listing keeps them apart from the entries.
        let has_tables = !listing.tables.is_empty() || !listing.step_tables.is_empty();
        !has_tables
            && !listing.entries.iter().any(has_vendor_name)
            && listing.entries.iter().any(is_telling)
    }

    fn reason_to_pass(&self, entry: &DumpEntry) -> Option<PassReason> {
        if is_journal(entry) {
            return Some(PassReason::Journal);
        }
        let is_record = op_debug::is_json_record_name(&entry.real_name);
        is_record.then_some(PassReason::Converted)
    }

    fn index(&self, listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
        let mut index = DumpIndex {
            form: self.form(),
            passed_over: listing.passed_over,
            errors: listing.errors,
            ..DumpIndex::default()
        };
        let (journals, entries): (Vec<_>, Vec<_>) =
            listing.entries.into_iter().partition(is_journal);
        let journals = journals.into_iter().map(|entry| PassedOver {
            path: entry.path,
            reason: PassReason::Journal,
        });
        index.passed_over.extend(journals);
        let files = read_entries(entries, read, &mut index.errors);
        let mut executions = ExecutionGroups::default();
        for (entry, content) in &files {
            let records = match content {
                Some(FileContent::Tensors(head)) => named_tensors(entry, head),
                // Nothing of the name says that a foreign file is a part of the dump.
                _ if stem_of(&entry.real_name).is_none() => Vec::new(),
                _ => vec![damaged_tensor(entry)],
            };
            index.files.push(IndexedFile {
                path: entry.path.clone(),
                real_name: entry.real_name.clone(),
                n_bytes: entry.n_bytes,
                operators: operators(&records),
                ..IndexedFile::default()
            });
            executions.add(entry.path.parent(), records);
        }
        index.add_tensors(executions.into_records());
        index
    }
}

/// Tensors with the names of their operators, before executions are distinguished.
type ArrayRecord = (IndexedExecution, IndexedTensor);

/// The records of a single archive that lies in a dump of another form.
pub(super) fn records(entry: &DumpEntry, head: &FileHead) -> Vec<IndexedTensor> {
    let mut executions = ExecutionGroups::default();
    executions.add(entry.path.parent(), named_tensors(entry, head));
    executions.into_records()
}

/// The operators of a single archive that lies in a dump of another form.
pub(super) fn operators_in_file(entry: &DumpEntry, head: &FileHead) -> Vec<OperatorInFile> {
    operators(&named_tensors(entry, head))
}

/// A file name without the suffix of a format that holds named arrays; none for other files.
fn stem_of(real_name: &str) -> Option<&str> {
    let array = npy_zst::split_name(real_name).map(|(stem, _)| stem);
    array
        .or_else(|| real_name.strip_suffix(npz::SUFFIX))
        .or_else(|| real_name.strip_suffix(safetensors::SUFFIX))
        .or_else(|| real_name.strip_suffix(onnx_tensor::DEBUG_SUFFIX))
        .or_else(|| torch_save::telling_stem(real_name))
        .or_else(|| {
            let mut suffixes = hdf5::SUFFIXES.iter();
            suffixes.find_map(|suffix| real_name.strip_suffix(suffix))
        })
}

fn is_archive(entry: &DumpEntry) -> bool {
    [npz::SUFFIX, safetensors::SUFFIX]
        .iter()
        .any(|suffix| entry.real_name.ends_with(suffix))
        || hdf5::is_name(&entry.real_name)
        || polygraphy_json::is_file(&entry.path, &entry.real_name)
        || onnx_tensor::is_file_at(&entry.path, &entry.real_name)
        || ort_trace::is_file_at(&entry.path, &entry.real_name)
        || torch_save::is_file_at(&entry.path, &entry.real_name)
}

/// Whether a file is the journal of a database, which is read with the database.
fn is_journal(entry: &DumpEntry) -> bool {
    let stem = entry.real_name.strip_suffix(sqlite::JOURNAL_SUFFIX);
    let stem = stem.filter(|stem| stem.ends_with(ort_trace::SUFFIX));
    stem.is_some_and(|stem| ort_trace::is_file_at(&entry.path.with_file_name(stem), stem))
}

/// Whether a file has the name of a dump file, or of what the vendor's tools make of one.
pub(super) fn has_vendor_name(entry: &DumpEntry) -> bool {
    let stem = npy_zst::split_name(&entry.real_name).map(|(stem, _)| stem);
    entry.name.is_some()
        || result_name(entry).is_some()
        || stem.is_some_and(|stem| golden_name(stem).is_some())
}

/// Whether a file is an archive, or an array whose path says a slot or a step. Arrays with other
/// names may be anything: weights, or inputs.
fn is_telling(entry: &DumpEntry) -> bool {
    // The name costs nothing, but an archive says more.
    is_archive(entry)
        || npy_zst::split_name(&entry.real_name).is_some_and(|(stem, _)| {
            let name = ArrayName::parse(stem);
            // A name such as `output.0`, without an operator, can be that of a whole model's output.
            place_of(entry, stem).step.is_some()
                || (name.slot.is_some() && !name.op_name.is_empty())
        })
}

fn place_of(entry: &DumpEntry, stem: &str) -> ArraysPlace {
    let dir = entry.path.parent().unwrap_or(Path::new("."));
    // A relative path may leave out the directories that say what it is.
    let absolute = crate::remote::absolute(dir);
    ArraysPlace::from_path(absolute.as_deref().unwrap_or(dir), stem)
}

fn named_tensors(entry: &DumpEntry, head: &FileHead) -> Vec<ArrayRecord> {
    let runs = head.tensors.iter().filter_map(|stored| stored.run.as_ref());
    let has_iterations = runs.clone().any(|run| run.iteration > 0);
    if head.kind == FileKind::OrtTrace {
        return node_tensors(entry, head);
    }
    let tensors = head.tensors.iter().map(|stored| {
        let (execution, mut record) = match (&stored.name, head.kind) {
            (Some(name), kind) if kind.holds_values() => {
                named_value(entry, name, stored, has_iterations)
            }
            (name, _) => named_tensor(entry, name.as_deref()),
        };
        record.take_stored(stored);
        record.elements = Some(ElementsPlace::new(&entry.real_name, head.kind, stored));
        (execution, record)
    });
    tensors.collect()
}

/// Everything that the file's path and the tensor's name in it say. Tensors without a name go by
/// that of the file.
fn named_tensor(entry: &DumpEntry, name: Option<&str>) -> ArrayRecord {
    let stem = stem_of(&entry.real_name)
        .or_else(|| onnx_tensor::stem_of(&entry.real_name))
        .or_else(|| torch_save::stem_of(&entry.real_name));
    let stem = stem.unwrap_or(&entry.real_name);
    let place = place_of(entry, stem);
    let array = ArrayName::parse(name.unwrap_or(stem));
    let mut execution = IndexedExecution {
        op_name: array.op_name.into(),
        rank: place.rank,
        step: place.step,
        ..IndexedExecution::default()
    };
    let mut record = IndexedTensor {
        path: (&entry.path).into(),
        slot: Some(array.slot.unwrap_or((SlotSide::Output, 0))),
        ..IndexedTensor::default()
    };
    // A file of one operator, such as `opscope convert -t safetensors` makes of each dump file.
    let file_stem = if array.op_name.is_empty() {
        Some(stem)
    } else {
        // A file of one tensor, such as `-t pt` makes: the slot follows the dump file's name.
        let is_of_file = name.is_none() && array.slot.is_some();
        Some(array.op_name).filter(|op_name| is_of_file && DumpFileName::parse(op_name).is_some())
    };
    if let Some(file_stem) = file_stem {
        match DumpFileName::parse(file_stem) {
            Some(file) => {
                execution.op_type = file.op_type.into();
                execution.op_name = file.op_name.into();
                record.task_id = Some(file.task_id);
                record.stream_id = file.stream_id;
            }
            None => execution.op_name = stem.into(),
        }
    }
    (execution, record)
}

/// The value of an ONNX graph. Names of values never identify slots, whatever their ends: `input.4`
/// is PyTorch's old name for outputs of inner nodes.
fn named_value(
    entry: &DumpEntry,
    name: &str,
    stored: &StoredTensor,
    has_iterations: bool,
) -> ArrayRecord {
    let file_name = &entry.real_name;
    let stem = file_name.strip_suffix(polygraphy_json::SUFFIX);
    let stem = stem.or_else(|| onnx_tensor::stem_of(file_name));
    let stem = stem.unwrap_or(file_name);
    let place = place_of(entry, stem);
    let run = stored.run.as_ref();
    let iteration = run.map(|run| run.iteration);
    // A path counts runs only where the file has one: it cannot be the number of several.
    let counted = polygraphy_json::iteration_of(file_name).filter(|_| run.is_some());
    let step = counted.or(place.step).filter(|_| !has_iterations);
    let execution = IndexedExecution {
        op_name: name.into(),
        model: run.and_then(|run| run.runner.as_deref().map(Into::into)),
        rank: onnx_tensor::rank_in_stem(stem, name).or(place.rank),
        step: step.or(iteration),
        ..IndexedExecution::default()
    };
    let record = IndexedTensor {
        path: (&entry.path).into(),
        slot: Some((SlotSide::Output, 0)),
        ..IndexedTensor::default()
    };
    (execution, record)
}

/// The values of an ONNX graph in every slot in which they were, in the order in which their nodes
/// ran.
fn node_tensors(entry: &DumpEntry, head: &FileHead) -> Vec<ArrayRecord> {
    let place = place_of(entry, &entry.real_name);
    let uses = head.tensors.iter().flat_map(|stored| {
        let step = stored.run.as_ref().map(|run| run.iteration);
        stored.uses.iter().map(move |used| (step, used, stored))
    });
    let mut uses: Vec<_> = uses.collect();
    uses.sort_by_key(|(step, used, _)| (*step, used.order));
    let records = uses.into_iter().map(|(step, used, stored)| {
        let execution = IndexedExecution {
            op_type: used.op_type.as_ref().into(),
            op_name: used.op_name.as_ref().into(),
            rank: place.rank,
            step,
            ..IndexedExecution::default()
        };
        let mut record = IndexedTensor {
            path: (&entry.path).into(),
            slot: Some(used.slot),
            ..IndexedTensor::default()
        };
        record.take_stored(stored);
        record.elements = Some(ElementsPlace::new(&entry.real_name, head.kind, stored));
        (execution, record)
    });
    records.collect()
}

fn damaged_tensor(entry: &DumpEntry) -> ArrayRecord {
    let (execution, record) = named_tensor(entry, None);
    let record = IndexedTensor {
        slot: None,
        elements: Some(ElementsPlace::in_damaged_file(&entry.real_name)),
        ..record
    };
    (execution, record)
}

/// The operators of a file, in the order of their first tensors.
fn operators(tensors: &[ArrayRecord]) -> Vec<OperatorInFile> {
    let mut operators: Vec<OperatorInFile> = Vec::new();
    let mut positions: HashMap<(&str, &str), usize> = HashMap::new();
    for (execution, record) in tensors {
        let Some((side, _)) = record.slot else {
            continue;
        };
        let key = (execution.op_type.as_str(), execution.op_name.as_str());
        let position = *positions.entry(key).or_insert_with(|| {
            operators.push(OperatorInFile {
                op_type: execution.op_type.clone(),
                op_name: execution.op_name.clone(),
                task_id: record.task_id,
                ..OperatorInFile::default()
            });
            operators.len() - 1
        });
        let operator = &mut operators[position];
        operator.n_inputs += u64::from(side == SlotSide::Input);
        operator.n_outputs += u64::from(side == SlotSide::Output);
        operator.n_bytes = operator.n_bytes.saturating_add(record.n_bytes.unwrap_or(0));
    }
    operators
}

/// Which operator of which directory and step a tensor belongs to, and its slot there.
type SlotKey = (Option<PathBuf>, IndexedExecution, Option<(SlotSide, u32)>);

/// Tensors put together into executions: those of one operator in one directory and step. A slot
/// that comes again belongs to the operator's next execution.
#[derive(Default)]
struct ExecutionGroups {
    records: Vec<(IndexedExecution, Vec<IndexedTensor>)>,
    positions: HashMap<(Option<PathBuf>, IndexedExecution), usize>,
    n_runs: HashMap<SlotKey, usize>,
}

impl ExecutionGroups {
    fn add(&mut self, dir: Option<&Path>, tensors: Vec<ArrayRecord>) {
        for (mut execution, record) in tensors {
            let dir = dir.map(Path::to_owned);
            let slot = (dir.clone(), execution.clone(), record.slot);
            let n_runs = self.n_runs.entry(slot).or_insert(0);
            execution.run = *n_runs;
            *n_runs += 1;
            let position = self
                .positions
                .entry((dir, execution.clone()))
                .or_insert_with(|| {
                    self.records.push((execution, Vec::new()));
                    self.records.len() - 1
                });
            self.records[*position].1.push(record);
        }
    }

    fn into_records(self) -> Vec<IndexedTensor> {
        let mut records = self.records;
        // Steps are in numeric order, whatever the order of the names of their directories.
        records.sort_by_key(|(execution, _)| (execution.rank, execution.step));
        records
            .into_iter()
            .flat_map(|(execution, mut records)| {
                let execution = Arc::new(execution);
                records.sort_by_key(|record| record.slot);
                records.into_iter().map(move |record| IndexedTensor {
                    execution: execution.clone(),
                    ..record
                })
            })
            .collect()
    }
}
