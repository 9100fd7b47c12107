//! One operator on its own, as a model of one node.
//!
//! [`SingleOperator::to_onnx`] gives the bytes of an ONNX model that any [`Engine`](crate::Engine)
//! loads from memory. [`read_json`] reads descriptions, the vendor's single-operator files among them.

mod ascend;
mod json;
mod onnx;

use opscope_tensor::{DType, Tensor};
use thiserror::Error;

use crate::Dim;

pub(crate) use onnx::code;

pub use json::{N_OPERATORS_MAX, read_json};

/// Operator set of a description that names none.
pub const OPSET_DEFAULT: i64 = 17;

/// An operator with everything that is needed to run it.
#[derive(Clone, Debug)]
pub struct SingleOperator {
    /// Its type, of ONNX or of Ascend.
    pub op_type: String,
    /// Its name; the type serves where it is empty.
    pub op_name: String,
    /// Version of the ONNX operator set.
    pub opset: i64,
    /// What it reads, in position; `None` where an optional input is absent.
    pub inputs: Vec<Option<Operand>>,
    /// What it produces, in position; `None` where an optional output is absent.
    pub outputs: Vec<Option<Operand>>,
    /// Its attributes.
    pub attributes: Vec<(String, Attribute)>,
}

/// An input or output.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its name: the model's input or output of this name.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Its extents, or `None` if their number is not known.
    pub dims: Option<Vec<Dim>>,
    /// The value of an input that is part of the model.
    pub constant: Option<Tensor>,
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A whole number; booleans are 0 and 1.
    Int(i64),
    /// A number.
    Float(f32),
    /// Text.
    Text(String),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Texts.
    Texts(Vec<String>),
}

/// Why a description is no operator that can run.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum OperatorError {
    /// The text is no JSON.
    #[error("line {line}, column {column}: not valid JSON: {reason}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's words.
        reason: String,
    },
    /// A value is missing or of the wrong kind.
    #[error("at `{pointer}`: {reason}")]
    Value {
        /// JSON pointer to the value.
        pointer: String,
        /// What was found and what is expected.
        reason: String,
    },
    /// ONNX cannot say it.
    #[error("operator `{op_type}`: {reason}")]
    Inexpressible {
        /// The operator's type.
        op_type: String,
        /// What cannot be said.
        reason: String,
    },
}

impl SingleOperator {
    /// The bytes of an ONNX model with this operator as its only node. Operators that go by their
    /// Ascend names become the ONNX operators of the same meaning.
    ///
    /// # Errors
    /// [`OperatorError::Inexpressible`] if a dtype or an attribute has no counterpart in ONNX.
    pub fn to_onnx(&self) -> Result<Vec<u8>, OperatorError> {
        onnx::encode(&ascend::to_onnx_operator(self)?)
    }

    fn inexpressible(&self, reason: impl Into<String>) -> OperatorError {
        OperatorError::Inexpressible {
            op_type: self.op_type.clone(),
            reason: reason.into(),
        }
    }

    /// Takes an attribute out.
    fn take(&mut self, name: &str) -> Option<Attribute> {
        let at = self.attributes.iter().position(|(key, _)| key == name)?;
        Some(self.attributes.remove(at).1)
    }
}
