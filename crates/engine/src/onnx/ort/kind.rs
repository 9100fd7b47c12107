//! Which values of a model are no tensors that a custom operator can take.
//!
//! ONNX Runtime passes only tensors to custom operators, and not those of two bits or of
//! `float8e8m0`. A model need not declare the types of its values, so types are followed from the
//! operators that produce such values. Values missed here fail when a session is created, and are
//! left out then.

use std::collections::HashMap;

use crate::onnx::proto::{self, CONSTANT};
use crate::onnx::schema::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OnnxDataType, TypeProto,
    TypeValue, ValueInfoProto,
};

/// Deepest nesting of functions that is followed.
const FUNCTION_DEPTH_MAX: usize = 16;
/// Maximum number of nodes of functions that are visited; a function counts each time it is called.
const N_FUNCTION_NODES_MAX: usize = 1 << 18;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnnxValueKind {
    /// A tensor that can be shown.
    Tensor,
    /// A tensor with elements of a type that is not handed to operators of ours.
    Foreign,
    /// A sequence of tensors or maps.
    Sequence,
    /// A tensor or sequence that may be absent.
    Optional {
        /// Whether it would be a sequence.
        is_sequence: bool,
    },
    /// A map.
    Map,
    /// A tensor with only some of its elements given.
    Sparse,
}

/// The values that are no plain tensors, for each graph; graphs are numbered in the order of the
/// file, each before those inside it.
#[derive(Debug, Default)]
pub(super) struct OnnxValueKinds(Vec<HashMap<String, OnnxValueKind>>);

impl OnnxValueKinds {
    /// Follows the values through a model.
    pub(super) fn from_model(model: &ModelProto) -> OnnxValueKinds {
        let mut walk = KindWalk {
            found: Vec::new(),
            functions: model.functions.iter().map(|f| (key(f), f)).collect(),
            n_function_nodes: 0,
            function_depth: 0,
        };
        if let Some(graph) = &model.graph {
            walk.graph(graph, &mut Vec::new(), &[]);
        }
        OnnxValueKinds(walk.found)
    }

    /// Returns the kind of the value of this name that belongs to the graph of this number.
    pub(super) fn get(&self, graph: usize, name: &str) -> OnnxValueKind {
        let known = self.0.get(graph).and_then(|names| names.get(name));
        known.copied().unwrap_or(OnnxValueKind::Tensor)
    }
}

type FunctionKey<'a> = (&'a str, &'a str, &'a str);

fn key(function: &FunctionProto) -> FunctionKey<'_> {
    (function.domain(), function.name(), function.overload())
}

/// Names that are known in the graphs around a node, the innermost last.
type Scopes = Vec<HashMap<String, OnnxValueKind>>;

struct KindWalk<'a> {
    found: Vec<HashMap<String, OnnxValueKind>>,
    functions: HashMap<FunctionKey<'a>, &'a FunctionProto>,
    n_function_nodes: usize,
    /// Nothing is noted inside functions: their values have no operators of the model.
    function_depth: usize,
}

impl<'a> KindWalk<'a> {
    /// Follows a graph and returns the kinds of its results. `given` are the kinds of its inputs,
    /// for those that the graph itself does not declare.
    fn graph(
        &mut self,
        graph: &'a GraphProto,
        scopes: &mut Scopes,
        given: &[OnnxValueKind],
    ) -> Vec<OnnxValueKind> {
        let number = self.found.len();
        // Functions are followed for the kinds of their results only.
        let is_noted = self.function_depth == 0;
        if is_noted {
            self.found.push(HashMap::new());
        }
        let mut names = HashMap::new();
        for (i, input) in graph.input.iter().enumerate() {
            let kind = declared(input).or_else(|| given.get(i).copied());
            names.insert(input.name.clone(), kind.unwrap_or(OnnxValueKind::Tensor));
        }
        for value in &graph.value_info {
            if let Some(kind) = declared(value) {
                names.insert(value.name.clone(), kind);
            }
        }
        for weight in &graph.initializer {
            names.insert(weight.name.clone(), of_dtype(weight.data_type()));
        }
        for weight in &graph.sparse_initializer {
            let name = weight.values.as_ref().map(|values| values.name.clone());
            names.insert(name.unwrap_or_default(), OnnxValueKind::Sparse);
        }
        scopes.push(names);
        for node in &graph.node {
            self.node(node, scopes);
        }
        let results = graph.output.iter().map(|output| {
            let found = find(scopes, &output.name);
            declared(output).unwrap_or(found)
        });
        let results: Vec<OnnxValueKind> = results.collect();
        let mut names = scopes.pop().unwrap_or_default();
        for (output, kind) in graph.output.iter().zip(&results) {
            if let Some(known) = names.get_mut(&output.name) {
                *known = *kind;
            }
        }
        if is_noted {
            names.retain(|_, kind| *kind != OnnxValueKind::Tensor);
            self.found[number] = names;
        }
        results
    }

    /// Notes what a node's outputs are.
    fn node(&mut self, node: &'a NodeProto, scopes: &mut Scopes) {
        let inputs: Vec<OnnxValueKind> = node.input.iter().map(|name| find(scopes, name)).collect();
        let outputs = self.outputs(node, &inputs, scopes);
        let Some(names) = scopes.last_mut() else {
            return;
        };
        for (i, name) in node.output.iter().enumerate() {
            let kind = outputs.get(i).copied().unwrap_or(OnnxValueKind::Tensor);
            if !name.is_empty() {
                // The model's declaration of the value has been noted already.
                let known = names.entry(name.clone()).or_insert(kind);
                if *known == OnnxValueKind::Tensor {
                    *known = kind;
                }
            }
        }
    }

    fn outputs(
        &mut self,
        node: &'a NodeProto,
        inputs: &[OnnxValueKind],
        scopes: &mut Scopes,
    ) -> Vec<OnnxValueKind> {
        let domain = node.domain.as_str();
        if let Some(function) = self.function(node) {
            return self.call(function, inputs);
        }
        let is_standard = proto::is_standard(domain);
        let of_first = || inputs.first().copied().unwrap_or(OnnxValueKind::Tensor);
        let all = |kind| vec![kind; node.output.len()];
        let control_flow = if is_standard {
            node.op_type.as_str()
        } else {
            ""
        };
        let given: Vec<OnnxValueKind> = match control_flow {
            // The body's first two inputs are the number of the iteration and the condition.
            "Loop" => [OnnxValueKind::Tensor, OnnxValueKind::Tensor]
                .into_iter()
                .chain(inputs.iter().skip(2).copied())
                .collect(),
            // The body is given the elements of the sequences, one at a time.
            "SequenceMap" => inputs.iter().map(|_| OnnxValueKind::Tensor).collect(),
            _ => Vec::new(),
        };
        let results: Vec<Vec<OnnxValueKind>> = bodies(node)
            .map(|body| self.graph(body, scopes, &given))
            .collect();
        match (domain, node.op_type.as_str()) {
            ("ai.onnx.ml", "ZipMap") => all(OnnxValueKind::Sequence),
            ("ai.onnx.ml", "CastMap" | "DictVectorizer") => all(OnnxValueKind::Tensor),
            _ if !is_standard => all(OnnxValueKind::Tensor),
            (_, "If") => join(&results),
            // The first result of a loop's body is the condition, which is no output of the node.
            (_, "Loop") => results
                .into_iter()
                .next()
                .unwrap_or_default()
                .into_iter()
                .skip(1)
                .collect(),
            (_, "Scan") => results.into_iter().next().unwrap_or_default(),
            (
                _,
                "SequenceConstruct" | "SequenceEmpty" | "SequenceInsert" | "SequenceErase"
                | "SplitToSequence" | "SequenceMap",
            ) => all(OnnxValueKind::Sequence),
            (_, "Optional") => {
                let by_type = node
                    .attribute
                    .iter()
                    .find_map(|attribute| attribute.tp.as_ref())
                    .and_then(of_type);
                let is_sequence = by_type.unwrap_or(of_first()) == OnnxValueKind::Sequence;
                all(OnnxValueKind::Optional { is_sequence })
            }
            (_, "OptionalGetElement") => all(match of_first() {
                OnnxValueKind::Optional { is_sequence: true } => OnnxValueKind::Sequence,
                OnnxValueKind::Optional { is_sequence: false } => OnnxValueKind::Tensor,
                other => other,
            }),
            (_, CONSTANT) => all(of_constant(&node.attribute)),
            (_, "Cast" | "QuantizeLinear") => all(of_cast(node, inputs)),
            (_, "CastLike") => all(inputs.get(1).copied().unwrap_or(OnnxValueKind::Tensor)),
            (_, op_type) if KEEPING.contains(&op_type) => all(of_first()),
            _ => all(OnnxValueKind::Tensor),
        }
    }

    fn function(&self, node: &NodeProto) -> Option<&'a FunctionProto> {
        let key = (node.domain.as_str(), node.op_type.as_str(), node.overload());
        self.functions.get(&key).copied()
    }

    fn call(
        &mut self,
        function: &'a FunctionProto,
        inputs: &[OnnxValueKind],
    ) -> Vec<OnnxValueKind> {
        self.n_function_nodes = self.n_function_nodes.saturating_add(function.node.len());
        // Functions that call each other twice grow exponentially, and a file may hold such a
        // chain.
        let is_too_much = self.n_function_nodes > N_FUNCTION_NODES_MAX;
        if is_too_much || self.function_depth >= FUNCTION_DEPTH_MAX {
            return vec![OnnxValueKind::Tensor; function.output.len()];
        }
        self.function_depth += 1;
        let kinds = inputs
            .iter()
            .copied()
            .chain(std::iter::repeat(OnnxValueKind::Tensor));
        let mut scopes = vec![function.input.iter().cloned().zip(kinds).collect()];
        for node in &function.node {
            self.node(node, &mut scopes);
        }
        self.function_depth -= 1;
        function
            .output
            .iter()
            .map(|name| find(&scopes, name))
            .collect()
    }
}

/// Operators whose outputs have the type of their first input, which may be a type that cannot be
/// shown.
const KEEPING: &[&str] = &[
    "Concat",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Pad",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
];

fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    proto::bodies(node)
}

fn find(scopes: &Scopes, name: &str) -> OnnxValueKind {
    let found = scopes.iter().rev().find_map(|names| names.get(name));
    found.copied().unwrap_or(OnnxValueKind::Tensor)
}

/// Returns the kinds that the branches of an `If` give: both the same, unless one of them does not
/// say.
fn join(branches: &[Vec<OnnxValueKind>]) -> Vec<OnnxValueKind> {
    let n = branches.iter().map(Vec::len).max().unwrap_or(0);
    (0..n)
        .map(|i| {
            let mut kinds = branches.iter().filter_map(|branch| branch.get(i).copied());
            kinds
                .find(|kind| *kind != OnnxValueKind::Tensor)
                .unwrap_or(OnnxValueKind::Tensor)
        })
        .collect()
}

fn declared(value: &ValueInfoProto) -> Option<OnnxValueKind> {
    of_type(value.r#type.as_ref()?)
}

fn of_type(r#type: &TypeProto) -> Option<OnnxValueKind> {
    Some(match r#type.value.as_ref()? {
        TypeValue::TensorType(tensor) => of_dtype(tensor.elem_type()),
        TypeValue::SequenceType(_) => OnnxValueKind::Sequence,
        TypeValue::MapType(_) | TypeValue::OpaqueType(_) => OnnxValueKind::Map,
        TypeValue::SparseTensorType(_) => OnnxValueKind::Sparse,
        TypeValue::OptionalType(element) => {
            let element = element.elem_type.as_deref().and_then(of_type);
            OnnxValueKind::Optional {
                is_sequence: element == Some(OnnxValueKind::Sequence),
            }
        }
    })
}

fn of_dtype(code: i32) -> OnnxValueKind {
    match OnnxDataType::try_from(code) {
        Ok(OnnxDataType::Int2 | OnnxDataType::Uint2 | OnnxDataType::Float8e8m0) => {
            OnnxValueKind::Foreign
        }
        _ => OnnxValueKind::Tensor,
    }
}

fn of_constant(attributes: &[AttributeProto]) -> OnnxValueKind {
    let is_sparse = attributes
        .iter()
        .any(|attribute| attribute.sparse_tensor.is_some());
    let tensor = attributes.iter().find_map(|attribute| attribute.t.as_ref());
    match tensor {
        _ if is_sparse => OnnxValueKind::Sparse,
        Some(tensor) => of_dtype(tensor.data_type()),
        None => OnnxValueKind::Tensor,
    }
}

/// The type that an attribute names, or that of the zero point.
fn of_cast(node: &NodeProto, inputs: &[OnnxValueKind]) -> OnnxValueKind {
    let named = node
        .attribute
        .iter()
        .find(|attribute| ["to", "output_dtype"].contains(&attribute.name.as_str()))
        .map(AttributeProto::i);
    let zero_point = inputs.get(2).copied().unwrap_or(OnnxValueKind::Tensor);
    match named.and_then(|code| i32::try_from(code).ok()) {
        Some(code) if code != 0 => of_dtype(code),
        _ => zero_point,
    }
}
