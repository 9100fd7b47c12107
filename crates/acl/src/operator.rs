//! Single operators.

use std::sync::{Mutex, MutexGuard};

use opscope_engine::FallbackEngine;
use opscope_engine::single_operator::{OperatorAttribute, SingleOperatorModel};

use crate::data::TensorDesc;
use crate::lock::lock;

/// A value of an operator's attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A boolean.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A number.
    Float(f32),
    /// A string.
    String(String),
    /// An `aclDataType`.
    DataType(i32),
    /// Booleans.
    Bools(Vec<bool>),
    /// Numbers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Strings.
    Strings(Vec<String>),
    /// `aclDataType`s.
    DataTypes(Vec<i32>),
    /// Lists of numbers, which no ONNX operator has.
    IntLists(Vec<Vec<i64>>),
}

/// Attributes by name, in the order in which they were first set.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperatorAttributes(Vec<(String, AttributeValue)>);

impl OperatorAttributes {
    pub(crate) fn set(&mut self, name: &str, value: AttributeValue) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// The attributes for an engine, or the name of the first one without a counterpart.
    pub(crate) fn lower(&self) -> Result<Vec<(String, OperatorAttribute)>, String> {
        let mut lowered = Vec::with_capacity(self.0.len());
        for (name, value) in &self.0 {
            let value = match value.clone() {
                // ONNX attributes have neither booleans nor data types: both are integers there.
                AttributeValue::Bool(is) => OperatorAttribute::Int(is.into()),
                AttributeValue::Int(n) => OperatorAttribute::Int(n),
                AttributeValue::Float(n) => OperatorAttribute::Float(n),
                AttributeValue::String(text) => OperatorAttribute::Text(text),
                AttributeValue::DataType(n) => OperatorAttribute::Int(n.into()),
                AttributeValue::Bools(list) => {
                    OperatorAttribute::Ints(list.into_iter().map(i64::from).collect())
                }
                AttributeValue::Ints(list) => OperatorAttribute::Ints(list),
                AttributeValue::Floats(list) => OperatorAttribute::Floats(list),
                AttributeValue::Strings(list) => OperatorAttribute::Texts(list),
                AttributeValue::DataTypes(list) => {
                    OperatorAttribute::Ints(list.into_iter().map(i64::from).collect())
                }
                // ONNX has no such attribute, and dropping it would change the operator.
                AttributeValue::IntLists(_) => return Err(name.clone()),
            };
            lowered.push((name.clone(), value));
        }
        Ok(lowered)
    }
}

/// An operator that is ready to run.
pub(crate) struct RunnableOperator {
    /// The program's name of its type.
    pub(crate) op_type: String,
    pub(crate) inputs: Vec<TensorDesc>,
    pub(crate) outputs: Vec<TensorDesc>,
    /// Whether the engine's axis order differs from the descriptions.
    pub(crate) is_changed: bool,
    /// The engine that runs it, if it is not the process's.
    pub(crate) taken: Option<FallbackEngine>,
    pub(crate) operator: Mutex<SingleOperatorModel>,
}

impl RunnableOperator {
    /// Locks the operator, to run it.
    pub(crate) fn operator(&self) -> MutexGuard<'_, SingleOperatorModel> {
        lock(&self.operator)
    }
}
