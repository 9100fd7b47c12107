//! The attributes of operators that hold the number of a dtype.

use std::collections::{HashMap, HashSet};

use crate::onnx::proto;
use crate::onnx::schema::{FunctionProto, ModelProto, NodeProto};

/// Domains whose operators call a dtype by one of [`NAMES`], and nothing else.
const DOMAINS: [&str; 4] = ["", "ai.onnx", "ai.onnx.preview", "com.microsoft"];
/// Their names for it. Source: the schemas of ONNX 1.23 in all versions, and those of ONNX Runtime
/// 1.32.
const NAMES: [&str; 7] = [
    "dtype",
    "output_datatype",
    "output_dtype",
    "precision",
    "softmax_precision",
    "stash_type",
    "to",
];

/// Attributes that hold a dtype: those of known operators, and those that functions of the model
/// pass on to one.
pub(super) struct DTypeAttributes {
    by_function: HashMap<FunctionName, HashSet<String>>,
}

/// Domain, name and overload.
type FunctionName = [String; 3];

impl DTypeAttributes {
    /// Looks through the functions of a model.
    pub(super) fn new(model: &ModelProto) -> DTypeAttributes {
        let mut attributes = DTypeAttributes {
            by_function: HashMap::new(),
        };
        // A function may hand an attribute on to another function, in any order of the file. Each
        // round but the last finds at least one more of finitely many.
        loop {
            let mut has_more = false;
            for function in &model.functions {
                let found = attributes.handed_on(function);
                let known = attributes.by_function.entry(name(function)).or_default();
                let n_known = known.len();
                known.extend(found);
                has_more |= known.len() > n_known;
            }
            if !has_more {
                return attributes;
            }
        }
    }

    /// Whether an attribute of a node holds a dtype.
    pub(super) fn contains(&self, node: &NodeProto, attribute: &str) -> bool {
        let is_known = DOMAINS.contains(&node.domain.as_str())
            && NAMES.contains(&attribute)
            && !is_bit_cast(node);
        is_known || self.is_handed_on(&called(node), attribute)
    }

    /// Whether an attribute of a function holds a dtype.
    pub(super) fn is_of_function(&self, function: &FunctionProto, attribute: &str) -> bool {
        self.is_handed_on(&name(function), attribute)
    }

    fn is_handed_on(&self, function: &FunctionName, attribute: &str) -> bool {
        let attributes = self.by_function.get(function);
        attributes.is_some_and(|names| names.contains(attribute))
    }

    /// The attributes of a function that nodes inside it take for a dtype.
    fn handed_on(&self, function: &FunctionProto) -> Vec<String> {
        let mut found = Vec::new();
        for node in function.node.iter().flat_map(with_inner_nodes) {
            let taken = node
                .attribute
                .iter()
                .filter(|attribute| self.contains(node, &attribute.name));
            found.extend(taken.filter_map(|attribute| attribute.ref_attr_name.clone()));
        }
        found
    }
}

/// Whether a node reads the bits of its input as another dtype of the same width.
pub(super) fn is_bit_cast(node: &NodeProto) -> bool {
    node.op_type == "BitCast" && proto::is_standard(&node.domain)
}

fn name(function: &FunctionProto) -> FunctionName {
    [function.domain(), function.name(), function.overload()].map(ToOwned::to_owned)
}

fn called(node: &NodeProto) -> FunctionName {
    [&node.domain, &node.op_type, node.overload()].map(ToOwned::to_owned)
}

/// A node and those of its bodies.
pub(super) fn with_inner_nodes(node: &NodeProto) -> Vec<&NodeProto> {
    let inner = proto::bodies(node).flat_map(proto::all_nodes);
    std::iter::once(node).chain(inner).collect()
}
