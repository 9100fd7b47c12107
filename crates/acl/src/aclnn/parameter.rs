//! Parameters of an operator, and their arguments.

use std::fmt;

use opscope_tensor::DType;

use super::object::{AclTensor, ScalarValue};
use crate::handle::Handle;

/// The kind of a parameter's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// An input tensor.
    Tensor,
    /// An optional input tensor.
    OptionalTensor,
    /// An output tensor.
    Out,
    /// An optional output tensor.
    OptionalOut,
    /// A tensor that is modified in place.
    Inplace,
    /// An optional tensor that is modified in place.
    OptionalInplace,
    /// Input tensors.
    TensorList,
    /// Output tensors.
    OutList,
    /// A scalar.
    Scalar,
    /// A scalar, or null.
    OptionalScalar,
    /// Scalars.
    ScalarList,
    /// Integers.
    IntArray,
    /// Integers, or null.
    OptionalIntArray,
    /// Numbers.
    FloatArray,
    /// Booleans.
    BoolArray,
    /// `int64_t`.
    Int,
    /// `int32_t`.
    Int32,
    /// `int8_t`.
    Int8,
    /// `uint64_t`.
    Unsigned,
    /// `double`.
    Double,
    /// `float`.
    Float,
    /// `bool`.
    Flag,
    /// A number of `aclDataType`.
    DataType,
    /// Text, or null.
    Text,
}

impl ParameterKind {
    /// The C declaration of a parameter of this kind, up to its name.
    pub fn c_type(self) -> &'static str {
        use ParameterKind::*;
        match self {
            Tensor | OptionalTensor => "const aclTensor *",
            Out | OptionalOut | Inplace | OptionalInplace => "aclTensor *",
            TensorList => "const aclTensorList *",
            OutList => "aclTensorList *",
            Scalar | OptionalScalar => "const aclScalar *",
            ScalarList => "const aclScalarList *",
            IntArray | OptionalIntArray => "const aclIntArray *",
            FloatArray => "const aclFloatArray *",
            BoolArray => "const aclBoolArray *",
            Int => "int64_t ",
            Int32 => "int32_t ",
            Int8 => "int8_t ",
            Unsigned => "uint64_t ",
            Double => "double ",
            Float => "float ",
            Flag => "bool ",
            DataType => "aclDataType ",
            Text => "const char *",
        }
    }

    /// Whether the argument may be null.
    pub(crate) fn is_optional(self) -> bool {
        use ParameterKind::*;
        // The vendor marks these in its documentation, and some names by `Optional`.
        matches!(
            self,
            OptionalTensor
                | OptionalOut
                | OptionalInplace
                | OptionalScalar
                | OptionalIntArray
                | Text
        )
    }
}

/// A parameter of an operator.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in the table, with a trailing `_` if it is a Rust keyword.
    pub(crate) written: &'static str,
    /// The kind of its argument.
    pub kind: ParameterKind,
}

impl Parameter {
    /// The vendor's name.
    pub fn name(&self) -> &'static str {
        self.written.trim_end_matches('_')
    }
}

/// An argument as passed by a program.
#[derive(Clone, Debug, PartialEq)]
pub enum RawArgument {
    /// An object, or null.
    Object(Handle),
    /// An integer or a boolean.
    Int(i64),
    /// A number.
    Number(f64),
    /// Text, or null.
    Text(Option<String>),
}

/// An argument with its object at the time of the preparation.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    /// Null for an optional parameter.
    Absent,
    Tensor(TensorArgument),
    Tensors(Vec<TensorArgument>),
    Scalar(ScalarValue),
    Scalars(Vec<ScalarValue>),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Flags(Vec<bool>),
    Int(i64),
    Number(f64),
    Text(String),
}

/// A tensor at the time of the preparation.
#[derive(Clone, Debug)]
pub(crate) struct TensorArgument {
    pub(crate) handle: Handle,
    /// The index of the parameter, and the index in its list.
    pub(crate) place: (usize, usize),
    pub(crate) tensor: AclTensor,
    pub(crate) dtype: DType,
}

impl TensorArgument {
    pub(crate) fn dims(&self) -> &[usize] {
        &self.tensor.dims
    }

    pub(crate) fn n_axes(&self) -> usize {
        self.tensor.dims.len()
    }

    pub(crate) fn n_elements(&self) -> usize {
        self.tensor.n_elements()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tensor.dims.contains(&0)
    }
}

impl fmt::Display for TensorArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of shape {:?}", self.dtype, self.tensor.dims)
    }
}
