//! Which output of which run another run reads.

use std::borrow::Cow;
use std::collections::HashMap;

use opscope_store::dump::mindspore::RankGraph;
use opscope_store::record::Side as SlotSide;
use opscope_store::record::graph::{Graph, GraphNode, Input, Literal, ValueType};
use opscope_store::tree::acl::clean_name;

use super::super::super::matching::SlotRef;
use super::super::{Run, RunPlace};
use super::Graphs;

/// Longest chain of nodes that only hand something on.
const N_HANDED_ON_MAX: usize = 64;
/// Nodes of MindSpore that give their first input again.
const PASSING: [&str; 3] = ["Depend", "Load", "Identity"];

/// A value, by a name that is unique in its graph.
type Value<'a> = Option<Cow<'a, str>>;

/// What a run reads and makes.
struct Wires<'a> {
    /// Which graph the names belong to; those of MindSpore count after those of descriptions.
    graph: usize,
    inputs: Vec<Value<'a>>,
    outputs: Vec<Value<'a>>,
}

/// By input slot the output slot that it was made as.
pub(super) fn producers(
    graphs: &Graphs,
    runs: &[Run],
    mindspore: &[RankGraph],
) -> HashMap<SlotRef, SlotRef> {
    let nodes = Nodes::of(mindspore);
    let mut producers = HashMap::new();
    let mut places: HashMap<&RunPlace, usize> = HashMap::new();
    // What was made last under each name. A later execution of an operator hides an earlier one.
    let mut made: HashMap<(usize, usize, Cow<'_, str>), SlotRef> = HashMap::new();
    for (index, run) in runs.iter().enumerate() {
        let n_places = places.len();
        let place = *places.entry(&run.place).or_insert(n_places);
        let described = graphs.of_run(index).map(|(file, operator)| {
            let names = |names: &'_ [Option<String>]| -> Vec<Value<'_>> {
                let name = |name: &Option<String>| name.clone().map(Cow::Owned);
                names.iter().map(name).collect()
            };
            Wires {
                graph: file,
                inputs: names(&operator.inputs),
                outputs: names(&operator.outputs),
            }
        });
        let Some(wires) = described.or_else(|| nodes.wires(run, graphs.files.len())) else {
            continue;
        };
        let key = |name: &Cow<'_, str>| (place, wires.graph, Cow::Owned(name.clone().into_owned()));
        let slots = |wanted: SlotSide| {
            let slots = run.slots.iter().enumerate();
            slots.filter(move |(_, slot)| slot.side == wanted)
        };
        for (i, slot) in slots(SlotSide::Input) {
            let name = wires.inputs.get(slot.index as usize);
            let from = name
                .and_then(Option::as_ref)
                .and_then(|name| made.get(&key(name)));
            if let Some(&from) = from {
                producers.insert(
                    SlotRef {
                        run: index,
                        slot: i,
                    },
                    from,
                );
            }
        }
        for (i, slot) in slots(SlotSide::Output) {
            if let Some(Some(name)) = wires.outputs.get(slot.index as usize) {
                made.insert(
                    key(name),
                    SlotRef {
                        run: index,
                        slot: i,
                    },
                );
            }
        }
    }
    producers
}

/// The nodes of MindSpore's graphs, by rank, graph and name.
struct Nodes<'a> {
    graphs: &'a [RankGraph],
    by_name: HashMap<(Option<u32>, Option<u32>, String), (usize, usize)>,
}

impl<'a> Nodes<'a> {
    fn of(graphs: &'a [RankGraph]) -> Nodes<'a> {
        let mut by_name = HashMap::new();
        for (g, graph) in graphs.iter().enumerate() {
            for (n, node) in graph.graph.nodes.iter().enumerate() {
                let name = clean_name(&node.full_name);
                let key = (graph.rank, Some(graph.graph_id), name);
                by_name.entry(key).or_insert((g, n));
            }
        }
        Nodes { graphs, by_name }
    }

    fn wires(&self, run: &Run, first: usize) -> Option<Wires<'a>> {
        let key = (run.place.rank, run.place.model_id, clean_name(&run.op_name));
        let &(g, n) = self.by_name.get(&key)?;
        let graph = &self.graphs[g].graph;
        let node = &graph.nodes[n];
        let is_value = |input: &&Input| !matches!(graph.type_of(input), Some(ValueType::Monad(_)));
        let inputs = node.inputs.iter().filter(is_value);
        Some(Wires {
            graph: first + g,
            inputs: inputs.map(|input| value_of(graph, input)).collect(),
            outputs: (0..n_outputs(node)).map(|i| Some(name_of(n, i))).collect(),
        })
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

/// The node and output that an input reads, through nodes that only hand it on.
fn value_of(graph: &Graph, input: &Input) -> Value<'static> {
    let (mut input, mut output) = (input, 0);
    for _ in 0..N_HANDED_ON_MAX {
        let Input::Node(at) = input else { return None };
        let node = graph.nodes.get(*at)?;
        match (node.op_type.as_str(), &node.inputs[..]) {
            ("TupleGetItem", [tuple, Input::Constant(index)]) => {
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
