//! `graphs/{name}.json`: the operators of a graph and the values between them, part of a dump.
//!
//! `docs/formats/torch_graph.md` lists the keys. Unknown keys are ignored. Files are written
//! operator by operator, so that a graph of any size takes no more memory than one operator.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json_object;
use crate::FormatError;
use crate::record::graph::TensorType;
use crate::record::{AttributeKind, CallSite, Operator};

/// Name of the format in errors.
pub const FORMAT_NAME: &str = "graph description";
/// Extension of such files.
pub const EXTENSION: &str = "json";
/// The version that is written.
pub const VERSION: u32 = 1;
/// Maximum size of a file.
pub const FILE_BYTES_MAX: usize = 512 << 20;
/// The key of the standard operators in [`GraphFile::opsets`], which have no name in models.
pub const STANDARD_DOMAIN: &str = "ai.onnx";

/// Content to write for a graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct GraphText<'a, O> {
    /// Its name.
    pub name: &'a str,
    /// The name inside the model's file.
    pub graph_name: &'a str,
    /// Versions of the sets of operators, by name.
    pub opsets: &'a [(String, i64)],
    /// Names of the values that the model is given.
    pub arguments: &'a [String],
    /// Names of the values that the model returns, in its order; empty where they are unknown.
    pub results: &'a [String],
    /// Types of inputs, weights and constants, as far as they are known.
    pub types: &'a [(String, TensorType)],
    /// The operators.
    pub operators: &'a [O],
}

/// A graph as it was read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct GraphFile {
    /// Version of the format; 0 means missing.
    pub version: u32,
    /// The name of the graph.
    pub name: String,
    /// The step that ran it; none where every step runs the same graph.
    pub step: Option<u64>,
    /// The pass that the whole graph is of, such as `forward` or `backward`; empty for ONNX.
    pub phase: String,
    /// Versions of the sets of operators, by name; empty for graphs that are not of ONNX.
    pub opsets: BTreeMap<String, i64>,
    /// Names of the values that the graph is given.
    pub arguments: Vec<String>,
    /// Names of the values that the graph returns, in its order; empty where they are unknown.
    pub results: Vec<String>,
    /// Names of weights and constants.
    pub constants: Vec<String>,
    /// The operators, by task.
    pub operators: Vec<GraphOperator>,
}

/// An operator as it was read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct GraphOperator {
    /// Its position.
    pub task_id: u32,
    /// Its type.
    pub op_type: String,
    /// Its name.
    pub op_name: String,
    /// Which set of operators the type is from; empty for the standard one.
    pub domain: String,
    /// Names of its inputs by position; `None` for an absent one.
    pub inputs: Vec<Option<String>>,
    /// Names of what it makes.
    pub outputs: Vec<Option<String>>,
    /// Its attributes as text.
    #[serde(deserialize_with = "texts")]
    pub attributes: BTreeMap<String, String>,
    /// Types of the values that the texts represent, where they are known.
    pub attribute_types: BTreeMap<String, AttributeKind>,
    /// The path of the module that it was called in; empty if unknown.
    pub module: String,
    /// File, line and function of the call; empty if unknown.
    pub source: String,
    /// Names of the operators that it was fused from.
    pub original_names: Vec<String>,
    /// For each output the operator before fusion that made it, and which of its outputs it was;
    /// empty where nothing of them is known.
    pub original_outputs: Vec<Option<(String, u32)>>,
}

/// Writes a graph.
///
/// # Errors
/// Those of `out`.
pub fn write<O: AsRef<Operator>>(mut out: impl Write, graph: &GraphText<'_, O>) -> io::Result<()> {
    write!(out, "{{\n \"version\": {VERSION}")?;
    let opsets: BTreeMap<&str, i64> = graph
        .opsets
        .iter()
        .map(|(name, version)| match name.as_str() {
            "" => (STANDARD_DOMAIN, *version),
            name => (name, *version),
        })
        .collect();
    // Types are known of inputs as well; whatever is not an input is a weight or a constant.
    let arguments: HashSet<&String> = graph.arguments.iter().collect();
    let constants: Vec<&String> = graph
        .types
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !arguments.contains(name))
        .collect();
    member(&mut out, "name", &graph.name)?;
    member(&mut out, "graph_name", &graph.graph_name)?;
    member(&mut out, "opsets", &opsets)?;
    member(&mut out, "arguments", &graph.arguments)?;
    member(&mut out, "results", &graph.results)?;
    member(&mut out, "constants", &constants)?;
    member(&mut out, "values", &JsonValues(graph.types))?;
    out.write_all(b",\n \"operators\": [")?;
    for (i, operator) in graph.operators.iter().enumerate() {
        out.write_all(if i == 0 { b"\n  " } else { b",\n  " })?;
        serde_json::to_writer(&mut out, &JsonOperator(operator.as_ref()))?;
    }
    out.write_all(b"\n ]\n}\n")
}

fn member(out: &mut impl Write, key: &str, value: &impl Serialize) -> io::Result<()> {
    write!(out, ",\n \"{key}\": ")?;
    Ok(serde_json::to_writer(out, value)?)
}

/// Reads a graph.
///
/// # Errors
/// [`FormatError`] if it is not such a description, or too large.
pub fn parse(bytes: &[u8]) -> Result<GraphFile, FormatError> {
    let graph: GraphFile =
        json_object::decode(bytes, FILE_BYTES_MAX, "the description of a graph")?;
    // Every key has a default, so any JSON object parses. The version identifies a description.
    if graph.version == 0 {
        return Err(FormatError::new(
            0,
            "a description with a `version`",
            "none",
        ));
    }
    Ok(graph)
}

/// Attributes of other kinds than text are nothing that a later version would have to keep.
fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum KnownShape {
        Text(String),
        // One attribute of another kind must not make the whole graph unreadable.
        Else(serde::de::IgnoredAny),
    }
    let all: BTreeMap<String, KnownShape> = BTreeMap::deserialize(from)?;
    let texts = all.into_iter().filter_map(|(name, value)| match value {
        KnownShape::Text(text) => Some((name, text)),
        KnownShape::Else(_) => None,
    });
    Ok(texts.collect())
}

struct JsonValues<'a>(&'a [(String, TensorType)]);

impl Serialize for JsonValues<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct JsonTensorType<'a> {
            dtype: &'a str,
            shape: &'a [i64],
        }
        let values = self.0.iter().map(|(name, known)| {
            let dtype = known.dtype.name();
            let shape = &known.shape;
            (name, JsonTensorType { dtype, shape })
        });
        to.collect_map(values)
    }
}

struct JsonOperator<'a>(&'a Operator);

impl Serialize for JsonOperator<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let operator = self.0;
        let names = |names: &'_ [String]| -> Vec<Option<String>> {
            // ONNX marks an optional input that is absent by an empty name; the file has `null`
            // there.
            names
                .iter()
                .map(|name| Some(name.clone()).filter(|name| !name.is_empty()))
                .collect()
        };
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("task_id", &operator.task_id)?;
        map.serialize_entry("op_type", &operator.op_type)?;
        map.serialize_entry("op_name", &operator.op_name)?;
        if !operator.domain.is_empty() {
            map.serialize_entry("domain", &operator.domain)?;
        }
        map.serialize_entry("inputs", &names(&operator.inputs))?;
        map.serialize_entry("outputs", &names(&operator.outputs))?;
        // A sorted map makes the text independent of the order in which an engine lists attributes.
        let attributes: BTreeMap<&str, &str> = operator
            .attributes
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        map.serialize_entry("attributes", &attributes)?;
        let names = operator.attributes.iter().map(|(name, _)| name.as_str());
        let types: BTreeMap<&str, AttributeKind> = names
            .zip(operator.attribute_types.iter().copied())
            .collect();
        map.serialize_entry("attribute_types", &types)?;
        // PyTorch's operators have both among their attributes.
        for (key, text) in operator.call_site.iter().flat_map(CallSite::texts) {
            if !text.is_empty() && !attributes.contains_key(key) {
                map.serialize_entry(key, text)?;
            }
        }
        if !operator.original_names.is_empty() {
            map.serialize_entry("original_names", &operator.original_names)?;
        }
        if !operator.original_outputs.is_empty() {
            map.serialize_entry("original_outputs", &operator.original_outputs)?;
        }
        map.end()
    }
}
