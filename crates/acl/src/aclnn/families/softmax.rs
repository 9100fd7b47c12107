//! Softmax, its logarithm and their gradients.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{SMALL_FLOATS, is_small_float};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::compute_type;
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::axis;

/// Calls a macro with the rows of softmax.
#[macro_export]
macro_rules! aclnn_softmax {
    ($rows:ident) => {
        $rows! { "softmax";
            SoftmaxV2("aclnn_softmax.h", "e^self / the sum of e^self along dim") by softmax():
                aclnnSoftmax(self_: Tensor, dim: Int, out: Out);
            LogSoftmaxV2("aclnn_logsoftmax.h", "the logarithm of softmax along dim") by normalised("LogSoftmax"):
                aclnnLogSoftmax(self_: Tensor, dim: Int, out: Out);
            SoftmaxGrad("aclnn_softmax_backward.h", "gradOutput * output - the sum of gradOutput * output along dim, times output") by softmax_backward():
                aclnnSoftmaxBackward(gradOutput: Tensor, output: Tensor, dim: Int, out: Out);
            LogSoftmaxGrad("aclnn_logsoftmax_backward.h", "gradOutput - e^output * the sum of gradOutput along dim") by log_softmax_backward():
                aclnnLogSoftmaxBackward(gradOutput: Tensor, output: Tensor, dim: Int, out: Out);
            SoftmaxCrossEntropyWithLogits("aclnn_softmax_cross_entropy_with_logits.h", "- the sum of labels * log(softmax(features)) for each row, and softmax(features) - labels") by softmax_cross_entropy():
                aclnnSoftmaxCrossEntropyWithLogits(features: Tensor, labels: Tensor, loss: Out, backprop: Out);
        }
    };
}
aclnn_softmax!(operator_rows);

/// The axis in `dim`; a tensor without axes counts as one element.
pub(super) fn along(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<usize> {
    let dim = call.int("dim")?;
    axis(dim, x.n_axes()).ok_or_else(|| {
        let (name, n) = (call.name(x), x.n_axes());
        Refusal::invalid(format!("`dim` is {dim}; `{name}` has {n} axes"))
    })
}

pub(super) fn attribute(axis: usize) -> Vec<(&'static str, OperatorAttribute)> {
    vec![("axis", OperatorAttribute::Int(axis.cast_signed() as i64))]
}

/// A tensor with at least one axis.
fn with_axis(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Value> {
    // Operators along an axis need one; a scalar counts as a list of one.
    let value = call.read(x, compute_type(x.dtype))?;
    if x.n_axes() > 0 {
        return Ok(value);
    }
    Ok(value.reshaped(&[1]))
}

/// Stores a value to which [`with_axis`] may have added an axis.
pub(super) fn write_shaped(
    call: &OperatorCall<'_>,
    out: &TensorArgument,
    value: &Value,
    dtype: DType,
) -> Composed {
    call.write(out, value.reshaped(out.dims()), dtype)
}

fn normalised(call: &OperatorCall<'_>, op: &'static str) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    let axis = along(call, x)?;
    call.expect_like(out, x)?;
    if x.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let value = with_axis(call, x)?;
    let result = call.node_with(op, &[&value], attribute(axis), value.dtype);
    write_shaped(call, out, &result, x.dtype)
}

fn softmax(call: &OperatorCall<'_>) -> Composed {
    normalised(call, "Softmax")
}

pub(super) fn sum_along(call: &OperatorCall<'_>, x: &Value, axis: usize) -> Value {
    let axes = call.constant_dims(&[axis]);
    let keeps_axes = vec![("keepdims", OperatorAttribute::Int(1))];
    call.node_with("ReduceSum", &[x, &axes], keeps_axes, x.dtype)
}

type Gradient = fn(&OperatorCall<'_>, &Value, &Value, usize) -> Composed<Value>;

fn normalised_backward(call: &OperatorCall<'_>, gradient: Gradient) -> Composed {
    let (grad, output) = (call.tensor("gradOutput")?, call.tensor("output")?);
    let out = call.tensor("out")?;
    call.expect_float(grad)?;
    call.expect_float(output)?;
    call.expect_shape(grad, output.dims())?;
    call.expect_shape(out, output.dims())?;
    let axis = along(call, output)?;
    let dtype = call.promote(&[grad, output], &[])?;
    call.expect_cast(out, dtype)?;
    if out.is_empty() {
        return call.fill(out, ScalarNumber::Int(0));
    }
    let compute = compute_type(dtype);
    let grad = with_axis(call, grad)?;
    let output = with_axis(call, output)?;
    // The two may have different dtypes, and the result has the higher one.
    let grad = grad.cast(compute);
    let output = output.cast(compute);
    let result = gradient(call, &grad, &output, axis)?;
    write_shaped(call, out, &result, dtype)
}

fn softmax_backward(call: &OperatorCall<'_>) -> Composed {
    normalised_backward(call, |call, grad, output, axis| {
        let product = grad * output;
        let sum = sum_along(call, &product, axis);
        Ok(&product - &sum * output)
    })
}

fn log_softmax_backward(call: &OperatorCall<'_>) -> Composed {
    normalised_backward(call, |call, grad, output, axis| {
        let sum = sum_along(call, grad, axis);
        Ok(grad - output.exp() * &sum)
    })
}

fn softmax_cross_entropy(call: &OperatorCall<'_>) -> Composed {
    let (features, labels) = (call.tensor("features")?, call.tensor("labels")?);
    let (loss, backprop) = (call.tensor("loss")?, call.tensor("backprop")?);
    let &[n, _] = features.dims() else {
        let text = format!("`features` has {} axes; expected 2", features.n_axes());
        return Err(Refusal::invalid(text));
    };
    for tensor in [features, labels, loss, backprop] {
        call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
    }
    call.expect_shape(labels, features.dims())?;
    call.expect_shape(backprop, features.dims())?;
    call.expect_shape(loss, &[n])?;
    if features.is_empty() {
        call.fill(loss, ScalarNumber::Int(0))?;
        return call.fill(backprop, ScalarNumber::Int(0));
    }
    let dtype = call.promote(&[features, labels], &[])?;
    let x = call.read(features, DType::F32)?;
    let y = call.read(labels, DType::F32)?;
    let log = call.node_with("LogSoftmax", &[&x], attribute(1), DType::F32);
    let product = &log * &y;
    let sum = sum_along(call, &product, 1);
    let sum = -&sum;
    let softmax = call.node_with("Softmax", &[&x], attribute(1), DType::F32);
    let gradient = &softmax - &y;
    write_shaped(call, loss, &sum, dtype)?;
    call.write(backprop, &gradient, dtype)
}
