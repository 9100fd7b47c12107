//! Operators of an ONNX model that run one by one: each in a model of one node.
//!
//! The node keeps its attributes, operator set and bodies. Each input position gets a separate
//! name, so that two inputs that were one value can be set separately. Constants of the model stay
//! constants, which the engine treats differently from values that may change.

mod described;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use opscope_store::file_format::graph_json::GraphFile;
use opscope_tensor::{DType, Tensor, text};
use prost::Message;
use prost::bytes::Bytes;

use super::proto;
use super::schema::{
    DimValue, DimensionProto, GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto,
    TensorTypeProto, TypeProto, TypeValue, ValueInfoProto,
};
use crate::onnx_dtype::code;
use crate::operator_source::{OperatorCall, OperatorSource, SourceOperator};
use crate::{EngineError, InputError, LoadOptions, ModelSource, SharedEngine};

/// The operators of a model, or of the description of one.
pub struct OnnxOperators {
    engine: SharedEngine,
    path: PathBuf,
    /// The model without its graph.
    frame: ModelProto,
    scopes: Vec<ValueScope>,
    nodes: Vec<ListedNode>,
    operators: Vec<SourceOperator>,
    /// Constants with known names and unknown values.
    named_constants: HashSet<String>,
}

/// The names that the nodes of one graph see in addition to the outputs of nodes.
#[derive(Default)]
struct ValueScope {
    outer: Option<usize>,
    weights: HashMap<String, TensorProto>,
    /// Nodes that hold a value, by the name of the value.
    holders: HashMap<String, NodeProto>,
    /// Names that nodes and inputs of the graph give to other values; they hide those outside.
    computed: HashSet<String>,
}

struct ListedNode {
    proto: NodeProto,
    scope: usize,
    /// Why it cannot be run, if so.
    obstacle: Option<String>,
}

/// The value of a constant.
enum ConstantElements<'a> {
    Weight(&'a TensorProto),
    Holder(&'a NodeProto),
}

impl OnnxOperators {
    /// Reads a model file.
    ///
    /// # Errors
    /// As for [`Engine::load`](crate::Engine::load), apart from operators that the engine lacks.
    pub fn open(engine: SharedEngine, path: &Path) -> Result<OnnxOperators, EngineError> {
        let mut model = proto::read(path)?.proto;
        let graph = model.graph.take().unwrap_or_default();
        let mut operators = OnnxOperators {
            engine,
            path: path.to_owned(),
            frame: model,
            scopes: Vec::new(),
            nodes: Vec::new(),
            operators: Vec::new(),
            named_constants: HashSet::new(),
        };
        operators.add_graph(graph, None);
        Ok(operators)
    }

    /// Takes the operators from the description in a dump. It has no constants' values.
    pub fn of_description(engine: SharedEngine, path: &Path, graph: &GraphFile) -> OnnxOperators {
        described::operators(engine, path, graph)
    }

    fn add_graph(&mut self, graph: GraphProto, outer: Option<usize>) {
        let scope = self.scopes.len();
        let weights = graph.initializer.into_iter();
        let weights: HashMap<_, _> = weights
            .map(|weight| (weight.name.clone(), weight))
            .collect();
        let inputs = graph.input.into_iter().map(|value| value.name);
        self.scopes.push(ValueScope {
            outer,
            // An input that has a weight of its name is a default value, which ONNX lets a caller
            // replace. No caller does so here.
            computed: inputs.filter(|name| !weights.contains_key(name)).collect(),
            weights,
            ..ValueScope::default()
        });
        for node in graph.node {
            self.add_node(node, scope);
        }
    }

    fn add_node(&mut self, node: NodeProto, scope: usize) {
        // Counted as in dumps: every node has a number, those of bodies after the node that they
        // are in.
        let task_id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let own = &mut self.scopes[scope];
        match node.output.first() {
            // The node is kept whole: it may hold its value in any of several attributes.
            Some(name) if node.op_type == proto::CONSTANT => {
                own.holders.insert(name.clone(), node.clone());
            }
            _ => own.computed.extend(node.output.iter().cloned()),
        }
        let bodies: Vec<GraphProto> = proto::bodies(&node).cloned().collect();
        self.operators.push(SourceOperator {
            operator: proto::operator(&node, task_id),
            captured: captured(&node),
        });
        self.nodes.push(ListedNode {
            proto: node,
            scope,
            obstacle: None,
        });
        for body in bodies {
            self.add_graph(body, Some(scope));
        }
    }

    /// The constant of this name that a node of a graph sees.
    fn held(&self, scope: usize, name: &str) -> Option<ConstantElements<'_>> {
        let mut at = Some(scope);
        while let Some(scope) = at.and_then(|at| self.scopes.get(at)) {
            if let Some(weight) = scope.weights.get(name) {
                return Some(ConstantElements::Weight(weight));
            }
            if let Some(node) = scope.holders.get(name) {
                return Some(ConstantElements::Holder(node));
            }
            // A computed value hides a constant of the same name in a graph around this one.
            if scope.computed.contains(name) {
                return None;
            }
            at = scope.outer;
        }
        None
    }

    /// The model of one node.
    fn model(&self, index: usize, given: &OperatorCall) -> Result<ModelProto, EngineError> {
        let node = &self.nodes[index];
        let mut proto = node.proto.clone();
        let mut graph = GraphProto {
            name: proto.op_type.clone(),
            ..GraphProto::default()
        };
        for (i, name) in proto.input.iter_mut().enumerate() {
            if name.is_empty() {
                continue;
            }
            // Constants stay constants. An engine may round differently when it folds or packs a
            // weight.
            let is_constant = self.is_constant(index, name);
            // Each position has a separate name, so that two inputs that were one value can be set
            // separately.
            let own_name = input_name(i);
            match given.inputs.get(&i) {
                Some(tensor) => add_value(&mut graph, &own_name, tensor, is_constant)
                    .map_err(|reason| self.refuse(index, reason))?,
                None => self.add_held(&mut graph, node.scope, name, &own_name)?,
            }
            *name = own_name;
        }
        for name in &self.operators[index].captured {
            let is_constant = self.is_constant(index, name);
            match given.captured.get(name) {
                // A body refers to outer values by name, so that these keep their own.
                Some(tensor) => add_value(&mut graph, name, tensor, is_constant)
                    .map_err(|reason| self.refuse(index, reason))?,
                None => self.add_held(&mut graph, node.scope, name, name)?,
            }
        }
        let wanted = given.outputs.iter().filter_map(|&i| proto.output.get(i));
        graph.output = wanted
            .map(|name| ValueInfoProto {
                name: name.clone(),
                ..ValueInfoProto::default()
            })
            .collect();
        graph.node.push(proto);
        Ok(ModelProto {
            graph: Some(graph),
            ..self.frame.clone()
        })
    }

    fn add_held(
        &self,
        graph: &mut GraphProto,
        scope: usize,
        name: &str,
        own_name: &str,
    ) -> Result<(), EngineError> {
        match self.held(scope, name) {
            Some(ConstantElements::Weight(weight)) => graph.initializer.push(TensorProto {
                name: own_name.to_owned(),
                ..weight.clone()
            }),
            Some(ConstantElements::Holder(node)) => graph.node.push(NodeProto {
                name: own_name.to_owned(),
                output: vec![own_name.to_owned()],
                ..node.clone()
            }),
            None => {
                return Err(EngineError::Input(InputError::Missing {
                    name: name.to_owned(),
                    dtype: DType::Undefined,
                    shape: "of any shape".to_owned(),
                }));
            }
        }
        Ok(())
    }

    fn refuse(&self, index: usize, reason: String) -> EngineError {
        let node = &self.nodes[index].proto;
        EngineError::Operator {
            op_type: node.op_type.clone(),
            op_name: proto::node_name(node),
            reason,
        }
    }
}

impl OperatorSource for OnnxOperators {
    fn operators(&self) -> &[SourceOperator] {
        &self.operators
    }

    fn is_constant(&self, index: usize, name: &str) -> bool {
        self.named_constants.contains(name) || self.has_value(index, name)
    }

    fn has_value(&self, index: usize, name: &str) -> bool {
        let node = self.nodes.get(index);
        node.is_some_and(|node| self.held(node.scope, name).is_some())
    }

    fn run(
        &self,
        index: usize,
        given: &OperatorCall,
        options: &LoadOptions,
    ) -> Result<Vec<(usize, Tensor)>, EngineError> {
        // Some nodes cannot run outside of their model.
        if let Some(obstacle) = &self.nodes[index].obstacle {
            let name = &self.operators[index].operator.op_name;
            return Err(EngineError::invalid(
                &self.path,
                format!("{obstacle} of `{name}`; the model itself has it"),
            ));
        }
        let model = self.model(index, given)?;
        let inputs: Vec<Tensor> = {
            let graph = model.graph.as_ref();
            let names = graph.into_iter().flat_map(|graph| &graph.input);
            let by_name: HashMap<String, &Tensor> = given
                .inputs
                .iter()
                .map(|(&i, tensor)| (input_name(i), tensor))
                .chain(given.captured.iter().map(|(name, t)| (name.clone(), t)))
                .collect();
            names
                .filter_map(|value| by_name.get(&value.name).copied().cloned())
                .collect()
        };
        // External data of the weights are relative to the original file.
        let source = ModelSource::Part {
            bytes: &model.encode_to_vec(),
            path: &self.path,
        };
        let mut loaded = self.engine.load(source, options)?;
        let outputs = loaded.run(&inputs, None)?;
        Ok(given.outputs.iter().copied().zip(outputs).collect())
    }
}

/// The name of an input in the model of one node; no value of a model is called so.
fn input_name(i: usize) -> String {
    format!("opscope/replay/input.{i}")
}

fn add_value(
    graph: &mut GraphProto,
    name: &str,
    tensor: &Tensor,
    is_constant: bool,
) -> Result<(), String> {
    let dtype = tensor.dtype();
    let number = code(dtype)
        .and_then(|number| i32::try_from(number).ok())
        .ok_or_else(|| format!("ONNX has no dtype `{dtype}`"))?;
    let dims = tensor
        .shape()
        .dims()
        .iter()
        .map(|&n| i64::try_from(n).unwrap_or(i64::MAX));
    if is_constant {
        let view = tensor.host_view().map_err(|error| error.to_string())?;
        let (string_data, raw_data) = match text::iter(view) {
            Ok(texts) => (texts.map(Bytes::copy_from_slice).collect(), None),
            // Everything but text.
            Err(_) => (Vec::new(), Some(view.bytes.to_vec().into())),
        };
        graph.initializer.push(TensorProto {
            name: name.to_owned(),
            dims: dims.collect(),
            data_type: Some(number),
            string_data,
            raw_data,
            ..TensorProto::default()
        });
        return Ok(());
    }
    let known = TensorTypeProto {
        elem_type: Some(number),
        shape: Some(TensorShapeProto {
            dim: dims
                .map(|n| DimensionProto {
                    value: Some(DimValue::DimValue(n)),
                    ..DimensionProto::default()
                })
                .collect(),
        }),
    };
    graph.input.push(ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(known)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    });
    Ok(())
}

/// Names of the values that the bodies of a node read from outside.
fn captured(node: &NodeProto) -> Vec<String> {
    let mut names = BTreeSet::new();
    for body in proto::bodies(node) {
        collect_captured(body, &mut Vec::new(), &mut names);
    }
    names.into_iter().collect()
}

fn is_known(known: &[HashSet<&str>], name: &str) -> bool {
    name.is_empty() || known.iter().any(|names| names.contains(name))
}

fn collect_captured<'g>(
    graph: &'g GraphProto,
    known: &mut Vec<HashSet<&'g str>>,
    captured: &mut BTreeSet<String>,
) {
    let inputs = graph.input.iter().map(|value| value.name.as_str());
    let weights = graph.initializer.iter().map(|weight| weight.name.as_str());
    known.push(inputs.chain(weights).collect());
    for node in &graph.node {
        let read = node.input.iter().filter(|name| !is_known(known, name));
        captured.extend(read.cloned());
        for body in proto::bodies(node) {
            collect_captured(body, known, captured);
        }
        if let Some(own) = known.last_mut() {
            own.extend(node.output.iter().map(String::as_str));
        }
    }
    let results = graph.output.iter().map(|value| &value.name);
    captured.extend(results.filter(|name| !is_known(known, name)).cloned());
    known.pop();
}
