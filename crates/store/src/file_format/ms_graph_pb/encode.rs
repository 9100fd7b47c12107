//! Writing a graph.

use opscope_tensor::DType;

use super::IR_VERSION;
use super::numbers::{
    FAMILIES, LIST, MONADS, NONE_TYPE, TENSOR, TUPLE, TYPE, graph as graph_field, kind, model,
    named, node, tensor, value as value_field,
};
use crate::file_format::ms_dtype;
use crate::file_format::protobuf::MessageWriter;
use crate::record::graph::{
    AttributeGroup, GraphDescription, GraphNode, InputOrigin, Literal, NONE, NodeSource,
    TensorType, ValueType,
};

/// The file of a graph.
pub fn encode(graph: &GraphDescription) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    // The message is proto2, whose writers put down every field that was set, zeros and empty texts
    // included.
    writer.varint_always(model::IR_VERSION, IR_VERSION);
    writer.message(model::GRAPH, |writer| write_graph(writer, graph));
    writer.into_bytes()
}

fn write_graph(writer: &mut MessageWriter, graph: &GraphDescription) {
    for (i, node) in graph.nodes.iter().enumerate() {
        writer.message(graph_field::NODE, |writer| {
            write_node(writer, graph, i, node);
        });
    }
    text(writer, graph_field::NAME, &graph.name);
    for parameter in &graph.parameters {
        writer.message(graph_field::PARAMETER, |writer| {
            text(writer, named::NAME, &parameter.name);
            writer.message(named::CONTENT, |w| write_type(w, &parameter.value));
        });
    }
    for output in &graph.outputs {
        writer.message(graph_field::OUTPUT, |writer| {
            text(writer, named::NAME, &input_name(graph, output));
            let value = graph.type_of(output).unwrap_or_default();
            writer.message(named::CONTENT, |w| write_type(w, &value));
        });
    }
    for (i, constant) in graph.constants.iter().enumerate() {
        writer.message(graph_field::CONSTANT, |writer| {
            text(writer, named::NAME, &constant_name(i));
            // MindSpore leaves the values of constant tensors out.
            if !matches!(constant.value, Literal::Tensor(..)) {
                writer.message(named::CONTENT, |w| write_value(w, &constant.value));
            }
            let known = constant.full_name.clone();
            // Only constants read from such a file have a name.
            let full_name = known.unwrap_or_else(|| format!("Default_data-{i}"));
            text(writer, named::FULL_NAME, &full_name);
        });
    }
    text(writer, graph_field::ROOT_NAME, &graph.id.to_string());
}

fn write_node(writer: &mut MessageWriter, graph: &GraphDescription, i: usize, node: &GraphNode) {
    for input in &node.inputs {
        writer.message(node::INPUT, |writer| {
            text(writer, named::NAME, &input_name(graph, input));
            // 0 is an edge of data; MindSpore writes it although it is the default.
            writer.varint_always(named::CONTENT, 0);
        });
    }
    text(writer, node::NAME, &node_name(i));
    text(writer, node::OP_TYPE, &node.op_type);
    text(writer, node::SCOPE, node.scope());
    // The message has no place for the attributes of nodes and origins.
    let of_operator =
        |a: &&crate::record::graph::GraphAttribute| a.group == AttributeGroup::Operator;
    for attribute in node.attributes.iter().filter(of_operator) {
        writer.message(node::ATTRIBUTE, |writer| {
            text(writer, named::NAME, &attribute.name);
            writer.message(named::CONTENT, |w| write_value(w, &attribute.value));
        });
    }
    writer.message(node::OUTPUT_TYPE, |w| write_type(w, &node.output));
    text(writer, node::FULL_NAME, &node.full_name);
    text(writer, node::SOURCE, &source_text(&node.source));
}

fn node_name(i: usize) -> String {
    // MindSpore numbers nodes from 1 here, but from 0 in the text.
    (i + 1).to_string()
}

fn constant_name(i: usize) -> String {
    format!("cst{}", i + 1)
}

fn input_name(graph: &GraphDescription, input: &InputOrigin) -> String {
    match input {
        InputOrigin::Node(index) => node_name(*index),
        InputOrigin::Constant(index) => constant_name(*index),
        InputOrigin::Parameter(_) | InputOrigin::Unknown(_) => graph.input_name(input),
    }
}

/// Innermost call first, and a mark where one candidate begins.
fn source_text(sources: &[NodeSource]) -> String {
    let mut out = String::new();
    let mut last_heading = None;
    for source in sources {
        let mut mark = "      # In file ";
        if let Some(heading) = &source.heading {
            if last_heading != Some(heading) {
                out += &format!("      # {heading}:\n");
            }
            mark = "      #  - In file ";
        }
        for line in source.lines.iter().rev() {
            out += &format!("{mark}{line}\n");
            if source.heading.is_some() {
                mark = "      #    In file ";
            }
        }
        last_heading = source.heading.as_ref();
    }
    out
}

fn write_type(writer: &mut MessageWriter, value: &ValueType) {
    match value {
        ValueType::Tensor(tensor) | ValueType::Reference { tensor, .. } => {
            writer.varint_always(kind::DATA_TYPE, TENSOR);
            writer.message(kind::TENSOR, |writer| write_tensor_type(writer, tensor));
        }
        ValueType::Scalar(dtype) => writer.varint_always(kind::DATA_TYPE, number(*dtype)),
        ValueType::Tuple(types) => {
            writer.varint_always(kind::DATA_TYPE, TUPLE);
            writer.message(kind::SEQUENCE, |writer| {
                for value in types {
                    writer.message(kind::ELEMENT, |w| write_element(w, value));
                }
            });
        }
        ValueType::Monad(name) => {
            let monad = MONADS.iter().find(|(_, known)| known == name);
            writer.varint_always(kind::DATA_TYPE, monad.map_or(0, |(number, _)| *number));
        }
        ValueType::Other(_) => writer.varint_always(kind::DATA_TYPE, 0),
    }
}

/// MindSpore omits the shapes of tuple elements. Here known shapes are written, even empty ones,
/// which distinguishes them from omitted ones.
fn write_element(writer: &mut MessageWriter, value: &ValueType) {
    match value {
        ValueType::Tensor(tensor) | ValueType::Reference { tensor, .. } => {
            writer.varint_always(kind::DATA_TYPE, TENSOR);
            writer.message(kind::TENSOR, |writer| {
                writer.varint_always(kind::ELEMENT, number(tensor.dtype));
                if !tensor.is_of_any_rank() {
                    writer.message(kind::SHAPE, |writer| write_dims(writer, tensor));
                }
            });
        }
        _ => write_type(writer, value),
    }
}

fn write_dims(writer: &mut MessageWriter, tensor: &TensorType) {
    for dim in &tensor.shape {
        writer.message(kind::DIM, |w| {
            w.varint_always(kind::SIZE, dim.cast_unsigned());
        });
    }
}

fn write_tensor_type(writer: &mut MessageWriter, tensor: &TensorType) {
    writer.varint_always(kind::ELEMENT, number(tensor.dtype));
    // A tensor without axes has no shape at all.
    if !tensor.shape.is_empty() {
        writer.message(kind::SHAPE, |writer| write_dims(writer, tensor));
    }
}

fn write_value(writer: &mut MessageWriter, value: &Literal) {
    match value {
        Literal::Bool(value) => {
            writer.varint_always(value_field::DATA_TYPE, number(DType::Bool));
            writer.varint_always(value_field::BOOL, u64::from(*value));
        }
        Literal::Int(dtype, value) => {
            let dtype = dtype.unwrap_or(DType::I64);
            writer.varint_always(value_field::DATA_TYPE, number(dtype));
            let is_unsigned = matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64);
            let field = if is_unsigned {
                value_field::UINT
            } else {
                value_field::INT
            };
            // Integers of graphs have 64 bits at most; negative ones are written in full.
            writer.varint_always(field, *value as u64);
        }
        Literal::Float(DType::F64, value) => {
            writer.varint_always(value_field::DATA_TYPE, number(DType::F64));
            writer.double(value_field::DOUBLE, *value);
        }
        Literal::Float(dtype, value) => {
            writer.varint_always(value_field::DATA_TYPE, number(*dtype));
            writer.float(value_field::FLOAT, *value as f32);
        }
        Literal::Text(text) => write_text(writer, text),
        Literal::Name(name) if name == NONE => {
            writer.varint_always(value_field::DATA_TYPE, NONE_TYPE);
        }
        Literal::Name(name) => match type_number(name) {
            Some(number) => {
                writer.varint_always(value_field::DATA_TYPE, TYPE);
                writer.message(value_field::TYPE, |w| {
                    w.varint_always(kind::DATA_TYPE, number);
                });
            }
            // The message has no other place for a name that is not a type's.
            None => write_text(writer, name),
        },
        Literal::Tuple(values) => write_values(writer, TUPLE, values),
        Literal::List(values) => write_values(writer, LIST, values),
        Literal::Tensor(known, _) => {
            writer.varint_always(value_field::DATA_TYPE, TENSOR);
            if let Some(known) = known {
                writer.message(value_field::TENSOR, |writer| {
                    for dim in &known.shape {
                        // One field for each dimension, because proto2 does not pack lists.
                        writer.varint_always(tensor::DIMS, dim.cast_unsigned());
                    }
                    writer.varint_always(tensor::DATA_TYPE, number(known.dtype));
                });
            }
        }
        // A monad has no separate field: the message is there and empty.
        Literal::Monad(_) => {}
    }
}

fn write_values(writer: &mut MessageWriter, data_type: u64, values: &[Literal]) {
    writer.varint_always(value_field::DATA_TYPE, data_type);
    for value in values {
        writer.message(value_field::VALUES, |w| write_value(w, value));
    }
}

fn write_text(writer: &mut MessageWriter, value: &str) {
    writer.varint_always(value_field::DATA_TYPE, number(DType::String));
    text(writer, value_field::TEXT, value);
}

/// A string that is there even if it is empty.
fn text(writer: &mut MessageWriter, field: u32, value: &str) {
    writer.bytes(field, value.as_bytes());
}

fn number(dtype: DType) -> u64 {
    ms_dtype::number(dtype).unwrap_or(0)
}

/// The number of a type by its name, which MindSpore's files give for the family only.
fn type_number(name: &str) -> Option<u64> {
    let family = FAMILIES.iter().find(|(_, known)| *known == name);
    family
        .map(|(number, _)| *number)
        .or_else(|| ms_dtype::number(ms_dtype::from_short(name)?))
}
