//! Reading a graph.

use std::collections::HashMap;

use opscope_tensor::DType;

use super::numbers::{
    FAMILIES, LIST, MONADS, NONE_TYPE, TENSOR, TUPLE, TYPE, graph as graph_field, kind, model,
    named, node, tensor, value as value_field,
};
use super::{DEPTH_MAX, FORMAT_NAME};
use crate::FormatError;
use crate::file_format::ms_dtype;
use crate::file_format::protobuf::{FieldValue, MessageReader, read_repeated_u64};
use crate::record::graph::{
    ANY_RANK, AttributeGroup, Constant, GraphAttribute, GraphDescription, GraphNode,
    GraphParameter, InputOrigin, Literal, NONE, NodeSource, TensorType, ValueType,
};

/// Reads a graph from a file's bytes.
///
/// # Errors
/// [`FormatError`] if the bytes are not a protobuf message, or are one without a graph.
pub fn decode(bytes: &[u8]) -> Result<GraphDescription, FormatError> {
    let mut graph = None;
    each_field(FieldValue::Bytes(bytes, 0), |number, value| {
        if number == model::GRAPH {
            graph = Some(read_graph(value)?);
        }
        Ok(())
    })?;
    graph.ok_or_else(|| FormatError::new(0, format!("a graph: {FORMAT_NAME}"), "none"))
}

/// Names of inputs, to be looked up when all nodes are known.
type InputNames = Vec<String>;

fn read_graph(value: FieldValue<'_>) -> Result<GraphDescription, FormatError> {
    let mut graph = GraphDescription::default();
    let mut inputs: Vec<InputNames> = Vec::new();
    let mut outputs = InputNames::new();
    let mut by_name = HashMap::new();
    let mut root_name = String::new();
    each_field(value, |number, value| {
        match number {
            graph_field::NODE => {
                let (name, node, names) = read_node(value)?;
                by_name.insert(name, InputOrigin::Node(graph.nodes.len()));
                graph.nodes.push(node);
                inputs.push(names);
            }
            graph_field::NAME => graph.name = text(value)?,
            graph_field::PARAMETER => {
                let parameter = read_parameter(value)?;
                let input = InputOrigin::Parameter(graph.parameters.len());
                by_name.insert(parameter.name.clone(), input);
                graph.parameters.push(parameter);
            }
            graph_field::OUTPUT => outputs.push(name_of(value)?),
            graph_field::CONSTANT => {
                let (name, constant) = read_constant(value)?;
                by_name.insert(name, InputOrigin::Constant(graph.constants.len()));
                graph.constants.push(constant);
            }
            graph_field::ROOT_NAME => root_name = text(value)?,
            _ => {}
        }
        Ok(())
    })?;
    // Inputs may name later nodes, so they are resolved after the last field.
    let resolve = |names: InputNames| -> Vec<InputOrigin> {
        let found = names.into_iter().map(|name| match by_name.get(&name) {
            Some(input) => input.clone(),
            None => InputOrigin::Unknown(name),
        });
        found.collect()
    };
    for (node, names) in graph.nodes.iter_mut().zip(inputs) {
        node.inputs = resolve(names);
    }
    graph.outputs = resolve(outputs);
    graph.id = root_name.parse().unwrap_or(0);
    Ok(graph)
}

fn read_node(value: FieldValue<'_>) -> Result<(String, GraphNode, InputNames), FormatError> {
    let mut name = String::new();
    let mut inputs = InputNames::new();
    let mut found = GraphNode::default();
    each_field(value, |number, value| {
        match number {
            node::INPUT => inputs.push(name_of(value)?),
            node::NAME => name = text(value)?,
            node::OP_TYPE => found.op_type = text(value)?,
            node::FULL_NAME => found.full_name = text(value)?,
            node::ATTRIBUTE => found.attributes.push(read_attribute(value)?),
            node::OUTPUT_TYPE => found.output = read_type(value, 0)?,
            node::SOURCE => found.source = sources(&text(value)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, found, inputs))
}

fn read_parameter(value: FieldValue<'_>) -> Result<GraphParameter, FormatError> {
    let mut parameter = GraphParameter {
        name: String::new(),
        listed_name: None,
        value: ValueType::default(),
        input_shape: None,
        has_default: false,
        device: None,
        is_weight: false,
    };
    each_field(value, |number, value| {
        match number {
            named::NAME => parameter.name = text(value)?,
            named::CONTENT => parameter.value = read_type(value, 0)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(parameter)
}

fn read_constant(value: FieldValue<'_>) -> Result<(String, Constant), FormatError> {
    let mut name = String::new();
    // Tensors have no value.
    let mut constant = Constant {
        value: Literal::Tensor(None, String::new()),
        full_name: None,
    };
    each_field(value, |number, value| {
        match number {
            named::NAME => name = text(value)?,
            named::CONTENT => constant.value = read_value(value, 0)?,
            named::FULL_NAME => constant.full_name = Some(text(value)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, constant))
}

fn read_attribute(value: FieldValue<'_>) -> Result<GraphAttribute, FormatError> {
    let mut attribute = GraphAttribute {
        group: AttributeGroup::Operator,
        name: String::new(),
        value: Literal::Name(String::new()),
    };
    each_field(value, |number, value| {
        match number {
            named::NAME => attribute.name = text(value)?,
            named::CONTENT => attribute.value = read_value(value, 0)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(attribute)
}

/// The first field of an input or an output.
fn name_of(value: FieldValue<'_>) -> Result<String, FormatError> {
    let mut name = String::new();
    each_field(value, |number, value| {
        if number == named::NAME {
            name = text(value)?;
        }
        Ok(())
    })?;
    Ok(name)
}

fn read_type(value: FieldValue<'_>, depth: usize) -> Result<ValueType, FormatError> {
    // Messages nest as deep as a file likes, and each level takes stack.
    check_depth(value, depth)?;
    let mut data_type = 0;
    let mut tensor = None;
    let mut elements = Vec::new();
    each_field(value, |number, value| {
        match number {
            kind::DATA_TYPE => data_type = integer(value),
            kind::TENSOR => tensor = read_tensor_type(value)?,
            kind::SEQUENCE => each_field(value, |number, value| {
                if number == kind::ELEMENT {
                    elements.push(read_element(value, depth + 1)?);
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    let monad = MONADS.iter().find(|(number, _)| *number == data_type);
    Ok(match (data_type, tensor, monad) {
        (TENSOR, Some(tensor), _) => ValueType::Tensor(tensor),
        (TUPLE | LIST, ..) => ValueType::Tuple(elements),
        (_, _, Some((_, name))) => ValueType::Monad((*name).to_owned()),
        _ => match ms_dtype::from_number(data_type) {
            Some(dtype) => ValueType::Scalar(dtype),
            None => ValueType::Other(format!("#{data_type}")),
        },
    })
}

/// The values of a tuple: without a shape, the dimensions are unknown.
fn read_element(value: FieldValue<'_>, depth: usize) -> Result<ValueType, FormatError> {
    let mut found = read_type(value, depth)?;
    // Outside tuples a missing shape means that there are no axes, so `read_tensor_type`, which
    // serves both, cannot decide.
    let mut has_shape = false;
    each_field(value, |number, value| {
        if number == kind::TENSOR {
            each_field(value, |number, _| {
                has_shape |= number == kind::SHAPE;
                Ok(())
            })?;
        }
        Ok(())
    })?;
    if let (ValueType::Tensor(tensor), false) = (&mut found, has_shape) {
        tensor.shape = vec![ANY_RANK];
    }
    Ok(found)
}

/// None if the dtype has no counterpart here.
fn read_tensor_type(value: FieldValue<'_>) -> Result<Option<TensorType>, FormatError> {
    let mut dtype = 0;
    let mut shape = Vec::new();
    each_field(value, |number, value| {
        match number {
            kind::ELEMENT => dtype = integer(value),
            kind::SHAPE => each_field(value, |number, value| {
                if number == kind::DIM {
                    shape.push(read_dim(value)?);
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    let dtype = ms_dtype::from_number(dtype);
    Ok(dtype.map(|dtype| TensorType { dtype, shape }))
}

fn read_dim(value: FieldValue<'_>) -> Result<i64, FormatError> {
    let mut size = 0;
    each_field(value, |number, value| {
        if number == kind::SIZE {
            size = integer(value).cast_signed();
        }
        Ok(())
    })?;
    Ok(size)
}

fn read_value(value: FieldValue<'_>, depth: usize) -> Result<Literal, FormatError> {
    check_depth(value, depth)?;
    let mut data_type = None;
    let mut content = None;
    let mut values = Vec::new();
    each_field(value, |number, value| {
        match number {
            value_field::DATA_TYPE => data_type = Some(integer(value)),
            value_field::BOOL => content = Some(Literal::Bool(integer(value) != 0)),
            value_field::INT => {
                let value = i128::from(integer(value).cast_signed());
                content = Some(Literal::Int(None, value));
            }
            value_field::UINT => content = Some(Literal::Int(None, integer(value).into())),
            value_field::FLOAT | value_field::DOUBLE => content = float(value),
            value_field::TEXT => content = Some(Literal::Text(text(value)?)),
            value_field::TENSOR => content = Some(read_tensor_value(value)?),
            value_field::VALUES => values.push(read_value(value, depth + 1)?),
            value_field::TYPE => content = Some(Literal::Name(type_name(value)?)),
            _ => {}
        }
        Ok(())
    })?;
    let dtype = data_type.and_then(ms_dtype::from_number);
    Ok(match (data_type, content) {
        // MindSpore writes a monad as an empty message, so it is unknown which of the two it is.
        (None, None) if values.is_empty() => Literal::Monad(MONADS[0].1.to_owned()),
        (Some(TUPLE), _) => Literal::Tuple(values),
        (Some(LIST), _) => Literal::List(values),
        (Some(NONE_TYPE), None) => Literal::Name(NONE.to_owned()),
        (Some(TENSOR), None) => Literal::Tensor(None, String::new()),
        (_, Some(Literal::Int(_, value))) => Literal::Int(dtype, value),
        (_, Some(Literal::Float(_, value))) => Literal::Float(dtype.unwrap_or(DType::F32), value),
        (_, Some(content)) => content,
        (data_type, None) => Literal::Name(format!("#{}", data_type.unwrap_or(TYPE))),
    })
}

fn read_tensor_value(value: FieldValue<'_>) -> Result<Literal, FormatError> {
    let mut dims = Vec::new();
    let mut dtype = 0;
    each_field(value, |number, value| {
        match number {
            // Writers of proto2 do not pack lists, but a parser has to take both forms.
            tensor::DIMS => read_repeated_u64(value, &mut dims)?,
            tensor::DATA_TYPE => dtype = integer(value),
            _ => {}
        }
        Ok(())
    })?;
    let shape = dims.into_iter().map(u64::cast_signed).collect();
    let known = ms_dtype::from_number(dtype).map(|dtype| TensorType { dtype, shape });
    Ok(Literal::Tensor(known, String::new()))
}

fn type_name(value: FieldValue<'_>) -> Result<String, FormatError> {
    let mut data_type = 0;
    each_field(value, |number, value| {
        if number == kind::DATA_TYPE {
            data_type = integer(value);
        }
        Ok(())
    })?;
    let family = FAMILIES.iter().find(|(number, _)| *number == data_type);
    let known = family.map(|(_, name)| *name);
    Ok(known
        .or_else(|| ms_dtype::short(ms_dtype::from_number(data_type)?))
        .map_or_else(|| format!("#{data_type}"), str::to_owned))
}

/// One source for lines without a heading, one for each candidate below a heading.
fn sources(text: &str) -> Vec<NodeSource> {
    let mut sources: Vec<NodeSource> = Vec::new();
    let mut heading = None;
    for line in text.lines() {
        let line = line.trim_start().strip_prefix('#').unwrap_or(line);
        let (is_first, place) = match line.trim_start().strip_prefix("- In file ") {
            Some(place) => (true, Some(place)),
            None => (
                sources.is_empty(),
                line.trim_start().strip_prefix("In file "),
            ),
        };
        match place {
            Some(place) => {
                if is_first {
                    sources.push(NodeSource {
                        heading: heading.clone(),
                        lines: Vec::new(),
                    });
                }
                if let Some(source) = sources.last_mut() {
                    source.lines.push(place.to_owned());
                }
            }
            None => heading = Some(line.trim().trim_end_matches(':').to_owned()),
        }
    }
    // The message has the innermost call first and the text the outermost; descriptions follow the
    // text.
    sources.iter_mut().for_each(|source| source.lines.reverse());
    sources
}

fn each_field<'a>(
    value: FieldValue<'a>,
    mut use_field: impl FnMut(u32, FieldValue<'a>) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    // Protobuf parsers treat a field of another wire type as an unknown one.
    let FieldValue::Bytes(bytes, base) = value else {
        return Ok(());
    };
    let mut reader = MessageReader::new(bytes, base);
    while let Some((number, value)) = reader.field()? {
        use_field(number, value)?;
    }
    Ok(())
}

fn check_depth(value: FieldValue<'_>, depth: usize) -> Result<(), FormatError> {
    let offset = match value {
        FieldValue::Bytes(_, offset) => offset,
        _ => 0,
    };
    if depth < DEPTH_MAX {
        return Ok(());
    }
    let found = format!("{DEPTH_MAX} nested values");
    Err(FormatError::new(offset, "less nesting", found))
}

fn text(value: FieldValue<'_>) -> Result<String, FormatError> {
    let FieldValue::Bytes(bytes, offset) = value else {
        return Ok(String::new());
    };
    let text = str::from_utf8(bytes).map_err(|error| {
        let at = offset + error.valid_up_to() as u64;
        FormatError::new(at, "text in UTF-8", "other bytes")
    })?;
    Ok(text.to_owned())
}

fn integer(value: FieldValue<'_>) -> u64 {
    match value {
        FieldValue::Varint(value) => value,
        _ => 0,
    }
}

fn float(value: FieldValue<'_>) -> Option<Literal> {
    match value {
        FieldValue::Fixed32(bits) => Some(Literal::Float(DType::F32, f32::from_bits(bits).into())),
        FieldValue::Fixed64(bits) => Some(Literal::Float(DType::F64, f64::from_bits(bits))),
        _ => None,
    }
}
