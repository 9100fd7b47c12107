//! Which original value a value of the executed graph is.

mod blocked;
mod quantised;

use std::collections::{HashMap, HashSet};

use super::source::{Class, OriginalGraph, OriginalModel, inner_reads, plain};
use crate::onnx::proto::{self, is_same_domain, is_standard};
use crate::onnx::schema::{GraphProto, NodeProto};

/// Types that move or cast elements and compute nothing.
const MOVING: [&str; 8] = [
    "Cast",
    "Flatten",
    "ReorderInput",
    "ReorderOutput",
    "Reshape",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];
/// Prefixes that ONNX Runtime puts before the name of a value that it casts.
const CAST_PREFIXES: [&str; 2] = ["InsertedPrecisionFreeCast_", "InsertedCast_"];
/// The suffix of a value that is recomputed for each reader.
const COPY_SUFFIX: &str = "/duplicated";

/// ONNX Runtime appends this and a counter to make a duplicate name unique.
const UNIQUE_SUFFIX: &str = "_token_";

/// A graph of the executed model with the original one.
pub(super) struct GraphPairing<'a, 'g> {
    source: &'a OriginalModel<'g>,
    body: &'a OriginalGraph<'g>,
    pub(super) nodes: Vec<ExecutedNode<'g>>,
    /// By name of a value, the original value that it is, in whatever layout and precision.
    pub(super) classes: HashMap<&'g str, Class>,
    /// By name of a value of this graph, the node that computes it.
    pub(super) producers: HashMap<&'g str, usize>,
    /// Names of values that the graph holds.
    pub(super) constants: HashSet<&'g str>,
    /// Original values that nodes of this graph compute.
    pub(super) computed: HashSet<Class>,
    /// By node, the original one that it is, unchanged but for the names of its outputs.
    pub(super) twins: Vec<Option<usize>>,
    /// The other way round.
    pub(super) twin_of: HashMap<usize, usize>,
}

/// A node of the executed graph.
pub(super) struct ExecutedNode<'g> {
    pub(super) proto: &'g NodeProto,
    /// The values that it reads, and those that are read inside of it.
    pub(super) reads: Vec<&'g str>,
}

impl<'a, 'g> GraphPairing<'a, 'g> {
    pub(super) fn new(
        source: &'a OriginalModel<'g>,
        body: &'a OriginalGraph<'g>,
        executed: &'g GraphProto,
        outer: &HashMap<&'g str, Class>,
    ) -> GraphPairing<'a, 'g> {
        let nodes: Vec<ExecutedNode<'g>> = executed.node.iter().map(ExecutedNode::new).collect();
        let constants = executed.initializer.iter().map(|t| t.name.as_str());
        let mut pairing = GraphPairing {
            source,
            body,
            classes: outer.clone(),
            producers: HashMap::new(),
            constants: constants.collect(),
            computed: HashSet::new(),
            twins: vec![None; nodes.len()],
            twin_of: HashMap::new(),
            nodes,
        };
        let given = executed.input.iter().map(|value| value.name.as_str());
        let held: Vec<&str> = given.chain(pairing.constants.iter().copied()).collect();
        for name in held {
            pairing.name(name);
        }
        for index in 0..pairing.nodes.len() {
            pairing.name_results(index);
        }
        // Names are the certain evidence, so they came first. Only now is it worked out what lies
        // between them.
        pairing.propagate();
        pairing.find_twins();
        let results = pairing.producers.keys();
        let computed = results.filter_map(|name| pairing.classes.get(name));
        pairing.computed = computed.copied().collect();
        pairing
    }

    pub(super) fn body(&self) -> &'a OriginalGraph<'g> {
        self.body
    }

    /// Whether a value corresponds to an original one, or needs none.
    pub(super) fn is_known(&self, name: &str) -> bool {
        self.classes.contains_key(name) || self.constants.contains(name)
    }

    /// The original name of a value that has the same elements, if in another precision.
    pub(super) fn same_value<'n>(&self, name: &'n str) -> Option<&'n str> {
        let prefixes = CAST_PREFIXES.iter();
        let casts = prefixes.filter_map(|prefix| name.strip_prefix(prefix));
        let mut names = std::iter::once(name)
            .chain(name.strip_suffix(COPY_SUFFIX))
            .chain(casts);
        names.find(|name| self.body.classes.contains_key(name))
    }

    /// Takes what a name says.
    fn name(&mut self, name: &'g str) {
        // A name of this graph hides that of a graph around it.
        self.classes.remove(name);
        let same = self.same_value(name);
        if let Some(&class) = same.and_then(|same| self.body.classes.get(same)) {
            self.classes.insert(name, class);
        }
    }

    fn name_results(&mut self, index: usize) {
        let node = &self.nodes[index];
        // Values computed from weights alone, such as their casts, were not computed yet.
        let is_held =
            !node.reads.is_empty() && node.reads.iter().all(|r| self.constants.contains(r));
        for name in node.proto.output.iter().filter(|name| !name.is_empty()) {
            self.producers.insert(name, index);
            self.name(name);
            if is_held && !self.classes.contains_key(name.as_str()) {
                self.constants.insert(name);
            }
        }
    }

    /// Finds out what values without an original name are, from those that have one.
    fn propagate(&mut self) {
        loop {
            let n_before = self.classes.len();
            for index in 0..self.nodes.len() {
                self.propagate_through(index);
            }
            for index in (0..self.nodes.len()).rev() {
                self.propagate_through(index);
            }
            // Stronger rules run until they find nothing more: a guess from a name must not go
            // before them.
            if self.classes.len() > n_before {
                continue;
            }
            for index in 0..self.nodes.len() {
                self.propagate_by_name(index);
                self.propagate_quantised(index);
            }
            if self.classes.len() > n_before {
                continue;
            }
            for index in 0..self.nodes.len() {
                self.propagate_to_input(index);
            }
            if self.classes.len() == n_before {
                return;
            }
        }
    }

    /// Spreads a class through an operator that only moves elements: its value is the same on both
    /// sides.
    fn propagate_through(&mut self, index: usize) {
        let node = self.nodes[index].proto;
        if !MOVING.contains(&node.op_type.as_str()) || self.namesake(index).is_some() {
            return;
        }
        let (Some(input), Some(output)) = (node.input.first(), node.output.first()) else {
            return;
        };
        let [before, after] = [input, output].map(|name| self.classes.get(name.as_str()).copied());
        match (before, after) {
            (Some(class), None) => self.insert(output, class),
            (None, Some(class)) if !self.constants.contains(input.as_str()) => {
                self.insert(input, class);
            }
            _ => {}
        }
    }

    fn insert(&mut self, name: &'g str, class: Class) {
        if !name.is_empty() {
            self.classes.insert(name, class);
        }
    }

    /// An operator that kept name and type computes the same in another layout; one on blocked
    /// channels is named after its output.
    fn propagate_by_name(&mut self, index: usize) {
        let node = self.nodes[index].proto;
        let [output] = &node.output[..] else {
            return;
        };
        if self.classes.contains_key(output.as_str()) || self.constants.contains(output.as_str()) {
            return;
        }
        if let Some(class) = self
            .kept_result(index)
            .or_else(|| self.blocked_result(index))
        {
            self.insert(output, class);
        }
    }

    /// Finds the input of a node on blocked channels from its output.
    fn propagate_to_input(&mut self, index: usize) {
        let node = self.nodes[index].proto;
        if let Some(input) = node.input.first()
            && !self.classes.contains_key(input.as_str())
            && let Some(class) = self.blocked_input(index)
        {
            self.insert(input, class);
        }
    }

    /// The only original node of this graph with the same name.
    pub(super) fn namesake(&self, index: usize) -> Option<usize> {
        // Nodes without a name go by their first output in both graphs.
        let name = proto::node_name(self.nodes[index].proto);
        self.body.by_name.get(&name).copied().flatten()
    }

    /// The same for a node whose name got a number because another one has it.
    fn first_namesake(&self, index: usize) -> Option<usize> {
        let found = self
            .body
            .by_name
            .get(unnumbered(&self.nodes[index].proto.name));
        self.namesake(index).or(found.copied().flatten())
    }

    fn find_twins(&mut self) {
        for index in 0..self.nodes.len() {
            let Some(twin) = self
                .namesake(index)
                .filter(|&twin| self.is_twin(index, twin))
            else {
                continue;
            };
            self.twins[index] = Some(twin);
            self.twin_of.insert(twin, index);
        }
    }

    /// Whether a node has the type, the attributes and the inputs of an original one.
    fn is_twin(&self, index: usize, twin: usize) -> bool {
        let node = self.nodes[index].proto;
        let original = &self.source.nodes[twin];
        // A name alone proves nothing, for the library reuses names for operators that it has
        // changed.
        is_same_type(node, original.proto)
            && n_inputs(node) == n_inputs(original.proto)
            && node.output.len() <= original.proto.output.len()
            && node.input.iter().enumerate().all(|(position, name)| {
                if name.is_empty() {
                    original.inputs.get(position).is_none_or(Option::is_none)
                } else {
                    let class = self.classes.get(name.as_str()).copied();
                    let same = original.proto.input.get(position);
                    class.is_some()
                        && original.inputs.get(position).copied().flatten() == class
                        && same.is_some_and(|same| self.is_plain_copy(name, same))
                }
            })
            && has_attributes(node, original.proto)
    }

    /// Whether a value has the layout of the original one too.
    fn is_plain_copy(&self, name: &str, original: &str) -> bool {
        name == original || self.same_value(name).is_some()
    }

    /// The original operator that an inserted one that moves elements was a part of, by its name.
    pub(super) fn moved(&self, index: usize) -> Option<usize> {
        let node = self.nodes[index].proto;
        if !MOVING.contains(&node.op_type.as_str()) {
            return None;
        }
        let ends = node.name.char_indices().rev();
        let mut ends = ends
            .filter(|(_, mark)| ['_', '/'].contains(mark))
            .map(|(end, _)| end);
        let found = ends.find_map(|end| {
            let known = self.body.by_name.get(node.name.get(..end)?);
            known.copied().flatten()
        })?;
        is_same_type(self.source.nodes[found].proto, node).then_some(found)
    }
}

impl<'g> ExecutedNode<'g> {
    fn new(proto: &'g NodeProto) -> ExecutedNode<'g> {
        let inputs = proto.input.iter().map(String::as_str);
        let mut reads: Vec<&str> = inputs.filter(|name| !name.is_empty()).collect();
        reads.extend(inner_reads(proto));
        reads.sort_unstable();
        reads.dedup();
        ExecutedNode { proto, reads }
    }
}

/// A name without the number that makes it unique.
fn unnumbered(name: &str) -> &str {
    match name.rsplit_once(UNIQUE_SUFFIX) {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

fn is_same_type(a: &NodeProto, b: &NodeProto) -> bool {
    a.op_type == b.op_type && is_same_domain(&a.domain, &b.domain)
}

/// Number of inputs, without absent ones at the end.
fn n_inputs(node: &NodeProto) -> usize {
    let last = node.input.iter().rposition(|name| !name.is_empty());
    last.map_or(0, |last| last + 1)
}

/// Whether a node has the attributes of an original one. Defaults may have been written out; only
/// the standard operators are sure to have no others.
fn has_attributes(node: &NodeProto, original: &NodeProto) -> bool {
    let n_kept = original
        .attribute
        .iter()
        .filter(|wanted| {
            let mut own = node.attribute.iter();
            let is_graph = wanted.g.is_some() || !wanted.graphs.is_empty();
            own.any(|a| a.name == wanted.name && (is_graph || plain(a) == plain(wanted)))
        })
        .count();
    n_kept == original.attribute.len()
        && (is_standard(&node.domain) || n_kept == node.attribute.len())
}
