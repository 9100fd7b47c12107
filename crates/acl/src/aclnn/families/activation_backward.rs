//! Gradients of activations.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{
    FAST_GELU, GELU_CUBIC, SELU_ALPHA, SELU_SCALE, SMALL_FLOATS, gelu_operand, halves, is_shrunk,
    is_small_float, normal_distribution, optional_beta, parameter, sigmoid_of, silu, soft_maximum,
};
use super::unary::Formula;
use crate::aclnn::call::{
    Composed, Operand, OperatorCall, Refusal, Side, Value, arithmetic_type, refuse_if,
};
use crate::aclnn::promotion::is_float;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of gradients of activations.
#[macro_export]
macro_rules! aclnn_activation_backward {
    ($rows:ident) => {
        $rows! { "gradients of activations";
            ThresholdGradV2D("aclnn_threshold_backward.h", "gradOutput where self is above threshold, else 0; with 0 the gradient of relu") by threshold():
                aclnnThresholdBackward(gradOutput: Tensor, self_: Tensor, threshold: Scalar, out: Out);
            SigmoidGrad("aclnn_sigmoid_backward.h", "gradOutput * output * (1 - output)") by sigmoid():
                aclnnSigmoidBackward(gradOutput: Tensor, output: Tensor, gradInput: Out);
            GeluGrad("aclnn_gelu_backward.h", "gradOutput * the slope of gelu at self") by sloped(exact_gelu_slope):
                aclnnGeluBackward(gradOutput: Tensor, self_: Tensor, gradInput: Out);
            GeluGradV2("aclnn_gelu_backward_v2.h", "gradOutput * the slope of gelu at self; approximate is none or tanh") by gelu_by_formula():
                aclnnGeluBackwardV2(gradOutput: Tensor, self_: Tensor, approximate: Text, gradInput: Out);
            FastGeluGrad("aclnn_fast_gelu_backward.h", "gradOutput * the slope of self * sigmoid(1.702 * self)") by sloped(fast_gelu_slope):
                aclnnFastGeluBackward(gradOutput: Tensor, self_: Tensor, gradInput: Out);
            SiluGrad("aclnn_silu_backward.h", "gradOutput * the slope of silu at self") by sloped(silu_slope):
                aclnnSiluBackward(gradOutput: Tensor, self_: Tensor, gradInput: Out);
            SwishGrad("aclnn_swish_backward.h", "gradOutput * the slope of self * sigmoid(betaOptional * self); without it 1") by small(["self", "gradInput"], swish):
                aclnnSwishBackward(gradOutput: Tensor, self_: Tensor, betaOptional: OptionalScalar, gradInput: Out);
            MishGrad("aclnn_mish_backward.h", "gradOutput * the slope of mish at self") by sloped(mish_slope):
                aclnnMishBackward(gradOutput: Tensor, self_: Tensor, gradInput: Out);
            EluGradV2("aclnn_elu_backward.h", "gradOutput * the slope of elu, at its operand or, if isResult is true, at its result") by small(["selfOrResult", "gradInput"], elu):
                aclnnEluBackward(gradOutput: Tensor, alpha: Scalar, scale: Scalar, inputScale: Scalar, isResult: Flag, selfOrResult: Tensor, gradInput: Out);
            SeluGrad("aclnn_selu_backward.h", "gradOutput * the slope of selu where it gives result") by selu():
                aclnnSeluBackward(gradOutput: Tensor, result: Tensor, gradInput: Out);
            LeakyReluGrad("aclnn_leaky_relu_backward.h", "gradOutput where self is positive, else negativeSlope * gradOutput") by small(["self", "out"], leaky_relu):
                aclnnLeakyReluBackward(gradOutput: Tensor, self_: Tensor, negativeSlope: Scalar, selfIsResult: Flag, out: Out);
            HardShrinkGrad("aclnn_hardshrink_backward.h", "gradOutput, but 0 where self is from -lambd to lambd") by small(["self", "gradInput"], hard_shrink):
                aclnnHardshrinkBackward(gradOutput: Tensor, self_: Tensor, lambd: Scalar, gradInput: Out);
            SoftShrinkGrad("aclnn_softshrink_backward.h", "gradOutput, but 0 where self is from -lambda to lambda") by small(["self", "gradInput"], soft_shrink):
                aclnnSoftshrinkBackward(gradOutput: Tensor, self_: Tensor, lambda: Scalar, gradInput: Out);
            HardtanhGrad("aclnn_hardtanh_backward.h", "gradOutput where self is between min and max, else 0") by small(["self", "out"], hard_tanh):
                aclnnHardtanhBackward(gradOutput: Tensor, self_: Tensor, min: Scalar, max: Scalar, out: Out);
            HardSigmoidGrad("aclnn_hardsigmoid_backward.h", "gradOutput / 6 where self is between -3 and 3, else 0") by hard_sigmoid():
                aclnnHardsigmoidBackward(gradOutput: Tensor, self_: Tensor, out: Out);
            HardSwishGrad("aclnn_hardswish_backward.h", "gradOutput * (self / 3 + 1/2) for self from -3 to 3, 0 below and gradOutput above") by hard_swish(Value::less, Value::greater):
                aclnnHardswishBackward(gradOutput: Tensor, self_: Tensor, out: Out);
            HardSwishGradV2("aclnn_hardswish_backward_v2.h", "gradOutput * (self / 3 + 1/2) for self between -3 and 3, 0 up to -3 and gradOutput from 3 on") by hard_swish(Value::less_or_equal, Value::greater_or_equal):
                aclnnHardswishBackwardV2(gradOutput: Tensor, self_: Tensor, out: Out);
            SoftplusV2Grad("aclnn_softplus_backward.h", "gradOutput * sigmoid(beta * self); gradOutput where beta * self is above threshold") by small(["self", "gradInput"], softplus):
                aclnnSoftplusBackward(gradOutput: Tensor, self_: Tensor, beta: Scalar, threshold: Scalar, gradInput: Out);
            LogSigmoidGrad("aclnn_logsigmoid_backward.h", "gradOutput * sigmoid(-self); buffer is not read") by sloped(log_sigmoid_slope):
                aclnnLogSigmoidBackward(gradOutput: Tensor, self_: Tensor, buffer: OptionalTensor, gradInput: Out);
            GLUGrad("aclnn_glu_backward.h", "the gradient of the first half of self along dim * sigmoid(the second)") by glu():
                aclnnGluBackward(gradOut: Tensor, self_: Tensor, dim: Int, out: Out);
            SwiGluGrad("aclnn_swi_glu_grad.h", "the gradient of silu(the first half of x along dim) * the second") by swish_glu():
                aclnnSwiGluGrad(yGrad: Tensor, x: Tensor, dim: Int, out: Out);
        }
    };
}
aclnn_activation_backward!(operator_rows);

/// The gradient of an element-wise function. `names` are the second tensor and the output.
fn backward(
    call: &OperatorCall<'_>,
    names: [&str; 2],
    (is_accepted, expected): (fn(DType) -> bool, &str),
    gradient: impl FnOnce(&Value, &Value) -> Composed<Value>,
) -> Composed {
    let grad = call.tensor("gradOutput")?;
    let (x, out) = (call.tensor(names[0])?, call.tensor(names[1])?);
    for tensor in [grad, x] {
        call.expect_dtype(tensor, is_accepted, expected)?;
    }
    // The vendor broadcasts the two against each other, where PyTorch requires equal shapes.
    call.broadcast(&[Side::Tensor(grad), Side::Tensor(x)], out)?;
    let dtype = call.promote(&[grad, x], &[])?;
    call.expect_cast(out, dtype)?;
    let compute = arithmetic_type(dtype);
    let (grad, x) = (call.read(grad, compute)?, call.read(x, compute)?);
    call.write(out, &gradient(&grad, &x)?, dtype)
}

const SMALL: (fn(DType) -> bool, &str) = (is_small_float, SMALL_FLOATS);
const ALL_FLOATS: (fn(DType) -> bool, &str) = (is_float, "float16, bfloat16, float32 or float64");

const NUMBERS: (fn(DType) -> bool, &str) = (|dtype| dtype != DType::Bool, "integers or floats");

/// An operator of floats up to single precision. `names` are the second tensor and the output.
fn small(
    call: &OperatorCall<'_>,
    names: [&str; 2],
    gradient: fn(&OperatorCall<'_>, &Value, &Value) -> Composed<Value>,
) -> Composed {
    backward(call, names, SMALL, |grad, x| gradient(call, grad, x))
}

/// The product of the gradient and the slope of a formula.
fn sloped(call: &OperatorCall<'_>, slope: Formula) -> Composed {
    let names = ["self", "gradInput"];
    backward(call, names, SMALL, |grad, x| Ok(grad * slope(x)))
}

fn threshold(call: &OperatorCall<'_>) -> Composed {
    backward(call, ["self", "out"], NUMBERS, |grad, x| {
        let limit = parameter(call, "threshold", x)?;
        // NaN is not below the threshold, so its gradient passes, as in PyTorch. A selection,
        // because a product with 0 would turn an infinite gradient into NaN.
        Ok(x.less_or_equal(&limit).choose(0.0, grad))
    })
}

fn sigmoid(call: &OperatorCall<'_>) -> Composed {
    let names = ["output", "gradInput"];
    backward(
        call,
        names,
        ALL_FLOATS,
        |grad, y| Ok(grad * (y * (1.0 - y))),
    )
}

fn gelu_by_formula(call: &OperatorCall<'_>) -> Composed {
    let text = call.text("approximate")?;
    let slope = match text.as_ref() {
        "none" | "" => exact_gelu_slope,
        "tanh" => approximate_gelu_slope,
        other => {
            let text = format!("`approximate` is \"{other}\"; expected none or tanh");
            return Err(Refusal::invalid(text));
        }
    };
    sloped(call, slope)
}

/// The normal CDF at `x`, plus `x` times its density.
fn exact_gelu_slope(x: &Value) -> Value {
    let density = (x * x * -0.5).exp() * (1.0 / (2.0 * std::f64::consts::PI).sqrt());
    normal_distribution(x) + x * density
}

/// With `s` the sigmoid of twice the formula's operand, which is `(1 + tanh)/2`:
/// `s + 2 x s (1 - s) · sqrt(2/π) (1 + 3 · 0.044715 x²)`.
fn approximate_gelu_slope(x: &Value) -> Value {
    let operand = gelu_operand(x);
    let twice = &operand + &operand;
    let gate = sigmoid_of(&twice);
    // 1 - s is the sigmoid of the negated operand, which keeps the digits where s is almost 1.
    let product = &gate * sigmoid_of(&-twice);
    let inner = (x * x * (3.0 * GELU_CUBIC) + 1.0) * (2.0 * (2.0 / std::f64::consts::PI).sqrt());
    gate + inner * product * x
}

/// The slope of `x · s(beta · x)`, which is `s · (1 + beta · x · (1 - s))`.
fn gated_slope(x: &Value, beta: impl Operand) -> Value {
    let scaled = x * beta;
    let gate = sigmoid_of(&scaled);
    &gate * (scaled * (1.0 - &gate) + 1.0)
}

fn fast_gelu_slope(x: &Value) -> Value {
    gated_slope(x, FAST_GELU)
}

fn silu_slope(x: &Value) -> Value {
    gated_slope(x, 1.0)
}

fn swish(call: &OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    Ok(grad * gated_slope(x, optional_beta(call, x)?))
}

/// With `t = tanh(log(1 + e^x))`, `t + x · sigmoid(x) · (1 - t²)`.
fn mish_slope(x: &Value) -> Value {
    let tanh = soft_maximum(x).tanh();
    // 1 - t is 2 / (e^2x + 2 e^x + 2), which keeps its digits where t is almost 1.
    let power = x.exp();
    let rest = 2.0 / ((&power + 2.0) * &power + 2.0) * (1.0 + &tanh);
    tanh + x * sigmoid_of(x) * rest
}

/// `grad · above` where `x` is positive, else `grad · below`.
fn by_sign([grad, x]: [&Value; 2], above: impl Operand, below: impl Operand) -> Value {
    x.greater(0.0).choose(grad * above, grad * below)
}

fn elu(call: &OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    // Scalars are passed to each run, so that a program that changes them keeps its graph.
    let (alpha, scale) = (parameter(call, "alpha", x)?, parameter(call, "scale", x)?);
    let inner = parameter(call, "inputScale", x)?;
    let depth = alpha * &scale;
    // With the result no power is needed: it is the result plus the depth.
    let below = if call.flag("isResult")? {
        inner * (x + depth)
    } else {
        depth * &inner * (x * &inner).exp()
    };
    Ok(by_sign([grad, x], scale, below))
}

fn selu(call: &OperatorCall<'_>) -> Composed {
    backward(call, ["result", "gradInput"], SMALL, |grad, y| {
        Ok(by_sign([grad, y], SELU_SCALE, y + SELU_SCALE * SELU_ALPHA))
    })
}

fn leaky_relu(call: &OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    // With a negative slope both sides of 0 yield results with the same sign.
    let slope = call.scalar("negativeSlope")?;
    refuse_if!(
        call.flag("selfIsResult")? && slope.as_f64() < 0.0,
        "`negativeSlope` is negative, with which results do not tell their operands"
    );
    let slope = call.scalar_value(slope, x.dtype)?;
    Ok(by_sign([grad, x], 1.0, slope))
}

fn hard_shrink(call: &OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    Ok(is_shrunk(call, x, "lambd")?.choose(0.0, grad))
}

fn soft_shrink(call: &OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    Ok(is_shrunk(call, x, "lambda")?.choose(0.0, grad))
}

/// Whether elements are at or beyond one of two bounds.
fn is_beyond(x: &Value, low: impl Operand, high: impl Operand) -> Value {
    x.less_or_equal(low) | x.greater_or_equal(high)
}

fn hard_tanh(call: &OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let (low, high) = (parameter(call, "min", x)?, parameter(call, "max", x)?);
    Ok(is_beyond(x, low, high).choose(0.0, grad))
}

fn hard_sigmoid(call: &OperatorCall<'_>) -> Composed {
    backward(call, ["self", "out"], SMALL, |grad, x| {
        Ok(is_beyond(x, -3.0, 3.0).choose(0.0, grad / 6.0))
    })
}

/// `conditions` are those of the lower and of the upper side.
fn hard_swish(
    call: &OperatorCall<'_>,
    is_low: fn(&Value, f64) -> Value,
    is_high: fn(&Value, f64) -> Value,
) -> Composed {
    backward(call, ["self", "out"], SMALL, |grad, x| {
        let inner = is_high(x, 3.0).choose(grad, grad * (x / 3.0 + 0.5));
        Ok(is_low(x, -3.0).choose(0.0, inner))
    })
}

fn softplus(call: &OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let scaled = x * parameter(call, "beta", x)?;
    let is_linear = scaled.greater(parameter(call, "threshold", x)?);
    Ok(is_linear.choose(grad, grad * sigmoid_of(&scaled)))
}

fn log_sigmoid_slope(x: &Value) -> Value {
    sigmoid_of(&-x)
}

/// The gradients of the two halves, from the gradient of the result and the halves.
fn half_backward(
    call: &OperatorCall<'_>,
    [grad, x]: [&str; 2],
    (is_accepted, expected): (fn(DType) -> bool, &str),
    gradients: fn(&Value, [&Value; 2]) -> [Value; 2],
) -> Composed {
    let (grad, x) = (call.tensor(grad)?, call.tensor(x)?);
    let out = call.tensor("out")?;
    for tensor in [grad, x] {
        call.expect_dtype(tensor, is_accepted, expected)?;
    }
    // Also checks the axis and its even size.
    let halves = halves(call, x)?;
    call.expect_shape(grad, &halves.dims)?;
    call.expect_shape(out, x.dims())?;
    let dtype = call.promote(&[grad, x], &[])?;
    call.expect_cast(out, dtype)?;
    let grad = call.read(grad, halves.first.dtype)?;
    let [first, second] = gradients(&grad, [&halves.first, &halves.second]);
    let along = vec![(
        "axis",
        OperatorAttribute::Int(halves.axis.cast_signed() as i64),
    )];
    let result = call.node_with("Concat", &[&first, &second], along, first.dtype);
    call.write(out, &result, dtype)
}

fn glu(call: &OperatorCall<'_>) -> Composed {
    half_backward(call, ["gradOut", "self"], ALL_FLOATS, |grad, [a, b]| {
        // The slope of the sigmoid is `s (1 - s)`.
        let gate = sigmoid_of(b);
        let first = grad * &gate;
        let second = &first * (1.0 - gate) * a;
        [first, second]
    })
}

fn swish_glu(call: &OperatorCall<'_>) -> Composed {
    half_backward(call, ["yGrad", "x"], SMALL, |grad, [a, b]| {
        [grad * b * gated_slope(a, 1.0), grad * silu(a)]
    })
}
