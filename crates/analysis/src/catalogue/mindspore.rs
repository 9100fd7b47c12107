//! Dumps of MindSpore.

use opscope_store::StoreError;
use opscope_store::dump::mindspore::{
    FileName, MindSporeDump, OperatorRun, RunKind, Slot, TensorFile,
};
use opscope_store::file_format::{ms_dtype, op_debug};
use opscope_tensor::convert::dtype::numpy_dtype;

use super::{Catalogue, ElementsPlace, Item, ItemKind, side_of};
use crate::job;
use crate::tensor_file::Head;

pub(super) fn catalogue(dump: MindSporeDump, n_threads: usize) -> Catalogue {
    let heads = job::map(&dump.files, n_threads, |file| {
        Head::read(&file.path, &file.real_name)
    });
    let mut items = Vec::new();
    for run in &dump.records {
        for slot in &run.slots {
            items.push(of_slot(&dump, run, slot, &heads));
        }
        for &index in &run.dump_files {
            if let (Some(file), Some(head)) = (dump.files.get(index), heads.get(index)) {
                items.extend(of_dump_file(run, file, head));
            }
        }
    }
    let mut errors = dump.errors;
    errors.extend(heads.into_iter().filter_map(Result::err));
    Catalogue {
        items,
        graphs: dump.graphs,
        errors,
    }
}

/// What is known of an execution without its files.
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
        return vec![of_file];
    };
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
            FileName::Unknown => {}
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
