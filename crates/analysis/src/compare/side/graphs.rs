//! Finds a run's operator and the producers of its inputs in the graphs next to a dump.
//!
//! Descriptions in `.opscope/graphs` take precedence over MindSpore's graph files. They are
//! searched in the directories above each file, so that a part of a dump has them too.

mod origin;
mod producers;
mod wiring;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use opscope_store::dump::mindspore::RankGraph;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::graph_json::{self, GraphFile, GraphOperator};
use opscope_store::tree::acl::clean_name;
use opscope_store::tree::own::graphs_dir;
use opscope_store::{StoreError, record, remote};

pub(crate) use self::origin::written_tensors;
use self::producers::Producers;
use super::super::matching::SlotRef;
use super::{ComparedDump, OperatorExecution};
use crate::error_chain::chain;

/// How many directories above a file may hold the descriptions: a dump's own are at most five deep.
const N_LEVELS_MAX: usize = 8;
/// Maximum number of descriptions that are read in one directory.
const N_FILES_MAX: usize = 4096;

/// The graphs of a side, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct DumpGraphs {
    files: Vec<DescribedGraph>,
    /// By run: which file, and which of its operators.
    of_run: Vec<Option<(u32, u32)>>,
    producers: Producers,
}

/// A description with an index by name.
#[derive(Clone, Debug)]
struct DescribedGraph {
    path: PathBuf,
    graph: GraphFile,
    /// The graph's name, as file names have it.
    clean_name: String,
    /// Whether an engine made the graph of another one.
    is_made: bool,
    by_name: HashMap<OperatorKey, NamesakeOperators>,
    /// Names of what its operators make.
    made: HashSet<String>,
}

/// ONNX Runtime's operators on channels in blocks.
const BLOCKED_DOMAIN: &str = "com.microsoft.nchwc";

/// The phase of graphs without a backward pass.
const INFERENCE: &str = "inference";

/// Type and name of an operator, as file names have them.
type OperatorKey = (String, String);

/// The operators of a graph with one type and name.
#[derive(Clone, Debug)]
struct NamesakeOperators {
    first: usize,
    n: usize,
    by_task: BTreeMap<u32, usize>,
}

/// The descriptions in one directory.
#[derive(Default)]
struct FilesOfDir {
    /// Which of the files have an operator.
    by_name: HashMap<OperatorKey, Vec<usize>>,
}

impl DumpGraphs {
    /// Reads the graphs next to the runs of a side, unless they are known; read errors are recorded
    /// there.
    pub(super) fn collect(
        side: &mut ComparedDump,
        known: Vec<GraphFile>,
        mindspore: &[RankGraph],
    ) -> DumpGraphs {
        let mut graphs = DumpGraphs::default();
        // A dump that is nowhere has no directory to look into.
        if !known.is_empty() {
            let root = side.root.clone();
            let files = known.into_iter();
            graphs.files = files
                .map(|graph| DescribedGraph::new(root.clone(), graph))
                .collect();
            let all: Vec<usize> = (0..graphs.files.len()).collect();
            let indexed = graphs.indexed(&all);
            graphs.of_run = (side.runs.iter())
                .map(|run| graphs.find(&indexed, run))
                .collect();
            graphs.producers = wiring::producers(&graphs, &side.runs, mindspore);
            return graphs;
        }
        let mut problems = Vec::new();
        // The first entry represents all directories without descriptions.
        let mut dirs: Vec<FilesOfDir> = vec![FilesOfDir::default()];
        let mut of_dir: HashMap<PathBuf, usize> = HashMap::new();
        // Many directories of a dump have the same descriptions above them, which are read once.
        let mut of_graphs_dir: HashMap<PathBuf, usize> = HashMap::new();
        for run in &side.runs {
            let path = run.slots.first().map(|slot| slot.path.as_path());
            let dir = path.and_then(Path::parent).unwrap_or(Path::new("."));
            let found = match of_dir.get(dir) {
                Some(found) => *found,
                None => {
                    let found = nearest(dir).map_or(0, |place| {
                        let known = of_graphs_dir.entry(place.clone());
                        *known.or_insert_with(|| {
                            let files = graphs.read(&place, &mut problems);
                            dirs.push(graphs.indexed(&files));
                            dirs.len() - 1
                        })
                    });
                    of_dir.insert(dir.to_owned(), found);
                    found
                }
            };
            let found = graphs.find(&dirs[found], run);
            graphs.of_run.push(found);
        }
        side.problems.extend(problems);
        graphs.producers = wiring::producers(&graphs, &side.runs, mindspore);
        graphs
    }

    /// Follows runs that get other numbers, or leave.
    pub(super) fn renumber(&mut self, numbers: &[Option<usize>]) {
        let mut is_kept = numbers.iter().map(Option::is_some);
        self.of_run.retain(|_| is_kept.next().unwrap_or(false));
        self.move_producers(numbers);
    }

    /// Follows runs into another order, in which `order` has the number of each.
    pub(super) fn reorder(&mut self, order: &[usize]) {
        // Without graphs there is nothing to follow.
        if self.of_run.len() == order.len() {
            self.of_run = order.iter().map(|&run| self.of_run[run]).collect();
        }
        let mut numbers = vec![None; order.len()];
        for (number, &run) in order.iter().enumerate() {
            numbers[run] = Some(number);
        }
        self.move_producers(&numbers);
    }

    fn move_producers(&mut self, numbers: &[Option<usize>]) {
        let moved = self.producers.iter().filter_map(|(reader, maker)| {
            let [reader, maker] = [reader, maker].map(|at| {
                let run = (*numbers.get(at.run)?)?;
                Some(SlotRef { run, ..at })
            });
            Some((reader?, maker?))
        });
        self.producers = moved.collect();
    }

    fn read(&mut self, dir: &Path, problems: &mut Vec<String>) -> Vec<usize> {
        let mut paths: Vec<PathBuf> = match remote::read_dir(dir) {
            Ok(entries) => {
                let entries = entries.flatten();
                entries.map(|entry| dir.join(entry.file_name())).collect()
            }
            Err(error) => {
                problems.push(chain(&io("list", dir)(error)));
                return Vec::new();
            }
        };
        paths.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_json = path.extension().is_some_and(|e| e == graph_json::EXTENSION);
            is_json && !name.starts_with('.')
        });
        // A directory lists its files in any order, and the bound below has to cut off the same
        // ones each time.
        paths.sort();
        if paths.len() > N_FILES_MAX {
            let (n, dir) = (paths.len(), dir.display());
            problems.push(format!("{n} graphs in `{dir}`: {N_FILES_MAX} are read"));
            paths.truncate(N_FILES_MAX);
        }
        let mut read = Vec::new();
        for path in paths {
            match read_file(&path) {
                Ok(graph) => {
                    read.push(self.files.len());
                    self.files.push(DescribedGraph::new(path, graph));
                }
                Err(error) => problems.push(chain(&error)),
            }
        }
        read
    }

    fn indexed(&self, files: &[usize]) -> FilesOfDir {
        let mut of_dir = FilesOfDir::default();
        for &file in files {
            for key in self.files[file].by_name.keys() {
                let known = of_dir.by_name.entry(key.clone());
                known.or_default().push(file);
            }
        }
        of_dir
    }

    /// The operator that a run is of: the only one, or the one of the graph that is named after the
    /// model.
    fn find(&self, dir: &FilesOfDir, run: &OperatorExecution) -> Option<(u32, u32)> {
        let (file, operator) = self.operator_of(dir, run)?;
        Some((file.try_into().ok()?, operator.try_into().ok()?))
    }

    fn operator_of(&self, dir: &FilesOfDir, run: &OperatorExecution) -> Option<(usize, usize)> {
        let key = (clean_name(&run.op_type), clean_name(&run.op_name));
        let files = dir.by_name.get(&key)?;
        let found = files.iter().filter_map(|&file| {
            let described = self.files.get(file)?;
            // Eager code may run other operators under the same names in each step.
            let steps = described.graph.step.zip(run.place.step);
            if steps.is_some_and(|(described, own)| described != own) {
                return None;
            }
            let found = described.by_name.get(&key)?;
            let operator = match found.n {
                // Only the task distinguishes namesakes: no description is better than another
                // operator's.
                1 => found.first,
                _ => *found.by_task.get(&run.task_id?)?,
            };
            Some((file, operator))
        });
        let found: Vec<(usize, usize)> = found.collect();
        if let [only] = found[..] {
            return Some(only);
        }
        let numbered = run.place.model_id.map(|id| format!("graph_{id}"));
        let model = run.place.model.as_ref().map(ToString::to_string);
        let names = [model, numbered];
        names.into_iter().flatten().find_map(|name| {
            let name = clean_name(&name);
            found
                .iter()
                .find(|(file, _)| self.files[*file].clean_name == name)
                .copied()
        })
    }

    fn of_run(&self, run: usize) -> Option<(usize, &GraphOperator)> {
        let (file, operator) = self.place_of(run)?;
        Some((file, &self.files[file].graph.operators[operator]))
    }

    /// Which file has a run's operator, and which of its operators that is.
    fn place_of(&self, run: usize) -> Option<(usize, usize)> {
        let (file, operator) = (*self.of_run.get(run)?)?;
        Some((file as usize, operator as usize))
    }
}

impl ComparedDump {
    /// Takes names of values from descriptions of ONNX models.
    pub(super) fn name_values(&mut self) {
        let files = &self.described.files;
        let as_they_are = files.iter().filter(|file| !file.is_made);
        let as_they_are = as_they_are.map(|file| &file.graph);
        // Operator sets are what a graph of ONNX is known by; names of other graphs say nothing of
        // what an engine of ONNX made up.
        let as_they_are = as_they_are.filter(|graph| !graph.opsets.is_empty());
        self.value_names = as_they_are.flat_map(names).collect();
        for (index, run) in self.runs.iter_mut().enumerate() {
            let Some((file, operator)) = self.described.of_run(index) else {
                continue;
            };
            if !self.described.files[file].is_made {
                continue;
            }
            for (side, values) in [
                (record::SlotSide::Input, &operator.inputs),
                (record::SlotSide::Output, &operator.outputs),
            ] {
                let is_present: Vec<bool> = values.iter().map(Option::is_some).collect();
                for (slot, position) in positions(run, side, &is_present) {
                    if let Some(name) = values.get(position).and_then(Option::as_ref) {
                        // Its weight is in blocks too, whatever name it keeps; a bias is not.
                        let is_in_blocks = operator.domain == BLOCKED_DOMAIN && position == 1;
                        let name = if is_in_blocks { "" } else { name };
                        run.slots[slot].set_made_value(name.into());
                    }
                }
            }
        }
    }

    /// Outputs of a run, by value names in the graph of an ONNX model, if a description is next to
    /// the dump.
    pub fn named_outputs(&self, run: usize) -> Vec<(&str, u32)> {
        let Some((file, operator)) = self.described.of_run(run) else {
            return Vec::new();
        };
        if self.described.files[file].graph.opsets.is_empty() {
            return Vec::new();
        }
        let is_present: Vec<bool> = operator.outputs.iter().map(Option::is_some).collect();
        let run = &self.runs[run];
        let outputs = positions(run, record::SlotSide::Output, &is_present).into_iter();
        let named = outputs.filter_map(|(slot, position)| {
            let name = operator.outputs.get(position)?.as_deref()?;
            Some((name, run.slots.get(slot)?.index))
        });
        named.collect()
    }

    /// Which inputs, or outputs, of a run's operator its graph has; `None` without a description
    /// next to the dump.
    pub fn presence(&self, run: usize, side: record::SlotSide) -> Option<Vec<bool>> {
        let (_, operator) = self.described.of_run(run)?;
        let values = match side {
            record::SlotSide::Input => &operator.inputs,
            record::SlotSide::Output => &operator.outputs,
        };
        Some(values.iter().map(Option::is_some).collect())
    }

    /// The output that an input of a run reads, from a run of the same rank, model and step; `None`
    /// if no graph has it or it is not in the dump.
    pub fn producer_of(&self, slot: SlotRef) -> Option<SlotRef> {
        self.described.producers.get(slot)
    }

    /// The outputs that an operator of the same rank, model and step reads, according to graphs.
    pub fn read_outputs(&self) -> HashSet<SlotRef> {
        self.described
            .producers
            .iter()
            .map(|(_, made)| made)
            .collect()
    }

    /// Whether nothing says what any operator reads.
    pub fn is_without_wires(&self) -> bool {
        self.described.producers.is_empty()
    }

    /// Whether a run is of a graph that an engine made of another one.
    pub fn is_executed(&self, run: usize) -> bool {
        let described = self.described.of_run(run);
        described.is_some_and(|(file, _)| self.described.files[file].is_made)
    }

    /// Whether an input's producer is missing in the dump, according to the graph next to it.
    pub fn is_unseen(&self, slot: SlotRef) -> bool {
        let read = self
            .value_read(slot)
            .filter(|_| self.producer_of(slot).is_none());
        read.is_some_and(|(file, name)| {
            self.described.files[file].made.contains(name)
                || self.is_rewritten(slot)
                || self.is_between_graphs(file, slot)
        })
    }

    /// Whether an argument of a graph may be the work of another graph, or of what runs between two:
    /// a program that the compiler cut into several has values in place of inputs.
    fn is_between_graphs(&self, file: usize, slot: SlotRef) -> bool {
        let files = &self.described.files;
        files.len() > 1
            && files
                .iter()
                .all(|file| file.graph.phase == INFERENCE && file.graph.opsets.is_empty())
            && files[file].graph.name != files[0].graph.name
            && self.parameter_of(slot).is_none()
    }

    /// The operator that last wrote to the memory of an input through another tensor, such as a view:
    /// PyTorch's graphs number such a value after the name of what was written.
    pub fn writer_of(&self, slot: SlotRef) -> Option<usize> {
        let (file, written) = self.written_before(slot)?;
        let mut operators = self.described.files[file].graph.operators.iter();
        let writer = operators.position(|operator| {
            let mut names = operator.outputs.iter();
            names.any(|name| name.as_deref() == Some(written))
        })?;
        let mut runs = 0..self.runs.len();
        runs.find(|&run| self.described.place_of(run) == Some((file, writer)))
    }

    /// The value that an input was, or shared its memory with, before that was written to, and the
    /// file that has its graph.
    pub fn written_before(&self, slot: SlotRef) -> Option<(usize, &str)> {
        let (file, name) = self.value_read(slot)?;
        Some((file, name.rsplit_once('@')?.0))
    }

    /// Whether an input is what an operator of the graph made, after its memory was written to
    /// through another tensor.
    pub fn is_rewritten(&self, slot: SlotRef) -> bool {
        let written = self.written_before(slot);
        written.is_some_and(|(file, name)| self.described.files[file].made.contains(name))
    }

    /// Whether an input is a constant of its graph, and no input of the model.
    pub fn is_constant(&self, slot: SlotRef) -> bool {
        self.constant_of(slot).is_some()
    }

    /// The name of the constant that an input is.
    pub fn constant_of(&self, slot: SlotRef) -> Option<&str> {
        let (file, name) = self.value_read(slot)?;
        let file = &self.described.files[file];
        let is_given = file.made.contains(name) || file.graph.arguments.contains(name);
        let is_made = is_given || self.producer_of(slot).is_some() || self.is_rewritten(slot);
        (!is_made).then_some(name.as_str())
    }

    /// The name of the value that an input is, and the file that has its graph.
    fn value_read(&self, slot: SlotRef) -> Option<(usize, &String)> {
        let run = &self.runs[slot.run];
        let (file, operator) = self.described.of_run(slot.run)?;
        if run.slots[slot.slot].side != record::SlotSide::Input {
            return None;
        }
        let is_present: Vec<bool> = operator.inputs.iter().map(Option::is_some).collect();
        let known = positions(run, record::SlotSide::Input, &is_present);
        let (_, position) = known.into_iter().find(|(own, _)| *own == slot.slot)?;
        Some((file, operator.inputs.get(position)?.as_ref()?))
    }

    /// The description of a run's graph next to the dump, with its file and the index of the run's
    /// operator.
    pub fn description_of(&self, run: usize) -> Option<(&Path, &GraphFile, usize)> {
        let (file, operator) = self.described.place_of(run)?;
        let file = &self.described.files[file];
        Some((&file.path, &file.graph, operator))
    }
}

impl DescribedGraph {
    fn new(path: PathBuf, graph: GraphFile) -> DescribedGraph {
        let mut by_name: HashMap<OperatorKey, NamesakeOperators> = HashMap::new();
        for (i, operator) in graph.operators.iter().enumerate() {
            let key = (clean_name(&operator.op_type), clean_name(&operator.op_name));
            let namesakes = by_name.entry(key).or_insert_with(|| NamesakeOperators {
                first: i,
                n: 0,
                by_task: BTreeMap::new(),
            });
            namesakes.n += 1;
            namesakes.by_task.entry(operator.task_id).or_insert(i);
        }
        DescribedGraph {
            path,
            clean_name: clean_name(&graph.name),
            is_made: is_made(&graph),
            made: (graph.operators.iter())
                .flat_map(|operator| operator.outputs.iter().flatten().cloned())
                .collect(),
            graph,
            by_name,
        }
    }
}

/// Which of an operator's inputs, or outputs, each of a run's slots is: pairs of the slot's place
/// in the run and the position. Files of the runtime leave absent optional ones out and count on;
/// array files do not.
pub fn positions(
    run: &OperatorExecution,
    side: record::SlotSide,
    is_present: &[bool],
) -> Vec<(usize, usize)> {
    let slots = run.slots.iter().enumerate();
    let own: Vec<(usize, usize)> = slots
        .filter(|(_, slot)| slot.side == side)
        .map(|(i, slot)| (i, slot.index as usize))
        .collect();
    let mut present = own.iter().map(|(_, index)| is_present.get(*index));
    // Also where nothing is absent, which is nearly always.
    if present.all(|is_present| is_present == Some(&true)) {
        return own;
    }
    // A number that falls on an absent value was counted without the absent ones.
    let present: Vec<usize> = (0..is_present.len()).filter(|&i| is_present[i]).collect();
    let counted = own
        .iter()
        .map(|(i, index)| Some((*i, *present.get(*index)?)));
    counted.collect::<Option<_>>().unwrap_or(own)
}

/// Whether an engine made the graph of another one.
fn is_made(graph: &GraphFile) -> bool {
    // Only a graph that was changed says what its outputs were before.
    let mut operators = graph.operators.iter();
    operators.any(|operator| !operator.original_outputs.is_empty())
}

/// Names of everything that a graph is given, holds or computes.
fn names(graph: &GraphFile) -> impl Iterator<Item = String> {
    let outputs = graph
        .operators
        .iter()
        .flat_map(|operator| operator.outputs.iter().flatten());
    let others = graph.arguments.iter().chain(&graph.constants);
    outputs.chain(others).cloned()
}

/// The nearest directory of descriptions above the files of a directory.
fn nearest(dir: &Path) -> Option<PathBuf> {
    // A relative path ends at the working directory, and the descriptions may lie above it.
    let absolute = remote::absolute(dir).ok()?;
    let above = absolute.ancestors().take(N_LEVELS_MAX);
    above.map(graphs_dir).find(|place| remote::is_dir(place))
}

fn read_file(path: &Path) -> Result<GraphFile, StoreError> {
    let bytes = FileBytes::open(path).map_err(io("read", path))?;
    graph_json::parse(bytes.as_ref()).map_err(|source| StoreError::Corrupt {
        format: graph_json::FORMAT_NAME,
        path: path.to_owned(),
        source,
    })
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io {
        action,
        path,
        source,
    }
}

#[cfg(test)]
mod tests {
    use opscope_store::record::SlotSide;

    use super::super::ExecutionSlot;
    use super::*;
    use opscope_tensor::DType;

    #[test]
    fn absent_inputs_are_counted_or_not() {
        let check = |indices: &[u32], is_present: &[u8], expected: &[usize]| {
            let slot =
                |index: &u32| ExecutionSlot::described(SlotSide::Input, *index, DType::F32, &[]);
            let run = OperatorExecution {
                slots: indices.iter().map(slot).collect(),
                ..OperatorExecution::default()
            };
            let is_present: Vec<bool> = is_present.iter().map(|&byte| byte == 1).collect();
            let found = positions(&run, SlotSide::Input, &is_present);
            let found: Vec<usize> = found.into_iter().map(|(_, position)| position).collect();
            assert_eq!(found, expected, "{indices:?} {is_present:?}");
        };
        check(&[0, 1], &[1, 1], &[0, 1]);
        check(&[0, 1], &[1, 0, 1], &[0, 2]);
        check(&[0, 2], &[1, 0, 1], &[0, 2]);
        check(&[0], &[0, 1], &[1]);
        check(&[1], &[0, 1], &[1]);
        check(&[0, 1, 2], &[1, 1, 0, 0, 1], &[0, 1, 4]);
        // More than there are: nothing is known.
        check(&[0, 1, 2], &[1, 0, 1], &[0, 1, 2]);
    }
}
