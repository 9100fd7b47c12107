//! Types of elements that tract has no values of.

use std::collections::HashMap;

use opscope_tensor::{DType, ElementKind};

use crate::onnx::proto;
use crate::onnx::schema::{AttributeProto, GraphProto, NodeProto, TypeValue};

/// Attributes that set an operator's output type.
const TYPE_ATTRIBUTES: &[&str] = &["to", "dtype", "output_dtype"];

/// Values of types that tract lacks, by name.
pub(super) struct UnsupportedValues<'a>(HashMap<&'a str, DType>);

impl<'a> UnsupportedValues<'a> {
    /// Those that the graph, or one inside it, declares: weights and inputs.
    pub(super) fn from_graph(graph: &'a GraphProto) -> UnsupportedValues<'a> {
        let mut lacking = UnsupportedValues(HashMap::new());
        lacking.add(graph);
        let nodes = proto::all_nodes(graph).into_iter();
        nodes
            .flat_map(proto::bodies)
            .for_each(|body| lacking.add(body));
        lacking
    }

    fn add(&mut self, graph: &'a GraphProto) {
        let weights = graph.initializer.iter();
        let weights = weights.map(|tensor| (tensor.name.as_str(), tensor.data_type()));
        let inputs =
            graph
                .input
                .iter()
                .filter_map(|input| match input.r#type.as_ref()?.value.as_ref()? {
                    TypeValue::TensorType(tensor) => {
                        Some((input.name.as_str(), tensor.elem_type()))
                    }
                    _ => None,
                });
        let unknown = weights.chain(inputs);
        self.0
            .extend(unknown.filter_map(|(name, code)| Some((name, lacks(code)?))));
    }

    /// Why tract cannot run an operator, if its inputs or outputs have such types as far as the
    /// file declares them.
    pub(super) fn reason_against(&self, node: &NodeProto) -> Option<String> {
        let read = node.input.iter().find_map(|name| self.0.get(name.as_str()));
        let dtype = read
            .copied()
            .or_else(|| node.attribute.iter().find_map(given))?;
        Some(format!("it has no type for {dtype}"))
    }
}

fn given(attribute: &AttributeProto) -> Option<DType> {
    if let Some(tensor) = &attribute.t {
        return lacks(tensor.data_type());
    }
    let is_type = TYPE_ATTRIBUTES.contains(&attribute.name.as_str());
    lacks(i32::try_from(attribute.i()).ok().filter(|_| is_type)?)
}

/// The type of this number in ONNX, if tract lacks it. Text it has, though its operators have
/// little use for it.
fn lacks(code: i32) -> Option<DType> {
    let dtype = proto::dtype(code)?;
    let is_complex = matches!(dtype.kind(), ElementKind::Complex(_));
    let is_number = dtype.as_numpy().is_some() && !is_complex;
    (!is_number && dtype != DType::String).then_some(dtype)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::TensorProto;

    fn node(inputs: &[&str], attribute: &str, code: i32) -> NodeProto {
        NodeProto {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            attribute: vec![AttributeProto {
                name: attribute.to_owned(),
                i: Some(code.into()),
                ..AttributeProto::default()
            }],
            ..NodeProto::default()
        }
    }

    #[test]
    fn operators_of_types_that_are_missing_are_found() {
        let weight = |name: &str, code| TensorProto {
            name: name.to_owned(),
            data_type: Some(code),
            ..TensorProto::default()
        };
        let graph = GraphProto {
            initializer: vec![weight("single", 1), weight("brief", 16), weight("four", 22)],
            ..GraphProto::default()
        };
        let lacking = UnsupportedValues::from_graph(&graph);
        for (node, expected) in [
            (node(&["single", ""], "axis", 16), None),
            (node(&["single"], "to", 10), None),
            (
                node(&["single"], "to", 16),
                Some("it has no type for bfloat16"),
            ),
            (
                node(&["single", "brief"], "axis", 0),
                Some("it has no type for bfloat16"),
            ),
            (node(&["four"], "to", 1), Some("it has no type for int4")),
        ] {
            assert_eq!(lacking.reason_against(&node).as_deref(), expected);
        }
    }
}
