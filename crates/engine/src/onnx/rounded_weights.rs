//! The weights and constants that are rounded together with the results of the operators that read
//! them.

use std::collections::HashMap;
use std::ops::Range;

use opscope_store::record::graph::TensorType;
use opscope_tensor::{DType, RoundingFormat};

use super::known_types;
use super::proto;
use super::schema::{GraphProto, NodeProto};

/// A float input of an operator that has the same value in every run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoundedWeight {
    /// Its position among the inputs of the file's node.
    pub(super) position: usize,
    pub(super) dtype: DType,
    /// The axes along which an `int8` has a scale for each index; empty for one scale.
    pub(super) channel_axes: Range<usize>,
    /// Whether int8 leaves it as it is.
    pub(super) is_bias: bool,
}

/// Operators with inputs that no converter narrows: scales of quantised values, factors of shapes,
/// ends of ranges, thresholds. Bodies take the inputs of control flow and round them themselves.
const UNTOUCHED: &[&str] = &[
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "If",
    "Loop",
    "NonMaxSuppression",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
    "Range",
    "Resize",
    "Scan",
    "Upsample",
];

/// The weights of all operators by task, in file order.
pub(super) fn find(graph: &GraphProto) -> HashMap<u32, Vec<RoundedWeight>> {
    let mut weights = HashMap::new();
    add_graph(graph, &HashMap::new(), &mut 0, &mut weights);
    weights
}

/// The types of the constants that a graph sees, by name; `None` for other values, which may have
/// the name of a constant in a neighbouring body.
type VisibleConstants<'a> = HashMap<&'a str, Option<TensorType>>;

fn add_graph<'a>(
    graph: &'a GraphProto,
    outer: &VisibleConstants<'a>,
    n_tasks: &mut u32,
    weights: &mut HashMap<u32, Vec<RoundedWeight>>,
) {
    let mut visible = outer.clone();
    let inputs = graph.input.iter().map(|input| input.name.as_str());
    visible.extend(inputs.map(|name| (name, None)));
    // Files of old versions list initializers among the inputs, too.
    let initializers = graph.initializer.iter();
    visible
        .extend(initializers.map(|tensor| (tensor.name.as_str(), known_types::of_tensor(tensor))));
    // Before any node is visited: a body may read a constant that its graph lists further down.
    for node in &graph.node {
        let constant = known_types::of_constant_node(node);
        visible.extend(
            node.output
                .iter()
                .map(|name| (name.as_str(), constant.clone())),
        );
    }
    for node in &graph.node {
        let task_id = *n_tasks;
        *n_tasks += 1;
        let of_node = of_node(node, &visible);
        if !of_node.is_empty() {
            weights.insert(task_id, of_node);
        }
        for body in proto::bodies(node) {
            add_graph(body, &visible, n_tasks, weights);
        }
    }
}

fn of_node(node: &NodeProto, visible: &VisibleConstants<'_>) -> Vec<RoundedWeight> {
    if UNTOUCHED.contains(&node.op_type.as_str()) {
        return Vec::new();
    }
    let inputs = node.input.iter().enumerate();
    let constants = inputs.filter_map(|(position, name)| {
        let known = visible.get(name.as_str())?.as_ref()?;
        RoundingFormat::applies_to(known.dtype).then_some((position, known))
    });
    let weights = constants.map(|(position, known)| RoundedWeight {
        position,
        dtype: known.dtype,
        channel_axes: channel_axes(node, position, known.shape.len()),
        is_bias: is_bias(&node.op_type, position),
    });
    weights.collect()
}

/// The axes of the output channels, as ONNX Runtime's quantizer has them by default; for a matrix
/// product of more axes the last, where its default would be a batch axis.
fn channel_axes(node: &NodeProto, position: usize, n_axes: usize) -> Range<usize> {
    // Other shapes are invalid models, whose engines report them; one scale is then harmless.
    match (node.op_type.as_str(), position) {
        ("Conv", 1) if n_axes > 2 => 0..1,
        ("ConvTranspose", 1) if n_axes > 2 => 1..2,
        ("Gemm", 1) if n_axes == 2 && is_second_transposed(node) => 0..1,
        ("Gemm", 1) if n_axes == 2 => 1..2,
        ("MatMul", 1) if n_axes >= 2 => n_axes - 1..n_axes,
        // Directions and gates.
        ("RNN" | "GRU" | "LSTM", 1 | 2) if n_axes == 3 => 0..2,
        _ => 0..0,
    }
}

fn is_second_transposed(node: &NodeProto) -> bool {
    let mut attributes = node.attribute.iter();
    attributes.any(|attribute| {
        attribute.name == "transB" && attribute.i.is_some_and(|transposed| transposed != 0)
    })
}

/// Whether an input is added to products, or describes the statistics of a normalization. Quantized
/// models keep these as int32 or as floats.
fn is_bias(op_type: &str, position: usize) -> bool {
    match op_type {
        "Conv" | "ConvTranspose" | "Gemm" => position == 2,
        "RNN" | "GRU" | "LSTM" => position > 2,
        "InstanceNormalization" | "LayerNormalization" | "GroupNormalization" => position == 2,
        "BatchNormalization" => position >= 2,
        _ => false,
    }
}
