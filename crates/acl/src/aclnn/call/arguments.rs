//! The arguments of a call, by the names of its parameters.

use std::borrow::Cow;

use opscope_store::file_format::ascend_codes::dtype_from_graph_engine;
use opscope_tensor::DType;

use super::{Composed, OperatorCall, Refusal, Side};
use crate::aclnn::object::ScalarValue;
use crate::aclnn::parameter::{Argument, ParameterKind, TensorArgument};

impl<'a> OperatorCall<'a> {
    /// Whether the operator has a parameter of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    fn position(&self, name: &str) -> Option<usize> {
        // The vendor's headers differ in the names of the first operand and of the result.
        let others: &[&str] = match name {
            "self" => &["selfRef", "input", "inputRef"],
            "out" => &["result"],
            _ => &[],
        };
        let mut names = std::iter::once(&name).chain(others);
        let found = names.find_map(|&name| {
            let mut parameters = self.parameters.iter();
            parameters.position(|parameter| parameter.name() == name)
        });
        let is_out = name == "out";
        let mut parameters = self.parameters.iter();
        found.or_else(|| {
            let in_place = parameters.position(|known| known.kind == ParameterKind::Inplace);
            in_place.filter(|_| is_out)
        })
    }

    fn argument(&self, name: &str) -> Composed<&'a Argument> {
        let at = self.position(name);
        at.and_then(|at| self.arguments.get(at))
            .ok_or_else(|| Refusal::inner(format!("the operator has no parameter `{name}`")))
    }

    /// A required tensor.
    pub(crate) fn tensor(&self, name: &str) -> Composed<&'a TensorArgument> {
        match self.argument(name)? {
            Argument::Tensor(tensor) => Ok(tensor),
            other => Err(mismatch(name, other)),
        }
    }

    /// A tensor or a scalar, depending on the parameter.
    pub(crate) fn side(&self, name: &str) -> Composed<Side<'a>> {
        match self.argument(name)? {
            Argument::Tensor(tensor) => Ok(Side::Tensor(tensor)),
            Argument::Scalar(scalar) => Ok(Side::Scalar(scalar)),
            other => Err(mismatch(name, other)),
        }
    }

    /// Like [`OperatorCall::side`], for an optional parameter.
    pub(crate) fn optional_side(&self, name: &str) -> Composed<Option<Side<'a>>> {
        match self.argument(name)? {
            Argument::Absent => Ok(None),
            _ => self.side(name).map(Some),
        }
    }

    /// An optional tensor.
    pub(crate) fn optional_tensor(&self, name: &str) -> Composed<Option<&'a TensorArgument>> {
        match self.argument(name)? {
            Argument::Absent => Ok(None),
            Argument::Tensor(tensor) => Ok(Some(tensor)),
            other => Err(mismatch(name, other)),
        }
    }

    /// The tensors of a list.
    pub(crate) fn tensors(&self, name: &str) -> Composed<&'a [TensorArgument]> {
        match self.argument(name)? {
            Argument::Tensors(tensors) => Ok(tensors),
            other => Err(mismatch(name, other)),
        }
    }

    /// A required scalar.
    pub(crate) fn scalar(&self, name: &str) -> Composed<&'a ScalarValue> {
        match self.argument(name)? {
            Argument::Scalar(scalar) => Ok(scalar),
            other => Err(mismatch(name, other)),
        }
    }

    /// An optional scalar.
    pub(crate) fn optional_scalar(&self, name: &str) -> Composed<Option<&'a ScalarValue>> {
        match self.argument(name)? {
            Argument::Absent => Ok(None),
            Argument::Scalar(scalar) => Ok(Some(scalar)),
            other => Err(mismatch(name, other)),
        }
    }

    /// An integer.
    pub(crate) fn int(&self, name: &str) -> Composed<i64> {
        match self.argument(name)? {
            Argument::Int(number) => Ok(*number),
            other => Err(mismatch(name, other)),
        }
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Composed<f64> {
        match self.argument(name)? {
            Argument::Number(number) => Ok(*number),
            other => Err(mismatch(name, other)),
        }
    }

    /// A boolean.
    pub(crate) fn flag(&self, name: &str) -> Composed<bool> {
        Ok(self.int(name)? != 0)
    }

    /// A list of integers.
    pub(crate) fn ints(&self, name: &str) -> Composed<&'a [i64]> {
        match self.argument(name)? {
            Argument::Ints(list) => Ok(list),
            other => Err(mismatch(name, other)),
        }
    }

    /// An optional list of integers.
    pub(crate) fn optional_ints(&self, name: &str) -> Composed<Option<&'a [i64]>> {
        match self.argument(name)? {
            Argument::Absent => Ok(None),
            Argument::Ints(list) => Ok(Some(list)),
            other => Err(mismatch(name, other)),
        }
    }

    /// The axes in a parameter that takes one or a list; empty without the parameter, or for null.
    pub(crate) fn axis_numbers(&self, name: &str) -> Composed<Vec<i64>> {
        if !self.has(name) {
            return Ok(Vec::new());
        }
        match self.argument(name)? {
            Argument::Absent => Ok(Vec::new()),
            Argument::Int(axis) => Ok(vec![*axis]),
            Argument::Ints(axes) => Ok(axes.clone()),
            other => Err(mismatch(name, other)),
        }
    }

    /// A list of booleans.
    pub(crate) fn flags(&self, name: &str) -> Composed<&'a [bool]> {
        match self.argument(name)? {
            Argument::Flags(list) => Ok(list),
            other => Err(mismatch(name, other)),
        }
    }

    /// A dtype.
    pub(crate) fn dtype(&self, name: &str) -> Composed<DType> {
        let number = self.int(name)?;
        let dtype = i32::try_from(number).ok().and_then(dtype_from_graph_engine);
        dtype.ok_or_else(|| Refusal::invalid(format!("`{name}` is {number}, which is no type")))
    }

    /// A string; empty for null.
    pub(crate) fn text(&self, name: &str) -> Composed<Cow<'a, str>> {
        match self.argument(name)? {
            Argument::Absent => Ok(Cow::Borrowed("")),
            Argument::Text(text) => Ok(Cow::Borrowed(text)),
            other => Err(mismatch(name, other)),
        }
    }
}

fn mismatch(name: &str, found: &Argument) -> Refusal {
    Refusal::inner(format!("parameter `{name}` is another one: {found:?}"))
}
