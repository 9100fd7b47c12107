//! Dumps of `MindSpore`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use opscope_tensor::convert::dtype::numpy_dtype;
use opscope_tensor::{DType, Layout};

use super::ascend::{add_records, table_record, take_statistics};
use super::entries::read_entries;
use super::index::{
    DumpIndex, ElementsPlace, ExecutionKind, IndexedExecution, IndexedFile, IndexedTensor,
    OtherNames,
};
use super::tensor_file::{FileContent, FileExpectation, FileHead, FileRequest};
use super::term::DumpTerm;
use super::{DumpReader, FilePlace, ReadFiles, TakeTensors};
use crate::dump::mindspore::{
    FileName, FileRole, MindSporeFile, MindSporeListing, MindSporeSlot, OperatorRun, RunKind,
    is_mindspore, place_of,
};
use crate::dump::{DumpEntry, DumpListing, PassReason, of_step_tables};
use crate::file_format::stats_csv::{self, StatsTable};
use crate::file_format::{ms_dtype, op_debug};
use crate::record::CallSite;

/// The form's name.
pub const FORM: &str = "mindspore";
/// The layout without a meaning of the axes.
const DEFAULT_LAYOUT: &str = "DefaultFormat";

/// Reads a tree that contains a file name that only `MindSpore` uses.
pub(super) struct MindSporeReader;

impl DumpReader for MindSporeReader {
    fn form(&self) -> &'static str {
        FORM
    }

    fn detect(&self, listing: &DumpListing) -> bool {
        listing.entries.iter().any(is_mindspore)
    }

    fn reason_to_pass(&self, entry: &DumpEntry) -> Option<PassReason> {
        if op_debug::is_json_record_name(&entry.real_name) {
            return Some(PassReason::Converted);
        }
        match FileRole::of_entry(entry) {
            FileRole::Statistics => Some(PassReason::Statistics),
            FileRole::Graph => Some(PassReason::Graph),
            FileRole::PassedOver(reason) => Some(reason),
            FileRole::Tensors(_) => None,
        }
    }

    fn place_of(&self, entry: &DumpEntry) -> Option<FilePlace> {
        let place = place_of(&entry.path);
        // A constant belongs to every step.
        Some((place.rank, Some(place.step.or(place.iteration)?)))
    }

    fn index(&self, listing: DumpListing, read: ReadFiles<'_>) -> DumpIndex {
        index(listing, read, &mut |_| {})
    }

    fn index_into(
        &self,
        listing: DumpListing,
        read: ReadFiles<'_>,
        take: TakeTensors<'_>,
    ) -> DumpIndex {
        index(listing, read, &mut |index| {
            index.executions.clear();
            take(std::mem::take(&mut index.tensors));
        })
    }
}

/// Reads everything; `each_run` sees the index after each execution.
fn index(
    listing: DumpListing,
    read: ReadFiles<'_>,
    each_run: &mut dyn FnMut(&mut DumpIndex),
) -> DumpIndex {
    let mut dump = MindSporeListing::from_listing(listing);
    let mut index = DumpIndex {
        form: FORM,
        passed_over: std::mem::take(&mut dump.passed_over),
        errors: std::mem::take(&mut dump.errors),
        ..DumpIndex::default()
    };
    // The runtime below MindSpore writes separate tables.
    let mut of_runtime = DumpListing {
        step_tables: std::mem::take(&mut dump.step_tables),
        ..DumpListing::default()
    };
    let tables = std::mem::take(&mut dump.runtime_tables);
    let mut tables = read_entries(tables, read, &mut index.errors);
    let of_steps = of_step_tables(&mut of_runtime).into_iter();
    tables.extend(of_steps.map(|(entry, table)| (entry, Some(FileContent::Table(table)))));
    index.errors.append(&mut of_runtime.errors);
    index.tables = tables.iter().filter_map(table_record).collect();
    let heads = read_heads(&dump, read, &mut index);
    let mut beside = HashMap::new();
    let files = file_positions(&dump);
    tables.retain(|(entry, content)| {
        let key = (entry.path.parent(), entry.real_name.clone());
        match (files.get(&key), content) {
            (Some(&file), Some(FileContent::Table(table))) => {
                beside.insert(file, table.clone());
                false
            }
            // A table without its file becomes separate records; a damaged one with its file has
            // nothing to add.
            (file, _) => file.is_none(),
        }
    });
    for run in &dump.records {
        add_run(&mut index, &dump, run, &heads, &beside);
        each_run(&mut index);
    }
    add_records(&mut index, tables, false);
    each_run(&mut index);
    index.files = dump.files.iter().map(file_record).collect();
    let n_rows = dump
        .tables
        .iter()
        .map(|table| table.table.rows.len() as u64);
    index.n_statistics_rows = n_rows.sum();
    index.graphs = dump.graphs;
    index.orders = dump.orders;
    index.iterations = dump.iterations;
    index
}

/// The descriptions of the tensors in each file; none of a damaged one, which is noted.
fn read_heads(
    dump: &MindSporeListing,
    read: ReadFiles<'_>,
    index: &mut DumpIndex,
) -> Vec<Option<FileHead>> {
    let requests = dump.files.iter().map(|file| FileRequest {
        path: file.path.clone(),
        real_name: file.real_name.clone(),
        expectation: FileExpectation::Tensors,
    });
    let requests: Vec<_> = requests.collect();
    let heads = read(&requests).into_iter().map(|content| match content {
        Ok(FileContent::Tensors(head)) => Some(head),
        Ok(FileContent::Table(_)) => None,
        Err(error) => {
            index.errors.push(error);
            None
        }
    });
    heads.collect()
}

fn file_record(file: &MindSporeFile) -> IndexedFile {
    IndexedFile {
        path: file.path.clone(),
        real_name: file.real_name.clone(),
        n_bytes: file.n_bytes,
        operators: Vec::new(),
        ..IndexedFile::default()
    }
}

/// The positions of the files that tables of the runtime describe, by directory and name of the
/// table.
fn file_positions(dump: &MindSporeListing) -> HashMap<(Option<&Path>, String), usize> {
    let files = dump.files.iter().enumerate();
    files
        .map(|(index, file)| {
            let name = format!("{}{}", file.real_name, stats_csv::FILE_NAME_SUFFIX);
            ((file.path.parent(), name), index)
        })
        .collect()
}

fn add_run(
    index: &mut DumpIndex,
    dump: &MindSporeListing,
    run: &OperatorRun,
    heads: &[Option<FileHead>],
    beside: &HashMap<usize, StatsTable>,
) {
    let execution = Arc::new(execution(dump, run));
    let slots = run.slots.iter();
    let records = slots.map(|slot| slot_record(dump, &execution, slot, heads));
    index.add_tensors(records.collect());
    for &position in &run.dump_files {
        let (Some(file), Some(head)) = (dump.files.get(position), heads.get(position)) else {
            continue;
        };
        let table = beside.get(&position);
        add_dump_file(index, &execution, file, head.as_ref(), table);
    }
}

/// Everything that is known of an execution without its files.
fn execution(dump: &MindSporeListing, run: &OperatorRun) -> IndexedExecution {
    let place = &run.place;
    IndexedExecution {
        kind: match run.kind {
            RunKind::Operator => ExecutionKind::Operator,
            RunKind::Parameter => ExecutionKind::Parameter,
            RunKind::Constant => ExecutionKind::Constant,
        },
        op_type: (&run.op_type).into(),
        op_name: run.full_name.as_ref().unwrap_or(&run.op_name).into(),
        other_names: OtherNames {
            in_files: Some(run.op_name.clone()),
            full: run.full_name.clone(),
            listed: run.listed_name.clone(),
        },
        model: place.net_name.as_deref().map(Into::into),
        model_id: place.graph_id,
        rank: place.rank,
        step: place.step,
        iteration: place.iteration,
        time: place.time.clone(),
        run: run.run,
        call_site: call_site(dump, run),
        collective: None,
    }
}

/// The line of the program that made an operator, from the graph next to the dump.
fn call_site(dump: &MindSporeListing, run: &OperatorRun) -> Option<CallSite> {
    Some(CallSite {
        source: dump.source_of(run)?,
        ..CallSite::default()
    })
}

fn slot_record(
    dump: &MindSporeListing,
    execution: &Arc<IndexedExecution>,
    slot: &MindSporeSlot,
    heads: &[Option<FileHead>],
) -> IndexedTensor {
    let mut record = IndexedTensor {
        execution: execution.clone(),
        slot: Some((slot.side, slot.index)),
        timestamp: (slot.timestamp > 0).then_some(slot.timestamp),
        dtype_in_name: slot.dtype.clone(),
        layout_in_name: slot.layout.clone(),
        ..IndexedTensor::default()
    };
    let row = slot.row.and_then(|(table, row)| {
        let table = dump.tables.get(table)?;
        let (subject, values) = table.table.rows.get(row)?;
        Some((table, subject, values))
    });
    // The row comes before the file, which knows better where there are both.
    if let Some((table, subject, values)) = row {
        record.path = (&table.path).into();
        record.task_id = Some(subject.task_id);
        record.stream_id = Some(subject.stream_id);
        record.shape = Some(subject.shape.clone());
        record.n_bytes = Some(subject.n_bytes);
        let columns = table.table.columns.iter().cloned();
        record.statistics = columns.zip(values.iter().cloned()).collect();
    }
    let file = slot
        .file
        .and_then(|file| Some((dump.files.get(file)?, heads.get(file)?)));
    if let Some((file, head)) = file {
        take_file(&mut record, file, head.as_ref());
    }
    // An array's header has no layout, so the name's layout replaces the default.
    if let Some(layout) = &slot.layout {
        record.layout = Some(layout_term(layout));
    }
    let stored = record.stored_dtype.take();
    record.stored_dtype = stored.clone().filter(|dtype| dtype.value().is_some());
    record.dtype = true_dtype(slot.dtype.as_deref(), stored);
    record
}

/// A layout by its name.
fn layout_term(name: &str) -> DumpTerm<Layout> {
    match name.parse() {
        Ok(layout) => DumpTerm::Known(layout),
        Err(_) if name == DEFAULT_LAYOUT => DumpTerm::Word(name.to_owned(), Some(Layout::Nd)),
        Err(_) => DumpTerm::Word(name.to_owned(), None),
    }
}

/// The dtype that the tensor had: the name says it where the file has the one that numpy has
/// instead.
fn true_dtype(named: Option<&str>, stored: Option<DumpTerm<DType>>) -> Option<DumpTerm<DType>> {
    let known = named.and_then(ms_dtype::from_name);
    match (known, stored) {
        (Some(known), Some(stored)) => {
            let is_converted =
                numpy_dtype(known).is_some_and(|numpy| stored.value() == Some(numpy));
            Some(if is_converted {
                DumpTerm::Known(known)
            } else {
                stored
            })
        }
        (Some(known), None) => Some(DumpTerm::Known(known)),
        (None, Some(stored)) => Some(stored),
        (None, None) => named.map(|name| DumpTerm::Word(name.to_owned(), name.parse().ok())),
    }
}

/// Adds the tensors of a dump file of the runtime, which is a separate execution.
fn add_dump_file(
    index: &mut DumpIndex,
    execution: &Arc<IndexedExecution>,
    file: &MindSporeFile,
    head: Option<&FileHead>,
    table: Option<&StatsTable>,
) {
    let mut of_file = IndexedTensor {
        execution: execution.clone(),
        ..IndexedTensor::default()
    };
    take_file(&mut of_file, file, head);
    let is_foreign = file.name == FileName::Foreign;
    let Some(head) = head else {
        // A file of unknown content is reported among the errors only.
        if !is_foreign {
            index.add_tensors(vec![of_file]);
        }
        return;
    };
    let execution = Arc::make_mut(&mut of_file.execution);
    if !head.op_name.is_empty() && is_foreign {
        execution.op_name = (&head.op_name).into();
    }
    if head.holds_records || op_debug::is_record_name(&file.real_name) {
        execution.kind = ExecutionKind::OverflowRecord;
    }
    let records = head.tensors.iter().map(|stored| {
        let mut record = of_file.clone();
        record.take_stored(stored);
        record.slot = Some(stored.operator_slot());
        record.elements = Some(ElementsPlace::new(&file.real_name, head.kind, stored));
        if let Some(table) = table {
            take_statistics(&mut record, table);
        }
        record
    });
    let records: Vec<_> = records.collect();
    // The operator ran even if its file has no tensors, and no other record would show it.
    if records.is_empty() && !is_foreign {
        index.executions.push(of_file.execution.clone());
    }
    index.add_tensors(records);
}

/// Adopts the description in a tensor file's name and header.
fn take_file(record: &mut IndexedTensor, file: &MindSporeFile, head: Option<&FileHead>) {
    record.path = (&file.path).into();
    match &file.name {
        FileName::Array(name) => {
            record.task_id = Some(name.task_id);
            record.stream_id = Some(name.stream_id);
        }
        FileName::Dump(name) => {
            record.task_id = Some(name.task_id);
            record.stream_id = name.stream_id;
            record.timestamp = name.timestamp.parse().ok();
        }
        FileName::Unknown | FileName::Foreign => {}
    }
    let first = head.and_then(|head| Some((head.kind, head.tensors.first()?)));
    let Some((kind, stored)) = first else {
        record.elements = Some(ElementsPlace::in_damaged_file(&file.real_name));
        return;
    };
    record.take_stored(stored);
    record.elements = Some(ElementsPlace::new(&file.real_name, kind, stored));
}
