//! The original graph: which names are the same value, and which operator computes it.

use std::collections::{HashMap, HashSet};

use prost::Message;

use crate::onnx::proto::{self, is_standard, standard};
use crate::onnx::schema::{AttributeProto, GraphProto, NodeProto, OnnxDataType, TensorProto};

/// Number of a value. Names of the same value have the same number: results of `Identity`, of
/// operators that occur twice, small weights of the same content.
pub(super) type Class = usize;

/// Largest weight that is compared by content, in bytes of its message.
const WEIGHT_BYTES_MAX: usize = 1024;

/// Types whose results differ although their inputs do not.
const RANDOM: [&str; 6] = [
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
];

/// The original graph with everything in it.
pub(super) struct OriginalModel<'g> {
    /// Every node, in the order of [`proto::all_nodes`].
    pub(super) nodes: Vec<OriginalNode<'g>>,
    /// By class, who computes it: nodes with the positions of their outputs, the first one first.
    /// None for what a graph is given.
    pub(super) producers: Vec<Vec<(usize, usize)>>,
    /// By class, whether it depends on nothing that a graph is given.
    pub(super) is_constant: Vec<bool>,
    /// By class, the nodes that read it.
    pub(super) consumers: Vec<Vec<usize>>,
    /// Conditions that are known beforehand.
    pub(super) conditions: HashMap<Class, bool>,
    main: OriginalGraph<'g>,
}

/// A node of the original graph.
pub(super) struct OriginalNode<'g> {
    pub(super) proto: &'g NodeProto,
    /// The values that it reads, and those that are read inside of it.
    pub(super) reads: Vec<Class>,
    /// The classes of its inputs, in position; none where one is absent.
    pub(super) inputs: Vec<Option<Class>>,
    /// The graphs inside of it, with the names of their attributes.
    pub(super) bodies: Vec<(&'g str, OriginalGraph<'g>)>,
    /// Whether it only holds a value and is not an operator.
    pub(super) is_constant_node: bool,
}

/// A graph: that of the model, or one inside a node.
#[derive(Default)]
pub(super) struct OriginalGraph<'g> {
    /// The nodes of this graph alone.
    pub(super) nodes: HashSet<usize>,
    /// By name, the class of each value that it is given, holds or computes.
    pub(super) classes: HashMap<&'g str, Class>,
    /// By name, the node that computes a value, and which of its outputs it is.
    pub(super) outputs: HashMap<&'g str, (usize, usize)>,
    /// By name of a node in this graph; where several have it, none.
    pub(super) by_name: HashMap<String, Option<usize>>,
    /// The values that the graph is given.
    pub(super) given: HashSet<Class>,
}

impl<'g> OriginalGraph<'g> {
    fn class(&self, name: &str, outer: &HashMap<&'g str, Class>) -> Option<Class> {
        let own = self.classes.get(name);
        own.or_else(|| outer.get(name)).copied()
    }
}

/// A description of an operator's computation, as far as it is known: type, attributes, inputs.
#[derive(PartialEq, Eq, Hash)]
struct NodeFormula<'g> {
    op_type: (&'g str, &'g str),
    attributes: Vec<Vec<u8>>,
    inputs: Vec<Option<Class>>,
    n_outputs: usize,
}

/// Facts known while a graph is read.
#[derive(Default)]
struct ReadingState<'g> {
    weights: HashMap<Vec<u8>, Class>,
    formulas: HashMap<NodeFormula<'g>, Vec<Class>>,
}

impl<'g> OriginalModel<'g> {
    pub(super) fn new(graph: &'g GraphProto) -> OriginalModel<'g> {
        let mut source = OriginalModel {
            nodes: Vec::new(),
            producers: Vec::new(),
            is_constant: Vec::new(),
            consumers: Vec::new(),
            conditions: HashMap::new(),
            main: OriginalGraph::default(),
        };
        source.main = source.read(graph, &HashMap::new());
        source.consumers = vec![Vec::new(); source.producers.len()];
        for (index, node) in source.nodes.iter().enumerate() {
            for &class in &node.reads {
                source.consumers[class].push(index);
            }
        }
        source
    }

    pub(super) fn main(&self) -> &OriginalGraph<'g> {
        &self.main
    }

    fn add(&mut self, is_constant: bool) -> Class {
        self.producers.push(Vec::new());
        self.is_constant.push(is_constant);
        self.producers.len() - 1
    }

    fn read(
        &mut self,
        graph: &'g GraphProto,
        outer: &HashMap<&'g str, Class>,
    ) -> OriginalGraph<'g> {
        let mut body = OriginalGraph::default();
        let mut known = ReadingState::default();
        for tensor in &graph.initializer {
            let class = self.weight(tensor, &mut known);
            self.conditions
                .extend(condition(tensor).map(|value| (class, value)));
            body.classes.insert(&tensor.name, class);
        }
        for value in &graph.input {
            if !body.classes.contains_key(value.name.as_str()) {
                let class = self.add(false);
                body.given.insert(class);
                body.classes.insert(&value.name, class);
            }
        }
        for node in &graph.node {
            self.node(node, outer, &mut body, &mut known);
        }
        body
    }

    fn weight(&mut self, tensor: &TensorProto, known: &mut ReadingState<'_>) -> Class {
        // Comparing large weights by content costs more than it is worth.
        if !tensor.external_data.is_empty() || tensor.encoded_len() > WEIGHT_BYTES_MAX {
            return self.add(true);
        }
        let content = content(tensor);
        if let Some(&class) = known.weights.get(&content) {
            return class;
        }
        let class = self.add(true);
        known.weights.insert(content, class);
        class
    }

    fn node(
        &mut self,
        node: &'g NodeProto,
        outer: &HashMap<&'g str, Class>,
        body: &mut OriginalGraph<'g>,
        known: &mut ReadingState<'g>,
    ) {
        let index = self.nodes.len();
        let inputs = node.input.iter().map(|name| body.class(name, outer));
        let inputs: Vec<Option<Class>> = inputs.collect();
        let mut reads: Vec<Class> = inputs.iter().copied().flatten().collect();
        let inner_reads = inner_reads(node);
        reads.extend(
            inner_reads
                .iter()
                .filter_map(|name| body.class(name, outer)),
        );
        reads.sort_unstable();
        reads.dedup();
        let is_constant_node = node.op_type == proto::CONSTANT && is_standard(&node.domain);
        let is_constant = reads.iter().all(|&class| self.is_constant[class])
            && !RANDOM.contains(&node.op_type.as_str());
        self.nodes.push(OriginalNode {
            proto: node,
            reads,
            inputs: inputs.clone(),
            bodies: Vec::new(),
            is_constant_node,
        });
        body.nodes.insert(index);
        body.by_name
            .entry(proto::node_name(node))
            // A name that two nodes have is no evidence for either.
            .and_modify(|known| *known = None)
            .or_insert(Some(index));
        let classes = self.results(node, inputs, is_constant, known);
        for (position, (name, class)) in node.output.iter().zip(classes).enumerate() {
            if !name.is_empty() {
                self.producers[class].push((index, position));
                body.classes.insert(name, class);
                body.outputs.insert(name, (index, position));
            }
        }
        // The optimiser replaces an `If` by the branch that is taken when its condition is a
        // constant.
        if let Some(value) = node.attribute.iter().find_map(|a| condition(a.t.as_ref()?))
            && is_constant_node
        {
            let classes = node
                .output
                .iter()
                .filter_map(|name| body.classes.get(name.as_str()));
            self.conditions.extend(classes.map(|&class| (class, value)));
        }
        // A body sees the values that exist when its node runs, and no later ones.
        let mut around = outer.clone();
        around.extend(&body.classes);
        let inner = named_bodies(node).map(|(name, graph)| (name, self.read(graph, &around)));
        let inner: Vec<_> = inner.collect();
        self.nodes[index].bodies = inner;
    }

    /// Returns the classes of a node's outputs: values that are there already, or new ones.
    fn results(
        &mut self,
        node: &'g NodeProto,
        inputs: Vec<Option<Class>>,
        is_constant: bool,
        known: &mut ReadingState<'g>,
    ) -> Vec<Class> {
        let passes_on = match node.op_type.as_str() {
            // Its result is the same value, which the optimiser knows and removes.
            "Identity" => true,
            // What switches training on is the third input.
            "Dropout" => inputs.len() < 3,
            _ => false,
        };
        let mut classes: Vec<Class> = Vec::new();
        if passes_on && is_standard(&node.domain) {
            classes.extend(inputs.first().copied().flatten());
        }
        let has_bodies = proto::bodies(node).next().is_some();
        // Two draws of random numbers differ, and the contents of bodies are not compared.
        let is_unique = has_bodies || RANDOM.contains(&node.op_type.as_str()) || passes_on;
        let formula = (!is_unique).then(|| NodeFormula {
            op_type: (standard(&node.domain), &node.op_type),
            attributes: encoded(&node.attribute),
            inputs,
            n_outputs: node.output.len(),
        });
        if let Some(twins) = formula.as_ref().and_then(|f| known.formulas.get(f)) {
            return twins.clone();
        }
        while classes.len() < node.output.len() {
            classes.push(self.add(is_constant));
        }
        if let Some(formula) = formula {
            known.formulas.insert(formula, classes.clone());
        }
        classes
    }

    /// The node that computes a class first.
    pub(super) fn producer(&self, class: Class) -> Option<&OriginalNode<'g>> {
        let (node, _) = self.producers[class].first()?;
        Some(&self.nodes[*node])
    }

    /// The output that an operator really computes under the name of `output`. The optimiser drops
    /// an activation that only cuts off what quantising cuts off as well, and the operator before
    /// it inherits the name.
    pub(super) fn before_saturation(
        &self,
        class: Class,
        output: (usize, usize),
        executed: &NodeProto,
    ) -> (usize, usize) {
        let node = &self.nodes[output.0];
        let activation = node.proto.op_type.as_str();
        let has_it = executed.op_type == activation
            || executed.attribute.iter().any(|a| a.name == "activation");
        let readers = &self.consumers[class];
        if has_it
            || !["Relu", "Clip"].contains(&activation)
            || readers.is_empty()
            || !readers
                .iter()
                .all(|&reader| self.nodes[reader].proto.op_type == "QuantizeLinear")
        {
            return output;
        }
        let before = node.inputs.first().copied().flatten();
        let before = before.and_then(|class| self.producers[class].first());
        before.copied().unwrap_or(output)
    }
}

/// The graphs inside a node, in the order of [`proto::bodies`], with the names of their attributes.
pub(super) fn named_bodies(node: &NodeProto) -> impl Iterator<Item = (&str, &GraphProto)> {
    node.attribute.iter().flat_map(|attribute| {
        let graphs = attribute.g.iter().chain(&attribute.graphs);
        graphs.map(|graph| (attribute.name.as_str(), graph))
    })
}

/// Names that the graphs inside a node read from outside of it, among others.
pub(super) fn inner_reads(node: &NodeProto) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for body in proto::bodies(node) {
        for inner in proto::all_nodes(body) {
            names.extend(inner.input.iter().map(String::as_str));
        }
        names.extend(body.output.iter().map(|value| value.name.as_str()));
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The value of a truth value.
fn condition(tensor: &TensorProto) -> Option<bool> {
    let n_elements: Option<i64> = tensor
        .dims
        .iter()
        .try_fold(1, |n: i64, dim| n.checked_mul(*dim));
    if tensor.data_type() != OnnxDataType::Bool as i32 || n_elements != Some(1) {
        return None;
    }
    match (tensor.raw_data().first(), tensor.int32_data.first()) {
        (Some(byte), _) => Some(*byte != 0),
        (None, number) => number.map(|number| *number != 0),
    }
}

fn content(tensor: &TensorProto) -> Vec<u8> {
    let unnamed = TensorProto {
        name: String::new(),
        doc_string: None,
        metadata_props: Vec::new(),
        ..tensor.clone()
    };
    unnamed.encode_to_vec()
}

/// Attributes in order of their names, without what says nothing about values.
fn encoded(attributes: &[AttributeProto]) -> Vec<Vec<u8>> {
    let mut encoded: Vec<Vec<u8>> = attributes
        .iter()
        .map(|a| plain(a).encode_to_vec())
        .collect();
    encoded.sort_unstable();
    encoded
}

/// An attribute without its description.
pub(super) fn plain(attribute: &AttributeProto) -> AttributeProto {
    AttributeProto {
        doc_string: None,
        ..attribute.clone()
    }
}
