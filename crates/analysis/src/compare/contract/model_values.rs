//! The slots of a dump that are the inputs and outputs of a model.

use std::cell::{LazyCell, OnceCell};
use std::collections::{BTreeMap, HashMap, HashSet};

use opscope_store::file_format::graph_json::{GraphFile, GraphOperator};
use opscope_store::record::SlotSide;

use crate::compare::attribution::kinds::plain_type;
use crate::compare::matching::{MatchedDumps, SlotRef, UnmatchedReason};
use crate::compare::party::Party;
use crate::compare::result::OutputSource;
use crate::compare::side::{ComparedDump, RunPlace, positions, written_tensors};

/// Longest chain of operators without a record between an output and a recorded value.
const N_OPERATORS_UP_MAX: usize = 8;
/// Beginnings of the types that compute with quantised values.
const QUANTISED_TYPES: [&str; 6] = [
    "Quantize",
    "Dequantize",
    "DynamicQuantize",
    "QLinear",
    "QGemm",
    "QAttention",
];
/// Ends of such types.
const QUANTISED_ENDS: [&str; 3] = ["Integer", "IntegerToFloat", "quantize_per_tensor"];

/// Matching executions of both models.
pub(super) struct ModelPlaces<'a> {
    pub(super) sides: MatchedDumps<'a>,
    pub(super) pairs: Vec<PlacePair<'a>>,
}

/// One execution of the golden model, and the matching one of the target, if any.
pub(super) struct PlacePair<'a> {
    pub(super) golden: ModelPlace<'a>,
    pub(super) target: Option<ModelPlace<'a>>,
}

/// One execution of a model.
pub(super) struct ModelPlace<'a> {
    pub(super) dump: &'a ComparedDump,
    pub(super) graph: Option<&'a GraphFile>,
    pub(super) outputs: Vec<ModelOutput>,
    pub(super) source: OutputSource,
    runs: Vec<usize>,
    made: HashMap<&'a str, SlotRef>,
    read: HashMap<&'a str, SlotRef>,
    makers: HashMap<&'a str, &'a GraphOperator>,
    /// The program's tensors, once needed.
    tensors: OnceCell<ProgramTensors>,
}

/// How an execution of a model uses the program's parameters, buffers and gradients.
#[derive(Default)]
struct ProgramTensors {
    /// The slots that show them first.
    read: HashMap<String, SlotRef>,
    /// Those that something in the graphs writes to, or may.
    written: HashSet<String>,
}

/// An output of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelOutput {
    pub(super) name: String,
    /// The slot that shows it.
    pub(super) slot: Option<SlotRef>,
    /// Whether it is an input of the model as it is.
    pub(super) is_argument: bool,
    /// Whether it is a tensor of the program that the run writes to.
    pub(super) is_updated: bool,
    /// The recorded values that its operator reads, by which it is judged where a dump shows it
    /// not.
    pub(super) operands: Option<Operands>,
}

/// The recorded values that an operator reads, if need be through others without a record.
#[derive(Clone, Debug)]
pub(super) struct Operands {
    pub(super) op_type: String,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) slots: Vec<SlotRef>,
    /// Types of the operators between these and the value that the dump does not show either.
    pub(super) between: Vec<String>,
}

impl<'a> ModelPlaces<'a> {
    pub(super) fn collect(sides: MatchedDumps<'a>) -> ModelPlaces<'a> {
        let dumps = [sides.target, sides.golden];
        let chosen = [Party::Target, Party::Golden].map(|party| chosen_runs(sides, party));
        let places = [0, 1].map(|side| places_of(dumps[side], &chosen[side]));
        let partners = partners(sides, [&places[0], &places[1]]);
        // Graphs with results need none of them.
        let read = dumps.map(|dump| LazyCell::new(|| dump.read_outputs()));
        let place = |side: usize, runs: &[usize]| {
            ModelPlace::new(dumps[side], runs.to_vec(), &read[side], &chosen[side])
        };
        let pairs = places[1].iter().map(|(name, runs)| PlacePair {
            golden: place(1, runs),
            target: partners
                .get(name)
                .map(|target| place(0, &places[0][target])),
        });
        ModelPlaces {
            pairs: pairs.collect(),
            sides,
        }
    }
}

/// Whether the target, and the golden side, compute with quantised values.
pub(in crate::compare) fn quantised_sides(sides: MatchedDumps<'_>) -> [bool; 2] {
    [sides.target, sides.golden].map(|dump| {
        let mut types = dump.runs.iter().map(|run| run.op_type.as_str());
        types.any(is_quantised_type)
    })
}

/// Whether an operator of this type computes with quantised values, or makes them.
pub(super) fn is_quantised_type(op_type: &str) -> bool {
    let mut starts = QUANTISED_TYPES.iter();
    let mut ends = QUANTISED_ENDS.iter();
    starts.any(|start| op_type.starts_with(start)) || ends.any(|end| op_type.ends_with(end))
}

/// The executions that the selection leaves.
fn chosen_runs(sides: MatchedDumps<'_>, party: Party) -> HashSet<usize> {
    let pairs = sides.matching.pairs.iter();
    let paired = pairs.flat_map(|pair| party.pick(&pair.target, &pair.golden).iter().copied());
    let unmatched = sides.matching.unmatched.iter().filter(|unmatched| {
        unmatched.party == party && unmatched.reason != UnmatchedReason::LeftOut
    });
    paired
        .chain(unmatched.map(|unmatched| unmatched.run))
        .collect()
}

/// The executions of each place of which something is chosen.
fn places_of<'a>(
    dump: &'a ComparedDump,
    chosen: &HashSet<usize>,
) -> BTreeMap<&'a RunPlace, Vec<usize>> {
    let mut places: BTreeMap<&RunPlace, Vec<usize>> = BTreeMap::new();
    for (index, run) in dump.runs.iter().enumerate() {
        places.entry(&run.place).or_default().push(index);
    }
    places.retain(|_, runs| runs.iter().any(|run| chosen.contains(run)));
    places
}

/// The target's place of each golden one: the place of most partners, else the one of the same rank
/// and step, else the only one.
fn partners<'a>(
    sides: MatchedDumps<'a>,
    [targets, goldens]: [&BTreeMap<&'a RunPlace, Vec<usize>>; 2],
) -> HashMap<&'a RunPlace, &'a RunPlace> {
    let mut votes: BTreeMap<(&RunPlace, &RunPlace), usize> = BTreeMap::new();
    for pair in &sides.matching.pairs {
        let (Some(&target), Some(&golden)) = (pair.target.first(), pair.golden.first()) else {
            continue;
        };
        let key = (
            &*sides.golden.runs[golden].place,
            &*sides.target.runs[target].place,
        );
        *votes.entry(key).or_default() += 1;
    }
    let mut votes: Vec<_> = votes.into_iter().collect();
    votes.sort_by_key(|&(key, n)| (std::cmp::Reverse(n), key));
    let mut partners: HashMap<&RunPlace, &RunPlace> = HashMap::new();
    let mut taken: HashSet<&RunPlace> = HashSet::new();
    for ((golden, target), _) in votes {
        if !partners.contains_key(golden) && taken.insert(target) {
            partners.insert(golden, target);
        }
    }
    for &golden in goldens.keys() {
        if partners.contains_key(golden) {
            continue;
        }
        let is_only = (targets.len(), goldens.len()) == (1, 1);
        let mut free = targets.keys().filter(|target| !taken.contains(*target));
        if let Some(&target) =
            free.find(|target| is_only || target.rank_step() == golden.rank_step())
        {
            taken.insert(target);
            partners.insert(golden, target);
        }
    }
    partners
}

impl<'a> ModelPlace<'a> {
    fn new(
        dump: &'a ComparedDump,
        runs: Vec<usize>,
        read_outputs: &LazyCell<HashSet<SlotRef>, impl FnOnce() -> HashSet<SlotRef>>,
        chosen: &HashSet<usize>,
    ) -> ModelPlace<'a> {
        let mut described = runs.iter().filter_map(|&run| dump.description_of(run));
        let graph = described.next().map(|(_, graph, _)| graph);
        let mut place = ModelPlace {
            dump,
            graph,
            outputs: Vec::new(),
            source: OutputSource::Unknown,
            runs,
            made: HashMap::new(),
            read: HashMap::new(),
            makers: HashMap::new(),
            tensors: OnceCell::new(),
        };
        let Some(graph) = graph else {
            return place;
        };
        place.index_values(graph);
        let is_chosen = |slot: &Option<SlotRef>| slot.is_none_or(|slot| chosen.contains(&slot.run));
        if graph.results.is_empty() {
            place.outputs = place.unread(read_outputs);
            place.outputs.retain(|output| is_chosen(&output.slot));
            if !place.outputs.is_empty() {
                place.source = OutputSource::Unread;
            }
            return place;
        }
        let results = graph.results.iter();
        let outputs: Vec<ModelOutput> = results.map(|name| place.output(graph, name)).collect();
        let mut all = outputs.iter();
        if all.any(|output| output.slot.is_some() || output.operands.is_some()) {
            place.source = OutputSource::Graph;
            // A choice of operators is one of outputs, too.
            place.outputs = outputs;
            place.outputs.retain(|output| is_chosen(&output.slot));
        }
        if place.outputs.is_empty() {
            place.source = OutputSource::Unknown;
        }
        place
    }

    /// Finds the slots of the graph's inputs, and of its outputs and the values above them. Graphs
    /// of many operators run in many steps, which have little room for all values.
    fn index_values(&mut self, graph: &'a GraphFile) {
        let wanted = self.index_makers(graph);
        for &run in &self.runs {
            let Some((_, described, index)) = self.dump.description_of(run) else {
                continue;
            };
            if !std::ptr::eq(described, graph) {
                continue;
            }
            let operator = &graph.operators[index];
            for (name, slot) in values(self.dump, run, SlotSide::Output, operator) {
                let maker = self.makers.get(name);
                if maker.is_some_and(|maker| std::ptr::eq(*maker, operator)) {
                    // A later execution of the operator hides an earlier one.
                    self.made.insert(name, slot);
                }
            }
            for (name, slot) in values(self.dump, run, SlotSide::Input, operator) {
                if wanted.contains(name) {
                    self.read.entry(name).or_insert(slot);
                }
            }
        }
    }

    /// Finds the operators that make the graph's outputs and the values above them; returns the
    /// names of all these values and of the graph's inputs.
    fn index_makers(&mut self, graph: &'a GraphFile) -> HashSet<&'a str> {
        let mut makers: HashMap<&str, &GraphOperator> = HashMap::new();
        for operator in &graph.operators {
            for name in operator.outputs.iter().flatten() {
                // Bodies come right after the operator that they belong to, and may use its names
                // again.
                makers.entry(name).or_insert(operator);
            }
        }
        let mut wanted = HashSet::new();
        let mut names: Vec<&str> = graph.results.iter().map(String::as_str).collect();
        for _ in 0..=N_OPERATORS_UP_MAX {
            names.retain(|name| wanted.insert(*name));
            let above = names.iter().filter_map(|name| makers.get(name));
            let above = above.flat_map(|maker| maker.inputs.iter().flatten());
            names = above.map(String::as_str).collect();
        }
        makers.retain(|name, _| wanted.contains(name));
        makers.shrink_to_fit();
        self.makers = makers;
        wanted.extend(graph.arguments.iter().map(String::as_str));
        wanted
    }

    fn output(&self, graph: &'a GraphFile, name: &str) -> ModelOutput {
        let is_argument = graph.arguments.iter().any(|argument| argument == name);
        let is_outside = is_argument || graph.constants.iter().any(|constant| constant == name);
        let slot = self.made.get(name).copied();
        let slot = slot.or_else(|| self.read.get(name).copied());
        ModelOutput {
            name: name.to_owned(),
            slot,
            is_argument,
            is_updated: false,
            operands: (!is_outside).then(|| self.operands(name)).flatten(),
        }
    }

    /// The recorded values that the operator of a value reads.
    fn operands(&self, name: &str) -> Option<Operands> {
        let maker = self.makers.get(name)?;
        let (mut slots, mut between) = (Vec::new(), Vec::new());
        let mut wanted: Vec<&str> = maker.inputs.iter().flatten().map(String::as_str).collect();
        for _ in 0..N_OPERATORS_UP_MAX {
            let mut further = Vec::new();
            for name in wanted {
                if let Some(&slot) = self.made.get(name).or_else(|| self.read.get(name)) {
                    slots.push(slot);
                } else if let Some(maker) = self.makers.get(name) {
                    between.push(maker.op_type.clone());
                    further.extend(maker.inputs.iter().flatten().map(String::as_str));
                }
            }
            wanted = further;
        }
        (!slots.is_empty() && wanted.is_empty()).then(|| Operands {
            op_type: maker.op_type.clone(),
            attributes: maker.attributes.clone(),
            slots,
            between,
        })
    }

    /// The first outputs of operators that no operator reads, and the last values of parameters,
    /// buffers and gradients that the run writes to; empty unless the graph has the inputs of every
    /// operator.
    fn unread(&self, read_outputs: &HashSet<SlotRef>) -> Vec<ModelOutput> {
        let mut runs = self.runs.iter();
        if runs.any(|run| self.dump.description_of(*run).is_none()) {
            return Vec::new();
        }
        let mut unread = Vec::new();
        // What an operator writes to a part of a tensor is read as that tensor.
        let inputs = self.runs.iter().flat_map(|&run| self.dump.inputs_of(run));
        let written = inputs.filter_map(|slot| Some(self.dump.written_before(slot)?.1));
        let read_as_whole: HashSet<&str> = written.collect();
        let is_read = |run: usize| {
            let known = self.dump.description_of(run);
            known.is_some_and(|(_, graph, at)| {
                let mut made = graph.operators[at].outputs.iter().flatten();
                made.any(|name| read_as_whole.contains(&**name))
            })
        };
        for &run in self.runs.iter().filter(|run| !is_read(**run)) {
            let execution = &self.dump.runs[run];
            // With other ranks there are other collectives.
            if execution.collective.is_some() {
                continue;
            }
            // Masks, indices and saved statistics follow the result.
            let slot = execution
                .slots
                .iter()
                .position(|slot| slot.side == SlotSide::Output && slot.index == 0);
            let Some(slot) = slot.map(|slot| SlotRef { run, slot }) else {
                continue;
            };
            if !read_outputs.contains(&slot) {
                unread.push(ModelOutput {
                    name: execution.op_name.to_string(),
                    slot: Some(slot),
                    ..ModelOutput::default()
                });
            }
        }
        self.drop_kept(&mut unread);
        for (name, slot) in self.dump.updated_tensors(&self.runs) {
            let known = unread.iter().position(|output| output.slot == Some(slot));
            if let Some(known) = known {
                unread.remove(known);
            }
            unread.push(ModelOutput {
                name: name.to_owned(),
                slot: Some(slot),
                is_updated: true,
                ..ModelOutput::default()
            });
        }
        unread.sort_by_key(|output| output.slot.map(|slot| (slot.run, slot.slot)));
        unread
    }

    /// Drops what autograd keeps for a backward pass that did not run: a detached value, of which
    /// operators compute the model's own outputs.
    fn drop_kept(&self, unread: &mut Vec<ModelOutput>) {
        let is_detach = |run: usize| plain_type(&self.dump.runs[run].op_type) == "detach";
        let source = |output: &ModelOutput| {
            let mut made = output.slot.filter(|slot| is_detach(slot.run))?;
            while is_detach(made.run) {
                made = self
                    .dump
                    .producer_of(self.dump.inputs_of(made.run).next()?)?;
            }
            Some(made)
        };
        if !unread.iter().any(|output| source(output).is_some()) {
            return;
        }
        let others = self.runs.iter().filter(|run| !is_detach(**run));
        let (mut read, mut read_later) = (HashSet::new(), HashSet::new());
        for slot in others.flat_map(|run| self.dump.inputs_of(*run)) {
            read.extend(self.dump.producer_of(slot));
            // What shares the memory with the value may have been written to before it is read.
            read_later.extend(self.dump.written_before(slot).map(|(_, name)| name));
        }
        unread.retain(|output| {
            let Some(made) = source(output) else {
                return true;
            };
            let described = self.dump.description_of(made.run);
            let names = described.map(|(_, graph, at)| &graph.operators[at].outputs);
            let mut names = names.into_iter().flatten().flatten();
            !read.contains(&made) && !names.any(|name| read_later.contains(name.as_str()))
        });
    }

    /// A tensor that the other side writes to, as this side reads it, if its graphs write to other
    /// such tensors in that phase, and nothing in them may write to this one.
    pub(super) fn kept(&self, output: &ModelOutput, other: &ModelPlace<'_>) -> Option<ModelOutput> {
        let slot = output.slot.filter(|_| output.is_updated)?;
        let phase = other.dump.phase_of(slot.run);
        let tensors = self.tensors.get_or_init(|| self.find_tensors());
        let is_kept = !tensors.written.contains(&output.name)
            && other.outputs.iter().any(|output| {
                output.is_updated
                    && output
                        .slot
                        .is_some_and(|slot| other.dump.phase_of(slot.run) == phase)
                    && tensors.written.contains(&output.name)
            });
        is_kept.then(|| ModelOutput {
            name: output.name.clone(),
            slot: tensors.read.get(&output.name).copied(),
            ..ModelOutput::default()
        })
    }

    fn find_tensors(&self) -> ProgramTensors {
        let mut tensors = ProgramTensors::default();
        let mut known: HashSet<*const GraphFile> = HashSet::new();
        for &run in &self.runs {
            let execution = &self.dump.runs[run];
            for slot in self.dump.inputs_of(run) {
                let Some(name) = self.dump.parameter_read(slot) else {
                    continue;
                };
                // An operator of an extension need not declare to what it writes.
                if !execution.op_type.starts_with("aten") {
                    tensors.written.insert(name.clone());
                }
                tensors.read.entry(name).or_insert(slot);
            }
            let graph = self.dump.description_of(run).map(|(_, graph, _)| graph);
            if let Some(graph) = graph.filter(|graph| known.insert(*graph)) {
                for operator in &graph.operators {
                    let written = written_tensors(operator).map(|(_, name)| name.to_owned());
                    tensors.written.extend(written);
                }
            }
        }
        tensors
    }

    /// Whether the names of its outputs are the model's own.
    pub(super) fn names_results(&self) -> bool {
        self.graph.is_some_and(|graph| !graph.opsets.is_empty())
    }

    /// Rank, model and step.
    pub(super) fn first_place(&self) -> Option<&RunPlace> {
        let run = self.runs.first()?;
        Some(&self.dump.runs[*run].place)
    }

    /// The slot that shows an input of the model first.
    pub(super) fn argument(&self, name: &str) -> Option<SlotRef> {
        self.read.get(name).copied()
    }

    /// The first and the last value, if the place only contains values with names, as in array
    /// files.
    pub(super) fn end_values(&self) -> Option<[SlotRef; 2]> {
        let mut runs = self.runs.iter();
        let is_of_values = runs.all(|&run| self.dump.runs[run].is_value());
        let ends = [self.runs.first()?, self.runs.last()?].map(|&run| SlotRef { run, slot: 0 });
        is_of_values.then_some(ends)
    }

    /// An array that has the name of a value in place of that of an operator.
    pub(super) fn value_named(&self, name: &str) -> Option<SlotRef> {
        let mut runs = self.runs.iter();
        runs.find(|run| {
            let run = &self.dump.runs[**run];
            // NumPy archives do not record the kind of their arrays.
            let is_array = run.op_type.is_empty()
                && matches!(&run.slots[..], [slot] if slot.side == SlotSide::Output);
            is_array && run.op_name.as_str() == name
        })
        .map(|&run| SlotRef { run, slot: 0 })
    }
}

/// The values on one side of an execution by their names in the graph.
fn values<'a>(
    dump: &ComparedDump,
    run: usize,
    side: SlotSide,
    operator: &'a GraphOperator,
) -> Vec<(&'a str, SlotRef)> {
    let names = match side {
        SlotSide::Input => &operator.inputs,
        SlotSide::Output => &operator.outputs,
    };
    let is_present: Vec<bool> = names.iter().map(Option::is_some).collect();
    let slots = positions(&dump.runs[run], side, &is_present).into_iter();
    slots
        .filter_map(|(slot, position)| {
            let name = names.get(position)?.as_deref()?;
            Some((name, SlotRef { run, slot }))
        })
        .collect()
}
