//! Dumps of msProbe.

mod files;

use std::collections::HashMap;
use std::sync::Arc;

use opscope_tensor::convert::dtype::numpy_dtype;
use opscope_tensor::{DType, Shape};

use self::files::{ProbeFiles, ProbeStep, is_probe_dump};
use super::index::{
    DumpIndex, ElementsPlace, IndexedExecution, IndexedFile, IndexedTensor, OperatorInFile,
};
use super::tensor_file::{FileContent, FileHead};
use super::term::DumpTerm;
use super::{DumpReader, FilePlace, ReadFiles};
use crate::StoreError;
use crate::dump::{DumpEntry, DumpListing, PassReason};
use crate::file_format::ms_dtype;
use crate::file_format::msprobe::{ProbeEntry, ProbeTensor};
use crate::record::{CallSite, SlotSide};
use crate::tree::msprobe::{self as tree, EntryName, ProbePlace};

/// Begins the names of dtypes of PyTorch.
const TORCH_PREFIX: &str = "torch.";
/// Tasks that name a file for each tensor, and write only those with a problem.
const CHOOSING_TASKS: [&str; 2] = ["diff_check", "overflow_check"];

/// Reads a tree in which any `dump.json` or `debug.json` is one of msProbe's.
pub(super) struct ProbeReader;

impl DumpReader for ProbeReader {
    fn form(&self) -> &'static str {
        "msprobe"
    }

    fn detect(&self, listing: &DumpListing) -> bool {
        listing.entries.iter().any(is_probe_dump)
    }

    fn reason_to_pass(&self, entry: &DumpEntry) -> Option<PassReason> {
        match entry.real_name.as_str() {
            tree::DUMP_FILE | tree::DEBUG_FILE => Some(PassReason::Statistics),
            tree::CONSTRUCT_FILE | tree::STACK_FILE => Some(PassReason::Graph),
            tree::ERROR_FILE => Some(PassReason::FailureText),
            tree::CONFIG_FILE => Some(PassReason::Configuration),
            _ => None,
        }
    }

    fn place_of(&self, entry: &DumpEntry) -> Option<FilePlace> {
        let place = files::place_of(&entry.path);
        Some((place.rank, Some(place.step?)))
    }

    fn index(&self, listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
        let mut index = DumpIndex {
            form: self.form(),
            ..DumpIndex::default()
        };
        let files = ProbeFiles::from_listing(listing, read, &mut index);
        let mut n_runs = HashMap::new();
        let mut used = vec![false; files.data.len()];
        for step in &files.steps {
            add_step(&mut index, &files, step, &mut n_runs, &mut used);
        }
        // Nothing is skipped in silence, even a file that no table knows.
        let unused = files.data.iter().zip(used).filter(|(_, is_used)| !is_used);
        for ((entry, _), _) in unused {
            let reason = "expected a file that `dump.json` names, found another one";
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
            index
                .errors
                .push(StoreError::io("read", &entry.path)(error));
        }
        index
    }
}

/// Which executions have been seen how often: processes without a rank share their keys.
type RunCounts = HashMap<(ProbePlace, String), usize>;

fn add_step(
    index: &mut DumpIndex,
    files: &ProbeFiles,
    step: &ProbeStep,
    n_runs: &mut RunCounts,
    used: &mut [bool],
) {
    let mut of_table = IndexedFile {
        path: step.entry.path.clone(),
        real_name: step.entry.real_name.clone(),
        n_bytes: step.entry.n_bytes,
        rank: step.place.rank,
        operators: Vec::new(),
    };
    for (position, entry) in step.dump.entries.iter().enumerate() {
        let execution = Arc::new(execution(step, entry, n_runs));
        let mut records = Vec::with_capacity(entry.tensors.len());
        let mut in_table = OperatorInFile {
            op_type: execution.op_type.clone(),
            op_name: execution.op_name.clone(),
            ..OperatorInFile::default()
        };
        for tensor in &entry.tensors {
            let mut record = described(step, &execution, tensor);
            // Calls are in the order in which they ended.
            record.task_id = u32::try_from(position).ok();
            let Some(at) = find_file(index, files, step, tensor) else {
                count(&mut in_table, &record);
                records.push(record);
                continue;
            };
            let Some((file, head)) = files.data.get(at) else {
                continue;
            };
            take_file(&mut record, file, head.as_ref());
            let is_first = used
                .get_mut(at)
                .is_some_and(|used| !std::mem::replace(used, true));
            if is_first {
                index.files.push(file_record(file, &execution, &record));
            }
            records.push(record);
        }
        if in_table.n_inputs + in_table.n_outputs > 0 {
            of_table.operators.push(in_table);
        }
        // The call was made even if nothing of its tensors is known.
        if records.is_empty() {
            index.executions.push(execution);
        }
        // Inputs first, as in every form.
        records.sort_by_key(|record| record.slot);
        index.add_tensors(records);
    }
    index.files.push(of_table);
}

fn execution(step: &ProbeStep, entry: &ProbeEntry, n_runs: &mut RunCounts) -> IndexedExecution {
    let name = EntryName::parse(&entry.key);
    let n_runs = n_runs.entry((step.place, entry.key.clone())).or_insert(0);
    let run = *n_runs;
    *n_runs += 1;
    IndexedExecution {
        op_type: name.op_type.into(),
        op_name: (&entry.key).into(),
        rank: step.place.rank,
        step: step.place.step,
        run,
        call_site: call_site(step, &name, &entry.key),
        ..IndexedExecution::default()
    }
}

/// The module that a call is made in, or that it is a call of, and the line of the program.
fn call_site(step: &ProbeStep, name: &EntryName<'_>, key: &str) -> Option<CallSite> {
    let module = name
        .module
        .or_else(|| {
            let parent = step.parents.get(key)?;
            EntryName::parse(parent).module
        })
        .unwrap_or_default();
    let source = step.sources.get(key).map_or("", String::as_str);
    (!module.is_empty() || !source.is_empty()).then(|| CallSite {
        module: module.into(),
        source: source.into(),
    })
}

/// The description of a tensor in `dump.json`.
fn described(
    step: &ProbeStep,
    execution: &Arc<IndexedExecution>,
    tensor: &ProbeTensor,
) -> IndexedTensor {
    let dtype = dtype_term(&tensor.dtype);
    let n_bytes = dtype
        .value()
        .and_then(|dtype| n_bytes(dtype, &tensor.shape));
    let module = execution.call_site.as_ref().map(|site| &*site.module);
    let parameter = tensor.parameter.as_ref().map(|name| match module {
        Some(module) if !module.is_empty() => format!("{module}.{name}"),
        _ => name.clone(),
    });
    IndexedTensor {
        execution: execution.clone(),
        slot: tensor.slot,
        parameter: parameter.map(Into::into),
        dtype: Some(dtype),
        dtype_in_name: Some(tensor.dtype.clone()),
        shape: Some(tensor.shape.clone()),
        n_bytes,
        path: (&step.entry.path).into(),
        statistics: tensor.statistics.iter().cloned().collect(),
        ..IndexedTensor::default()
    }
}

/// A dtype in the words of a framework: `torch.float32`, `Float32`, `float32`.
fn dtype_term(name: &str) -> DumpTerm<DType> {
    let own = name.strip_prefix(TORCH_PREFIX).unwrap_or(name);
    let known = own.parse().ok().or_else(|| ms_dtype::from_name(own));
    match known {
        Some(dtype) => DumpTerm::Known(dtype),
        None => DumpTerm::Word(name.to_owned(), None),
    }
}

fn n_bytes(dtype: DType, dims: &[u64]) -> Option<u64> {
    let dims = dims.iter().map(|&dim| usize::try_from(dim).ok());
    let shape = Shape::new(dims.collect::<Option<Vec<usize>>>()?).ok()?;
    shape.n_bytes(dtype).ok().map(|n| n as u64)
}

/// The position of the file with a tensor's elements. Notes one that should be there and is not.
fn find_file(
    index: &mut DumpIndex,
    files: &ProbeFiles,
    step: &ProbeStep,
    tensor: &ProbeTensor,
) -> Option<usize> {
    let name = tensor.data_name.as_ref()?;
    let found = files.position_of(&step.entry.path, name);
    if found.is_none() && !files.is_single && !CHOOSING_TASKS.contains(&step.dump.task.as_str()) {
        let path = step.entry.path.with_file_name(tree::DATA_DIR).join(name);
        let reason = format!(
            "expected the tensor that `{}` names, found no file",
            step.entry.real_name
        );
        let error = std::io::Error::new(std::io::ErrorKind::NotFound, reason);
        index.errors.push(StoreError::io("read", &path)(error));
    }
    found
}

/// Adopts the facts of a tensor's file. They take precedence over `dump.json`, except for a dtype
/// that numpy lacks, which the file replaces by another.
fn take_file(record: &mut IndexedTensor, file: &DumpEntry, head: Option<&FileHead>) {
    record.path = (&file.path).into();
    let Some((kind, stored)) = head.and_then(|head| Some((head.kind, head.tensors.first()?)))
    else {
        record.dtype = None;
        record.elements = Some(ElementsPlace::in_damaged_file(&file.real_name));
        return;
    };
    let named = record.dtype.take();
    record.take_stored(stored);
    // numpy has another dtype in place of bfloat16 and its like.
    let converted = named.filter(|named| {
        let numpy = named.value().and_then(numpy_dtype);
        numpy.is_some() && numpy == stored.dtype.value()
    });
    if converted.is_some() {
        record.dtype = converted;
    }
    record.elements = Some(ElementsPlace::new(&file.real_name, kind, stored));
}

fn file_record(
    file: &DumpEntry,
    execution: &IndexedExecution,
    record: &IndexedTensor,
) -> IndexedFile {
    let mut operator = OperatorInFile {
        op_type: execution.op_type.clone(),
        op_name: execution.op_name.clone(),
        ..OperatorInFile::default()
    };
    count(&mut operator, record);
    let is_damaged = record.dtype.is_none();
    IndexedFile {
        path: file.path.clone(),
        real_name: file.real_name.clone(),
        n_bytes: file.n_bytes,
        operators: if is_damaged {
            Vec::new()
        } else {
            vec![operator]
        },
        rank: execution.rank,
    }
}

fn count(operator: &mut OperatorInFile, record: &IndexedTensor) {
    let is_input = record.slot.is_some_and(|(side, _)| side == SlotSide::Input);
    operator.n_inputs += u64::from(is_input);
    operator.n_outputs += u64::from(!is_input);
    operator.n_bytes = operator.n_bytes.saturating_add(record.n_bytes.unwrap_or(0));
}

/// The head of a file with a tensor: none of a damaged one, which is noted.
fn head_of(
    content: Result<FileContent, StoreError>,
    errors: &mut Vec<StoreError>,
) -> Option<FileHead> {
    match content {
        Ok(FileContent::Tensors(head)) => Some(head),
        Ok(FileContent::Table(_)) => None,
        Err(error) => {
            errors.push(error);
            None
        }
    }
}
