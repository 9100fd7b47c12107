//! A dump, as far as comparing needs it: executions of operators with their slots.

mod graphs;
mod load;
mod slot;

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_store::dump::{self, DumpListing, PassReason, PassedOver};
use opscope_store::reader::{
    DumpIndex, ExecutionKind, FileKind, FilePlace, IndexedExecution, IndexedTensor, TakeTensors,
    retain_places,
};
use opscope_store::record::CallSite;
use opscope_store::record::graph::GraphDescription;
use opscope_store::record::parallel::Collective;
use opscope_store::{SharedPath, SharedText, StoreError, record, remote};
use thin_vec::ThinVec;

use super::parts::SharedFacts;
use super::result::{OperatorName, RankOperator, SlotKey};
use crate::error_chain::chain;
use crate::read::{read_dump_into, read_listing_into};

pub(super) use graphs::written_tensors;
pub use graphs::{DumpGraphs, positions};
pub use load::{LoadError, LoadedSlot};
use slot::KnownFacts;
pub use slot::{ExecutionSlot, SlotFacts};

/// A slot of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotRef {
    /// Which of the side's runs.
    pub run: usize,
    /// Which of its slots.
    pub slot: usize,
}

/// One of the dumps that are compared.
#[derive(Clone, Debug, Default)]
pub struct ComparedDump {
    /// The path that was opened.
    pub root: PathBuf,
    /// The name of the form that the dump has.
    pub form: &'static str,
    /// Executions of operators, in order.
    pub runs: Vec<OperatorExecution>,
    /// Graph files next to the tensors, with their ranks.
    pub graphs: Vec<(Option<u32>, GraphDescription)>,
    /// Facts about its runs from graph descriptions and graph files next to the dump.
    pub described: DumpGraphs,
    /// Names of the values of unmodified ONNX models, if descriptions of their graphs are next to
    /// the dump.
    pub value_names: HashSet<String>,
    /// Messages about files that could not be read and belong to no run.
    pub problems: Vec<String>,
    /// Whether it shows calls that its tool listens to, and is silent of others, such as a reshape,
    /// in between.
    pub shows_some_calls: bool,
    /// Whether tensors of all its ranks were put together.
    pub is_whole: bool,
    /// By slot of those, the operators that ranks have in place of each other.
    pub rank_operators: HashMap<SlotRef, Vec<RankOperator>>,
    /// Executions whose names are numbers that the other side may have given otherwise.
    pub uncertain_names: HashSet<usize>,
    /// Files that were not read as a part of the dump, and overflow records, of which there are no
    /// tensors.
    pub passed_over: Vec<PassedOver>,
    /// Cached results about its elements, if enabled.
    pub facts: Option<SharedFacts>,
}

/// The form of dumps whose tool listens to functions by their names.
const FORM_OF_CALLS: &str = "msprobe";

/// Which rank, model and step an execution belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunPlace {
    /// The process among those that ran together, or the device where there are no ranks.
    pub rank: Option<u32>,
    /// The model, graph or network.
    pub model: Option<SharedText>,
    /// The number of the model's load, or of the graph.
    pub model_id: Option<u32>,
    /// The execution of the model.
    pub step: Option<u64>,
}

impl RunPlace {
    /// The rank and the step.
    pub fn rank_step(&self) -> (Option<u32>, Option<u64>) {
        (self.rank, self.step)
    }
}

/// One execution of an operator, or the value of a parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorExecution {
    /// Rank, model and step.
    pub place: Arc<RunPlace>,
    /// The kind of run.
    pub kind: ExecutionKind,
    /// The operator's type; empty where nothing says it.
    pub op_type: SharedText,
    /// The operator's name, before characters were replaced where the dump has it.
    pub op_name: SharedText,
    /// Position in execution order, where the dump says.
    pub task_id: Option<u32>,
    /// Which execution of the operator within its step, counted from 0.
    pub repeat: usize,
    /// When it was written, in microseconds since 1970-01-01 UTC.
    pub timestamp_us: Option<u64>,
    /// Its tensors: inputs, then outputs, in position.
    pub slots: Vec<ExecutionSlot>,
    /// Names of the operators that it was fused from, where the dump says.
    pub original_names: ThinVec<String>,
    /// Where the program calls it, where the dump itself says so.
    pub call_site: Option<Box<CallSite>>,
    /// The collective that it is, where the dump says so.
    pub collective: Option<Arc<Collective>>,
}

impl OperatorExecution {
    /// The slot of this side and position.
    pub fn slot(&self, side: record::SlotSide, index: u32) -> Option<&ExecutionSlot> {
        self.slots
            .iter()
            .find(|slot| (slot.side, slot.index) == (side, index))
    }

    /// Names of other operators that it was fused from: one that was not may be told by its own.
    pub fn other_originals(&self) -> impl Iterator<Item = &str> {
        let names = self.original_names.iter().map(String::as_str);
        names.filter(|name| self.op_name != *name)
    }

    /// Whether it is the value of an ONNX graph, of which nothing says the operator.
    pub fn is_value(&self) -> bool {
        let [slot] = &self.slots[..] else {
            return false;
        };
        let place = slot.record.elements.as_ref();
        let kind = place.and_then(|place| place.kind);
        // Where a node is known, its type is too.
        let names_value = self.op_type.is_empty();
        let is_output = slot.side == record::SlotSide::Output;
        kind.is_some_and(|kind| kind.holds_values() || kind.is_archive())
            && names_value
            && is_output
    }
}

/// Maximum number of names of operators before fusion, of all executions together.
const N_ORIGINALS_MAX: usize = 1 << 22;

/// Which items belong to one execution: the number of its place, type, name, task, repeat and file.
type Key = (
    usize,
    SharedText,
    SharedText,
    Option<u32>,
    usize,
    Option<SharedPath>,
);

/// Facts about executions, collected while they are put together.
#[derive(Default)]
struct KnownExecutions {
    of_key: HashMap<Key, usize>,
    places: HashMap<Arc<RunPlace>, usize>,
    facts: KnownFacts,
    /// Types as they were and as they are.
    types: HashMap<SharedText, SharedText>,
    /// The execution that came last, and its run if that follows from the execution alone.
    last: Option<(Arc<IndexedExecution>, Option<u32>, usize)>,
}

/// A record whose kind depends on the errors of the whole dump, in record order.
enum UnsettledRecord {
    /// A file of overflow records, of which there are no tensors.
    Overflow(SharedPath),
    /// A tensor without a dtype, whose file may be damaged.
    Undescribed(SlotRef),
}

impl ComparedDump {
    /// Lists a dump, reading headers on `n_threads` threads.
    ///
    /// # Errors
    /// [`StoreError`] if there is nothing at `path`; what else cannot be read is noted.
    pub fn open(path: &Path, n_threads: usize) -> Result<ComparedDump, StoreError> {
        ComparedDump::open_places(path, n_threads, |_| true)
    }

    /// [`open`](Self::open) that need not read other ranks and steps than the wanted ones. The result
    /// may hold them all the same.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_places(
        path: &Path,
        n_threads: usize,
        is_wanted: impl Fn(FilePlace) -> bool,
    ) -> Result<ComparedDump, StoreError> {
        if remote::is_dir(path) {
            let mut listing = dump::list_one_run(path)?;
            retain_places(&mut listing, is_wanted);
            return Ok(ComparedDump::open_listing(path, listing, n_threads));
        }
        ComparedDump::collect(path, |take| read_dump_into(path, n_threads, take))
    }

    /// A dump that was read before, or that is nowhere but in this process; `root` is what results
    /// call it.
    pub fn from_index(root: &Path, mut index: DumpIndex) -> ComparedDump {
        let collected = ComparedDump::collect(root, |take| {
            take(std::mem::take(&mut index.tensors));
            Ok::<_, Infallible>(index)
        });
        collected.unwrap_or_else(|error| match error {})
    }

    /// A part of a dump: the files of a listing.
    pub(super) fn open_listing(
        root: &Path,
        listing: DumpListing,
        n_threads: usize,
    ) -> ComparedDump {
        let collected = ComparedDump::collect(root, |take| {
            Ok::<_, Infallible>(read_listing_into(listing, n_threads, take))
        });
        collected.unwrap_or_else(|error| match error {})
    }

    fn collect<E>(
        root: &Path,
        read: impl FnOnce(TakeTensors<'_>) -> Result<DumpIndex, E>,
    ) -> Result<ComparedDump, E> {
        let mut side = ComparedDump {
            root: root.to_owned(),
            ..ComparedDump::default()
        };
        let mut known = KnownExecutions::default();
        let mut late = Vec::new();
        let index = read(&mut |tensors| {
            for record in tensors {
                side.take(record, &mut known, &mut late);
            }
        })?;
        drop(known);
        side.complete(index, late);
        Ok(side)
    }

    /// Takes over the dump's metadata other than tensors.
    fn complete(&mut self, index: DumpIndex, late: Vec<UnsettledRecord>) {
        self.passed_over = index.passed_over;
        self.form = index.form;
        self.shows_some_calls = index.form == FORM_OF_CALLS;
        let mut problems: HashMap<PathBuf, String> = HashMap::new();
        for error in &index.errors {
            match error {
                StoreError::Io { path, .. } | StoreError::Corrupt { path, .. } => {
                    problems.insert(path.clone(), chain(error));
                }
            }
        }
        for one in late {
            self.settle(one, &mut problems);
        }
        // What no tensor has taken belongs to no execution, and is sorted since a map's order
        // differs from run to run.
        self.problems = problems.into_values().collect();
        self.problems.sort();
        // Each tensor of a file of overflow records has put the file here, so equal ones are
        // brought together and joined.
        self.passed_over.sort_by(|a, b| a.path.cmp(&b.path));
        self.passed_over.dedup();
        self.runs.shrink_to_fit();
        for run in &mut self.runs {
            // Most operators have fewer slots than a list has room for when it begins to grow.
            run.slots.shrink_to_fit();
            run.slots.sort_by_key(|slot| (slot.side, slot.index));
            keep_first(&mut run.original_names);
        }
        self.put_graphs_in_order();
        // Graphs refer to slots by their places in a run, so the slots have to be sorted before.
        self.described = DumpGraphs::collect(self, index.descriptions, &index.graphs);
        self.name_originals();
        self.name_values();
        let graphs = index.graphs.into_iter();
        self.graphs = graphs.map(|graph| (graph.rank, graph.graph)).collect();
    }

    fn take(
        &mut self,
        record: IndexedTensor,
        known: &mut KnownExecutions,
        late: &mut Vec<UnsettledRecord>,
    ) {
        if record.execution.kind == ExecutionKind::OverflowRecord {
            late.push(UnsettledRecord::Overflow(record.path));
            return;
        }
        let is_described = record.dtype.is_some();
        let run = self.add(record, known);
        if !is_described {
            let slot = self.runs[run].slots.len() - 1;
            late.push(UnsettledRecord::Undescribed(SlotRef { run, slot }));
        }
    }

    /// Classifies a record by the dump's errors.
    fn settle(&mut self, record: UnsettledRecord, problems: &mut HashMap<PathBuf, String>) {
        match record {
            // A damaged record is reported as such.
            UnsettledRecord::Overflow(path) => {
                if !problems.contains_key(&*path) {
                    let (path, reason) = (path.to_path_buf(), PassReason::OverflowRecord);
                    self.passed_over.push(PassedOver { path, reason });
                }
            }
            // An undescribed tensor represents the damaged file. A damaged table still has intact
            // rows, which do not share its damage.
            UnsettledRecord::Undescribed(at) => {
                let slot = &mut self.runs[at.run].slots[at.slot];
                if let Some(problem) = problems.remove(&*slot.path) {
                    slot.problem = Some(problem);
                }
            }
        }
    }

    /// Adds a record to the run that it belongs to, and returns which that is.
    fn add(&mut self, record: IndexedTensor, known: &mut KnownExecutions) -> usize {
        let run = match &known.last {
            // Tensors of one execution mostly follow each other.
            Some((execution, task, run))
                if Arc::ptr_eq(execution, &record.execution)
                    && *task == record.task_id
                    && file_of_execution(&record).is_none() =>
            {
                *run
            }
            _ => self.run_of(&record, known),
        };
        let slot = ExecutionSlot::from_record(record, &mut known.facts);
        let of_run = &mut self.runs[run];
        if let Some(original) = slot.original() {
            of_run.original_names.push(original.0.clone());
        }
        of_run.slots.push(slot);
        run
    }

    /// The run that a record belongs to, which is added if there is none yet.
    fn run_of(&mut self, record: &IndexedTensor, known: &mut KnownExecutions) -> usize {
        let execution = &record.execution;
        let mut place = Arc::new(RunPlace {
            rank: execution.rank,
            model: execution.model.clone(),
            model_id: execution.model_id,
            step: execution.model_step(),
        });
        let place_number = known.places.len();
        let place_number = match known.places.get_key_value(&place) {
            Some((known, number)) => {
                place = known.clone();
                *number
            }
            None => {
                known.places.insert(place.clone(), place_number);
                place_number
            }
        };
        let op_type = match known.types.get(&execution.op_type) {
            Some(op_type) => op_type.clone(),
            None => {
                let op_type = SharedText::from(without_dots(&execution.op_type));
                known
                    .types
                    .insert(execution.op_type.clone(), op_type.clone());
                op_type
            }
        };
        let file = file_of_execution(record);
        let is_by_file = file.is_some();
        let key = (
            place_number,
            op_type.clone(),
            execution.op_name.clone(),
            record.task_id,
            execution.run,
            file,
        );
        let run = *known.of_key.entry(key).or_insert_with(|| {
            self.runs.push(OperatorExecution {
                place,
                kind: execution.kind,
                op_type,
                op_name: execution.op_name.clone(),
                task_id: record.task_id,
                repeat: execution.run,
                timestamp_us: record.timestamp,
                slots: Vec::new(),
                original_names: ThinVec::new(),
                call_site: execution.call_site.clone().map(Box::new),
                collective: execution.collective.clone(),
            });
            self.runs.len() - 1
        });
        known.last = (!is_by_file).then(|| (execution.clone(), record.task_id, run));
        run
    }

    /// Sorts the executions of a step by time if they come from several graphs of one network:
    /// MindSpore compiles the body and the condition of a loop as separate graphs, which alternate,
    /// and a dump stores each in a separate directory.
    fn put_graphs_in_order(&mut self) {
        let mut steps: HashMap<RunPlace, Vec<usize>> = HashMap::new();
        for (index, run) in self.runs.iter().enumerate() {
            let step = RunPlace {
                model_id: None,
                ..RunPlace::clone(&run.place)
            };
            steps.entry(step).or_default().push(index);
        }
        let mut order: Vec<usize> = (0..self.runs.len()).collect();
        for places in steps.into_values() {
            let mut runs = places.iter().map(|&index| &self.runs[index]);
            let first = self.runs[places[0]].place.model_id;
            if runs.clone().all(|run| run.place.model_id == first)
                || runs.any(|run| run.timestamp_us.is_none())
            {
                continue;
            }
            let mut by_time = places.clone();
            by_time.sort_by_key(|index| self.runs[*index].timestamp_us);
            for (place, index) in places.into_iter().zip(by_time) {
                order[place] = index;
            }
        }
        if order.is_sorted() {
            return;
        }
        self.reorder(&order);
    }

    /// Takes names of operators before fusion from descriptions: they have all of them, files only
    /// those that made outputs, and tables of statistics none.
    ///
    /// A description is read once, and every execution gets its names: their number has a bound of
    /// its own.
    fn name_originals(&mut self) {
        let mut n_names = 0;
        for index in 0..self.runs.len() {
            let Some((_, graph, operator)) = self.description_of(index) else {
                continue;
            };
            let operator = &graph.operators[operator];
            n_names += operator.original_names.len() + operator.original_outputs.len();
            if n_names > N_ORIGINALS_MAX {
                let name = &self.runs[index].op_name;
                self.problems.push(format!(
                    "operators before fusion: more than {N_ORIGINALS_MAX} names; those of `{name}` and later ones are not read"
                ));
                return;
            }
            let (mut names, outputs) = (
                ThinVec::from(operator.original_names.clone()),
                operator.original_outputs.clone(),
            );
            let run = &mut self.runs[index];
            // Matching takes the last name for the end of a fused chain, so the description, which
            // has all names, sets the order.
            names.append(&mut run.original_names);
            // Files of AscendCL name the makers of outputs; forms that keep tensors alone do not.
            let makers = outputs.iter().flatten().map(|(name, _)| name.clone());
            names.extend(makers.filter(|name| !name.is_empty()));
            keep_first(&mut names);
            run.original_names = names;
            for slot in run
                .slots
                .iter_mut()
                .filter(|slot| slot.side == record::SlotSide::Output)
            {
                let known = outputs.get(slot.index as usize).cloned().flatten();
                if let Some(original) = known.filter(|_| slot.original().is_none()) {
                    slot.set_original(original);
                }
            }
        }
    }

    /// Leaves out executions; `is_kept` is given the number of each.
    pub(super) fn retain_runs(&mut self, is_kept: impl Fn(usize, &OperatorExecution) -> bool) {
        let mut n_kept = 0;
        let runs = self.runs.iter().enumerate();
        let numbers: Vec<Option<usize>> = runs
            .map(|(index, run)| {
                let is_kept = is_kept(index, run);
                n_kept += usize::from(is_kept);
                is_kept.then(|| n_kept - 1)
            })
            .collect();
        if n_kept == self.runs.len() {
            return;
        }
        let mut kept = numbers.iter().map(Option::is_some);
        self.runs.retain(|_| kept.next().unwrap_or(false));
        // Facts about executions are indexed by their numbers.
        let of_ranks = std::mem::take(&mut self.rank_operators).into_iter();
        let moved = of_ranks.filter_map(|(at, of)| {
            let run = (*numbers.get(at.run)?)?;
            Some((SlotRef { run, ..at }, of))
        });
        self.rank_operators = moved.collect();
        self.described.renumber(&numbers);
    }

    /// Puts the executions into another order, in which `order` has the number of each.
    pub(super) fn reorder(&mut self, order: &[usize]) {
        let mut runs: Vec<Option<OperatorExecution>> = self.runs.drain(..).map(Some).collect();
        self.runs = order.iter().filter_map(|&run| runs[run].take()).collect();
        self.described.reorder(order);
    }

    /// Removes the executions after this step and time.
    pub fn cut_after(&mut self, step: u64, timestamp_us: u64) {
        let last = (Some(step), Some(timestamp_us));
        self.retain_runs(|_, run| (run.place.step, run.timestamp_us) <= last);
    }

    /// Leaves out what a target that was stopped never came to: everything behind the last
    /// execution that has the name of one of the target's.
    pub fn cut_behind(&mut self, target: &ComparedDump) {
        let names: HashSet<(Option<u64>, &SharedText)> = target
            .runs
            .iter()
            .map(|run| (run.place.step, &run.op_name))
            .collect();
        let last = self
            .runs
            .iter()
            .rposition(|run| names.contains(&(run.place.step, &run.op_name)));
        self.retain_runs(|index, _| last.is_none_or(|last| index <= last));
    }

    /// Whether a graph describes one of the executions.
    pub(super) fn has_graph(&self) -> bool {
        (0..self.runs.len()).any(|run| self.description_of(run).is_some())
    }

    /// A slot.
    pub(super) fn slot(&self, at: SlotRef) -> &ExecutionSlot {
        &self.runs[at.run].slots[at.slot]
    }

    /// The inputs of an execution.
    pub(super) fn inputs_of(&self, run: usize) -> impl Iterator<Item = SlotRef> {
        let slots = self.runs[run].slots.iter().enumerate();
        let inputs = slots.filter(|(_, slot)| slot.side == record::SlotSide::Input);
        inputs.map(move |(slot, _)| SlotRef { run, slot })
    }

    /// The slot of an execution with this name.
    pub(super) fn slot_named(&self, name: &OperatorName, slot: SlotKey) -> Option<SlotRef> {
        let mut runs = self.runs.iter();
        let run = runs.position(|run| OperatorName::for_execution(run) == *name)?;
        let slot = self.runs[run]
            .slots
            .iter()
            .position(|own| own.key() == slot)?;
        Some(SlotRef { run, slot })
    }

    /// Number of slots.
    pub fn n_slots(&self) -> usize {
        self.runs.iter().map(|run| run.slots.len()).sum()
    }
}

/// A type as the vendors' trees have it, in names of files and without the dots of PyTorch's. Lists
/// of types that mean something, and the other dump, are to find both.
pub fn without_dots(op_type: &str) -> String {
    // C++ type names contain colons.
    if op_type.contains("::") {
        return op_type.to_owned();
    }
    op_type.replace('.', "_")
}

/// The file that makes a tensor part of a separate execution. A runtime file is one execution;
/// arrays of one execution are separate files, and elements of the native form may be anywhere.
fn file_of_execution(record: &IndexedTensor) -> Option<SharedPath> {
    let place = record.elements.as_ref()?;
    let is_of_runtime = place.kind != Some(FileKind::Elements)
        && place.tensor.is_some()
        && record.task_id.is_some()
        && record.timestamp.is_some();
    (is_of_runtime
        && !record
            .path
            .extension()
            .is_some_and(|e| e == "npy" || e == "zst"))
    .then(|| record.path.clone())
}

/// Keeps the first occurrence of each name.
fn keep_first(names: &mut ThinVec<String>) {
    if names.len() > 1 {
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
    }
}
