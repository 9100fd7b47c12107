//! Gradients of activations.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::activation::{
    FAST_GELU, GELU_CUBIC, SELU_ALPHA, SELU_SCALE, SMALL_FLOATS, gelu_operand, halves, is_shrunk,
    is_small_float, normal_distribution, optional_beta, parameter, sigmoid_of, soft_maximum,
};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, arithmetic_type};
use crate::aclnn::promotion::is_float;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of gradients of activations.
#[macro_export]
macro_rules! aclnn_activation_backward {
    ($rows:ident) => {
        $rows! { "gradients of activations";
            aclnnThresholdBackward = ThresholdGradV2D("aclnn_threshold_backward.h", "gradOutput where self is above threshold, else 0; with 0 the gradient of relu") by threshold
                (gradOutput: Tensor, self_: Tensor, threshold: Scalar, out: Out);
            aclnnSigmoidBackward = SigmoidGrad("aclnn_sigmoid_backward.h", "gradOutput * output * (1 - output)") by sigmoid
                (gradOutput: Tensor, output: Tensor, gradInput: Out);
            aclnnGeluBackward = GeluGrad("aclnn_gelu_backward.h", "gradOutput * the slope of gelu at self") by gelu
                (gradOutput: Tensor, self_: Tensor, gradInput: Out);
            aclnnGeluBackwardV2 = GeluGradV2("aclnn_gelu_backward_v2.h", "gradOutput * the slope of gelu at self; approximate is none or tanh") by gelu_by_formula
                (gradOutput: Tensor, self_: Tensor, approximate: Text, gradInput: Out);
            aclnnFastGeluBackward = FastGeluGrad("aclnn_fast_gelu_backward.h", "gradOutput * the slope of self * sigmoid(1.702 * self)") by fast_gelu
                (gradOutput: Tensor, self_: Tensor, gradInput: Out);
            aclnnSiluBackward = SiluGrad("aclnn_silu_backward.h", "gradOutput * the slope of silu at self") by silu
                (gradOutput: Tensor, self_: Tensor, gradInput: Out);
            aclnnSwishBackward = SwishGrad("aclnn_swish_backward.h", "gradOutput * the slope of self * sigmoid(betaOptional * self); without it 1") by swish
                (gradOutput: Tensor, self_: Tensor, betaOptional: OptionalScalar, gradInput: Out);
            aclnnMishBackward = MishGrad("aclnn_mish_backward.h", "gradOutput * the slope of mish at self") by mish
                (gradOutput: Tensor, self_: Tensor, gradInput: Out);
            aclnnEluBackward = EluGradV2("aclnn_elu_backward.h", "gradOutput * the slope of elu, at its operand or, if isResult is true, at its result") by elu
                (gradOutput: Tensor, alpha: Scalar, scale: Scalar, inputScale: Scalar, isResult: Flag, selfOrResult: Tensor, gradInput: Out);
            aclnnSeluBackward = SeluGrad("aclnn_selu_backward.h", "gradOutput * the slope of selu where it gives result") by selu
                (gradOutput: Tensor, result: Tensor, gradInput: Out);
            aclnnLeakyReluBackward = LeakyReluGrad("aclnn_leaky_relu_backward.h", "gradOutput where self is positive, else negativeSlope * gradOutput") by leaky_relu
                (gradOutput: Tensor, self_: Tensor, negativeSlope: Scalar, selfIsResult: Flag, out: Out);
            aclnnHardshrinkBackward = HardShrinkGrad("aclnn_hardshrink_backward.h", "gradOutput, but 0 where self is from -lambd to lambd") by hard_shrink
                (gradOutput: Tensor, self_: Tensor, lambd: Scalar, gradInput: Out);
            aclnnSoftshrinkBackward = SoftShrinkGrad("aclnn_softshrink_backward.h", "gradOutput, but 0 where self is from -lambda to lambda") by soft_shrink
                (gradOutput: Tensor, self_: Tensor, lambda: Scalar, gradInput: Out);
            aclnnHardtanhBackward = HardtanhGrad("aclnn_hardtanh_backward.h", "gradOutput where self is between min and max, else 0") by hard_tanh
                (gradOutput: Tensor, self_: Tensor, min: Scalar, max: Scalar, out: Out);
            aclnnHardsigmoidBackward = HardSigmoidGrad("aclnn_hardsigmoid_backward.h", "gradOutput / 6 where self is between -3 and 3, else 0") by hard_sigmoid
                (gradOutput: Tensor, self_: Tensor, out: Out);
            aclnnHardswishBackward = HardSwishGrad("aclnn_hardswish_backward.h", "gradOutput * (self / 3 + 1/2) for self from -3 to 3, 0 below and gradOutput above") by hard_swish
                (gradOutput: Tensor, self_: Tensor, out: Out);
            aclnnHardswishBackwardV2 = HardSwishGradV2("aclnn_hardswish_backward_v2.h", "gradOutput * (self / 3 + 1/2) for self between -3 and 3, 0 up to -3 and gradOutput from 3 on") by hard_swish_open
                (gradOutput: Tensor, self_: Tensor, out: Out);
            aclnnSoftplusBackward = SoftplusV2Grad("aclnn_softplus_backward.h", "gradOutput * sigmoid(beta * self); gradOutput where beta * self is above threshold") by softplus
                (gradOutput: Tensor, self_: Tensor, beta: Scalar, threshold: Scalar, gradInput: Out);
            aclnnLogSigmoidBackward = LogSigmoidGrad("aclnn_logsigmoid_backward.h", "gradOutput * sigmoid(-self); buffer is not read") by log_sigmoid
                (gradOutput: Tensor, self_: Tensor, buffer: OptionalTensor, gradInput: Out);
            aclnnGluBackward = GLUGrad("aclnn_glu_backward.h", "the gradient of the first half of self along dim * sigmoid(the second)") by glu
                (gradOut: Tensor, self_: Tensor, dim: Int, out: Out);
            aclnnSwiGluGrad = SwiGluGrad("aclnn_swi_glu_grad.h", "the gradient of silu(the first half of x along dim) * the second") by swish_glu
                (yGrad: Tensor, x: Tensor, dim: Int, out: Out);
        }
    };
}
aclnn_activation_backward!(operator_rows);

/// The gradient, from the gradient of the result and the activation's input or output.
type Gradient = fn(&mut OperatorCall<'_>, &Value, &Value) -> Composed<Value>;

/// The gradient of an element-wise function. `names` are the second tensor and the output.
fn backward(
    call: &mut OperatorCall<'_>,
    names: [&str; 2],
    (is_accepted, expected): (fn(DType) -> bool, &str),
    gradient: Gradient,
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
    let result = gradient(call, &grad, &x)?;
    call.write(out, &result, dtype);
    Ok(())
}

const SMALL: (fn(DType) -> bool, &str) = (is_small_float, SMALL_FLOATS);
const ALL_FLOATS: (fn(DType) -> bool, &str) = (is_float, "float16, bfloat16, float32 or float64");

const NUMBERS: (fn(DType) -> bool, &str) = (|dtype| dtype != DType::Bool, "integers or floats");

/// Operators of floats up to single precision: `name = gradient(second tensor, output);`
macro_rules! gradients {
    ($($name:ident = $gradient:ident($x:literal, $out:literal);)+) => {$(
        fn $name(call: &mut OperatorCall<'_>) -> Composed {
            backward(call, [$x, $out], SMALL, $gradient)
        }
    )+};
}

gradients! {
    gelu = exact_gelu_gradient("self", "gradInput");
    fast_gelu = fast_gelu_gradient("self", "gradInput");
    silu = silu_gradient("self", "gradInput");
    swish = swish_gradient("self", "gradInput");
    mish = mish_gradient("self", "gradInput");
    elu = elu_gradient("selfOrResult", "gradInput");
    selu = selu_gradient("result", "gradInput");
    leaky_relu = leaky_relu_gradient("self", "out");
    hard_shrink = hard_shrink_gradient("self", "gradInput");
    soft_shrink = soft_shrink_gradient("self", "gradInput");
    hard_tanh = hard_tanh_gradient("self", "out");
    hard_sigmoid = hard_sigmoid_gradient("self", "out");
    hard_swish = hard_swish_gradient("self", "out");
    hard_swish_open = hard_swish_open_gradient("self", "out");
    softplus = softplus_gradient("self", "gradInput");
    log_sigmoid = log_sigmoid_gradient("self", "gradInput");
}

fn threshold(call: &mut OperatorCall<'_>) -> Composed {
    backward(call, ["self", "out"], NUMBERS, |call, grad, x| {
        let limit = parameter(call, "threshold", x)?;
        let zero = call.constant(0.0, x.dtype);
        // NaN is not below the threshold, so its gradient passes, as in PyTorch. A selection,
        // because a product with 0 would turn an infinite gradient into NaN.
        let is_dropped = call.node("LessOrEqual", &[x, &limit], DType::Bool);
        Ok(call.node("Where", &[&is_dropped, &zero, grad], x.dtype))
    })
}

fn sigmoid(call: &mut OperatorCall<'_>) -> Composed {
    backward(
        call,
        ["output", "gradInput"],
        ALL_FLOATS,
        |call, grad, y| {
            let one = call.constant(1.0, y.dtype);
            let rest = call.node("Sub", &[&one, y], y.dtype);
            let slope = call.node("Mul", &[y, &rest], y.dtype);
            Ok(call.node("Mul", &[grad, &slope], y.dtype))
        },
    )
}

fn gelu_by_formula(call: &mut OperatorCall<'_>) -> Composed {
    let text = call.text("approximate")?;
    let gradient = match text.as_ref() {
        "none" | "" => exact_gelu_gradient,
        "tanh" => approximate_gelu_gradient,
        other => {
            let text = format!("`approximate` is \"{other}\"; expected none or tanh");
            return Err(Refusal::invalid(text));
        }
    };
    backward(call, ["self", "gradInput"], SMALL, gradient)
}

/// The normal CDF at `x`, plus `x` times its density.
fn exact_gelu_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let below = normal_distribution(call, x)?;
    let minus_half = call.constant(-0.5, x.dtype);
    let height = call.constant(1.0 / (2.0 * std::f64::consts::PI).sqrt(), x.dtype);
    let square = call.node("Mul", &[x, x], x.dtype);
    let exponent = call.node("Mul", &[&square, &minus_half], x.dtype);
    let power = call.node("Exp", &[&exponent], x.dtype);
    let density = call.node("Mul", &[&power, &height], x.dtype);
    let rise = call.node("Mul", &[x, &density], x.dtype);
    let slope = call.node("Add", &[&below, &rise], x.dtype);
    Ok(call.node("Mul", &[grad, &slope], x.dtype))
}

/// With `s` the sigmoid of twice the formula's operand, which is `(1 + tanh)/2`:
/// `s + 2 x s (1 - s) · sqrt(2/π) (1 + 3 · 0.044715 x²)`.
fn approximate_gelu_gradient(
    call: &mut OperatorCall<'_>,
    grad: &Value,
    x: &Value,
) -> Composed<Value> {
    let one = call.constant(1.0, x.dtype);
    let root = call.constant(2.0 * (2.0 / std::f64::consts::PI).sqrt(), x.dtype);
    let cubic = call.constant(3.0 * GELU_CUBIC, x.dtype);
    let operand = gelu_operand(call, x)?;
    let twice = call.node("Add", &[&operand, &operand], x.dtype);
    let gate = sigmoid_of(call, &twice)?;
    // 1 - s is the sigmoid of the negated operand, which keeps the digits where s is almost 1.
    let negated = call.node("Neg", &[&twice], x.dtype);
    let rest = sigmoid_of(call, &negated)?;
    let fall = call.node("Mul", &[&gate, &rest], x.dtype);
    let square = call.node("Mul", &[x, x], x.dtype);
    let inner = call.node("Mul", &[&square, &cubic], x.dtype);
    let inner = call.node("Add", &[&inner, &one], x.dtype);
    let inner = call.node("Mul", &[&inner, &root], x.dtype);
    let inner = call.node("Mul", &[&inner, &fall], x.dtype);
    let inner = call.node("Mul", &[&inner, x], x.dtype);
    let slope = call.node("Add", &[&gate, &inner], x.dtype);
    Ok(call.node("Mul", &[grad, &slope], x.dtype))
}

/// The slope of `x · s(beta · x)`, which is `s · (1 + beta · x · (1 - s))`.
fn gated_slope(call: &mut OperatorCall<'_>, x: &Value, beta: &Value) -> Composed<Value> {
    let one = call.constant(1.0, x.dtype);
    let scaled = call.node("Mul", &[x, beta], x.dtype);
    let gate = sigmoid_of(call, &scaled)?;
    let rest = call.node("Sub", &[&one, &gate], x.dtype);
    let product = call.node("Mul", &[&scaled, &rest], x.dtype);
    let sum = call.node("Add", &[&product, &one], x.dtype);
    Ok(call.node("Mul", &[&gate, &sum], x.dtype))
}

fn fast_gelu_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let beta = call.constant(FAST_GELU, x.dtype);
    let slope = gated_slope(call, x, &beta)?;
    Ok(call.node("Mul", &[grad, &slope], x.dtype))
}

fn silu_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let beta = call.constant(1.0, x.dtype);
    let slope = gated_slope(call, x, &beta)?;
    Ok(call.node("Mul", &[grad, &slope], x.dtype))
}

fn swish_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let beta = optional_beta(call, x)?;
    let slope = gated_slope(call, x, &beta)?;
    Ok(call.node("Mul", &[grad, &slope], x.dtype))
}

/// With `t = tanh(log(1 + e^x))`, `t + x · sigmoid(x) · (1 - t²)`.
fn mish_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let one = call.constant(1.0, x.dtype);
    let inner = soft_maximum(call, x)?;
    let tanh = call.node("Tanh", &[&inner], x.dtype);
    // 1 - t is 2 / (e^2x + 2 e^x + 2), which keeps its digits where t is almost 1.
    let two = call.constant(2.0, x.dtype);
    let power = call.node("Exp", &[x], x.dtype);
    let sum = call.node("Add", &[&power, &two], x.dtype);
    let sum = call.node("Mul", &[&sum, &power], x.dtype);
    let sum = call.node("Add", &[&sum, &two], x.dtype);
    let rest = call.node("Div", &[&two, &sum], x.dtype);
    let above = call.node("Add", &[&one, &tanh], x.dtype);
    let fall = call.node("Mul", &[&rest, &above], x.dtype);
    let gate = sigmoid_of(call, x)?;
    let product = call.node("Mul", &[x, &gate], x.dtype);
    let product = call.node("Mul", &[&product, &fall], x.dtype);
    let slope = call.node("Add", &[&tanh, &product], x.dtype);
    Ok(call.node("Mul", &[grad, &slope], x.dtype))
}

/// `grad · above` where `x` is positive, else `grad · below`.
fn by_sign(
    call: &mut OperatorCall<'_>,
    [grad, x]: [&Value; 2],
    [above, below]: [&Value; 2],
) -> Composed<Value> {
    let zero = call.constant(0.0, x.dtype);
    let is_positive = call.node("Greater", &[x, &zero], DType::Bool);
    let above = call.node("Mul", &[grad, above], x.dtype);
    let below = call.node("Mul", &[grad, below], x.dtype);
    Ok(call.node("Where", &[&is_positive, &above, &below], x.dtype))
}

fn elu_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    // Scalars are passed to each run, so that a program that changes them keeps its graph.
    let (alpha, scale) = (parameter(call, "alpha", x)?, parameter(call, "scale", x)?);
    let inner = parameter(call, "inputScale", x)?;
    let depth = call.node("Mul", &[&alpha, &scale], x.dtype);
    // With the result no power is needed: it is the result plus the depth.
    let below = if call.flag("isResult")? {
        let sum = call.node("Add", &[x, &depth], x.dtype);
        call.node("Mul", &[&inner, &sum], x.dtype)
    } else {
        let exponent = call.node("Mul", &[x, &inner], x.dtype);
        let power = call.node("Exp", &[&exponent], x.dtype);
        let depth = call.node("Mul", &[&depth, &inner], x.dtype);
        call.node("Mul", &[&depth, &power], x.dtype)
    };
    by_sign(call, [grad, x], [&scale, &below])
}

fn selu_gradient(call: &mut OperatorCall<'_>, grad: &Value, y: &Value) -> Composed<Value> {
    let scale = call.constant(SELU_SCALE, y.dtype);
    let depth = call.constant(SELU_SCALE * SELU_ALPHA, y.dtype);
    let below = call.node("Add", &[y, &depth], y.dtype);
    by_sign(call, [grad, y], [&scale, &below])
}

fn leaky_relu_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    // With a negative slope both sides of 0 yield results with the same sign.
    let slope = call.scalar("negativeSlope")?;
    if call.flag("selfIsResult")? && slope.as_f64() < 0.0 {
        let text = "`negativeSlope` is negative, with which results do not tell their operands";
        return Err(Refusal::invalid(text));
    }
    let slope = call.scalar_value(slope, x.dtype)?;
    let one = call.constant(1.0, x.dtype);
    by_sign(call, [grad, x], [&one, &slope])
}

/// The gradient, with 0 where a condition holds.
fn dropped(call: &mut OperatorCall<'_>, grad: &Value, is_dropped: &Value) -> Composed<Value> {
    let zero = call.constant(0.0, grad.dtype);
    Ok(call.node("Where", &[is_dropped, &zero, grad], grad.dtype))
}

fn hard_shrink_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let is_small = is_shrunk(call, x, "lambd")?;
    dropped(call, grad, &is_small)
}

fn soft_shrink_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let is_small = is_shrunk(call, x, "lambda")?;
    dropped(call, grad, &is_small)
}

/// Whether elements are at or beyond one of two bounds.
fn is_beyond(call: &mut OperatorCall<'_>, x: &Value, [low, high]: [&Value; 2]) -> Value {
    let is_low = call.node("LessOrEqual", &[x, low], DType::Bool);
    let is_high = call.node("GreaterOrEqual", &[x, high], DType::Bool);
    call.node("Or", &[&is_low, &is_high], DType::Bool)
}

fn hard_tanh_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let (low, high) = (parameter(call, "min", x)?, parameter(call, "max", x)?);
    let is_clipped = is_beyond(call, x, [&low, &high]);
    dropped(call, grad, &is_clipped)
}

fn hard_sigmoid_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let (low, high) = (call.constant(-3.0, x.dtype), call.constant(3.0, x.dtype));
    let six = call.constant(6.0, x.dtype);
    let is_clipped = is_beyond(call, x, [&low, &high]);
    let share = call.node("Div", &[grad, &six], x.dtype);
    dropped(call, &share, &is_clipped)
}

/// `conditions` are those of the lower and of the upper side.
fn hard_swish_by(
    call: &mut OperatorCall<'_>,
    [grad, x]: [&Value; 2],
    conditions: [&'static str; 2],
) -> Composed<Value> {
    let (low, high) = (call.constant(-3.0, x.dtype), call.constant(3.0, x.dtype));
    let half = call.constant(0.5, x.dtype);
    let zero = call.constant(0.0, x.dtype);
    let inner = call.node("Div", &[x, &high], x.dtype);
    let inner = call.node("Add", &[&inner, &half], x.dtype);
    let inner = call.node("Mul", &[grad, &inner], x.dtype);
    let is_low = call.node(conditions[0], &[x, &low], DType::Bool);
    let is_high = call.node(conditions[1], &[x, &high], DType::Bool);
    let upper = call.node("Where", &[&is_high, grad, &inner], x.dtype);
    Ok(call.node("Where", &[&is_low, &zero, &upper], x.dtype))
}

fn hard_swish_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    hard_swish_by(call, [grad, x], ["Less", "Greater"])
}

fn hard_swish_open_gradient(
    call: &mut OperatorCall<'_>,
    grad: &Value,
    x: &Value,
) -> Composed<Value> {
    hard_swish_by(call, [grad, x], ["LessOrEqual", "GreaterOrEqual"])
}

fn softplus_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let (beta, limit) = (
        parameter(call, "beta", x)?,
        parameter(call, "threshold", x)?,
    );
    let scaled = call.node("Mul", &[x, &beta], x.dtype);
    let is_linear = call.node("Greater", &[&scaled, &limit], DType::Bool);
    let slope = sigmoid_of(call, &scaled)?;
    let share = call.node("Mul", &[grad, &slope], x.dtype);
    Ok(call.node("Where", &[&is_linear, grad, &share], x.dtype))
}

fn log_sigmoid_gradient(call: &mut OperatorCall<'_>, grad: &Value, x: &Value) -> Composed<Value> {
    let negated = call.node("Neg", &[x], x.dtype);
    let slope = sigmoid_of(call, &negated)?;
    Ok(call.node("Mul", &[grad, &slope], x.dtype))
}

/// The gradients of the two halves, from the gradient of the result and the halves.
type HalfGradients = fn(&mut OperatorCall<'_>, &Value, [&Value; 2]) -> Composed<[Value; 2]>;

fn half_backward(
    call: &mut OperatorCall<'_>,
    [grad, x]: [&str; 2],
    (is_accepted, expected): (fn(DType) -> bool, &str),
    gradients: HalfGradients,
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
    let [first, second] = gradients(call, &grad, [&halves.first, &halves.second])?;
    let along = vec![(
        "axis",
        OperatorAttribute::Int(halves.axis.cast_signed() as i64),
    )];
    let result = call.node_with("Concat", &[&first, &second], along, first.dtype);
    call.write(out, &result, dtype);
    Ok(())
}

fn glu(call: &mut OperatorCall<'_>) -> Composed {
    half_backward(
        call,
        ["gradOut", "self"],
        ALL_FLOATS,
        |call, grad, [a, b]| {
            let one = call.constant(1.0, a.dtype);
            // The slope of the sigmoid is `s (1 - s)`.
            let gate = sigmoid_of(call, b)?;
            let first = call.node("Mul", &[grad, &gate], a.dtype);
            let rest = call.node("Sub", &[&one, &gate], a.dtype);
            let second = call.node("Mul", &[&first, &rest], a.dtype);
            let second = call.node("Mul", &[&second, a], a.dtype);
            Ok([first, second])
        },
    )
}

fn swish_glu(call: &mut OperatorCall<'_>) -> Composed {
    half_backward(call, ["yGrad", "x"], SMALL, |call, grad, [a, b]| {
        let one = call.constant(1.0, a.dtype);
        let slope = gated_slope(call, a, &one)?;
        let product = call.node("Mul", &[grad, b], a.dtype);
        let first = call.node("Mul", &[&product, &slope], a.dtype);
        let gate = sigmoid_of(call, a)?;
        let silu = call.node("Mul", &[a, &gate], a.dtype);
        let second = call.node("Mul", &[grad, &silu], a.dtype);
        Ok([first, second])
    })
}
