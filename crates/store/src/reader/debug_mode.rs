//! Logs of PyTorch's `DebugMode`.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use opscope_tensor::{DType, Layout, Shape};

use super::entries::read_entries;
use super::index::{DumpIndex, IndexedExecution, IndexedFile, IndexedTensor, OperatorInFile};
use super::tensor_file::FileContent;
use super::term::DumpTerm;
use super::{DumpReader, ReadFiles, arrays};
use crate::dump::{DumpEntry, DumpListing, PassReason, PassedOver};
use crate::file_format::debug_mode::{self, DebugCall, DebugLog, DebugTensor};
use crate::record::{CallSite, SlotSide};
use crate::tree::debug_mode::{self as tree, LogPlace, may_be_log};
use crate::{SharedText, StoreError, regular_file};

/// Maximum number of files of a directory that are searched for a log.
const N_LOOKED_INTO_MAX: usize = 32;

/// Dtypes in the mode's words, which are short, by their names here.
const DTYPES: [(&str, DType); 21] = [
    ("f64", DType::F64),
    ("f32", DType::F32),
    ("f16", DType::F16),
    ("bf16", DType::BF16),
    ("f8e4m3fn", DType::F8E4M3FN),
    ("f8e4m3fnuz", DType::F8E4M3FNUZ),
    ("f8e5m2", DType::F8E5M2),
    ("f8e5m2fnuz", DType::F8E5M2FNUZ),
    ("f8e8m0fnu", DType::F8E8M0),
    ("i8", DType::I8),
    ("i16", DType::I16),
    ("i32", DType::I32),
    ("i64", DType::I64),
    ("u8", DType::U8),
    ("u16", DType::U16),
    ("u32", DType::U32),
    ("u64", DType::U64),
    ("b8", DType::Bool),
    ("c32", DType::C32),
    ("c64", DType::C64),
    ("c128", DType::C128),
];

/// Reads directories with such a log and without files of other dumps.
pub(super) struct DebugModeReader;

impl DumpReader for DebugModeReader {
    fn form(&self) -> &'static str {
        super::DEBUG_MODE_FORM
    }

    fn detect(&self, listing: &DumpListing) -> bool {
        let entries = listing.entries.iter();
        let candidates = entries.filter(|entry| may_be_log(&entry.real_name));
        // Results of converting can be texts as well, and there are many of them.
        candidates.take(N_LOOKED_INTO_MAX).any(is_log)
            && !listing.entries.iter().any(arrays::has_vendor_name)
    }

    fn reason_to_pass(&self, entry: &DumpEntry) -> Option<PassReason> {
        (may_be_log(&entry.real_name) && is_log(entry)).then_some(PassReason::Statistics)
    }

    fn index(&self, listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
        let mut index = DumpIndex {
            form: self.form(),
            passed_over: listing.passed_over,
            errors: listing.errors,
            ..DumpIndex::default()
        };
        for entry in listing.tables.into_iter().chain(listing.step_tables) {
            let (path, reason) = (entry.path, PassReason::Statistics);
            index.passed_over.push(PassedOver { path, reason });
        }
        let (logs, others): (Vec<_>, Vec<_>) = listing
            .entries
            .into_iter()
            .partition(|entry| may_be_log(&entry.real_name) && is_log(entry));
        let mut logs: Vec<(LogPlace, DumpEntry)> = logs
            .into_iter()
            .map(|entry| (place_of(&entry), entry))
            .collect();
        logs.sort_by(|(a, a_entry), (b, b_entry)| (a, &a_entry.path).cmp(&(b, &b_entry.path)));
        let places = logs.iter().map(|(place, _)| *place);
        let shared = shared_places(places);
        for (place, entry) in logs {
            // Logs without any other distinction go by their names.
            let name = tree::stem(&entry.real_name);
            let model = shared.contains(&place).then(|| SharedText::from(name));
            match read_log(&entry.path) {
                Ok(log) => {
                    index.errors.extend(unread_parts(&entry.path, &log));
                    add_log(&mut index, &entry, place, model.as_ref(), log);
                }
                Err(error) => index.errors.push(error),
            }
        }
        for (entry, content) in read_entries(others, read, &mut index.errors) {
            if let Some(FileContent::Tensors(head)) = content {
                index.files.push(IndexedFile {
                    path: entry.path.clone(),
                    real_name: entry.real_name.clone(),
                    n_bytes: entry.n_bytes,
                    operators: arrays::operators_in_file(&entry, &head),
                    ..IndexedFile::default()
                });
                index.add_tensors(arrays::records(&entry, &head));
            }
        }
        index
    }
}

fn shared_places(places: impl Iterator<Item = LogPlace>) -> HashSet<LogPlace> {
    let mut seen = HashSet::new();
    let shared = places.filter(|place| !seen.insert(*place));
    shared.collect()
}

fn place_of(entry: &DumpEntry) -> LogPlace {
    // A relative path may lack the directories that identify it.
    let absolute = crate::remote::absolute(&entry.path);
    LogPlace::from_path(absolute.as_deref().unwrap_or(&entry.path))
}

fn is_log(entry: &DumpEntry) -> bool {
    let Ok((file, _)) = regular_file::open_in_dump(&entry.path) else {
        return false;
    };
    let mut head = Vec::new();
    let read = file
        .take(debug_mode::HEAD_BYTES as u64)
        .read_to_end(&mut head);
    read.is_ok() && debug_mode::is_log(&head)
}

fn read_log(path: &Path) -> Result<DebugLog, StoreError> {
    let bytes = regular_file::read_in_dump(path, debug_mode::FILE_BYTES_MAX as u64);
    let bytes = bytes.map_err(StoreError::io("read", path))?;
    debug_mode::parse(&bytes).map_err(StoreError::corrupt(debug_mode::FORMAT_NAME, path))
}

/// Errors about the parts of a log that were left out, one for each kind.
fn unread_parts(path: &Path, log: &DebugLog) -> Vec<StoreError> {
    let unread = &log.unread;
    let line = unread.first_line.as_ref().map(|(number, text)| {
        let n_more = unread.n_lines - 1;
        format!(
            "line {number}: expected a call, found `{text}`; the same in {n_more} further lines"
        )
    });
    let hashed = unread.first_hashed.as_ref().map(|name| {
        let n_more = unread.n_hashed - 1;
        format!(
            "`{name}`: expected a hash for each tensor, found others; the same in {n_more} further calls"
        )
    });
    let sentences = line.into_iter().chain(hashed);
    let errors = sentences.map(|reason| {
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
        StoreError::io("read", path)(error)
    });
    errors.collect()
}

fn add_log(
    index: &mut DumpIndex,
    entry: &DumpEntry,
    place: LogPlace,
    model: Option<&SharedText>,
    log: DebugLog,
) {
    let mut names = OperatorNames::default();
    let mut texts = SharedTexts::default();
    let mut operators = Vec::with_capacity(log.calls.len());
    for call in log.calls {
        // A log of a large model has the same few modules and lines many thousand times.
        let module = texts.share(&call.module);
        let source = texts.share(&call.source);
        let has_site = !module.is_empty() || !source.is_empty();
        let execution = Arc::new(IndexedExecution {
            op_name: names.next(&call.name).into(),
            op_type: call.name.as_str().into(),
            model: model.cloned(),
            rank: place.rank,
            step: place.step,
            call_site: has_site.then_some(CallSite { module, source }),
            ..IndexedExecution::default()
        });
        let records = records_of(&execution, entry, &call);
        operators.push(OperatorInFile {
            op_type: execution.op_type.clone(),
            op_name: execution.op_name.clone(),
            n_inputs: call.inputs.len() as u64,
            n_outputs: call.outputs.len() as u64,
            n_bytes: records
                .iter()
                .filter_map(|record| record.n_bytes)
                .fold(0, u64::saturating_add),
            ..OperatorInFile::default()
        });
        // The call was made even if the log shows no tensors of it.
        if records.is_empty() {
            index.executions.push(execution);
        }
        index.add_tensors(records);
    }
    index.files.push(IndexedFile {
        path: entry.path.clone(),
        real_name: entry.real_name.clone(),
        n_bytes: entry.n_bytes,
        rank: place.rank,
        operators,
    });
}

fn records_of(
    execution: &Arc<IndexedExecution>,
    entry: &DumpEntry,
    call: &DebugCall,
) -> Vec<IndexedTensor> {
    let sides = [
        (SlotSide::Input, &call.inputs),
        (SlotSide::Output, &call.outputs),
    ];
    let all = sides.into_iter().flat_map(|(side, tensors)| {
        let numbered = (0..).zip(tensors);
        numbered.map(move |(position, tensor)| ((side, position), tensor))
    });
    let values = all.filter(|(_, tensor)| !tensor.is_unwritten);
    let records = values.map(|(slot, tensor)| IndexedTensor {
        execution: execution.clone(),
        path: (&entry.path).into(),
        slot: Some(slot),
        ..described(tensor)
    });
    records.collect()
}

fn described(tensor: &DebugTensor) -> IndexedTensor {
    let known = DTYPES.iter().find(|(word, _)| *word == tensor.dtype);
    let word = Some(tensor.dtype.clone()).filter(|word| !word.is_empty());
    let dtype = match known {
        Some((_, dtype)) => Some(DumpTerm::Known(*dtype)),
        None => word.clone().map(|word| DumpTerm::Word(word, None)),
    };
    let n_bytes = tensor.shape.as_deref().and_then(|dims| {
        let dims = dims.iter().map(|&dim| usize::try_from(dim).ok());
        let shape = Shape::new(dims.collect::<Option<Vec<usize>>>()?).ok()?;
        let n_bytes = shape.n_bytes(dtype.as_ref()?.value()?).ok()?;
        Some(n_bytes as u64)
    });
    let placement = tensor.placement.clone();
    let hashes = tensor.hashes.iter();
    IndexedTensor {
        dtype,
        dtype_in_name: word,
        layout: placement.map(|placement| DumpTerm::Word(placement, Some(Layout::Nd))),
        shape: tensor.shape.clone(),
        n_bytes,
        statistics: hashes
            .map(|(title, text)| ((*title).to_owned(), Some(text.clone())))
            .collect(),
        ..IndexedTensor::default()
    }
}

/// Names that number the calls of an operator as PyTorch's graphs do: `mm`, `mm_1`, `mm_2`.
#[derive(Default)]
struct OperatorNames(HashMap<String, usize>);

impl OperatorNames {
    fn next(&mut self, name: &str) -> String {
        let base = tree::base_name(name);
        let n_before = self.0.entry(base.clone()).or_insert(0);
        let name = match *n_before {
            0 => base,
            // As PyTorch's own graphs name nodes, so that both find each other.
            n => format!("{base}_{n}"),
        };
        *n_before += 1;
        name
    }
}

/// Texts that many calls have in common.
#[derive(Default)]
struct SharedTexts(HashSet<Arc<str>>);

impl SharedTexts {
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.0.insert(text.clone());
        text
    }
}
