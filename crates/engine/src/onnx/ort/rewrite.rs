//! Putting taps into a model.
//!
//! After each operator comes a custom node, a tap, that reads the operator's inputs and outputs and
//! produces nothing. ONNX Runtime walks a graph back from the nodes without readers, the last one
//! in the file first. So the taps are at the end of their graph in the reverse order of their
//! operators: each runs right after its operator, and no value is kept longer than the model needs
//! it. Only memory depends on that order.
//!
//! The library also sorts the graph by the nodes' places in the file, several times, and looks
//! through all nodes that are ready for each that becomes ready. Taps at the end would all be ready
//! before the first of them has its turn, so taps take turns: only a few at a time do not wait for
//! others (`turns.rs`).

mod names;
mod own_node;
mod rounding;
mod scope;
mod turns;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opscope_store::record::Operator;

pub(super) use self::names::{name_nodes, with_own_names};
pub(super) use self::own_node::{DEVICE_TAP, DOMAIN, SITE, START, TAP, TICK};
use self::own_node::{PREFIX, VERSION, own_node};
pub(super) use self::rounding::{
    CHANNELS_BEGIN, CHANNELS_END, FloatOutputs, IS_BIAS, rounding_operator, with_rounding,
};
use self::scope::{NameBinding, ScopeStack};
pub(super) use self::turns::TURN_SHAPE;
use self::turns::TapTurns;
use super::kind::{OnnxValueKind, OnnxValueKinds};
use super::site::{RequestedSlots, SharedValue, StaticValue, TapInput, TapRequests, TapSite};
use super::weights::{ModelWeight, ModelWeights};
use crate::onnx::proto;
use crate::onnx::schema::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OnnxAttributeType, OperatorSetIdProto,
};

/// Facts that are known of a model whatever is tapped of it.
pub(super) struct ModelFacts<'a> {
    /// The model, with its weights taken.
    pub(super) model: &'a ModelProto,
    /// Its operators by task.
    pub(super) operators: &'a HashMap<u32, Arc<Operator>>,
    /// Names of the values that a caller provides, in order.
    pub(super) graph_inputs: &'a [String],
    /// The values that the model holds itself.
    pub(super) weights: &'a ModelWeights,
    /// Which of its values are no tensors.
    pub(super) kinds: &'a OnnxValueKinds,
    /// Values that the engine has refused to show.
    pub(super) refused: &'a HashSet<String>,
    /// Whether taps are on a device, as far as they can be.
    pub(super) has_device: bool,
}

/// A model with taps in it.
pub(super) struct TappedModel {
    /// The model.
    pub(super) model: ModelProto,
    /// The values that each tap shows.
    pub(super) sites: Vec<TapSite>,
    /// The values that taps may show.
    pub(super) values: Vec<SharedValue>,
}

impl TappedModel {
    /// Names of the model's own values that the tap with this node reads.
    pub(super) fn values_of(&self, tap: &str) -> Vec<String> {
        let graph = self.model.graph.as_ref();
        let mut nodes = graph.into_iter().flat_map(proto::all_nodes);
        let node = nodes.find(|node| node.name == tap && node.domain == DOMAIN);
        let inputs = node.into_iter().flat_map(|node| &node.input);
        inputs
            .filter(|name| !name.starts_with(PREFIX))
            .cloned()
            .collect()
    }
}

/// The name of the node that is the tap of this number.
fn tap_name(site: usize) -> String {
    format!("{PREFIX}tap:{site}")
}

/// Adds a tap after each operator that is to be shown.
pub(super) fn tap(known: &ModelFacts<'_>, wanted: &TapRequests) -> TappedModel {
    rewritten(known, wanted, TapPlace::Behind)
}

/// Where taps are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TapPlace {
    /// They run when their operator is done.
    Behind,
    /// They run before it.
    Before,
}

fn rewritten(known: &ModelFacts<'_>, wanted: &TapRequests, place: TapPlace) -> TappedModel {
    // The model itself stays free of taps: other plans want them elsewhere.
    let mut model = known.model.clone();
    let mut rewriter = GraphRewriter {
        known,
        wanted,
        place,
        n_graphs: 0,
        n_tasks: 0,
        scopes: ScopeStack::default(),
        sites: Vec::new(),
        values: Vec::new(),
    };
    if let Some(graph) = &mut model.graph {
        // All graphs are walked in the order of the file, in which tasks and graphs are numbered
        // elsewhere too.
        rewriter.graph(graph, &LoopIterations::default());
    }
    add_domain(&mut model);
    TappedModel {
        model,
        sites: rewriter.sites,
        values: rewriter.values,
    }
}

/// Puts one tap into a model, in front of the operator of this task, that reads what the operator
/// reads.
///
/// The tap is the last node of its graph, from which the engine begins to walk back.
pub(super) fn tap_before(known: &ModelFacts<'_>, task_id: u32) -> TappedModel {
    let operator = known.operators.get(&task_id);
    let wanted = TapRequests::inputs_of(operator.map(AsRef::as_ref));
    rewritten(known, &wanted, TapPlace::Before)
}

fn add_domain(model: &mut ModelProto) {
    if model
        .opset_import
        .iter()
        .all(|import| import.domain() != DOMAIN)
    {
        model.opset_import.push(OperatorSetIdProto {
            domain: Some(DOMAIN.to_owned()),
            version: Some(VERSION),
        });
    }
}

/// The loops that a graph is in.
#[derive(Clone, Default)]
struct LoopIterations {
    /// Names of the values that hold the numbers of iterations, the outermost loop's first.
    counters: Vec<String>,
    /// Whether it is unknown how often the graph runs.
    is_opaque: bool,
}

struct GraphRewriter<'a> {
    known: &'a ModelFacts<'a>,
    wanted: &'a TapRequests,
    place: TapPlace,
    n_graphs: usize,
    n_tasks: u32,
    scopes: ScopeStack,
    sites: Vec<TapSite>,
    values: Vec<SharedValue>,
}

impl GraphRewriter<'_> {
    fn graph(&mut self, graph: &mut GraphProto, iterations: &LoopIterations) {
        let number = self.n_graphs;
        self.n_graphs += 1;
        self.scopes.enter();
        self.bind_graph(graph, number, iterations);
        let mut nodes = Vec::with_capacity(graph.node.len() * 2);
        let mut taps = if number == 0 {
            TapTurns::in_main_graph()
        } else {
            TapTurns::in_body()
        };
        for mut node in std::mem::take(&mut graph.node) {
            let task_id = self.n_tasks;
            self.n_tasks += 1;
            self.bodies(&mut node, task_id, iterations, &mut nodes);
            for name in node.output.iter().filter(|name| !name.is_empty()) {
                self.bind(number, name, iterations);
            }
            // Without the iteration number, values of different iterations would look the same.
            if !proto::is_constant(&node) && !iterations.is_opaque {
                self.tap(&node, task_id, iterations, (&mut nodes, &mut taps));
            }
            // What bodies read counts as read by the node that has them: its tap is the last to
            // show it.
            self.scopes.end_node();
            nodes.push(node);
        }
        taps.append_to(&mut nodes, &mut graph.value_info);
        graph.node = nodes;
        self.scopes.leave(&mut self.sites);
    }

    /// Binds the names that a graph has before any of its nodes runs.
    fn bind_graph(&mut self, graph: &GraphProto, number: usize, iterations: &LoopIterations) {
        for input in &graph.input {
            self.bind(number, &input.name, iterations);
        }
        if number == 0 {
            for (i, name) in self.known.graph_inputs.iter().enumerate() {
                let given = StaticValue::GraphInput(i);
                self.scopes.bind(name, NameBinding::Given(given));
            }
        }
        for weight in &graph.initializer {
            self.bind(number, &weight.name, iterations);
        }
    }

    fn bind(&mut self, graph: usize, name: &str, iterations: &LoopIterations) {
        let known = self.known;
        let is_shown =
            known.kinds.get(graph, name) == OnnxValueKind::Tensor && !known.refused.contains(name);
        let binding = match known.weights.get(graph, name) {
            Some(ModelWeight::Tensor(tensor)) => {
                NameBinding::Given(StaticValue::Weight(tensor.clone()))
            }
            Some(ModelWeight::Unknown) | None if is_shown => {
                self.values.push(SharedValue {
                    n_counters: iterations.counters.len(),
                    n_shown: 0,
                });
                NameBinding::Value(self.values.len() - 1)
            }
            Some(ModelWeight::Unknown) | None => NameBinding::Hidden,
        };
        self.scopes.bind(name, binding);
    }

    /// Adds taps to the graphs inside a node; the nodes that they need outside go to `nodes`.
    fn bodies(
        &mut self,
        node: &mut NodeProto,
        task_id: u32,
        iterations: &LoopIterations,
        nodes: &mut Vec<NodeProto>,
    ) {
        let is_standard = proto::is_standard(&node.domain);
        let op_type = if is_standard {
            node.op_type.clone()
        } else {
            String::new()
        };
        let mut is_started = false;
        for (i, body) in proto::bodies_mut(node).enumerate() {
            let mut inner = iterations.clone();
            let number = body.input.first().filter(|input| !input.name.is_empty());
            match (op_type.as_str(), number) {
                // A branch runs at most once for each run of its node, so it needs no separate
                // counter.
                ("If", _) => self.graph(body, &inner),
                ("Loop", Some(number)) => {
                    // The body of a loop is given the number of the iteration by the standard.
                    inner.counters.push(number.name.clone());
                    self.graph(body, &inner);
                }
                ("Loop" | "Scan" | "SequenceMap", _) => {
                    let start = format!("{PREFIX}start:{task_id}");
                    // A scan passes its body no number, so a node inside it counts. The count
                    // restarts with each value of `Start`, which runs once for each run of the
                    // node.
                    let tick = format!("{PREFIX}tick:{task_id}:{i}");
                    if !std::mem::replace(&mut is_started, true) {
                        nodes.push(own_node(START, &start, Vec::new(), vec![start.clone()]));
                    }
                    inner.counters.push(tick.clone());
                    self.graph(body, &inner);
                    let node = own_node(TICK, &tick, vec![start], vec![tick.clone()]);
                    // It has to run before the taps that read it.
                    body.node.insert(0, node);
                }
                _ => {
                    inner.is_opaque = true;
                    self.graph(body, &inner);
                }
            }
        }
    }

    /// Adds the tap of an operator to `taps`, if the plan needs one; the nodes that it needs go to
    /// `nodes`.
    fn tap(
        &mut self,
        node: &NodeProto,
        task_id: u32,
        iterations: &LoopIterations,
        (nodes, taps): (&mut Vec<NodeProto>, &mut TapTurns),
    ) {
        let (Some(slots), Some(operator)) = (
            self.wanted.slots_for(task_id),
            self.known.operators.get(&task_id),
        ) else {
            return;
        };
        let mut site = TapSite {
            operator: operator.clone(),
            n_counters: iterations.counters.len(),
            wires: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            releases: Vec::new(),
            ends_turn: false,
        };
        let number = self.sites.len();
        let mut inputs = iterations.counters.clone();
        self.wire_all(node, slots, &mut site, &mut inputs);
        // It comes last, where no wire looks for its value.
        inputs.extend(taps.begin_next(&mut self.sites));
        if inputs.is_empty() {
            // A node has to read something.
            let name = format!("{PREFIX}run:{task_id}");
            nodes.push(own_node(START, &name, Vec::new(), vec![name.clone()]));
            inputs.push(name);
        }
        self.scopes.note_site(number);
        self.sites.push(site);
        // Numbers of iterations are read on the CPU, and inputs of failures are kept there.
        let is_on_device = self.known.has_device
            && self.place == TapPlace::Behind
            && iterations.counters.is_empty();
        let op_type = if is_on_device { DEVICE_TAP } else { TAP };
        let mut tap = own_node(op_type, &tap_name(number), inputs, Vec::new());
        // A kernel learns from its node only what the node's attributes say.
        tap.attribute.push(AttributeProto {
            name: SITE.to_owned(),
            r#type: Some(OnnxAttributeType::Int as i32),
            i: i64::try_from(number).ok(),
            ..AttributeProto::default()
        });
        taps.push(number, tap);
    }

    fn wire_all(
        &mut self,
        node: &NodeProto,
        slots: &RequestedSlots,
        site: &mut TapSite,
        inputs: &mut Vec<String>,
    ) {
        for &position in &slots.inputs {
            if let Some(name) = node.input.get(position).filter(|name| !name.is_empty()) {
                self.wire_input(name, position, site, inputs);
            }
        }
        let mut is_behind = self.place == TapPlace::Before;
        for &position in &slots.outputs {
            if let Some(name) = node.output.get(position).filter(|name| !name.is_empty())
                && let Some((_, wire)) = self.wire(name, site, inputs)
            {
                site.outputs.push((position, wire));
                is_behind = true;
            }
        }
        let mut outputs = node.output.iter().filter(|name| !name.is_empty());
        while !is_behind && let Some(name) = outputs.next() {
            // Without any the tap might run before the operator does, which may fail.
            is_behind = self.wire(name, site, inputs).is_some();
        }
        self.count_shown(site);
    }

    /// Counts the values that a tap shows.
    fn count_shown(&mut self, site: &TapSite) {
        let of_inputs = site.inputs.iter().filter_map(|(_, source)| match source {
            TapInput::Wire(wire) => Some(*wire),
            TapInput::Given(_) => None,
        });
        let mut shown: Vec<usize> = of_inputs
            .chain(site.outputs.iter().map(|(_, wire)| *wire))
            .collect();
        shown.sort_unstable();
        shown.dedup();
        for wire in shown {
            self.values[site.wires[wire]].n_shown += 1;
        }
    }

    fn wire_input(
        &mut self,
        name: &str,
        position: usize,
        site: &mut TapSite,
        inputs: &mut Vec<String>,
    ) {
        if let Some((_, NameBinding::Given(given))) = self.scopes.find(name) {
            site.inputs.push((position, TapInput::Given(given.clone())));
        } else if let Some((depth, wire)) = self.wire(name, site, inputs) {
            site.inputs.push((position, TapInput::Wire(wire)));
            self.scopes.note_read(depth, site.wires[wire]);
        }
    }

    /// The wire of a value that the engine can show, and how deep the graph lies that the value
    /// belongs to.
    fn wire(
        &self,
        name: &str,
        site: &mut TapSite,
        inputs: &mut Vec<String>,
    ) -> Option<(usize, usize)> {
        let (depth, &NameBinding::Value(value)) = self.scopes.find(name)? else {
            return None;
        };
        let known = site.wires.iter().position(|known| *known == value);
        // A value that an operator reads twice is handed over once.
        let wire = known.unwrap_or_else(|| {
            inputs.push(name.to_owned());
            site.wires.push(value);
            site.wires.len() - 1
        });
        Some((depth, wire))
    }
}
