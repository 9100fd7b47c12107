//! Attributes that tract's loader does not read, although they change the result.

use crate::onnx::schema::{AttributeProto, NodeProto};

/// The values of an attribute with which tract is right all the same.
enum HarmlessValues {
    /// None: the attribute always matters.
    None,
    /// These numbers.
    Numbers(&'static [i64]),
    /// These words, over and over.
    Words(&'static [&'static str]),
}

/// Operators, attributes that are ignored, and their harmless values.
const PASSED_OVER: &[(&[&str], &str, HarmlessValues)] = &[
    (
        &["BatchNormalization"],
        "training_mode",
        HarmlessValues::Numbers(&[0]),
    ),
    (
        &["DequantizeLinear"],
        "output_dtype",
        HarmlessValues::Numbers(&[0]),
    ),
    (&["GRU", "LSTM", "RNN"], "clip", HarmlessValues::None),
    (
        &["GRU"],
        "activations",
        HarmlessValues::Words(&["sigmoid", "tanh"]),
    ),
    (
        &["LSTM"],
        "activations",
        HarmlessValues::Words(&["sigmoid", "tanh", "tanh"]),
    ),
    (&["LSTM"], "input_forget", HarmlessValues::Numbers(&[0])),
    (
        &["MultiHeadAttention"],
        "unidirectional",
        HarmlessValues::Numbers(&[0]),
    ),
    (
        &["QuantizeLinear"],
        "precision",
        HarmlessValues::Numbers(&[0, 1]),
    ),
    (&["RNN"], "activations", HarmlessValues::Words(&["tanh"])),
    (&["Scan"], "directions", HarmlessValues::None),
    (&["SpaceToDepth"], "mode", HarmlessValues::Words(&["dcr"])),
    (
        &["TreeEnsembleClassifier"],
        "base_values_as_tensor",
        HarmlessValues::None,
    ),
    (
        &["TreeEnsembleClassifier"],
        "class_weights_as_tensor",
        HarmlessValues::None,
    ),
    (
        &["TreeEnsembleClassifier"],
        "nodes_values_as_tensor",
        HarmlessValues::None,
    ),
    // Before opset 7 it says which axes the second input belongs to.
    (
        &[
            "Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor",
        ],
        "axis",
        HarmlessValues::None,
    ),
];
/// The type that `QuantizeLinear` outputs without a zero point, whatever `output_dtype` says:
/// `uint8`.
const UINT8: i64 = 2;

/// The first attribute of the node that makes tract's result another one.
pub(super) fn find(node: &NodeProto) -> Option<&str> {
    let found = node.attribute.iter().find(|attr: &&AttributeProto| {
        PASSED_OVER.iter().any(|(op_types, name, harmless)| {
            op_types.contains(&node.op_type.as_str())
                && attr.name == *name
                && !is_harmless(attr, harmless)
        }) || is_other_output(node, attr)
    });
    found.map(|attr| attr.name.as_str())
}

fn is_harmless(attr: &AttributeProto, harmless: &HarmlessValues) -> bool {
    match harmless {
        HarmlessValues::None => false,
        HarmlessValues::Numbers(numbers) => numbers.contains(&attr.i()),
        HarmlessValues::Words(words) => {
            let single = [attr.s()];
            let values: Vec<&[u8]> = if attr.strings.is_empty() {
                single.to_vec()
            } else {
                attr.strings.iter().map(AsRef::as_ref).collect()
            };
            // A bidirectional operator has the list twice, once for each direction.
            let mut pairs = values.iter().zip(words.iter().cycle());
            pairs.all(|(value, word)| value.eq_ignore_ascii_case(word.as_bytes()))
        }
    }
}

/// Whether this is the type of a `QuantizeLinear` that has no zero point to take it from.
fn is_other_output(node: &NodeProto, attr: &AttributeProto) -> bool {
    let has_zero_point = node.input.get(2).is_some_and(|name| !name.is_empty());
    node.op_type == "QuantizeLinear"
        && attr.name == "output_dtype"
        && !has_zero_point
        && ![0, UINT8].contains(&attr.i())
}
