//! The wire form of a one-node ONNX model.
//!
//! Field numbers are those of `onnx.proto3`.

use opscope_store::file_format::protobuf::MessageWriter;
use opscope_tensor::{HostAccessError, TensorView, text};

use super::operator::{Operand, OperatorAttribute, OperatorError, SingleOperator};
use crate::DeclaredDim;
use crate::onnx_dtype::code;

/// Version of the file format that carries every operator set that engines know.
pub(super) const IR_VERSION: u64 = 8;
/// The name of the graph and of the model's maker.
pub(super) const PRODUCER: &str = "opscope";

pub(super) fn encode(operator: &SingleOperator) -> Result<Vec<u8>, OperatorError> {
    // Checked before anything is written, so that the writer below cannot fail.
    let operands = operator.inputs.iter().chain(&operator.outputs).flatten();
    for operand in operands {
        code(operand.dtype).ok_or_else(|| {
            operator.inexpressible(format!("ONNX has no dtype `{}`", operand.dtype))
        })?;
    }
    if operator.outputs.iter().flatten().next().is_none() {
        return Err(operator.inexpressible("it has no outputs"));
    }
    let inputs = operator.inputs.iter().flatten();
    let inputs = inputs
        .map(|input| match &input.constant {
            Some(constant) => Ok((input, Some(constant.host_view()?))),
            None => Ok((input, None)),
        })
        .collect::<Result<Vec<_>, HostAccessError>>()
        .map_err(|error| operator.inexpressible(error.to_string()))?;
    let mut model = MessageWriter::default();
    model.varint(1, IR_VERSION);
    model.string(2, PRODUCER);
    model.message(7, |graph| write_graph(graph, operator, &inputs));
    // Without a domain this is the set of ONNX's own operators.
    model.message(8, |opset| opset.varint(2, operator.opset.unsigned_abs()));
    Ok(model.into_bytes())
}

fn write_graph(
    graph: &mut MessageWriter,
    operator: &SingleOperator,
    inputs: &[(&Operand, Option<TensorView<'_>>)],
) {
    graph.message(1, |node| write_node(node, operator));
    graph.string(2, &operator.op_type);
    for (input, constant) in inputs {
        match *constant {
            Some(tensor) => graph.message(5, |out| write_tensor(out, &input.name, tensor)),
            None => graph.message(11, |out| write_value(out, input)),
        }
    }
    for output in operator.outputs.iter().flatten() {
        graph.message(12, |out| write_value(out, output));
    }
}

fn write_node(node: &mut MessageWriter, operator: &SingleOperator) {
    for input in &operator.inputs {
        // An empty name means an absent input, and must be written where a text field would be
        // omitted.
        let name = input.as_ref().map_or("", |operand| &operand.name);
        node.bytes(1, name.as_bytes());
    }
    for output in &operator.outputs {
        let name = output.as_ref().map_or("", |operand| &operand.name);
        node.bytes(2, name.as_bytes());
    }
    node.string(3, &operator.op_name);
    node.string(4, &operator.op_type);
    for (name, value) in &operator.attributes {
        node.message(5, |out| write_attribute(out, name, value));
    }
}

pub(super) fn write_attribute(out: &mut MessageWriter, name: &str, value: &OperatorAttribute) {
    out.string(1, name);
    match value {
        OperatorAttribute::Float(number) => out.float(2, *number),
        OperatorAttribute::Int(number) => out.varint(3, number.cast_unsigned()),
        OperatorAttribute::Text(text) => out.bytes(4, text.as_bytes()),
        OperatorAttribute::Floats(numbers) => {
            numbers.iter().for_each(|&number| out.float(7, number));
        }
        OperatorAttribute::Ints(numbers) => {
            let numbers: Vec<u64> = numbers
                .iter()
                .map(|number| number.cast_unsigned())
                .collect();
            out.packed_u64(8, &numbers);
        }
        OperatorAttribute::Texts(texts) => {
            texts.iter().for_each(|text| out.bytes(9, text.as_bytes()));
        }
    }
    out.varint(20, kind(value));
}

/// The number that names an attribute's kind.
fn kind(value: &OperatorAttribute) -> u64 {
    match value {
        OperatorAttribute::Float(_) => 1,
        OperatorAttribute::Int(_) => 2,
        OperatorAttribute::Text(_) => 3,
        OperatorAttribute::Floats(_) => 6,
        OperatorAttribute::Ints(_) => 7,
        OperatorAttribute::Texts(_) => 8,
    }
}

pub(super) fn write_value(out: &mut MessageWriter, operand: &Operand) {
    out.string(1, &operand.name);
    out.message(2, |r#type| {
        r#type.message(1, |tensor| {
            tensor.varint(1, code(operand.dtype).unwrap_or(0));
            if let Some(dims) = &operand.dims {
                tensor.message(2, |shape| {
                    for dim in dims {
                        shape.message(1, |out| match dim {
                            // A dimension of zero must be written, unlike defaults elsewhere.
                            DeclaredDim::Fixed(n) => out.varint_always(1, *n as u64),
                            DeclaredDim::Named(name) => out.string(2, name),
                            DeclaredDim::Unknown => {}
                        });
                    }
                });
            }
        });
    });
}

pub(super) fn write_tensor(out: &mut MessageWriter, name: &str, tensor: TensorView<'_>) {
    let dims: Vec<u64> = tensor.shape.dims().iter().map(|&n| n as u64).collect();
    out.packed_u64(1, &dims);
    out.varint(2, code(tensor.dtype).unwrap_or(0));
    out.string(8, name);
    match text::iter(tensor) {
        Ok(texts) => texts.for_each(|text| out.bytes(6, text)),
        // Everything but text.
        Err(_) => out.bytes(9, tensor.bytes),
    }
}
