//! Operators in the form that another operator set has for them.

use opscope_tensor::DType;
use prost::bytes::Bytes;

use super::ModelPair;
use super::side::constant_of;
use crate::onnx::attribute;
use crate::onnx::proto::{is_standard, operator, opsets};
use crate::onnx::schema::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OnnxAttributeType, OnnxDataType, TensorProto,
};

/// Attributes that have become input 1: type, name, and the first operator set with the input.
///
/// Source: ONNX's changelog of operators.
const INPUTS: [(&str, &str, i64); 13] = [
    ("ReduceL1", "axes", 18),
    ("ReduceL2", "axes", 18),
    ("ReduceLogSum", "axes", 18),
    ("ReduceLogSumExp", "axes", 18),
    ("ReduceMax", "axes", 18),
    ("ReduceMean", "axes", 18),
    ("ReduceMin", "axes", 18),
    ("ReduceProd", "axes", 18),
    ("ReduceSum", "axes", 13),
    ("ReduceSumSquare", "axes", 18),
    ("Split", "split", 13),
    ("Squeeze", "axes", 13),
    ("Unsqueeze", "axes", 13),
];
/// The first operator set in which `Split` needs sizes or the number of parts.
const SPLIT_COUNTS: i64 = 18;
const N_PARTS: &str = "num_outputs";

impl ModelPair {
    /// Rewrites operators of ONNX that another operator set defines in another form.
    pub(super) fn fit_operators(&self, model: &mut ModelProto) {
        let sets = opsets(model);
        let Some((_, version)) = sets.iter().find(|(domain, _)| is_standard(domain)) else {
            return;
        };
        let Some(graph) = model.graph.as_mut() else {
            return;
        };
        for at in 0..graph.node.len() {
            if !is_standard(&graph.node[at].domain) {
                continue;
            }
            self.fit_input(graph, at, *version);
            let node = &mut graph.node[at];
            if node.op_type == "Split" {
                fit_split(node, *version);
            }
            self.remove_later_defaults(node, &sets);
        }
    }

    /// Turns an attribute into the input that it has become, or back.
    fn fit_input(&self, graph: &mut GraphProto, at: usize, version: i64) {
        let op_type = &graph.node[at].op_type;
        let Some(&(_, name, since)) = INPUTS.iter().find(|(of, _, _)| op_type == of) else {
            return;
        };
        let node = &graph.node[at];
        if version >= since {
            let Some(found) = node.attribute.iter().position(|own| own.name == name) else {
                return;
            };
            let numbers = graph.node[at].attribute.remove(found).ints;
            let weight = format!("{}/{name}", graph.node[at].output.join("/"));
            graph.initializer.push(numbers_tensor(&weight, &numbers));
            let node = &mut graph.node[at];
            node.input.truncate(1);
            node.input.push(weight);
        } else if let Some(value) = node.input.get(1).filter(|value| !value.is_empty()) {
            let Some(numbers) = self.numbers(graph, value) else {
                return;
            };
            let node = &mut graph.node[at];
            node.input.truncate(1);
            node.attribute.push(AttributeProto {
                name: name.to_owned(),
                ints: numbers,
                r#type: Some(OnnxAttributeType::Ints as i32),
                ..AttributeProto::default()
            });
        }
    }

    /// The elements of a constant of 64-bit integers.
    fn numbers(&self, graph: &GraphProto, name: &str) -> Option<Vec<i64>> {
        let weight = graph.initializer.iter().find(|weight| weight.name == name);
        let tensor = weight.cloned().or_else(|| {
            let mut constants = graph.node.iter().filter_map(constant_of);
            constants.find_map(|(own, tensor)| (own == name).then_some(tensor))
        })?;
        let elements = self.target.elements(&tensor);
        let (dtype, _, bytes) = elements.or_else(|| self.golden.elements(&tensor))?;
        let numbers = bytes.as_chunks::<8>().0.iter();
        (dtype == DType::I64).then(|| numbers.map(|bytes| i64::from_le_bytes(*bytes)).collect())
    }

    /// Removes attributes that this operator set does not know and that are defaults in that of a
    /// side.
    fn remove_later_defaults(&self, node: &mut NodeProto, sets: &[(String, i64)]) {
        let mut known = operator(node, 0);
        known.set_defaults(sets);
        let known = known.default_attributes;
        let later = [&self.target, &self.golden].map(|side| side.defaults(node));
        node.attribute.retain(|own| {
            let mut defaults = later.iter().filter_map(|all| all.get(&own.name));
            known.iter().any(|default| default.name == own.name)
                || !defaults.any(|text| *text == attribute::text(own))
        });
    }
}

/// Adds or removes the number of parts. Without sizes all parts are equal in each operator set.
fn fit_split(node: &mut NodeProto, version: i64) {
    let has_sizes = node.input.get(1).is_some_and(|sizes| !sizes.is_empty());
    if version < SPLIT_COUNTS {
        node.attribute.retain(|own| own.name != N_PARTS);
    } else if !has_sizes && !node.attribute.iter().any(|own| own.name == N_PARTS) {
        node.attribute.push(AttributeProto {
            name: N_PARTS.to_owned(),
            i: i64::try_from(node.output.len()).ok(),
            r#type: Some(OnnxAttributeType::Int as i32),
            ..AttributeProto::default()
        });
    }
}

fn numbers_tensor(name: &str, numbers: &[i64]) -> TensorProto {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    TensorProto {
        name: name.to_owned(),
        dims: vec![numbers.len() as i64],
        data_type: Some(OnnxDataType::Int64 as i32),
        raw_data: Some(Bytes::from(bytes.collect::<Vec<u8>>())),
        ..TensorProto::default()
    }
}
