//! Nodes that move elements without computing.

use std::borrow::Borrow;

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::{DType, Shape};

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, arithmetic_type, filled};
use crate::aclnn::elements::raw;
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::shape::axis;

/// How elements pass through an operator that only moves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// As bits, since all tensors have the output's dtype.
    Bits(DType),
    /// As numbers, converted to this dtype.
    Numbers(DType),
}

impl Elements {
    /// The form in which elements of all these tensors reach `out`.
    pub(super) fn common(
        call: &OperatorCall<'_>,
        tensors: &[&TensorArgument],
        out: &TensorArgument,
    ) -> Composed<Elements> {
        // Bits preserve everything: the payload of a NaN, integers beyond the range of a float.
        if tensors.iter().all(|tensor| tensor.dtype == out.dtype) {
            return Ok(Elements::Bits(out.dtype));
        }
        let dtype = call.promote(tensors, &[])?;
        call.expect_cast(out, dtype)?;
        Ok(Elements::Numbers(dtype))
    }

    /// The elements of a tensor, which has one of the dtypes that the form was chosen for.
    pub(super) fn read(self, call: &OperatorCall<'_>, tensor: &TensorArgument) -> Composed<Value> {
        match self {
            Elements::Bits(_) => call.read_raw(tensor),
            Elements::Numbers(dtype) => call.read_as(tensor, dtype, arithmetic_type(dtype)),
        }
    }

    /// A number as an element.
    pub(super) fn number(self, call: &OperatorCall<'_>, number: ScalarNumber) -> Composed<Value> {
        let tensor = match self {
            Elements::Bits(dtype) => {
                filled(number, dtype, Shape::scalar()).and_then(|tensor| raw(&tensor))
            }
            Elements::Numbers(dtype) => filled(number, arithmetic_type(dtype), Shape::scalar()),
        };
        let tensor = tensor.ok_or_else(|| {
            Refusal::invalid(format!("no element of this type can be made of {number:?}"))
        })?;
        Ok(call.tensor_value(tensor))
    }

    /// A tensor or a scalar as elements; a tensor of another dtype is converted to that of the
    /// form.
    pub(super) fn side(self, call: &OperatorCall<'_>, side: Side<'_>) -> Composed<Value> {
        match (self, side) {
            (_, Side::Scalar(scalar)) => self.number(call, scalar.number),
            // The bits of another dtype would be another number.
            (Elements::Bits(dtype), Side::Tensor(tensor)) if tensor.dtype != dtype => {
                Err(Refusal::invalid(format!(
                    "`{}` is {}; expected {dtype}",
                    call.name(tensor),
                    tensor.dtype
                )))
            }
            (_, Side::Tensor(tensor)) => self.read(call, tensor),
        }
    }

    /// Stores elements as `out`.
    pub(super) fn write(
        self,
        call: &OperatorCall<'_>,
        out: &TensorArgument,
        value: impl Borrow<Value>,
    ) -> Composed {
        match self {
            Elements::Bits(_) => call.write_raw(out, value),
            Elements::Numbers(dtype) => call.write(out, value, dtype),
        }
    }
}

/// Reads the tensor that an operator moves, whose output has the same dtype.
pub(super) fn read_moved(
    call: &OperatorCall<'_>,
    tensor: &TensorArgument,
    out: &TensorArgument,
) -> Composed<Value> {
    expect_same_dtype(call, out, tensor)?;
    call.read_raw(tensor)
}

pub(super) fn expect_same_dtype(
    call: &OperatorCall<'_>,
    tensor: &TensorArgument,
    other: &TensorArgument,
) -> Composed {
    if tensor.dtype == other.dtype {
        return Ok(());
    }
    let (name, other_name) = (call.name(tensor), call.name(other));
    let (found, expected) = (tensor.dtype, other.dtype);
    Err(Refusal::invalid(format!(
        "`{name}` is {found}; expected {expected} as `{other_name}` has it"
    )))
}

/// The axis named by a parameter.
pub(super) fn axis_of(
    call: &OperatorCall<'_>,
    parameter: &str,
    tensor: &TensorArgument,
) -> Composed<usize> {
    axis_in(parameter, call.int(parameter)?, tensor.n_axes())
}

/// Resolves the number of an axis.
pub(super) fn axis_in(parameter: &str, number: i64, n_axes: usize) -> Composed<usize> {
    axis(number, n_axes).ok_or_else(|| {
        Refusal::invalid(format!(
            "`{parameter}` is {number}; expected an axis of a tensor that has {n_axes}"
        ))
    })
}

/// A required, non-negative number of elements.
pub(super) fn extent(parameter: &str, number: i64) -> Composed<usize> {
    usize::try_from(number)
        .map_err(|_| Refusal::invalid(format!("`{parameter}` has {number}; expected 0 or more")))
}

/// As int64, ONNX's type for sizes; sizes of tensors always fit.
pub(super) fn as_int(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn axis_attribute(axis: usize) -> Vec<(&'static str, OperatorAttribute)> {
    vec![("axis", OperatorAttribute::Int(as_int(axis)))]
}

/// The value with permuted axes.
pub(super) fn transposed(call: &OperatorCall<'_>, value: &Value, order: &[usize]) -> Value {
    let order = order.iter().map(|&axis| as_int(axis)).collect();
    let attributes = vec![("perm", OperatorAttribute::Ints(order))];
    call.node_with("Transpose", &[value], attributes, value.dtype)
}

/// The entries of an axis at these indices, in this order.
pub(super) fn picked(call: &OperatorCall<'_>, value: &Value, axis: usize, places: &[i64]) -> Value {
    let places = call.constant_ints(places);
    gathered(call, value, axis, &places)
}

/// Like [`picked`], with indices computed in the graph.
pub(super) fn gathered(
    call: &OperatorCall<'_>,
    value: &Value,
    axis: usize,
    places: &Value,
) -> Value {
    call.node_with(
        "Gather",
        &[value, places],
        axis_attribute(axis),
        value.dtype,
    )
}

/// Every `step`th entry of an axis from `start` on, before `end`.
pub(super) fn sliced(
    call: &OperatorCall<'_>,
    value: &Value,
    axis: usize,
    [start, end, step]: [i64; 3],
) -> Value {
    let start = call.constant_ints(&[start]);
    let end = call.constant_ints(&[end]);
    let axis = call.constant_dims(&[axis]);
    let step = call.constant_ints(&[step]);
    call.node("Slice", &[value, &start, &end, &axis, &step], value.dtype)
}

/// Concatenates values along an axis.
pub(super) fn joined(call: &OperatorCall<'_>, values: &[Value], axis: usize) -> Value {
    match values {
        // An engine may refuse to concatenate a single value.
        [one] => one.clone(),
        _ => {
            let inputs: Vec<&Value> = values.iter().collect();
            let dtype = values.first().map_or(DType::I64, |value| value.dtype);
            call.node_with("Concat", &inputs, axis_attribute(axis), dtype)
        }
    }
}

/// `0..n` as int64.
pub(super) fn counted(call: &OperatorCall<'_>, n: usize) -> Composed<Value> {
    let list: Vec<i64> = (0..as_int(n)).collect();
    Ok(call.constant_ints(&list))
}

/// A constant value of this shape, filled with one number.
pub(super) fn constant_of(
    call: &OperatorCall<'_>,
    number: f64,
    dtype: DType,
    dims: &[usize],
) -> Value {
    let one = call.constant(number, dtype);
    one.expanded(dims)
}
