//! The operators of a step's file, assembled row by row.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::statistics_rows::{cells, columns, side_title, slot_text};
use crate::dump::DumpEntry;
use crate::file_format::stats_csv::StatsTable;
use crate::reader::index::{
    DumpIndex, ElementsPlace, ExecutionKind, IndexedExecution, IndexedFile, IndexedTable,
    IndexedTensor, OperatorInFile,
};
use crate::reader::tensor_file::FileKind;
use crate::reader::tensor_statistics::TensorStatistics;
use crate::reader::term::DumpTerm;
use crate::record::SlotSide;
use crate::record::parallel::{Collective, ParallelTextError, Placement};
use crate::slot_table::SlotRow;
use crate::tree::native::{file_below, run_dir_of};
use crate::{SharedPath, SharedText, StoreError};

/// The part of a dump that rows are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowUse {
    /// Everything: executions, tensors, operators in files, and tables of statistics.
    All,
    /// Executions, tensors and operators in files. Tables would repeat what the tensors have, in
    /// several times the memory.
    Tensors,
    /// Operators in files, and tables of statistics.
    Operators,
}

impl RowUse {
    fn has_tensors(self) -> bool {
        self != RowUse::Operators
    }
}

/// Names and contents of earlier steps.
#[derive(Default)]
pub(super) struct KnownParts {
    /// Steps repeat the names of models, types and operators.
    names: HashSet<SharedText>,
    /// Numbers of files of elements.
    files: HashMap<SharedPath, u32>,
    /// Collectives and placements by their texts; few are different.
    collectives: HashMap<(Arc<str>, Arc<str>), Arc<Collective>>,
    placements: HashMap<Arc<str>, Arc<Placement>>,
    /// The first statistics of each content, by file and offset.
    contents: HashMap<(u32, u64), TensorStatistics>,
    /// The last statistics of each digest, of tensors without elements.
    statistics: HashMap<Arc<str>, TensorStatistics>,
}

/// Maximum number of digests whose statistics are remembered. Values are mostly read soon after they
/// are made.
const N_DIGESTS_MAX: usize = 1 << 16;

impl KnownParts {
    fn name(&mut self, name: Option<&Arc<str>>) -> SharedText {
        let Some(name) = name else {
            return SharedText::default();
        };
        if let Some(known) = self.names.get(&**name) {
            return known.clone();
        }
        let name = SharedText::from(name.clone());
        self.names.insert(name.clone());
        name
    }

    fn collective(
        &mut self,
        kind: &Arc<str>,
        ranks: Option<&Arc<str>>,
    ) -> Result<Arc<Collective>, ParallelTextError> {
        let ranks = ranks.cloned().unwrap_or_default();
        let key = (kind.clone(), ranks);
        if let Some(known) = self.collectives.get(&key) {
            return Ok(known.clone());
        }
        let collective = Arc::new(Collective {
            kind: kind.parse()?,
            ranks: Collective::parse_ranks(&key.1)?,
        });
        self.collectives.insert(key, collective.clone());
        Ok(collective)
    }

    /// The statistics of a row, in memory that it shares with equal ones: an output comes again as
    /// the input of its readers.
    fn statistics(&mut self, row: &SlotRow) -> TensorStatistics {
        let own = TensorStatistics::from_row(row);
        let Some(digest) = &row.digest else {
            return own;
        };
        if let Some(known) = self.statistics.get(digest).filter(|known| **known == own) {
            return known.clone();
        }
        if self.statistics.len() >= N_DIGESTS_MAX {
            self.statistics.clear();
        }
        self.statistics.insert(digest.clone(), own.clone());
        own
    }

    fn placement(&mut self, text: &Arc<str>) -> Result<Arc<Placement>, ParallelTextError> {
        if let Some(known) = self.placements.get(text) {
            return Ok(known.clone());
        }
        let placement: Arc<Placement> = Arc::new(text.parse()?);
        self.placements.insert(text.clone(), placement.clone());
        Ok(placement)
    }
}

/// The operators of a step's file while its rows are read.
pub(super) struct StepOperators<'a> {
    entry: &'a DumpEntry,
    row_use: RowUse,
    path: SharedPath,
    run_dir: PathBuf,
    operators: Vec<OperatorInFile>,
    positions: HashMap<(SharedText, SharedText, Option<u32>), usize>,
    rank: Option<u32>,
    /// Bytes of elements that no earlier step has.
    n_bytes: u64,
    last: Option<CurrentExecution>,
    n_runs: HashMap<(Option<u32>, SharedText), usize>,
    files: HashMap<Arc<str>, Option<ElementsFile>>,
    tables: Vec<IndexedTable>,
    /// Invalid texts of collectives and placements.
    refused: HashSet<String>,
}

/// The execution of the last row.
struct CurrentExecution {
    position: Option<i64>,
    time_us: Option<i64>,
    task: Option<i64>,
    row_name: Option<Arc<str>>,
    op_type: SharedText,
    op_name: SharedText,
    /// Its index in the operators of the file, set when its first tensor is counted.
    operator: Option<usize>,
    /// Made only if tensors are wanted.
    indexed: Option<Arc<IndexedExecution>>,
}

/// A file of elements that rows name.
#[derive(Clone)]
struct ElementsFile {
    path: SharedPath,
    real_name: SharedText,
    number: u32,
}

impl<'a> StepOperators<'a> {
    /// The operators of a file; `path` is its path with the directories that identify it.
    pub(super) fn new(entry: &'a DumpEntry, path: PathBuf, row_use: RowUse) -> StepOperators<'a> {
        StepOperators {
            entry,
            row_use,
            run_dir: run_dir_of(&path).to_owned(),
            path: path.into(),
            operators: Vec::new(),
            positions: HashMap::new(),
            rank: None,
            n_bytes: 0,
            last: None,
            n_runs: HashMap::new(),
            files: HashMap::new(),
            tables: Vec::new(),
            refused: HashSet::new(),
        }
    }

    /// Adds rows, and returns their tensors if those are wanted.
    pub(super) fn add(
        &mut self,
        index: &mut DumpIndex,
        known: &mut KnownParts,
        rows: impl Iterator<Item = SlotRow>,
    ) -> Vec<IndexedTensor> {
        let mut tensors = Vec::new();
        if self.row_use.has_tensors() {
            tensors.reserve(rows.size_hint().0);
        }
        for row in rows {
            self.rank = self.rank.or(rank(&row));
            let mut current = self.execution(index, &row, known);
            let elements = self.elements(index, known, &row);
            let place = elements.as_ref();
            let place = place.map(|(file, offset)| (file.number, *offset));
            let statistics = self.statistics(&row, place, known);
            self.count(&row, &mut current);
            // Without elements, the statistics are all that is known of the tensor.
            if place.is_none() && !statistics.is_empty() && self.row_use != RowUse::Tensors {
                self.add_statistics(&row, &current, &statistics);
            }
            if let Some(execution) = &current.indexed {
                let tensor = self.tensor(&row, execution.clone(), elements);
                let placement = row.placement.as_ref().map(|text| known.placement(text));
                tensors.push(IndexedTensor {
                    placement: self.taken(index, placement),
                    statistics,
                    ..tensor
                });
            }
            self.last = Some(current);
        }
        tensors
    }

    /// The readable statistics of a row whose elements are at `place`. Counts contents that are
    /// new.
    fn statistics(
        &mut self,
        row: &SlotRow,
        place: Option<(u32, u64)>,
        known: &mut KnownParts,
    ) -> TensorStatistics {
        let Some(place) = place else {
            return known.statistics(row);
        };
        let is_read = self.row_use.has_tensors();
        // Slots with the same content share its statistics, which saves memory.
        match known.contents.entry(place) {
            Entry::Occupied(first) if !is_read || first.get().is_digest_of(row) => {
                first.get().clone()
            }
            Entry::Occupied(_) => TensorStatistics::from_row(row),
            Entry::Vacant(new) => {
                // Several slots can have the same content, which takes space once.
                // A damaged table may claim any size.
                self.n_bytes = self.n_bytes.saturating_add(n_bytes(row).unwrap_or(0));
                let statistics = if is_read {
                    TensorStatistics::from_row(row)
                } else {
                    TensorStatistics::default()
                };
                new.insert(statistics).clone()
            }
        }
    }

    /// The execution of a row. Rows of one follow one another.
    fn execution(
        &mut self,
        index: &mut DumpIndex,
        row: &SlotRow,
        known: &mut KnownParts,
    ) -> CurrentExecution {
        if let Some(last) = self.last.take() {
            let is_same = last.position == row.position
                && last.time_us == row.time_us
                && last.task == row.task
                && last.row_name == row.op_name;
            if is_same {
                return last;
            }
        }
        let op_name = known.name(row.op_name.as_ref());
        let run = match row.call {
            Some(call) => usize::try_from(call).unwrap_or(0),
            // Rows of a journal: calls are counted only when the order is known.
            None => {
                let n_runs = self.n_runs.entry((task(row), op_name.clone()));
                let n_runs = n_runs.or_insert(0);
                *n_runs += 1;
                *n_runs - 1
            }
        };
        let op_type = known.name(row.op_type.as_ref());
        let indexed = self.row_use.has_tensors().then(|| {
            let collective = row
                .collective
                .as_ref()
                .map(|text| known.collective(text, row.group_ranks.as_ref()));
            let model = row.model.as_ref().map(|model| known.name(Some(model)));
            Arc::new(IndexedExecution {
                kind: kind(row),
                op_type: op_type.clone(),
                op_name: op_name.clone(),
                model,
                model_id: row.load.and_then(|load| u32::try_from(load).ok()),
                rank: rank(row),
                step: step(row),
                run,
                collective: self.taken(index, collective),
                ..IndexedExecution::default()
            })
        });
        CurrentExecution {
            position: row.position,
            time_us: row.time_us,
            task: row.task,
            row_name: row.op_name.clone(),
            op_type,
            op_name,
            operator: None,
            indexed,
        }
    }

    /// Where the elements of a row are, if the dump has them.
    fn elements(
        &mut self,
        index: &mut DumpIndex,
        known: &mut KnownParts,
        row: &SlotRow,
    ) -> Option<(ElementsFile, u64)> {
        let (name, offset) = (row.file.as_ref()?, row.offset?);
        let file = match self.files.get(name) {
            Some(file) => file,
            None => {
                let file = self.open_elements(index, known, name);
                self.files.entry(name.clone()).or_insert(file)
            }
        };
        file.clone().zip(u64::try_from(offset).ok())
    }

    /// The meaning of a text; an unknown text is reported once for each table that has it.
    fn taken<T>(
        &mut self,
        index: &mut DumpIndex,
        read: Option<Result<T, ParallelTextError>>,
    ) -> Option<T> {
        match read? {
            Ok(read) => Some(read),
            Err(error) => {
                if self.refused.insert(error.to_string()) {
                    let error = crate::FormatError::new(0, error.expected(), error.found());
                    let wrap =
                        StoreError::corrupt(crate::slot_table::FORMAT_NAME, &self.entry.path);
                    index.errors.push(wrap(error));
                }
                None
            }
        }
    }

    fn open_elements(
        &self,
        index: &mut DumpIndex,
        known: &mut KnownParts,
        name: &str,
    ) -> Option<ElementsFile> {
        let Some(path) = file_below(&self.run_dir, name) else {
            // A table from elsewhere must not lead out of the dump.
            let expected = "a file below the directory of the run";
            let error = crate::FormatError::new(0, expected, format!("`{name}`"));
            let wrap = StoreError::corrupt(crate::slot_table::FORMAT_NAME, &self.entry.path);
            index.errors.push(wrap(error));
            return None;
        };
        let path = SharedPath::from(path);
        let next = u32::try_from(known.files.len()).unwrap_or(u32::MAX);
        let number = *known.files.entry(path.clone()).or_insert(next);
        Some(ElementsFile {
            real_name: real_name(&path),
            path,
            number,
        })
    }

    fn tensor(
        &self,
        row: &SlotRow,
        execution: Arc<IndexedExecution>,
        elements: Option<(ElementsFile, u64)>,
    ) -> IndexedTensor {
        let mut tensor = IndexedTensor {
            execution,
            task_id: task(row),
            stream_id: row.stream.and_then(|stream| u32::try_from(stream).ok()),
            timestamp: row.time_us.and_then(|time| u64::try_from(time).ok()),
            slot: slot(row),
            dtype: row.dtype.as_deref().map(term),
            stored_dtype: row
                .stored_dtype
                .as_ref()
                .or(row.dtype.as_ref())
                .map(|name| term(name)),
            layout: row.layout.as_deref().map(term),
            shape: row.shape.as_ref().map(|shape| {
                shape
                    .iter()
                    .map(|&extent| u64::try_from(extent).unwrap_or(u64::MAX))
                    .collect()
            }),
            n_bytes: n_bytes(row),
            path: self.path.clone(),
            ..IndexedTensor::default()
        };
        if let Some((file, offset)) = elements {
            tensor.elements = Some(ElementsPlace {
                real_name: file.real_name,
                kind: Some(FileKind::Elements),
                tensor: Some((SlotSide::Output, 0)),
                offset: Some(offset),
            });
            tensor.path = file.path;
        }
        tensor
    }

    fn count(&mut self, row: &SlotRow, current: &mut CurrentExecution) {
        let Some((side, _)) = slot(row) else {
            return;
        };
        let operators = &mut self.operators;
        let position = match current.operator {
            Some(position) => position,
            None => {
                let key = (current.op_type.clone(), current.op_name.clone(), task(row));
                *self.positions.entry(key).or_insert_with(|| {
                    operators.push(OperatorInFile {
                        op_type: current.op_type.clone(),
                        op_name: current.op_name.clone(),
                        task_id: task(row),
                        ..OperatorInFile::default()
                    });
                    operators.len() - 1
                })
            }
        };
        current.operator = Some(position);
        let operator = &mut operators[position];
        operator.n_inputs += u64::from(side == SlotSide::Input);
        operator.n_outputs += u64::from(side == SlotSide::Output);
        operator.n_bytes = operator.n_bytes.saturating_add(n_bytes(row).unwrap_or(0));
    }

    /// Adds a row of a tensor without elements to the table of its execution.
    fn add_statistics(
        &mut self,
        row: &SlotRow,
        current: &CurrentExecution,
        statistics: &TensorStatistics,
    ) {
        // Loops run an operator again in one step.
        let is_next = self.tables.last().is_none_or(|last| {
            (last.task_id, last.op_name.as_str()) != (task(row), &*current.op_name)
                || last.step != step(row)
                || is_first_slot(last, row)
        });
        if is_next {
            self.tables.push(IndexedTable {
                rank: rank(row),
                step: step(row),
                task_id: task(row),
                op_type: Some(current.op_type.to_string()),
                op_name: current.op_name.to_string(),
                table: StatsTable {
                    columns: columns(),
                    rows: Vec::new(),
                },
            });
        }
        if let Some(last) = self.tables.last_mut() {
            last.table.rows.push(cells(row, statistics));
        }
    }

    pub(super) fn finish(self, index: &mut DumpIndex) {
        index.tables.extend(self.tables);
        index.files.push(IndexedFile {
            path: self.entry.path.clone(),
            real_name: self.entry.real_name.clone(),
            n_bytes: self.entry.n_bytes.saturating_add(self.n_bytes),
            rank: self.rank,
            operators: self.operators,
        });
    }
}

/// Whether the table has the row's slot already: the operator runs again then.
fn is_first_slot(table: &IndexedTable, row: &SlotRow) -> bool {
    let [side, slot] = [side_title(row), slot_text(row)];
    table
        .table
        .rows
        .iter()
        .any(|cells| cells[0] == side && cells[1] == slot)
}

fn kind(row: &SlotRow) -> ExecutionKind {
    match row.kind.as_deref() {
        Some("parameter") => ExecutionKind::Parameter,
        Some("constant") => ExecutionKind::Constant,
        Some("overflow_record") => ExecutionKind::OverflowRecord,
        _ => ExecutionKind::Operator,
    }
}

fn rank(row: &SlotRow) -> Option<u32> {
    row.rank.and_then(|rank| u32::try_from(rank).ok())
}

fn task(row: &SlotRow) -> Option<u32> {
    row.task.and_then(|task| u32::try_from(task).ok())
}

fn step(row: &SlotRow) -> Option<u64> {
    row.step.and_then(|step| u64::try_from(step).ok())
}

fn n_bytes(row: &SlotRow) -> Option<u64> {
    row.n_bytes.and_then(|n| u64::try_from(n).ok())
}

fn real_name(path: &Path) -> SharedText {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.as_ref().into()
}

fn slot(row: &SlotRow) -> Option<(SlotSide, u32)> {
    let side = match row.side.as_deref()? {
        "input" => SlotSide::Input,
        "output" => SlotSide::Output,
        _ => return None,
    };
    Some((side, u32::try_from(row.slot?).ok()?))
}

fn term<T: std::str::FromStr + Copy>(name: &str) -> DumpTerm<T> {
    match name.parse() {
        Ok(value) => DumpTerm::Known(value),
        Err(_) => DumpTerm::Word(name.to_owned(), None),
    }
}
