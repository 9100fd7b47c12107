//! Dumps of MindSpore.

use std::collections::HashMap;
use std::path::Path;

use opscope_store::StoreError;
use opscope_store::dump::Listing;
use opscope_store::dump::mindspore::{
    FileName, MindSporeDump, OperatorRun, RunKind, Slot, TensorFile,
};
use opscope_store::file_format::stats_csv::{self, Table};
use opscope_store::file_format::{ms_dtype, op_debug};
use opscope_tensor::convert::dtype::numpy_dtype;

use super::acl::{row_of, statistics};
use super::{Catalogue, ElementsPlace, Item, ItemKind, side_of};
use crate::job;
use crate::tensor_file::Head;

pub(super) fn catalogue(mut dump: MindSporeDump, n_threads: usize) -> Catalogue {
    let heads = job::map(&dump.files, n_threads, |file| {
        Head::read(&file.path, &file.real_name)
    });
    let mut errors = std::mem::take(&mut dump.errors);
    let tables = tables_beside_files(&mut dump, &mut errors);
    let mut items = Vec::new();
    for run in &dump.records {
        for slot in &run.slots {
            items.push(of_slot(&dump, run, slot, &heads));
        }
        for &index in &run.dump_files {
            if let (Some(file), Some(head)) = (dump.files.get(index), heads.get(index)) {
                let of_file = of_dump_file(run, file, head);
                items.extend(of_file.into_iter().map(|item| match tables.get(&index) {
                    Some(table) => with_statistics(item, table),
                    None => item,
                }));
            }
        }
    }
    errors.extend(heads.into_iter().filter_map(Result::err));
    // Tables of the runtime below MindSpore that describe tensors which are not in the dump.
    let listing = Listing {
        tables: dump.runtime_tables,
        step_tables: dump.step_tables,
        ..Listing::default()
    };
    let of_runtime = super::acl::catalogue(listing, n_threads, false);
    items.extend(of_runtime.items);
    errors.extend(of_runtime.errors);
    Catalogue {
        items,
        graphs: dump.graphs,
        passed_over: dump.passed_over,
        errors,
    }
}

/// Takes the runtime's tables that lie beside the files whose tensors they describe; they go by the files' positions.
fn tables_beside_files(
    dump: &mut MindSporeDump,
    errors: &mut Vec<StoreError>,
) -> HashMap<usize, Table> {
    let files = dump.files.iter().enumerate();
    let by_name: HashMap<(Option<&Path>, String), usize> = files
        .map(|(index, file)| {
            let name = format!("{}{}", file.real_name, stats_csv::FILE_NAME_SUFFIX);
            ((file.path.parent(), name), index)
        })
        .collect();
    let mut tables = HashMap::new();
    dump.runtime_tables.retain(|entry| {
        let key = (entry.path.parent(), entry.real_name.clone());
        let Some(&index) = by_name.get(&key) else {
            return true;
        };
        match stats_csv::read_file(&entry.path) {
            Ok(table) => drop(tables.insert(index, table)),
            Err(error) => errors.push(error),
        }
        false
    });
    tables
}

fn with_statistics(mut item: Item, table: &Table) -> Item {
    if let Some(row) = item.slot.and_then(|slot| row_of(table, slot)) {
        item.statistics = statistics(table, row);
    }
    item
}

/// Returns an item with everything that is known of an execution without its files.
fn of_run(run: &OperatorRun) -> Item {
    let place = &run.place;
    Item {
        kind: match run.kind {
            RunKind::Operator => ItemKind::Operator,
            RunKind::Parameter => ItemKind::Parameter,
            RunKind::Constant => ItemKind::Constant,
        },
        op_type: run.op_type.clone(),
        op_name: run.full_name.as_ref().unwrap_or(&run.op_name).clone(),
        model: place.net_name.clone(),
        model_id: place.graph_id,
        rank: place.rank,
        step: place.step.or(place.iteration),
        run: run.run,
        ..Item::default()
    }
}

fn of_slot(
    dump: &MindSporeDump,
    run: &OperatorRun,
    slot: &Slot,
    heads: &[Result<Head, StoreError>],
) -> Item {
    let mut item = of_run(run);
    item.slot = Some((slot.side, slot.index));
    item.timestamp = (slot.timestamp > 0).then_some(slot.timestamp);
    let row = slot.row.and_then(|(table, row)| {
        let table = dump.tables.get(table)?;
        let (subject, values) = table.table.rows.get(row)?;
        Some((table, subject, values))
    });
    if let Some((table, subject, values)) = row {
        item.path.clone_from(&table.path);
        item.task_id = Some(subject.task_id);
        item.stream_id = Some(subject.stream_id);
        item.shape = Some(subject.shape.clone());
        item.n_bytes = Some(subject.n_bytes);
        let columns = table.table.columns.iter().cloned();
        item.statistics = columns.zip(values.iter().cloned()).collect();
    }
    let file = slot
        .file
        .and_then(|index| Some((dump.files.get(index)?, heads.get(index)?)));
    if let Some((file, head)) = file {
        item.take_file(file, head);
    }
    if let Some(layout) = &slot.layout {
        item.layout = Some(layout.clone());
    }
    item.dtype = true_dtype(slot.dtype.as_deref(), item.stored_dtype.take());
    item.stored_dtype = stored_dtype(file.map(|(_, head)| head));
    item
}

/// The dtype that the tensor had: the name says it where the file has the one that numpy has instead.
fn true_dtype(named: Option<&str>, stored: Option<String>) -> Option<String> {
    let known = named.and_then(ms_dtype::from_name);
    match (known, stored) {
        (Some(known), None) => Some(known.to_string()),
        (None, None) => named.map(str::to_owned),
        (Some(known), Some(stored)) => {
            let is_converted = numpy_dtype(known).is_some_and(|numpy| numpy.name() == stored);
            Some(if is_converted {
                known.to_string()
            } else {
                stored
            })
        }
        (None, stored) => stored,
    }
}

fn stored_dtype(head: Option<&Result<Head, StoreError>>) -> Option<String> {
    let (_, _, entry) = head?.as_ref().ok()?.tensors.first()?;
    entry.dtype().map(|dtype| dtype.to_string())
}

fn of_dump_file(
    run: &OperatorRun,
    file: &TensorFile,
    head: &Result<Head, StoreError>,
) -> Vec<Item> {
    let mut of_file = of_run(run);
    of_file.take_file(file, head);
    let Ok(head) = head else {
        // A file that may hold anything is told of among the problems alone.
        let is_named = file.name != FileName::Foreign;
        return is_named.then_some(of_file).into_iter().collect();
    };
    if !head.op_name.is_empty() && file.name == FileName::Foreign {
        of_file.op_name.clone_from(&head.op_name);
    }
    if head.holds_records || op_debug::is_record_name(&file.real_name) {
        of_file.kind = ItemKind::OverflowRecord;
    }
    let tensors = head.tensors.iter();
    tensors
        .map(|(kind, index, entry)| {
            let mut item = of_file.clone();
            item.describe(entry);
            item.slot = Some((side_of(*kind), u32::try_from(*index).unwrap_or(u32::MAX)));
            item.elements = Some(ElementsPlace {
                real_name: file.real_name.clone(),
                tensor: Some((*kind, *index)),
            });
            item
        })
        .collect()
}

impl Item {
    /// Takes over what the file of a tensor says, by its name and its header.
    fn take_file(&mut self, file: &TensorFile, head: &Result<Head, StoreError>) {
        self.path.clone_from(&file.path);
        match &file.name {
            FileName::Array(name) => {
                self.task_id = Some(name.task_id);
                self.stream_id = Some(name.stream_id);
            }
            FileName::Dump(name) => {
                self.task_id = Some(name.task_id);
                self.stream_id = name.stream_id;
                self.timestamp = name.timestamp.parse().ok();
            }
            FileName::Unknown | FileName::Foreign => {}
        }
        let tensor = head.as_ref().ok().and_then(|head| head.tensors.first());
        if let Some((_, _, entry)) = tensor {
            self.describe(entry);
        }
        self.elements = Some(ElementsPlace {
            real_name: file.real_name.clone(),
            tensor: tensor.map(|(kind, index, _)| (*kind, *index)),
        });
    }
}
