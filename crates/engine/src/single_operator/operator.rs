//! An operator as its description has it.

use opscope_tensor::{DType, Layout, Tensor};
use thiserror::Error;

use crate::DeclaredDim;

/// Operator set of a description that names none.
pub const OPSET_DEFAULT: i64 = 17;

/// An operator with everything that is needed to run it.
#[derive(Clone, Debug)]
pub struct SingleOperator {
    /// Its type, of ONNX or of Ascend.
    pub op_type: String,
    /// Its name; see [`numbered_name`] for unnamed operators.
    pub op_name: String,
    /// Version of the ONNX operator set.
    pub opset: i64,
    /// The operands that it reads, in position; `None` where an optional input is absent.
    pub inputs: Vec<Option<Operand>>,
    /// The operands that it produces, in position; `None` where an optional output is absent.
    pub outputs: Vec<Option<Operand>>,
    /// Its attributes.
    pub attributes: Vec<(String, OperatorAttribute)>,
}

/// The name of an unnamed operator; `count` is the number of unnamed operators of its type before
/// it.
pub fn numbered_name(op_type: &str, count: u64) -> String {
    format!("{op_type}_{count}")
}

/// An input or output.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its name: the model's input or output of this name.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Its dimensions, or `None` if their number is unknown.
    pub dims: Option<Vec<DeclaredDim>>,
    /// The value of an input that is part of the model.
    pub constant: Option<Tensor>,
    /// The meaning of its axes; [`Layout::Nd`] if unset, which means ONNX's order.
    pub layout: Layout,
    /// The meaning of the axes of the tensor that this one was made from, if it is said.
    pub origin_layout: Option<Layout>,
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum OperatorAttribute {
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

/// Why a description is not a runnable operator.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum OperatorError {
    /// The text is not JSON.
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
        /// A text with the value that was found, if any, and the one that is expected.
        reason: String,
    },
    /// ONNX cannot say it.
    #[error("operator `{op_type}`: {reason}")]
    Inexpressible {
        /// The operator's type.
        op_type: String,
        /// The part that cannot be said.
        reason: String,
    },
    /// The formats of its operands cannot be computed with.
    #[error("operator `{op_type}`: {reason}")]
    Format {
        /// The operator's type.
        op_type: String,
        /// Which operands, and what is expected of them.
        reason: String,
    },
}

impl SingleOperator {
    pub(super) fn inexpressible(&self, reason: impl Into<String>) -> OperatorError {
        OperatorError::Inexpressible {
            op_type: self.op_type.clone(),
            reason: reason.into(),
        }
    }

    pub(super) fn misformatted(&self, reason: impl Into<String>) -> OperatorError {
        OperatorError::Format {
            op_type: self.op_type.clone(),
            reason: reason.into(),
        }
    }

    /// Takes an attribute out.
    pub(super) fn take(&mut self, name: &str) -> Option<OperatorAttribute> {
        let at = self.attributes.iter().position(|(key, _)| key == name)?;
        Some(self.attributes.remove(at).1)
    }
}
