//! Our own form: a table for each step, and files of elements that its rows name.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::{
    DumpIndex, ElementsPlace, ExecutionKind, IndexedExecution, IndexedFile, IndexedTable,
    IndexedTensor, OperatorInFile,
};
use super::tensor_file::FileKind;
use super::term::DumpTerm;
use super::{DumpReader, ReadFiles};
use crate::StoreError;
use crate::dump::{DumpEntry, DumpListing, PassReason, PassedOver};
use crate::file_bytes::FileBytes;
use crate::file_format::stats_csv::StatsTable;
use crate::record::SlotSide;
use crate::slot_table::{SlotRow, SlotTable, journal};
use crate::tree::native::{StepFile, file_below, is_elements_file, run_dir_of};

/// The form's name, for programs.
pub const FORM: &str = "native";

/// Reads directories in which a file has the name of a step's table and lies where it belongs.
pub(super) struct NativeReader;

impl DumpReader for NativeReader {
    fn form(&self) -> &'static str {
        FORM
    }

    fn detect(&self, listing: &DumpListing) -> bool {
        let mut entries = listing.entries.iter();
        entries.any(|entry| StepFile::parse(&absolute(&entry.path)).is_some())
    }

    fn reason_to_pass(&self, entry: &DumpEntry) -> Option<PassReason> {
        let is_part = is_elements_file(&entry.path) || StepFile::parse(&entry.path).is_some();
        (!is_part).then_some(PassReason::Converted)
    }

    fn index(&self, listing: DumpListing, _read: ReadFiles<'_>) -> DumpIndex {
        let mut index = DumpIndex {
            form: self.form(),
            passed_over: listing.passed_over,
            errors: listing.errors,
            ..DumpIndex::default()
        };
        let mut steps = Vec::new();
        let entries = listing.entries.into_iter();
        for entry in entries.chain(listing.tables).chain(listing.step_tables) {
            match StepFile::parse(&absolute(&entry.path)) {
                Some((kind, step)) => steps.push((step, kind, entry)),
                None if is_elements_file(&absolute(&entry.path)) => {
                    let reason = PassReason::Elements;
                    index.passed_over.push(PassedOver {
                        path: entry.path,
                        reason,
                    });
                }
                None => index.passed_over.push(PassedOver {
                    path: entry.path,
                    reason: PassReason::Converted,
                }),
            }
        }
        // Listings are in no order, and `step-10` comes before `step-9` by name.
        steps.sort_by(|a, b| order(a).cmp(&order(b)));
        let mut contents = KnownContents::default();
        for (_, kind, entry) in steps {
            if is_repeated(kind, &entry) {
                index.passed_over.push(PassedOver {
                    path: entry.path,
                    reason: PassReason::Unfinished,
                });
                continue;
            }
            let added = match kind {
                // A table is sorted, a journal is not.
                StepFile::Table => add_table(&mut index, &mut contents, &entry),
                StepFile::Journal => add_journal(&mut index, &mut contents, &entry),
            };
            if let Err(error) = added {
                index.errors.push(error);
            }
        }
        index.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
        index
    }
}

/// A file of a step, which holds its rows.
#[derive(Clone, Debug)]
pub struct NativeStep {
    /// The table, or the journal of a step that is not whole.
    pub path: PathBuf,
    /// The directory of the run: files are named in rows from here.
    pub run_dir: PathBuf,
    /// Whether the step is whole.
    pub is_whole: bool,
}

/// The steps of a listed dump: runs and models by their directories, then by their numbers.
pub fn native_steps(listing: &DumpListing) -> Vec<NativeStep> {
    let entries = listing.entries.iter();
    let entries = entries
        .chain(&listing.tables)
        .chain(&listing.step_tables)
        .filter_map(|entry| {
            let (kind, step) = StepFile::parse(&absolute(&entry.path))?;
            Some((step, kind, entry.clone()))
        });
    let mut steps: Vec<_> = entries.collect();
    steps.sort_by(|a, b| order(a).cmp(&order(b)));
    let steps = steps
        .into_iter()
        .filter(|(_, kind, entry)| !is_repeated(*kind, entry));
    let steps = steps.map(|(_, kind, entry)| {
        let path = absolute(&entry.path);
        NativeStep {
            run_dir: run_dir_of(&path).to_owned(),
            path,
            is_whole: kind == StepFile::Table,
        }
    });
    steps.collect()
}

impl NativeStep {
    /// The rows, in order of execution, and the damage behind them if there is any.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub fn read_rows(&self) -> Result<(Vec<SlotRow>, Option<StoreError>), StoreError> {
        let corrupt = StoreError::corrupt(crate::slot_table::FORMAT_NAME, &self.path);
        if !self.is_whole {
            let bytes = FileBytes::open_in_dump(&self.path);
            let bytes = bytes.map_err(StoreError::io("read", &self.path))?;
            let mut content = journal::decode(bytes.as_ref());
            content.rows.sort_by_key(|row| row.time_us);
            return Ok((content.rows, content.error.map(corrupt)));
        }
        let table = SlotTable::open(&self.path)?;
        let mut rows = Vec::new();
        for group in 0..table.n_groups() {
            // Groups before the damaged one are sound.
            match table.read_group(group) {
                Ok(more) => rows.extend(more),
                Err(error) => return Ok((rows, Some(corrupt(error)))),
            }
        }
        Ok((rows, None))
    }
}

/// Whether it is the journal of a step whose table was written; it could not be removed any more.
fn is_repeated(kind: StepFile, entry: &DumpEntry) -> bool {
    kind == StepFile::Journal && entry.path.with_extension("parquet").exists()
}

/// Runs and models by their directories, then steps by their numbers.
fn order((step, _, entry): &(u64, StepFile, DumpEntry)) -> (Option<&Path>, u64, &Path) {
    (entry.path.parent(), *step, &entry.path)
}

/// A relative path may leave out the directories that say what it is.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn add_table(
    index: &mut DumpIndex,
    contents: &mut KnownContents,
    entry: &DumpEntry,
) -> Result<(), StoreError> {
    let table = SlotTable::open(&entry.path)?;
    let mut file = StepOperators::new(entry);
    for group in 0..table.n_groups() {
        let rows = table.read_group(group);
        let rows = rows.map_err(StoreError::corrupt(
            crate::slot_table::FORMAT_NAME,
            &entry.path,
        ));
        file.add(index, contents, rows?);
    }
    file.finish(index);
    Ok(())
}

/// The rows that were reported written. What is unfinished behind them was not; that the step is not
/// whole is told by the name of the file.
fn add_journal(
    index: &mut DumpIndex,
    contents: &mut KnownContents,
    entry: &DumpEntry,
) -> Result<(), StoreError> {
    let bytes = FileBytes::open_in_dump(&entry.path);
    let bytes = bytes.map_err(StoreError::io("read", &entry.path))?;
    let mut content = journal::decode(bytes.as_ref());
    // Threads append in the order in which they come to it, which need not be that of execution.
    content.rows.sort_by_key(|row| row.time_us);
    let mut file = StepOperators::new(entry);
    file.add(index, contents, content.rows);
    file.finish(index);
    let corrupt = StoreError::corrupt(crate::slot_table::FORMAT_NAME, &entry.path);
    content.error.map_or(Ok(()), |error| Err(corrupt(error)))
}

/// Contents that were met before, by file and offset.
type KnownContents = HashSet<(PathBuf, i64)>;

/// The operators of a step's file while its rows are read.
struct StepOperators<'a> {
    entry: &'a DumpEntry,
    path: PathBuf,
    run_dir: PathBuf,
    operators: Vec<OperatorInFile>,
    positions: HashMap<(String, String, Option<u32>), usize>,
    /// Bytes of elements that no earlier step has.
    n_bytes: u64,
    last: Option<(SlotRow, Arc<IndexedExecution>)>,
    n_runs: HashMap<(Option<u32>, String), usize>,
    files: HashMap<Arc<str>, Option<PathBuf>>,
    tables: Vec<IndexedTable>,
}

impl<'a> StepOperators<'a> {
    fn new(entry: &'a DumpEntry) -> StepOperators<'a> {
        // Kept as the user gave it, relative or not, where that is long enough.
        let path = match entry.path.ancestors().nth(3) {
            Some(_) if entry.path.components().count() > 3 => entry.path.clone(),
            _ => absolute(&entry.path),
        };
        StepOperators {
            entry,
            run_dir: run_dir_of(&path).to_owned(),
            path,
            operators: Vec::new(),
            positions: HashMap::new(),
            n_bytes: 0,
            last: None,
            n_runs: HashMap::new(),
            files: HashMap::new(),
            tables: Vec::new(),
        }
    }

    fn add(&mut self, index: &mut DumpIndex, contents: &mut KnownContents, rows: Vec<SlotRow>) {
        let mut tensors = Vec::with_capacity(rows.len());
        for row in rows {
            let execution = self.execution(&row);
            let tensor = self.tensor(index, &row, execution);
            if let (Some(_), Some(offset)) = (&tensor.elements, row.offset)
                && contents.insert((tensor.path.clone(), offset))
            {
                // Several slots show it, and it takes room once.
                self.n_bytes += tensor.n_bytes.unwrap_or(0);
            }
            self.count(&tensor);
            self.add_statistics(&row, &tensor);
            tensors.push(tensor);
        }
        index.add_tensors(tensors);
    }

    /// Rows of an execution follow one another.
    fn execution(&mut self, row: &SlotRow) -> Arc<IndexedExecution> {
        if let Some((last, execution)) = &self.last {
            let is_same = last.position == row.position
                && last.time_us == row.time_us
                && last.task == row.task
                && last.op_name == row.op_name;
            if is_same {
                return execution.clone();
            }
        }
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        let task = row.task.and_then(|task| u32::try_from(task).ok());
        let run = match row.call {
            Some(call) => usize::try_from(call).unwrap_or(0),
            // Rows of a journal: calls are counted only when the order is known.
            None => {
                let key = (task, text(&row.op_name));
                let n_runs = self.n_runs.entry(key).or_insert(0);
                *n_runs += 1;
                *n_runs - 1
            }
        };
        let execution = Arc::new(IndexedExecution {
            kind: match row.kind.as_deref() {
                Some("parameter") => ExecutionKind::Parameter,
                Some("constant") => ExecutionKind::Constant,
                Some("overflow_record") => ExecutionKind::OverflowRecord,
                _ => ExecutionKind::Operator,
            },
            op_type: text(&row.op_type),
            op_name: text(&row.op_name),
            model: row.model.as_deref().map(str::to_owned),
            model_id: row.load.and_then(|load| u32::try_from(load).ok()),
            rank: row.rank.and_then(|rank| u32::try_from(rank).ok()),
            step: row.step.and_then(|step| u64::try_from(step).ok()),
            run,
            ..IndexedExecution::default()
        });
        self.last = Some((row.clone(), execution.clone()));
        execution
    }

    fn tensor(
        &mut self,
        index: &mut DumpIndex,
        row: &SlotRow,
        execution: Arc<IndexedExecution>,
    ) -> IndexedTensor {
        let mut tensor = IndexedTensor {
            execution,
            task_id: row.task.and_then(|task| u32::try_from(task).ok()),
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
            n_bytes: row.n_bytes.and_then(|n| u64::try_from(n).ok()),
            path: self.path.clone(),
            statistics: statistics(row),
            ..IndexedTensor::default()
        };
        let (Some(name), Some(offset)) = (&row.file, row.offset) else {
            return tensor;
        };
        let run_dir = &self.run_dir;
        let file = self.files.entry(name.clone()).or_insert_with(|| {
            let file = file_below(run_dir, name);
            // A table from elsewhere must not lead out of the dump.
            if file.is_none() {
                let expected = "a file below the directory of the run";
                let error = crate::FormatError::new(0, expected, format!("`{name}`"));
                let wrap = StoreError::corrupt(crate::slot_table::FORMAT_NAME, &self.entry.path);
                index.errors.push(wrap(error));
            }
            file
        });
        if let (Some(file), Ok(offset)) = (file, u64::try_from(offset)) {
            let real_name = file.file_name().unwrap_or_default().to_string_lossy();
            tensor.elements = Some(ElementsPlace {
                real_name: real_name.into_owned(),
                kind: Some(FileKind::Elements),
                tensor: Some((SlotSide::Output, 0)),
                offset: Some(offset),
            });
            tensor.path = file.clone();
        }
        tensor
    }

    fn count(&mut self, tensor: &IndexedTensor) {
        let Some((side, _)) = tensor.slot else {
            return;
        };
        let execution = &tensor.execution;
        let key = (
            execution.op_type.clone(),
            execution.op_name.clone(),
            tensor.task_id,
        );
        let operators = &mut self.operators;
        let position = *self.positions.entry(key).or_insert_with(|| {
            operators.push(OperatorInFile {
                op_type: execution.op_type.clone(),
                op_name: execution.op_name.clone(),
                task_id: tensor.task_id,
                ..OperatorInFile::default()
            });
            operators.len() - 1
        });
        let operator = &mut self.operators[position];
        operator.n_inputs += u64::from(side == SlotSide::Input);
        operator.n_outputs += u64::from(side == SlotSide::Output);
        operator.n_bytes += tensor.n_bytes.unwrap_or(0);
    }

    /// Rows of statistics alone, one table for each execution.
    fn add_statistics(&mut self, row: &SlotRow, tensor: &IndexedTensor) {
        // Of tensors with elements `show` computes what it shows.
        if tensor.elements.is_some() || tensor.statistics.is_empty() {
            return;
        }
        let execution = &tensor.execution;
        // Loops run an operator again in one step.
        let is_next = self.tables.last().is_none_or(|last| {
            (last.task_id, &last.op_name) != (tensor.task_id, &execution.op_name)
                || last.step != execution.step
                || is_first_slot(last, row)
        });
        if is_next {
            self.tables.push(IndexedTable {
                step: execution.step,
                task_id: tensor.task_id,
                op_type: Some(execution.op_type.clone()),
                op_name: execution.op_name.clone(),
                table: StatsTable {
                    columns: columns(),
                    rows: Vec::new(),
                },
            });
        }
        if let Some(last) = self.tables.last_mut() {
            last.table.rows.push(cells(row, tensor));
        }
    }

    fn finish(self, index: &mut DumpIndex) {
        index.tables.extend(self.tables);
        index.files.push(IndexedFile {
            path: self.entry.path.clone(),
            real_name: self.entry.real_name.clone(),
            n_bytes: self.entry.n_bytes.saturating_add(self.n_bytes),
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

/// Titles of statistics, as MindSpore's tables have them; a NaN is the extreme, as there.
const TITLES: [&str; 10] = [
    "Max Value",
    "Min Value",
    "Avg Value",
    "L2Norm Value",
    "Negative Zero Count",
    "Positive Zero Count",
    "Zero Count",
    "NaN Count",
    "Negative Inf Count",
    "Positive Inf Count",
];
/// The title of the digest.
const DIGEST_TITLE: &str = "XXH3";

fn statistics(row: &SlotRow) -> Vec<(String, Option<String>)> {
    let stats = row.stats();
    let mut cells = Vec::new();
    if let Some(stats) = stats {
        let counts = &stats.counts;
        let number = |value: f64| Some(format!("{value:?}"));
        let count = |n: u64| Some(n.to_string());
        let values = [
            number(stats.max_or_nan()),
            number(stats.min_or_nan()),
            number(stats.mean_or_nan()),
            number(stats.l2),
            count(counts.n_negative),
            count(counts.n_positive()),
            count(counts.n_zero),
            count(counts.n_nan),
            count(counts.n_neg_inf),
            count(counts.n_pos_inf),
        ];
        cells.extend(TITLES.iter().map(|title| (*title).to_owned()).zip(values));
    }
    if let Some(digest) = &row.digest {
        cells.push((DIGEST_TITLE.to_owned(), Some((**digest).to_owned())));
    }
    cells
}

fn columns() -> Vec<String> {
    let first = [
        "Input/Output",
        "Index",
        "Data Size",
        "Data Type",
        "Format",
        "Shape",
        "Count",
    ];
    let titles = first.iter().chain(&TITLES).chain([&DIGEST_TITLE]);
    titles.map(|title| (*title).to_owned()).collect()
}

fn side_title(row: &SlotRow) -> String {
    match row.side.as_deref() {
        Some("input") => "Input",
        _ => "Output",
    }
    .to_owned()
}

fn slot_text(row: &SlotRow) -> String {
    row.slot.unwrap_or(0).to_string()
}

fn cells(row: &SlotRow, tensor: &IndexedTensor) -> Vec<String> {
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    let number = |number: Option<i64>| number.map_or_else(String::new, |n| n.to_string());
    let shape = row
        .shape
        .iter()
        .flat_map(|shape| shape.iter())
        .map(i64::to_string);
    let shape: Vec<String> = shape.collect();
    let shape = if shape.is_empty() {
        "-".to_owned()
    } else {
        shape.join("x")
    };
    let mut cells = vec![
        side_title(row),
        slot_text(row),
        number(row.n_bytes),
        text(&row.dtype),
        text(&row.layout),
        shape,
        number(row.n_elements),
    ];
    let known: HashMap<&str, &Option<String>> = tensor
        .statistics
        .iter()
        .map(|(title, cell)| (title.as_str(), cell))
        .collect();
    cells.extend(TITLES.iter().chain([&DIGEST_TITLE]).map(|title| {
        let cell = known.get(title).and_then(|cell| cell.as_deref());
        cell.unwrap_or("NA").to_owned()
    }));
    cells
}
