//! Executions of operators, assembled from files and rows of statistics.

use std::collections::{BTreeMap, HashMap};

use super::names::{NameIndex, NameMatch};
use super::{FileName, MindSporeListing, MindSporeSlot, OperatorRun, RunKind};
use crate::record::SlotSide;
use crate::tree::acl::clean_name;
use crate::tree::mindspore::{MindSporePlace, PARAMETER};

/// Everything of one operator in one iteration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MindSporeOperatorKey {
    place: MindSporePlace,
    op_type: String,
    op_name: String,
}

#[derive(Default)]
struct GatheredFiles {
    slots: Vec<MindSporeSlot>,
    dump_files: Vec<usize>,
    /// From a row of statistics.
    full_name: Option<String>,
}

pub(super) fn records(dump: &MindSporeListing) -> Vec<OperatorRun> {
    let mut gathered = files(dump);
    add_rows(dump, &mut gathered);
    let names = NameIndex::collect(dump);
    let mut by_place: BTreeMap<MindSporePlace, Vec<(MindSporeOperatorKey, GatheredFiles)>> =
        BTreeMap::new();
    for (key, of_key) in gathered {
        let group = by_place.entry(key.place.clone()).or_default();
        group.push((key, of_key));
    }
    let mut places: Vec<_> = by_place.into_iter().collect();
    // Graphs of one iteration stay together.
    places.sort_by(|(a, _), (b, _)| sort_key(a).cmp(&sort_key(b)));
    places
        .into_iter()
        .flat_map(|(place, group)| of_place(&place, group, &names))
        .collect()
}

/// Rank, network, step, time, iteration, graph.
type PlaceKey<'a> = (
    Option<u32>,
    Option<&'a str>,
    Option<u64>,
    Option<&'a str>,
    Option<u64>,
    Option<u32>,
);

fn sort_key(place: &MindSporePlace) -> PlaceKey<'_> {
    (
        place.rank,
        place.net_name.as_deref(),
        place.step,
        place.time.as_deref(),
        place.iteration,
        place.graph_id,
    )
}

fn files(dump: &MindSporeListing) -> BTreeMap<MindSporeOperatorKey, GatheredFiles> {
    let mut gathered: BTreeMap<MindSporeOperatorKey, GatheredFiles> = BTreeMap::new();
    for (index, file) in dump.files.iter().enumerate() {
        let (op_type, op_name) = match &file.name {
            FileName::Array(name) => (name.op_type.clone(), name.op_name.clone()),
            FileName::Dump(name) => (name.op_type.clone(), name.op_name.clone()),
            FileName::Unknown | FileName::Foreign => (String::new(), file.real_name.clone()),
        };
        let place = file.place.clone();
        let of_key = gathered
            .entry(MindSporeOperatorKey {
                place,
                op_type,
                op_name,
            })
            .or_default();
        match &file.name {
            FileName::Dump(_) | FileName::Foreign => of_key.dump_files.push(index),
            FileName::Array(name) => of_key.slots.push(MindSporeSlot {
                side: name.side,
                index: name.slot,
                timestamp: name.timestamp,
                dtype: name.dtype.clone(),
                layout: Some(name.layout.clone()),
                file: Some(index),
                row: None,
            }),
            // Listed as an output, so that the file is not lost.
            FileName::Unknown => of_key.slots.push(MindSporeSlot {
                side: SlotSide::Output,
                index: 0,
                timestamp: 0,
                dtype: None,
                layout: None,
                file: Some(index),
                row: None,
            }),
        }
    }
    gathered
}

/// Rows belong to the file of the same tensor with the same time. Where tensors are written later
/// than rows, the times differ; then equal numbers of files and rows belong together in their
/// order.
fn add_rows(dump: &MindSporeListing, gathered: &mut BTreeMap<MindSporeOperatorKey, GatheredFiles>) {
    let mut left: BTreeMap<(MindSporeOperatorKey, SlotSide, u32), Vec<MindSporeSlot>> =
        BTreeMap::new();
    for (table_index, table) in dump.tables.iter().enumerate() {
        for (row_index, (subject, _)) in table.table.rows.iter().enumerate() {
            let key = MindSporeOperatorKey {
                place: table.place.clone(),
                op_type: clean_name(&subject.op_type),
                op_name: clean_name(&subject.op_name),
            };
            let row = Some((table_index, row_index));
            let of_key = gathered.entry(key.clone()).or_default();
            // File names replace some characters; a row has the original name.
            if of_key.full_name.is_none() && key.op_name != subject.op_name {
                of_key.full_name = Some(subject.op_name.clone());
            }
            if let Some(slot) = of_key.slots.iter_mut().find(|slot| {
                slot.row.is_none()
                    && (slot.side, slot.index) == (subject.side, subject.slot)
                    && slot.timestamp == subject.timestamp
            }) {
                slot.row = row;
                continue;
            }
            let slot = MindSporeSlot {
                side: subject.side,
                index: subject.slot,
                timestamp: subject.timestamp,
                dtype: Some(subject.dtype.clone()),
                layout: None,
                file: None,
                row,
            };
            let place = (key, subject.side, subject.slot);
            left.entry(place).or_default().push(slot);
        }
    }
    // The other rows have a time that no file has. If there are as many files without a row, both
    // are in order of time and pair up. Otherwise these rows are slots without a file.
    for ((key, side, index), rows) in left {
        let of_key = gathered.entry(key).or_default();
        let mut open: Vec<_> = of_key
            .slots
            .iter_mut()
            .filter(|slot| slot.row.is_none() && (slot.side, slot.index) == (side, index))
            .collect();
        open.sort_by_key(|slot| slot.timestamp);
        if open.len() == rows.len() {
            open.into_iter()
                .zip(rows)
                .for_each(|(slot, row)| slot.row = row.row);
        } else {
            of_key.slots.extend(rows);
        }
    }
}

fn of_place(
    place: &MindSporePlace,
    mut group: Vec<(MindSporeOperatorKey, GatheredFiles)>,
    names: &NameIndex,
) -> Vec<OperatorRun> {
    group.sort_by_key(|(_, gathered)| gathered.slots.iter().map(|slot| slot.timestamp).min());
    let mut records: Vec<(OperatorRun, NameMatch)> = Vec::new();
    for kind in [RunKind::Constant, RunKind::Operator, RunKind::Parameter] {
        let of_kind: Vec<_> = group
            .iter()
            .filter(|(key, _)| kind_of(key) == kind)
            .collect();
        let op_names: Vec<_> = of_kind.iter().map(|(key, _)| key.op_name.clone()).collect();
        let found = names.find(place, kind, &op_names);
        let first = records.len();
        for ((key, gathered), mut found) in of_kind.into_iter().zip(found) {
            if let Some(full_name) = &gathered.full_name {
                found.full_name = Some(full_name.clone());
            }
            let runs = runs(key, gathered, kind, &found);
            records.extend(runs.into_iter().map(|run| (run, found.clone())));
        }
        // Files of the CPU have the time at which the operator ran, which can differ from lists
        // made at compilation. Accelerators may write later.
        let is_listed = records[first..]
            .iter()
            .all(|(run, found)| found.position.is_some() && !run.slots.iter().any(is_of_cpu));
        records[first..].sort_by_key(|(run, found)| {
            let time = run.slots.iter().map(|slot| slot.timestamp).min();
            let position = found.position.filter(|_| is_listed);
            let turn = if is_listed { run.run } else { 0 };
            (turn, position, time)
        });
    }
    records.into_iter().map(|(run, _)| run).collect()
}

/// The CPU spells dtypes with capitals.
fn is_of_cpu(slot: &MindSporeSlot) -> bool {
    let dtype = slot.dtype.as_deref().unwrap_or_default();
    dtype.starts_with(|c: char| c.is_ascii_uppercase())
}

fn kind_of(key: &MindSporeOperatorKey) -> RunKind {
    match (key.op_type == PARAMETER, key.place.is_constants) {
        (_, true) => RunKind::Constant,
        (true, false) => RunKind::Parameter,
        (false, false) => RunKind::Operator,
    }
}

/// The executions of one operator: a new one begins where a tensor comes again.
fn runs(
    key: &MindSporeOperatorKey,
    gathered: &GatheredFiles,
    kind: RunKind,
    found: &NameMatch,
) -> Vec<OperatorRun> {
    let first_run = OperatorRun {
        place: key.place.clone(),
        kind,
        op_type: key.op_type.clone(),
        op_name: key.op_name.clone(),
        full_name: found.full_name.clone(),
        listed_name: found.listed_name.clone(),
        run: 0,
        slots: Vec::new(),
        dump_files: Vec::new(),
    };
    let mut slots = gathered.slots.clone();
    slots.sort_by_key(|slot| (slot.timestamp, slot.side, slot.index));
    let mut runs: Vec<OperatorRun> = Vec::new();
    let mut last_run: HashMap<(SlotSide, u32), usize> = HashMap::new();
    for slot in slots {
        let is_seen = last_run.get(&(slot.side, slot.index)) == runs.len().checked_sub(1).as_ref();
        if runs.is_empty() || is_seen {
            runs.push(OperatorRun {
                run: runs.len(),
                ..first_run.clone()
            });
        }
        last_run.insert((slot.side, slot.index), runs.len() - 1);
        if let Some(run) = runs.last_mut() {
            run.slots.push(slot);
        }
    }
    for run in &mut runs {
        run.slots.sort_by_key(|slot| (slot.side, slot.index));
    }
    // Each dump file of the runtime is a separate execution.
    for &file in &gathered.dump_files {
        runs.push(OperatorRun {
            run: runs.len(),
            dump_files: vec![file],
            ..first_run.clone()
        });
    }
    runs
}
