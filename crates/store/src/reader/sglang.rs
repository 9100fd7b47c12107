//! Dumps of SGLang: a file for each value, with tags in its name, or one for each pass of a model.

mod executions;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use opscope_tensor::Layout;

use self::executions::{SavedExecutions, SavedTensor};
use super::entries::read_entries;
use super::index::{DumpIndex, ElementsPlace, IndexedExecution, IndexedFile, IndexedTensor};
use super::tensor_file::{FileContent, FileHead, META_PREFIX, StoredTensor};
use super::term::DumpTerm;
use super::{DumpReader, ReadFiles, arrays};
use crate::dump::{DumpEntry, DumpListing, PassReason, PassedOver};
use crate::record::parallel::{Placement, TensorDims};
use crate::record::{CallSite, SlotSide};
use crate::tree::sglang::{PARALLEL_RANKS, PassFile, ValueTags};

/// The key of the value itself, in files with more than the value.
const VALUE: &str = "value";
/// The key of the note about its axes, and what a comment in it begins with.
const DIMS: &str = "dims";
const COMMENT: char = '#';

/// Before the names of ranks and sizes along the axes of a mesh, behind the framework's name.
const PARALLEL_INFO: &str = "_parallel_info.";

/// Reads directories that contain a file name of the dumper.
pub(super) struct SglangReader;

impl DumpReader for SglangReader {
    fn form(&self) -> &'static str {
        "sglang"
    }

    fn detect(&self, listing: &DumpListing) -> bool {
        let mut entries = listing.entries.iter();
        entries.any(|entry| SavedFile::of_entry(entry).is_some())
    }

    fn reason_to_pass(&self, _entry: &DumpEntry) -> Option<PassReason> {
        None
    }

    fn index(&self, listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
        let mut index = DumpIndex {
            form: self.form(),
            passed_over: listing.passed_over,
            errors: listing.errors,
            ..DumpIndex::default()
        };
        // The tools write no tables; any tables here were derived from the dump.
        for entry in listing.tables.into_iter().chain(listing.step_tables) {
            let reason = PassReason::Statistics;
            let path = entry.path;
            index.passed_over.push(PassedOver { path, reason });
        }
        let files = read_entries(listing.entries, read, &mut index.errors);
        let mut saved = Vec::new();
        let mut foreign = Vec::new();
        for (entry, content) in files {
            let head = match content {
                Some(FileContent::Tensors(head)) => Some(head),
                Some(FileContent::Table(_)) | None => None,
            };
            match SavedFile::of_entry(&entry) {
                Some(name) => saved.push((name.corrected(head.as_ref()), entry, head)),
                None => foreign.push((entry, head)),
            }
        }
        // Numbers in names have no leading zeros, so that the order of names is another one.
        saved.sort_by(|(a, a_entry, _), (b, b_entry, _)| {
            (a.order(), a_entry.path.parent().map(Path::to_owned))
                .cmp(&(b.order(), b_entry.path.parent().map(Path::to_owned)))
        });
        add_saved(&mut index, &saved);
        for (entry, head) in foreign {
            add_foreign(&mut index, &entry, head.as_ref());
        }
        index.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
        index
    }
}

/// The tags in the path of a file, and then the file itself.
enum SavedFile {
    Value(ValueTags),
    Pass(PassFile),
}

impl SavedFile {
    fn of_entry(entry: &DumpEntry) -> Option<SavedFile> {
        // A relative path may lack the directories that identify it.
        let absolute = crate::remote::absolute(&entry.path);
        let path = absolute.as_deref().unwrap_or(&entry.path);
        let value = ValueTags::from_path(path).map(SavedFile::Value);
        value.or_else(|| PassFile::from_path(path).map(SavedFile::Pass))
    }

    fn corrected(mut self, head: Option<&FileHead>) -> SavedFile {
        if let (SavedFile::Value(tags), Some(head)) = (&mut self, head) {
            tags.correct(&meta_of(head));
        }
        self
    }

    fn order(&self) -> (u32, u64, u64) {
        match self {
            SavedFile::Value(tags) => (tags.rank, tags.step, tags.dump_index),
            SavedFile::Pass(file) => (file.rank, file.pass, 0),
        }
    }
}

/// The facts about the value in a file.
fn meta_of(head: &FileHead) -> Vec<(String, String)> {
    let attributes = head.attributes.iter();
    let meta = attributes.filter_map(|(key, value)| {
        let key = key.strip_prefix(META_PREFIX)?;
        Some((key.to_owned(), value.clone()))
    });
    meta.collect()
}

fn add_saved(index: &mut DumpIndex, saved: &[(SavedFile, DumpEntry, Option<FileHead>)]) {
    let ranks = ProcessTags::new(saved.iter().map(|(name, ..)| name));
    let runs = runs_of(saved);
    let mut executions = SavedExecutions::default();
    for (name, entry, head) in saved {
        let of_file = match (name, head) {
            (_, None) => vec![damaged(name, entry)],
            (SavedFile::Value(tags), Some(head)) => of_value(tags, &ranks, entry, head),
            (SavedFile::Pass(file), Some(head)) => of_pass(*file, entry, head),
        };
        // A number or a text was saved, and nothing is wrong with that.
        if of_file.is_empty() {
            let (path, reason) = (entry.path.clone(), PassReason::PlainValue);
            index.passed_over.push(PassedOver { path, reason });
            continue;
        }
        let run = run_of(entry).filter(|_| runs.len() > 1);
        index.files.push(IndexedFile {
            path: entry.path.clone(),
            real_name: entry.real_name.clone(),
            n_bytes: entry.n_bytes,
            operators: match head {
                Some(_) => executions::operators(&of_file),
                None => Vec::new(),
            },
            rank: of_file.first().and_then(|first| first.execution.rank),
        });
        executions.add(run.as_deref(), of_file);
    }
    index.add_tensors(executions.into_records());
}

/// The directory of a file's run: the dumper creates one for each run.
fn run_of(entry: &DumpEntry) -> Option<String> {
    let parts = entry.path.components().rev().skip(1);
    let names = parts.map(|part| part.as_os_str().to_string_lossy().into_owned());
    // Names with `/` in them have made directories as well.
    names.into_iter().find(|name| !name.contains("___"))
}

fn runs_of(saved: &[(SavedFile, DumpEntry, Option<FileHead>)]) -> HashSet<Option<String>> {
    // Processes of one run have separate directories for passes.
    let values = saved
        .iter()
        .filter(|(name, ..)| matches!(name, SavedFile::Value(_)));
    values.map(|(_, entry, _)| run_of(entry)).collect()
}

/// The part of a model that each process has, if all of its files agree.
struct ProcessTags(HashMap<(u32, String), Option<String>>);

impl ProcessTags {
    fn new<'a>(names: impl Iterator<Item = &'a SavedFile>) -> ProcessTags {
        let mut values: HashMap<(u32, String), Option<String>> = HashMap::new();
        for name in names {
            let SavedFile::Value(tags) = name else {
                continue;
            };
            let ranks = tags.others.iter();
            for (key, value) in ranks.filter(|(key, _)| PARALLEL_RANKS.contains(&key.as_str())) {
                let known = values
                    .entry((tags.rank, key.clone()))
                    .or_insert_with(|| Some(value.clone()));
                known.take_if(|known| known != value);
            }
        }
        ProcessTags(values)
    }

    /// Processes that do not know of each other all have rank 0, and only such a tag distinguishes
    /// them.
    fn is_same(&self, rank: u32, key: &str) -> bool {
        let value = self.0.get(&(rank, key.to_owned()));
        value.is_some_and(Option::is_some)
    }
}

fn of_value(
    tags: &ValueTags,
    ranks: &ProcessTags,
    entry: &DumpEntry,
    head: &FileHead,
) -> Vec<SavedTensor> {
    // Values that hooks saved belong together; others are separate.
    let of_module = tags.module_value();
    let name = of_module.map_or(tags.name.as_str(), |value| value.module);
    let label = tags.label(name, |key| ranks.is_same(tags.rank, key));
    let meta = meta_of(head);
    let dims = meta.iter().find(|(key, _)| key == DIMS);
    let dims = dims.and_then(|(_, dims)| dims.split(COMMENT).next());
    let dims = dims.map(str::trim).filter(|dims| !dims.is_empty());
    let tensors = head.tensors.iter().map(|stored| {
        let inner = place_in_value(stored, !meta.is_empty());
        let (op_name, slot) = match (of_module, inner) {
            // Positions are given when it is known what else goes into the module.
            (Some(value), "") if value.is_output => (label.clone(), (SlotSide::Output, 0)),
            (Some(_), "") => (label.clone(), (SlotSide::Input, 0)),
            (_, "") => (label.clone(), (SlotSide::Output, 0)),
            (_, inner) => match inner.parse() {
                Ok(position) => (label.clone(), (SlotSide::Output, position)),
                Err(_) => (format!("{label}.{inner}"), (SlotSide::Output, 0)),
            },
        };
        let call_site = of_module.map(|value| CallSite {
            module: value.module.into(),
            ..CallSite::default()
        });
        let execution = IndexedExecution {
            op_name: op_name.into(),
            rank: Some(tags.rank),
            step: Some(tags.step),
            call_site,
            ..IndexedExecution::default()
        };
        let mut tensor = SavedTensor::new(execution, record(entry, head, stored, slot));
        tensor.part = of_module.map(|value| value.part.to_owned());
        if let Some(dims) = dims {
            let shape = tensor.record.shape.as_deref().unwrap_or_default();
            tensor.record.placement = placement(dims, shape, &meta).map(Arc::new);
            tensor.record.layout = Some(DumpTerm::Word(dims.to_owned(), Some(Layout::Nd)));
        }
        tensor
    });
    tensors.collect()
}

/// Which part of a tensor a process has by the note about its axes and its place on the mesh.
fn placement(dims: &str, shape: &[u64], meta: &[(String, String)]) -> Option<Placement> {
    let dims = TensorDims::parse(dims).ok()?;
    dims.placement(shape, |axis| {
        let [rank, size] = ["_rank", "_size"].map(|key| {
            // One framework or the other has filled in its ranks; neither has the keys of both.
            let wanted = format!("{PARALLEL_INFO}{axis}{key}");
            let number = meta.iter().find(|(key, _)| key.ends_with(&wanted));
            number.and_then(|(_, text)| text.parse().ok())
        });
        Some((rank?, size?))
    })
}

/// The way from a value to a tensor in it; empty if it is one. Older versions save values alone.
fn place_in_value(stored: &StoredTensor, has_meta: bool) -> &str {
    let name = stored.name.as_deref().unwrap_or_default();
    let inner = name.strip_prefix(VALUE).filter(|_| has_meta);
    inner.map_or(name, |inner| inner.strip_prefix('.').unwrap_or(inner))
}

/// The outputs of modules in a pass. Several outputs are separate values, as a list of outputs
/// looks like a list of modules in the names.
fn of_pass(file: PassFile, entry: &DumpEntry, head: &FileHead) -> Vec<SavedTensor> {
    let tensors = head.tensors.iter().map(|stored| {
        let name = stored.name.as_deref().unwrap_or_default();
        let execution = IndexedExecution {
            op_name: name.into(),
            rank: Some(file.rank),
            step: Some(file.pass),
            ..IndexedExecution::default()
        };
        let slot = (SlotSide::Output, 0);
        SavedTensor::new(execution, record(entry, head, stored, slot))
    });
    tensors.collect()
}

fn record(
    entry: &DumpEntry,
    head: &FileHead,
    stored: &StoredTensor,
    slot: (SlotSide, u32),
) -> IndexedTensor {
    let mut record = IndexedTensor {
        path: (&entry.path).into(),
        slot: Some(slot),
        ..IndexedTensor::default()
    };
    record.take_stored(stored);
    record.elements = Some(ElementsPlace::new(&entry.real_name, head.kind, stored));
    record
}

fn damaged(name: &SavedFile, entry: &DumpEntry) -> SavedTensor {
    let (rank, step, _) = name.order();
    let op_name = match name {
        SavedFile::Value(tags) => tags.name.clone(),
        SavedFile::Pass(_) => entry.real_name.clone(),
    };
    let execution = IndexedExecution {
        op_name: op_name.into(),
        rank: Some(rank),
        step: Some(step),
        ..IndexedExecution::default()
    };
    let record = IndexedTensor {
        path: (&entry.path).into(),
        elements: Some(ElementsPlace::in_damaged_file(&entry.real_name)),
        ..IndexedTensor::default()
    };
    SavedTensor::new(execution, record)
}

/// A file that does not belong to the dump; a damaged one is among the errors.
fn add_foreign(index: &mut DumpIndex, entry: &DumpEntry, head: Option<&FileHead>) {
    let Some(head) = head else {
        return;
    };
    index.files.push(IndexedFile {
        path: entry.path.clone(),
        real_name: entry.real_name.clone(),
        n_bytes: entry.n_bytes,
        operators: arrays::operators_in_file(entry, head),
        ..IndexedFile::default()
    });
    index.add_tensors(arrays::records(entry, head));
}
