//! A small graph that computes one operator, as an ONNX model.

use opscope_store::file_format::protobuf::MessageWriter;
use opscope_tensor::{HostAccessError, Tensor};

use super::onnx::{IR_VERSION, PRODUCER, write_attribute, write_tensor, write_value};
use super::operator::{Operand, OperatorAttribute, OperatorError};
use crate::onnx_dtype::code;

/// Nodes that compute an operator together. A value goes by its name and is produced before it is
/// read; engines check that when they load the [bytes](OperatorGraph::to_onnx).
#[derive(Clone, Debug, Default)]
pub struct OperatorGraph {
    /// Version of the ONNX operator set.
    pub opset: i64,
    /// The values that a run is given, in order; constants of operands are ignored.
    pub inputs: Vec<Operand>,
    /// Values that are part of the graph.
    pub constants: Vec<(String, Tensor)>,
    /// The nodes, in order of execution.
    pub nodes: Vec<GraphNode>,
    /// The results of a run, in order.
    pub outputs: Vec<Operand>,
}

/// A node of an [`OperatorGraph`].
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// The ONNX operator.
    pub op_type: &'static str,
    /// Names of the values it reads, in position; empty where an optional one is absent.
    pub inputs: Vec<String>,
    /// Names of the values it produces.
    pub outputs: Vec<String>,
    /// Its attributes.
    pub attributes: Vec<(&'static str, OperatorAttribute)>,
}

impl OperatorGraph {
    /// The bytes of a model. Equal graphs have equal bytes.
    ///
    /// # Errors
    /// [`OperatorError::Inexpressible`] if ONNX lacks the dtype of an input, an output or a
    /// constant, or if a constant's elements are not in the host's memory.
    pub fn to_onnx(&self) -> Result<Vec<u8>, OperatorError> {
        let operands = self.inputs.iter().chain(&self.outputs);
        let dtypes = operands.map(|operand| operand.dtype);
        let constants = self.constants.iter().map(|(_, tensor)| tensor.dtype());
        // Checked up front, since writing cannot fail.
        for dtype in dtypes.chain(constants) {
            code(dtype).ok_or_else(|| inexpressible(format!("ONNX has no dtype `{dtype}`")))?;
        }
        let constants = self
            .constants
            .iter()
            .map(|(name, tensor)| Ok((name, tensor.host_view()?)))
            .collect::<Result<Vec<_>, HostAccessError>>()
            .map_err(|error| inexpressible(error.to_string()))?;
        let mut model = MessageWriter::default();
        model.varint(1, IR_VERSION);
        model.string(2, PRODUCER);
        model.message(7, |graph| {
            for node in &self.nodes {
                graph.message(1, |out| write_node(out, node));
            }
            graph.string(2, "operator");
            for (name, tensor) in constants {
                graph.message(5, |out| write_tensor(out, name, tensor));
            }
            for input in &self.inputs {
                graph.message(11, |out| write_value(out, input));
            }
            for output in &self.outputs {
                graph.message(12, |out| write_value(out, output));
            }
        });
        model.message(8, |opset| opset.varint(2, self.opset.unsigned_abs()));
        Ok(model.into_bytes())
    }
}

fn write_node(out: &mut MessageWriter, node: &GraphNode) {
    for input in &node.inputs {
        // An empty name means an absent input, and has to be written too.
        out.bytes(1, input.as_bytes());
    }
    for output in &node.outputs {
        out.bytes(2, output.as_bytes());
    }
    out.string(3, node.outputs.first().map_or("", String::as_str));
    out.string(4, node.op_type);
    for (name, value) in &node.attributes {
        out.message(5, |attribute| write_attribute(attribute, name, value));
    }
}

fn inexpressible(reason: String) -> OperatorError {
    OperatorError::Inexpressible {
        op_type: "graph".to_owned(),
        reason,
    }
}
