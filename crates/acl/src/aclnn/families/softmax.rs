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
            aclnnSoftmax = SoftmaxV2("aclnn_softmax.h", "e^self / the sum of e^self along dim") by softmax
                (self_: Tensor, dim: Int, out: Out);
            aclnnLogSoftmax = LogSoftmaxV2("aclnn_logsoftmax.h", "the logarithm of softmax along dim") by log_softmax
                (self_: Tensor, dim: Int, out: Out);
            aclnnSoftmaxBackward = SoftmaxGrad("aclnn_softmax_backward.h", "gradOutput * output - the sum of gradOutput * output along dim, times output") by softmax_backward
                (gradOutput: Tensor, output: Tensor, dim: Int, out: Out);
            aclnnLogSoftmaxBackward = LogSoftmaxGrad("aclnn_logsoftmax_backward.h", "gradOutput - e^output * the sum of gradOutput along dim") by log_softmax_backward
                (gradOutput: Tensor, output: Tensor, dim: Int, out: Out);
            aclnnSoftmaxCrossEntropyWithLogits = SoftmaxCrossEntropyWithLogits("aclnn_softmax_cross_entropy_with_logits.h", "- the sum of labels * log(softmax(features)) for each row, and softmax(features) - labels") by softmax_cross_entropy
                (features: Tensor, labels: Tensor, loss: Out, backprop: Out);
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
fn with_axis(call: &mut OperatorCall<'_>, x: &TensorArgument) -> Composed<Value> {
    // Operators along an axis need one; a scalar counts as a list of one.
    let value = call.read(x, compute_type(x.dtype))?;
    if x.n_axes() > 0 {
        return Ok(value);
    }
    call.reshaped(&value, &[1])
}

/// Stores a value to which [`with_axis`] may have added an axis.
pub(super) fn write_shaped(
    call: &mut OperatorCall<'_>,
    out: &TensorArgument,
    value: &Value,
    dtype: DType,
) -> Composed {
    let value = call.reshaped(value, out.dims())?;
    call.write(out, &value, dtype);
    Ok(())
}

fn normalised(call: &mut OperatorCall<'_>, op: &'static str) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    let axis = along(call, x)?;
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
    if x.is_empty() {
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let value = with_axis(call, x)?;
    let result = call.node_with(op, &[&value], attribute(axis), value.dtype);
    write_shaped(call, out, &result, x.dtype)
}

fn softmax(call: &mut OperatorCall<'_>) -> Composed {
    normalised(call, "Softmax")
}

fn log_softmax(call: &mut OperatorCall<'_>) -> Composed {
    normalised(call, "LogSoftmax")
}

pub(super) fn sum_along(call: &mut OperatorCall<'_>, x: &Value, axis: usize) -> Composed<Value> {
    let axes = call.constant_dims(&[axis]);
    let keeps_axes = vec![("keepdims", OperatorAttribute::Int(1))];
    Ok(call.node_with("ReduceSum", &[x, &axes], keeps_axes, x.dtype))
}

type Gradient = fn(&mut OperatorCall<'_>, &Value, &Value, usize) -> Composed<Value>;

fn normalised_backward(call: &mut OperatorCall<'_>, gradient: Gradient) -> Composed {
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
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    let compute = compute_type(dtype);
    let grad = with_axis(call, grad)?;
    let output = with_axis(call, output)?;
    // The two may have different dtypes, and the result has the higher one.
    let (grad, output) = (call.cast(&grad, compute), call.cast(&output, compute));
    let result = gradient(call, &grad, &output, axis)?;
    write_shaped(call, out, &result, dtype)
}

fn softmax_backward(call: &mut OperatorCall<'_>) -> Composed {
    normalised_backward(call, |call, grad, output, axis| {
        let product = call.node("Mul", &[grad, output], grad.dtype);
        let sum = sum_along(call, &product, axis)?;
        let share = call.node("Mul", &[&sum, output], grad.dtype);
        Ok(call.node("Sub", &[&product, &share], grad.dtype))
    })
}

fn log_softmax_backward(call: &mut OperatorCall<'_>) -> Composed {
    normalised_backward(call, |call, grad, output, axis| {
        let sum = sum_along(call, grad, axis)?;
        let softmax = call.node("Exp", &[output], grad.dtype);
        let share = call.node("Mul", &[&softmax, &sum], grad.dtype);
        Ok(call.node("Sub", &[grad, &share], grad.dtype))
    })
}

fn softmax_cross_entropy(call: &mut OperatorCall<'_>) -> Composed {
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
        call.fill(loss, ScalarNumber::Int(0));
        call.fill(backprop, ScalarNumber::Int(0));
        return Ok(());
    }
    let dtype = call.promote(&[features, labels], &[])?;
    let x = call.read(features, DType::F32)?;
    let y = call.read(labels, DType::F32)?;
    let log = call.node_with("LogSoftmax", &[&x], attribute(1), DType::F32);
    let product = call.node("Mul", &[&log, &y], DType::F32);
    let sum = sum_along(call, &product, 1)?;
    let sum = call.node("Neg", &[&sum], DType::F32);
    let softmax = call.node_with("Softmax", &[&x], attribute(1), DType::F32);
    let gradient = call.node("Sub", &[&softmax, &y], DType::F32);
    write_shaped(call, loss, &sum, dtype)?;
    call.write(backprop, &gradient, dtype);
    Ok(())
}
