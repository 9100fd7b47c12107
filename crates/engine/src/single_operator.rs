//! One operator on its own, as a model of one node.
//!
//! [`SingleOperator::for_engine`] returns the bytes of an ONNX model that any
//! [`Engine`](crate::Engine) loads from memory, and [`EngineOperator::around`] makes the loaded
//! model accept, return and show values as described. [`read_json`] reads descriptions, the
//! vendor's single-operator files among them. [`OperatorGraph`] is a model of several nodes that
//! compute one operator together.

mod ascend;
mod axes;
mod engine_operator;
mod gemm;
mod graph;
mod json;
mod lowering;
mod onnx;
mod operator;
mod roles;

use crate::LoadedModel;

pub use engine_operator::SingleOperatorModel;
pub use graph::{GraphNode, OperatorGraph};
pub use json::{N_OPERATORS_MAX, read_json};
pub use operator::{
    OPSET_DEFAULT, Operand, OperatorAttribute, OperatorError, SingleOperator, numbered_name,
};

/// An operator as an engine takes it.
pub struct EngineOperator {
    bytes: Vec<u8>,
    lowered: lowering::OnnxLowering,
}

impl EngineOperator {
    /// The bytes of an ONNX model.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the engine has axes in another order than the description.
    pub fn is_changed(&self) -> bool {
        let mut changes = self.lowered.inputs.iter().chain(&self.lowered.outputs);
        changes.any(Option::is_some)
    }

    /// The model that an engine made of the [bytes](EngineOperator::bytes), with the operands of
    /// the description: in their layout they are taken, given and shown.
    pub fn around(self, model: Box<dyn LoadedModel>) -> SingleOperatorModel {
        SingleOperatorModel::new(self.lowered, model)
    }
}

impl SingleOperator {
    /// An ONNX model with this operator as its only node; `GEMM` takes several. Operators with
    /// Ascend names become the equivalent ONNX operators, and operands in another layout are
    /// transposed to the order of axes that ONNX assumes.
    ///
    /// # Errors
    /// [`OperatorError::Inexpressible`] if a dtype or an attribute has no counterpart in ONNX,
    /// [`OperatorError::Format`] for formats of operands that cannot be computed with.
    pub fn for_engine(&self) -> Result<EngineOperator, OperatorError> {
        let lowered = lowering::lower(self)?;
        let bytes = if self.op_type == gemm::GEMM {
            gemm::compose(&lowered.onnx)?.to_onnx()?
        } else {
            onnx::encode(&lowered.onnx)?
        };
        Ok(EngineOperator { bytes, lowered })
    }

    /// The bytes of the model of [`SingleOperator::for_engine`]: its operands are in ONNX's order.
    ///
    /// # Errors
    /// As for [`SingleOperator::for_engine`].
    pub fn to_onnx(&self) -> Result<Vec<u8>, OperatorError> {
        Ok(self.for_engine()?.bytes)
    }
}
