//! Which output of which run another run reads.

use std::borrow::Cow;
use std::collections::HashMap;

use opscope_store::dump::mindspore::RankGraph;
use opscope_store::record::SlotSide;
use opscope_store::record::graph::{GraphDescription, GraphNode, InputOrigin, Literal, ValueType};
use opscope_store::tree::acl::clean_name;

use super::super::super::matching::SlotRef;
use super::super::{OperatorExecution, RunPlace};
use super::producers::Producers;
use super::{DumpGraphs, positions};

/// Longest chain of nodes that only hand something on.
const N_HANDED_ON_MAX: usize = 64;
/// Nodes of MindSpore that give their first input again.
const PASSING: [&str; 3] = ["Depend", "Load", "Identity"];

/// A value, by a name that is unique in its graph.
type Value<'a> = Option<Cow<'a, str>>;

/// Where a graph has an operator: the graph's number, those of MindSpore after those of
/// descriptions, and the operator's place in it.
type Operator = (usize, usize);

/// The values that an operator reads and makes.
struct OperatorWires<'a> {
    /// Which graph the names belong to; those of MindSpore count after those of descriptions.
    graph: usize,
    inputs: WireEnds<'a>,
    outputs: WireEnds<'a>,
}

/// The values on one side of an operator.
struct WireEnds<'a> {
    values: Vec<Value<'a>>,
    is_present: Vec<bool>,
}

impl<'a> WireEnds<'a> {
    fn from_values(values: impl Iterator<Item = Value<'a>>) -> WireEnds<'a> {
        let values: Vec<Value<'a>> = values.collect();
        let is_present = values.iter().map(Option::is_some).collect();
        WireEnds { values, is_present }
    }
}

/// By input slot the output slot that it was made as.
pub(super) fn producers(
    graphs: &DumpGraphs,
    runs: &[OperatorExecution],
    mindspore: &[RankGraph],
) -> Producers {
    let nodes = MindSporeNodes::index(mindspore);
    // An operator may have run many times: its wires are made once.
    let mut of_operator: HashMap<Operator, OperatorWires<'_>> = HashMap::new();
    let operators: Vec<Option<Operator>> = (0..runs.len())
        .map(|run| {
            let described = graphs.place_of(run);
            let n_files = graphs.files.len();
            let found = described.or_else(|| {
                let (graph, node) = nodes.find(&runs[run])?;
                Some((n_files + graph, node))
            })?;
            of_operator
                .entry(found)
                .or_insert_with(|| match found.0.checked_sub(n_files) {
                    None => described_wires(graphs, found),
                    Some(graph) => nodes.wires((graph, found.1), n_files),
                });
            Some(found)
        })
        .collect();
    let mut places: HashMap<&RunPlace, usize> = HashMap::new();
    let place_of: Vec<usize> = runs
        .iter()
        .map(|run| {
            let n_places = places.len();
            *places.entry(&run.place).or_insert(n_places)
        })
        .collect();
    let ends = |run: usize, side: SlotSide| {
        let wires = operators[run].and_then(|operator| of_operator.get(&operator));
        let place = place_of[run];
        wires.into_iter().flat_map(move |wires| {
            let ends = match side {
                SlotSide::Input => &wires.inputs,
                SlotSide::Output => &wires.outputs,
            };
            let slots = positions(&runs[run], side, &ends.is_present).into_iter();
            slots.filter_map(move |(slot, position)| {
                let name = ends.values.get(position)?.as_ref()?;
                // Another step or rank makes another value of the same name.
                let key = (place, wires.graph, name.as_ref());
                Some((key, SlotRef { run, slot }))
            })
        })
    };
    let mut made: HashMap<(usize, usize, &str), Vec<SlotRef>> = HashMap::new();
    for run in 0..runs.len() {
        for (key, slot) in ends(run, SlotSide::Output) {
            made.entry(key).or_default().push(slot);
        }
    }
    let mut producers = Vec::new();
    for run in 0..runs.len() {
        for (key, slot) in ends(run, SlotSide::Input) {
            // A later execution of an operator hides an earlier one. Some dumps have no order, but
            // then there is only one.
            let makers = made.get(&key).map_or(&[][..], |makers| makers);
            let before = makers.partition_point(|maker| maker.run < run);
            let last = before.checked_sub(1).and_then(|last| makers.get(last));
            let only = makers
                .first()
                .filter(|maker| makers.len() == 1 && maker.run != run);
            producers.extend(last.or(only).map(|maker| (slot, *maker)));
        }
    }
    producers.into_iter().collect()
}

fn lent(name: &Option<String>) -> Value<'_> {
    name.as_deref().map(Cow::Borrowed)
}

/// An operator as a description has it.
fn described_wires(graphs: &DumpGraphs, (graph, operator): Operator) -> OperatorWires<'_> {
    let operator = &graphs.files[graph].graph.operators[operator];
    OperatorWires {
        graph,
        inputs: WireEnds::from_values(operator.inputs.iter().map(lent)),
        outputs: WireEnds::from_values(operator.outputs.iter().map(lent)),
    }
}

/// Rank, graph and name of a node.
type NodeKey = (Option<u32>, Option<u32>, String);

/// The nodes of MindSpore's graphs, by rank, graph and name.
struct MindSporeNodes<'a> {
    graphs: &'a [RankGraph],
    by_name: HashMap<NodeKey, (usize, usize)>,
}

impl<'a> MindSporeNodes<'a> {
    fn index(graphs: &'a [RankGraph]) -> MindSporeNodes<'a> {
        let mut by_name = HashMap::new();
        for (g, graph) in graphs.iter().enumerate() {
            for (n, node) in graph.graph.nodes.iter().enumerate() {
                let name = clean_name(&node.full_name);
                let key = (graph.rank, Some(graph.graph_id), name);
                // Names that differ only in punctuation share a file name, so such nodes are
                // indistinguishable.
                by_name.entry(key).or_insert((g, n));
            }
        }
        MindSporeNodes { graphs, by_name }
    }

    /// The node that a run is of: its graph and its place in it.
    fn find(&self, run: &OperatorExecution) -> Option<(usize, usize)> {
        let key = (run.place.rank, run.place.model_id, clean_name(&run.op_name));
        self.by_name.get(&key).copied()
    }

    /// The values that a node reads and makes; its graph counts after `first` others.
    fn wires(&self, (g, n): (usize, usize), first: usize) -> OperatorWires<'a> {
        let graph = &self.graphs[g].graph;
        let node = &graph.nodes[n];
        // A monad only orders effects: a dump has no slot for it, and counting it would shift the
        // inputs behind it.
        let is_value =
            |input: &&InputOrigin| !matches!(graph.type_of(input), Some(ValueType::Monad(_)));
        let inputs = node.inputs.iter().filter(is_value);
        OperatorWires {
            graph: first + g,
            inputs: WireEnds::from_values(inputs.map(|input| value_of(graph, input))),
            outputs: WireEnds::from_values((0..n_outputs(node)).map(|i| Some(name_of(n, i)))),
        }
    }
}

fn n_outputs(node: &GraphNode) -> usize {
    match &node.output {
        ValueType::Tuple(types) => types.len(),
        _ => 1,
    }
}

fn name_of(node: usize, output: usize) -> Cow<'static, str> {
    Cow::Owned(format!("{node}:{output}"))
}

/// The node and output that an input reads, through nodes that only pass it on.
fn value_of(graph: &GraphDescription, input: &InputOrigin) -> Value<'static> {
    let (mut input, mut output) = (input, 0);
    // In a damaged graph, such nodes may form a cycle.
    for _ in 0..N_HANDED_ON_MAX {
        // Parameters and constants are the output of no run.
        let InputOrigin::Node(at) = input else {
            return None;
        };
        let node = graph.nodes.get(*at)?;
        match (node.op_type.as_str(), &node.inputs[..]) {
            ("TupleGetItem", [tuple, InputOrigin::Constant(index)]) => {
                let Literal::Int(_, index) = graph.constants.get(*index)?.value else {
                    return None;
                };
                output = usize::try_from(index).ok()?;
                input = tuple;
            }
            (op_type, [first, ..]) if PASSING.contains(&op_type) => input = first,
            _ => return Some(name_of(*at, output)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use opscope_store::record::graph::{Constant, TensorType};
    use opscope_tensor::DType;

    use super::super::super::ExecutionSlot;
    use super::*;

    fn slot(side: SlotSide, index: u32) -> ExecutionSlot {
        ExecutionSlot::described(side, index, DType::F32, &[])
    }

    fn run(op_name: &str, n_inputs: u32, n_outputs: u32) -> OperatorExecution {
        let inputs = (0..n_inputs).map(|i| slot(SlotSide::Input, i));
        let outputs = (0..n_outputs).map(|i| slot(SlotSide::Output, i));
        OperatorExecution {
            op_name: op_name.into(),
            slots: inputs.chain(outputs).collect(),
            place: Arc::new(RunPlace {
                rank: Some(2),
                model_id: Some(7),
                ..RunPlace::default()
            }),
            ..OperatorExecution::default()
        }
    }

    fn node(
        op_type: &str,
        full_name: &str,
        inputs: Vec<InputOrigin>,
        output: ValueType,
    ) -> GraphNode {
        GraphNode {
            op_type: op_type.to_owned(),
            full_name: full_name.to_owned(),
            inputs,
            output,
            ..GraphNode::default()
        }
    }

    #[test]
    fn nodes_of_mindspore_hand_values_on() {
        let tensor = || {
            ValueType::Tensor(TensorType {
                dtype: DType::F32,
                shape: vec![2],
            })
        };
        let tuple = ValueType::Tuple(vec![tensor(), tensor()]);
        let monad = ValueType::Monad("UMonad".to_owned());
        let graph = GraphDescription {
            constants: vec![Constant {
                value: Literal::Int(None, 1),
                full_name: None,
            }],
            nodes: vec![
                node("Split", "net/Split-op0", vec![], tuple),
                node("UpdateState", "net/u", vec![], monad),
                node(
                    "TupleGetItem",
                    "net/g",
                    vec![InputOrigin::Node(0), InputOrigin::Constant(0)],
                    tensor(),
                ),
                node(
                    "Depend",
                    "net/d",
                    vec![InputOrigin::Node(2), InputOrigin::Node(1)],
                    tensor(),
                ),
                node(
                    "Add",
                    "net/Add-op1",
                    vec![
                        InputOrigin::Node(1),
                        InputOrigin::Node(3),
                        InputOrigin::Node(0),
                    ],
                    tensor(),
                ),
            ],
            ..GraphDescription::default()
        };
        let graphs = [RankGraph {
            rank: Some(2),
            graph_id: 7,
            path: PathBuf::new(),
            graph,
        }];
        let runs = [
            run("net_Split-op0", 0, 2),
            run("net/Add-op1", 2, 1),
            run("else", 1, 1),
        ];
        let place = |run, slot| SlotRef { run, slot };
        let found = producers(&DumpGraphs::default(), &runs, &graphs);
        // The state that orders effects does not count as an input.
        let expected = [(place(1, 0), place(0, 1)), (place(1, 1), place(0, 0))];
        assert_eq!(found, expected.into_iter().collect());
    }
}
