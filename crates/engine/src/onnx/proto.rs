//! Reading and checking an ONNX file before an engine sees it.

mod node_order;

use std::collections::{HashMap, HashSet};
use std::path::Path;
#[cfg(feature = "onnxruntime")]
use std::sync::Arc;

use opscope_store::file_bytes::FileBytes;
use opscope_store::record::Operator;
pub(super) use opscope_store::record::operator_sets::{is_same_domain, is_standard, standard};
use opscope_tensor::DType;
use prost::Message;
use prost::bytes::Bytes;

pub(super) use self::node_order::WARNING as SORTED_WARNING;
use super::attribute;
use super::call_site::call_site;
#[cfg(feature = "onnxruntime")]
use super::schema::{DataLocation, TensorProto};
use super::schema::{
    DimValue, ElementTypeProto, GraphProto, ModelProto, NodeProto, TypeValue, ValueInfoProto,
};

use crate::{DeclaredDim, EngineError, ModelSignature, ValueInfo, onnx_dtype};

/// Deepest nesting of control-flow bodies.
pub(super) const BODY_DEPTH_MAX: usize = 32;

/// Most bytes of a protobuf message, which counts them in 32 bits with a sign.
pub(super) const N_MESSAGE_BYTES_MAX: usize = i32::MAX as usize;

/// How errors call a model that came as bytes.
pub(super) const MEMORY: &str = "model in memory";
/// The type of a node that holds a value.
pub(super) const CONSTANT: &str = "Constant";

/// A model, and the bytes that it was decoded from and shares.
pub(super) struct ModelBytes {
    pub(super) proto: ModelProto,
    pub(super) bytes: Bytes,
    /// Whether its nodes were in another order in the file.
    pub(super) is_sorted_anew: bool,
}

/// Decodes a model file and checks that its values hang together.
pub(super) fn read(path: &Path) -> Result<ModelBytes, EngineError> {
    let metadata = std::fs::metadata(path).map_err(|source| EngineError::Read {
        path: path.to_owned(),
        source,
    })?;
    if metadata.is_dir() {
        return Err(EngineError::invalid(path, "it is a directory"));
    }
    if !metadata.is_file() {
        return Err(EngineError::invalid(path, "it is not a regular file"));
    }
    // Zero bytes are a valid protobuf message, which would then lack everything.
    if metadata.len() == 0 {
        return Err(EngineError::invalid(path, "it is empty"));
    }
    let bytes = FileBytes::open(path).map_err(|source| EngineError::Read {
        path: path.to_owned(),
        source,
    })?;
    // The message shares the file's bytes, so weights are not copied again.
    checked(Bytes::from_owner(bytes)).map_err(|reason| EngineError::invalid(path, reason))
}

/// Decodes and checks a model in memory.
pub(super) fn decode(bytes: &[u8]) -> Result<ModelBytes, EngineError> {
    if bytes.is_empty() {
        return Err(EngineError::invalid(Path::new(MEMORY), "it is empty"));
    }
    checked(Bytes::copy_from_slice(bytes))
        .map_err(|reason| EngineError::invalid(Path::new(MEMORY), reason))
}

fn checked(bytes: Bytes) -> Result<ModelBytes, String> {
    let mut proto = ModelProto::decode(bytes.clone()).map_err(|error| {
        let error = error.to_string();
        // The decoder has no kinds of errors, only this text.
        let is_short = error.contains("buffer underflow");
        let what = if is_short {
            "it ends too early: truncated, or"
        } else {
            "the file is"
        };
        format!("{what} damaged or of another kind ({error})")
    })?;
    // Almost any bytes decode as some message, and every ONNX file has this field.
    if proto.ir_version() <= 0 {
        return Err("it has no ONNX version; the file is of another kind".into());
    }
    let graph = proto
        .graph
        .as_mut()
        .ok_or("it has no graph; the file is truncated or of another kind")?;
    check_depth(graph, 0)?;
    let is_sorted_anew = node_order::sort(graph);
    check_graph(graph, &HashSet::new())?;
    let bytes = match is_sorted_anew {
        true => proto.encode_to_vec().into(),
        false => bytes,
    };
    Ok(ModelBytes {
        proto,
        bytes,
        is_sorted_anew,
    })
}

/// Reads the inputs and outputs of the model.
pub(super) fn signature(graph: &GraphProto) -> Result<ModelSignature, String> {
    let initialised: HashSet<&str> = graph.initializer.iter().map(|t| t.name.as_str()).collect();
    let inputs = graph
        .input
        .iter()
        .filter(|value| !initialised.contains(value.name.as_str()))
        .map(value_info);
    Ok(ModelSignature {
        graph_name: graph.name.clone(),
        inputs: inputs.collect::<Result<_, _>>()?,
        initialised_inputs: graph
            .input
            .iter()
            .filter(|value| initialised.contains(value.name.as_str()))
            .map(|value| value.name.clone())
            .collect(),
        // The type of a result is a hint only: engines compute some that files do not declare.
        outputs: graph
            .output
            .iter()
            .map(|value| value_info(value).unwrap_or_else(|_| untyped(&value.name)))
            .collect(),
    })
}

/// A value with only a name.
fn untyped(name: &str) -> ValueInfo {
    ValueInfo {
        name: name.to_owned(),
        dtype: DType::Undefined,
        dims: None,
    }
}

/// Versions of all operator sets, by domain.
pub(super) fn opsets(model: &ModelProto) -> Vec<(String, i64)> {
    let imports = model.opset_import.iter();
    imports
        .map(|import| (import.domain().to_owned(), import.version()))
        .collect()
}

/// The version of the standard operator set; 0 if the file names none.
#[cfg(feature = "tract")]
pub(super) fn opset(model: &ModelProto) -> i64 {
    let import = model
        .opset_import
        .iter()
        .find(|import| is_standard(import.domain()));
    import.map_or(0, |import| import.version())
}

/// Every node with its number: file order, the nodes of bodies right after the node they belong to.
pub(super) fn numbered(graph: &GraphProto) -> impl Iterator<Item = (u32, &NodeProto)> {
    (0..).zip(all_nodes(graph))
}

/// The records of all operators, in file order. A node that holds a constant is none.
#[cfg(feature = "onnxruntime")]
pub(super) fn operators(graph: &GraphProto) -> Vec<Arc<Operator>> {
    numbered(graph)
        .filter(|(_, node)| !is_constant(node))
        .map(|(task_id, node)| Arc::new(operator(node, task_id)))
        .collect()
}

#[cfg(feature = "onnxruntime")]
fn is_outside(tensor: &TensorProto) -> bool {
    tensor.data_location() == DataLocation::External
}

/// Whether weights are kept in separate files.
#[cfg(feature = "onnxruntime")]
pub(super) fn has_data_outside(graph: &GraphProto) -> bool {
    graph.initializer.iter().any(is_outside)
        || all_nodes(graph).into_iter().any(|node| {
            let mut constants = node.attribute.iter().filter_map(|attr| attr.t.as_ref());
            constants.any(is_outside)
                || bodies(node).any(|graph| graph.initializer.iter().any(is_outside))
        })
}

/// The operator record of a node.
pub(super) fn operator(node: &NodeProto, task_id: u32) -> Operator {
    Operator {
        call_site: call_site(node),
        task_id,
        op_type: node.op_type.clone(),
        op_name: node_name(node),
        inputs: node.input.clone(),
        outputs: node.output.clone(),
        attributes: node
            .attribute
            .iter()
            .map(|attribute| (attribute.name.clone(), attribute::text(attribute)))
            .collect(),
        attribute_types: node.attribute.iter().map(attribute::r#type).collect(),
        domain: node.domain.clone(),
        ..Operator::default()
    }
}

/// A node's name, or its first output if it has none.
pub(super) fn node_name(node: &NodeProto) -> String {
    if !node.name.is_empty() {
        return node.name.clone();
    }
    node.output
        .iter()
        .find(|name| !name.is_empty())
        .cloned()
        .unwrap_or_default()
}

/// Numbers of the nodes without a name, ascending.
pub(super) fn unnamed(graph: &GraphProto) -> Vec<u32> {
    let nodes = numbered(graph).filter(|(_, node)| node.name.is_empty());
    nodes.map(|(number, _)| number).collect()
}

/// Names of the values that nodes of the type `Constant` hold, in bodies too.
pub(super) fn constants(graph: &GraphProto) -> Vec<String> {
    let nodes = all_nodes(graph).into_iter();
    nodes
        .filter(|node| node.op_type == CONSTANT)
        .flat_map(|node| node.output.clone())
        .collect()
}

/// Values that a body is given by the node that runs it, such as what a loop carries, by the
/// numbers of the nodes that read them; sorted.
pub(super) fn carried(graph: &GraphProto) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    add_carried(graph, &mut Vec::new(), &mut 0, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

/// `scopes` are the graphs around this one: for each name whether it is given to the body.
fn add_carried<'a>(
    graph: &'a GraphProto,
    scopes: &mut Vec<HashMap<&'a str, bool>>,
    n_nodes: &mut u32,
    found: &mut Vec<(u32, String)>,
) {
    let is_body = !scopes.is_empty();
    let inputs = graph
        .input
        .iter()
        .map(|input| (input.name.as_str(), is_body));
    let weights = graph
        .initializer
        .iter()
        .map(|weight| (weight.name.as_str(), false));
    scopes.push(inputs.chain(weights).collect());
    for node in &graph.node {
        let number = *n_nodes;
        *n_nodes += 1;
        for name in node.input.iter().filter(|name| !name.is_empty()) {
            let scope = scopes
                .iter()
                .rev()
                .find_map(|scope| scope.get(name.as_str()));
            if scope == Some(&true) {
                found.push((number, name.clone()));
            }
        }
        // Bodies come before the outputs: a body does not see the outputs of its own node.
        for body in bodies(node) {
            add_carried(body, scopes, n_nodes, found);
        }
        if let Some(own) = scopes.last_mut() {
            own.extend(node.output.iter().map(|name| (name.as_str(), false)));
        }
    }
    scopes.pop();
}

/// The graphs inside a node's attributes, such as the branches of `If`.
pub(super) fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute
        .iter()
        .flat_map(|attr| attr.g.iter().chain(&attr.graphs))
}

/// The same graphs, to be changed.
pub(super) fn bodies_mut(node: &mut NodeProto) -> impl Iterator<Item = &mut GraphProto> {
    node.attribute
        .iter_mut()
        .flat_map(|attr| attr.g.iter_mut().chain(&mut attr.graphs))
}

/// Whether a node only holds a value.
#[cfg(feature = "onnxruntime")]
pub(super) fn is_constant(node: &NodeProto) -> bool {
    node.op_type == CONSTANT && is_standard(&node.domain)
}

/// Every node of a graph and of the bodies inside it.
pub(super) fn all_nodes(graph: &GraphProto) -> Vec<&NodeProto> {
    let mut nodes = Vec::new();
    for node in &graph.node {
        nodes.push(node);
        bodies(node).for_each(|body| nodes.extend(all_nodes(body)));
    }
    nodes
}

/// Checks how deep bodies are nested, for which all later walks call themselves.
fn check_depth(graph: &GraphProto, depth: usize) -> Result<(), String> {
    if depth > BODY_DEPTH_MAX {
        return Err(format!(
            "control flow is nested deeper than {BODY_DEPTH_MAX}"
        ));
    }
    let mut bodies = graph.node.iter().flat_map(bodies);
    bodies.try_for_each(|body| check_depth(body, depth + 1))
}

/// Checks that every value is produced before it is read, and every result produced at all.
fn check_graph(graph: &GraphProto, outer: &HashSet<&str>) -> Result<(), String> {
    let mut known = outer.clone();
    known.extend(graph.input.iter().map(|value| value.name.as_str()));
    known.extend(graph.initializer.iter().map(|tensor| tensor.name.as_str()));
    if !graph.sparse_initializer.is_empty() {
        return Err("it has sparse initializers, which are not supported".into());
    }
    for node in &graph.node {
        let name = node_name(node);
        if let Some(input) = node
            .input
            .iter()
            .find(|i| !i.is_empty() && !known.contains(i.as_str()))
        {
            return Err(format!(
                "node `{name}` reads `{input}`, which nothing before it produces; the file may be \
                 truncated"
            ));
        }
        for body in bodies(node) {
            check_graph(body, &known)?;
        }
        // Nodes are in topological order, so that one pass is enough.
        known.extend(node.output.iter().map(String::as_str));
    }
    match graph
        .output
        .iter()
        .find(|value| !known.contains(value.name.as_str()))
    {
        Some(value) => Err(format!(
            "result `{}` is never produced; the file may be truncated",
            value.name
        )),
        None if graph.output.is_empty() => {
            Err("it has no results; the file may be truncated".into())
        }
        None => Ok(()),
    }
}

fn value_info(value: &ValueInfoProto) -> Result<ValueInfo, String> {
    let name = &value.name;
    let tensor = match value.r#type.as_ref().and_then(|t| t.value.as_ref()) {
        Some(TypeValue::TensorType(tensor)) => tensor,
        Some(other) => {
            return Err(format!(
                "input `{name}` takes {}; only tensors can be given",
                kind(other)
            ));
        }
        None => return Err(format!("input `{name}` has no type")),
    };
    let dtype = dtype(tensor.elem_type()).ok_or_else(|| {
        format!(
            "input `{name}` has the unknown dtype {}",
            tensor.elem_type()
        )
    })?;
    let dims = tensor.shape.as_ref().map(|shape| {
        shape
            .dim
            .iter()
            .map(|d| match &d.value {
                Some(DimValue::DimValue(n)) => {
                    usize::try_from(*n).map_or(DeclaredDim::Unknown, DeclaredDim::Fixed)
                }
                Some(DimValue::DimParam(name)) if !name.is_empty() => {
                    DeclaredDim::Named(name.clone())
                }
                _ => DeclaredDim::Unknown,
            })
            .collect()
    });
    Ok(ValueInfo {
        name: name.clone(),
        dtype,
        dims,
    })
}

/// Says in words what a value is.
fn kind(value: &TypeValue) -> String {
    match value {
        TypeValue::TensorType(tensor) => format!("a tensor of {}", dtype_name(tensor.elem_type())),
        TypeValue::SequenceType(element) => format!("a sequence of {}", element_kind(element)),
        TypeValue::OptionalType(element) => format!("an optional of {}", element_kind(element)),
        TypeValue::SparseTensorType(tensor) => {
            format!("a sparse tensor of {}", dtype_name(tensor.elem_type()))
        }
        TypeValue::MapType(_) => "a map".to_owned(),
        TypeValue::OpaqueType(_) => "an opaque value".to_owned(),
    }
}

fn element_kind(element: &ElementTypeProto) -> String {
    let value = element.elem_type.as_ref().and_then(|t| t.value.as_ref());
    value.map_or_else(|| "something untyped".to_owned(), kind)
}

fn dtype_name(number: i32) -> String {
    dtype(number).map_or_else(|| format!("dtype {number}"), |dtype| dtype.to_string())
}

/// The dtype of this number in ONNX.
pub(super) fn dtype(number: i32) -> Option<DType> {
    let number = u64::try_from(number).ok()?;
    let mut dtypes = DType::ALL.iter().copied();
    dtypes.find(|&dtype| onnx_dtype::code(dtype) == Some(number))
}
