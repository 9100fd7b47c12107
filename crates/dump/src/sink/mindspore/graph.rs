//! The graph files: operators, the sources of their inputs, and the known types of values.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use opscope_capture::GraphView;
use opscope_store::file_format::ms_dtype;
use opscope_store::record::graph::{
    AttributeGroup, DeviceTensor, GraphAttribute, GraphDescription, GraphNode, GraphParameter,
    GraphResult, InputOrigin, KernelView, Literal, TensorType, ValueType,
};
use opscope_store::record::{Operator, Record, SlotSide};
use opscope_store::tree::mindspore::DEFAULT_LAYOUT;
use opscope_tensor::Tensor;

use super::graph_id;

/// Types and shapes of values, by graph and name: from records, or from the model.
#[derive(Default)]
pub(super) struct GraphValues {
    types: HashMap<(u32, String), TensorType>,
    /// Constants that were written or are about to be.
    constants: HashSet<(u32, String)>,
}

impl GraphValues {
    /// Takes the model's word for values that no record has shown.
    pub(super) fn assume(&mut self, graph: u32, types: &[(String, TensorType)]) {
        for (name, known) in types {
            let entry = self.types.entry((graph, name.clone()));
            entry.or_insert_with(|| known.clone());
        }
    }

    /// The last shape counts: it may differ from run to run.
    pub(super) fn learn(&mut self, record: &Record) {
        let graph = graph_id(&record.model);
        let operator = &record.operator;
        for (side, index, tensor) in record.slots() {
            let names = match side {
                SlotSide::Input => &operator.inputs,
                SlotSide::Output => &operator.outputs,
            };
            if let Some(name) = names.get(index) {
                self.types.insert((graph, name.clone()), type_of(tensor));
            }
        }
    }

    /// Whether the constant is the caller's to write: every step shows it, and one of them writes
    /// it.
    pub(super) fn claim_constant(&mut self, graph: u32, name: &str) -> bool {
        self.constants.insert((graph, name.to_owned()))
    }

    fn get(&self, graph: u32, name: &str) -> Option<&TensorType> {
        self.types.get(&(graph, name.to_owned()))
    }
}

fn type_of(tensor: &Tensor) -> TensorType {
    let shape = tensor.shape();
    let dims = shape.dims().iter();
    TensorType {
        dtype: tensor.dtype(),
        shape: dims
            .map(|&n| i64::try_from(n).unwrap_or(i64::MAX))
            .collect(),
    }
}

/// Makes the description of one model.
pub(super) struct GraphMaker {
    id: u32,
    operators: Vec<Arc<Operator>>,
    inputs: Vec<String>,
    constants: HashSet<String>,
    /// Names of values that bodies are given by the operators that run them.
    carried: HashSet<String>,
}

impl GraphMaker {
    pub(super) fn new(id: u32, graph: GraphView<'_>) -> GraphMaker {
        GraphMaker {
            id,
            operators: graph.operators.to_vec(),
            inputs: graph.inputs.to_vec(),
            constants: graph.constants.iter().cloned().collect(),
            carried: graph.carried.iter().map(|(_, name)| name.clone()).collect(),
        }
    }

    /// The graph with the types that are known so far; the others are dtype `undefined`, no shape.
    pub(super) fn graph(&self, values: &GraphValues) -> GraphDescription {
        let mut graph = GraphDescription {
            id: self.id,
            name: format!("kernel_graph{}", self.id),
            instance: self.id.into(),
            result: GraphResult {
                // After the operators and the tuple of results.
                label: format!("CNode_{}", self.operators.len() + 1),
                full_name: "Default/Return-op0".to_owned(),
                attributes: Vec::new(),
            },
            ..GraphDescription::default()
        };
        let mut sources: HashMap<&str, InputOrigin> = HashMap::new();
        for (i, operator) in self.operators.iter().enumerate() {
            let outputs = operator
                .outputs
                .iter()
                .map(|name| (&**name, InputOrigin::Node(i)));
            // Optional values that are absent all have the empty name and are not one value.
            sources.extend(outputs.filter(|(name, _)| !name.is_empty()));
        }
        let read = self.operators.iter().flat_map(|operator| &operator.inputs);
        for name in self.inputs.iter().chain(read) {
            if name.is_empty() || sources.contains_key(name.as_str()) {
                continue;
            }
            let input = if self.constants.contains(name) {
                let known = values.get(self.id, name).cloned();
                graph.constant(Literal::Tensor(known, String::new()))
            } else {
                graph.parameters.push(self.parameter(values, name));
                InputOrigin::Parameter(graph.parameters.len() - 1)
            };
            sources.insert(name, input);
        }
        for (i, operator) in self.operators.iter().enumerate() {
            let node = self.node(values, &sources, i, operator);
            graph.nodes.push(node);
        }
        let read: HashSet<&String> = self.operators.iter().flat_map(|op| &op.inputs).collect();
        // The view of the graph does not list the model's outputs; values without readers are used
        // instead.
        let is_result =
            |operator: &Operator| operator.outputs.iter().any(|name| !read.contains(name));
        let nodes = self.operators.iter().enumerate();
        let results = nodes
            .filter(|(_, operator)| is_result(operator))
            .map(|(i, _)| InputOrigin::Node(i));
        let tuple = tuple(&graph, results.collect());
        graph.nodes.push(tuple);
        graph.outputs = vec![InputOrigin::Node(self.operators.len())];
        graph
    }

    fn parameter(&self, values: &GraphValues, name: &str) -> GraphParameter {
        let known = values.get(self.id, name);
        let is_carried = self.carried.contains(name);
        let is_input = self.inputs.iter().any(|input| input == name);
        // A body's inputs come from the operator that runs it, so they are not weights.
        let is_weight = !is_input && !is_carried;
        let value = match known {
            Some(tensor) if is_weight => ValueType::Reference {
                tensor: tensor.clone(),
                key: name.to_owned(),
                is_parameter: true,
                is_inplace: false,
            },
            known => value_type(known),
        };
        GraphParameter {
            name: name.to_owned(),
            listed_name: None,
            value,
            input_shape: known.filter(|_| is_input).map(|t| t.shape.clone()),
            has_default: is_weight,
            device: known.map(device),
            is_weight,
        }
    }

    fn node(
        &self,
        values: &GraphValues,
        sources: &HashMap<&str, InputOrigin>,
        i: usize,
        operator: &Operator,
    ) -> GraphNode {
        let [inputs, outputs] = [&operator.inputs, &operator.outputs].map(|names| {
            let names = names.iter().filter(|name| !name.is_empty());
            names.cloned().collect::<Vec<String>>()
        });
        let [input_types, output_types] = [&inputs, &outputs].map(|names| {
            let types = names.iter().map(|name| values.get(self.id, name));
            types.collect::<Vec<Option<&TensorType>>>()
        });
        let [input_devices, output_devices] = [&input_types, &output_types].map(|types| {
            types
                .iter()
                .map(|t| t.map(device))
                .collect::<Option<Vec<_>>>()
        });
        let mut output_types = output_types.into_iter().map(value_type);
        let output = match outputs.len() {
            1 => output_types.next().unwrap_or_default(),
            _ => ValueType::Tuple(output_types.collect()),
        };
        // MindSpore describes a kernel only if all device types are known.
        let kernel = input_devices
            .zip(output_devices)
            .map(|(inputs, outputs)| KernelView { inputs, outputs });
        GraphNode {
            label: format!("CNode_{i}"),
            op_type: operator.op_type.clone(),
            is_functional: false,
            full_name: operator.op_name.clone(),
            instance_name: None,
            inputs: inputs
                .iter()
                .map(|name| {
                    let known = sources.get(name.as_str()).cloned();
                    known.unwrap_or_else(|| InputOrigin::Unknown(name.clone()))
                })
                .collect(),
            output,
            kernel,
            attributes: attributes(operator),
            source: Vec::new(),
        }
    }
}

/// The node that holds the results together. Every graph ends in one, of a single result too.
fn tuple(graph: &GraphDescription, results: Vec<InputOrigin>) -> GraphNode {
    let types = results.iter().filter_map(|input| graph.type_of(input));
    GraphNode {
        label: format!("CNode_{}", graph.nodes.len()),
        op_type: "MakeTuple".to_owned(),
        full_name: "Default/MakeTuple-op0".to_owned(),
        output: ValueType::Tuple(types.collect()),
        inputs: results,
        ..GraphNode::default()
    }
}

/// Attributes that the model sets; attributes at their defaults are not included.
fn attributes(operator: &Operator) -> Vec<GraphAttribute> {
    let own = operator.all_attributes().take(operator.attributes.len());
    own.map(|(name, text, r#type)| GraphAttribute {
        group: AttributeGroup::Operator,
        name: name.to_owned(),
        value: Literal::from_text(text, r#type),
    })
    .collect()
}

fn value_type(known: Option<&TensorType>) -> ValueType {
    match known {
        Some(tensor) => ValueType::Tensor(tensor.clone()),
        None => ValueType::Other("Tensor".to_owned()),
    }
}

fn device(tensor: &TensorType) -> DeviceTensor {
    let dtype = ms_dtype::camel(tensor.dtype).unwrap_or("Unknown");
    DeviceTensor {
        dtype: dtype.to_owned(),
        layout: DEFAULT_LAYOUT.to_owned(),
        shape: tensor.shape.clone(),
    }
}
