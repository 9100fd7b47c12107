//! Activation functions.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::unary::{erf_rest, exp_minus_one, log_one_plus};
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, arithmetic_type};
use crate::aclnn::object::{ScalarNumber, ScalarValue};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{compute_type, is_float};
use crate::aclnn::row::operator_rows;
use crate::aclnn::shape::axis;

/// Calls a macro with the rows of activations.
#[macro_export]
macro_rules! aclnn_activation {
    ($rows:ident) => {
        $rows! { "activations";
            aclnnRelu = Relu("aclnn_relu.h", "self where it is positive, else 0") by relu
                (self_: Tensor, out: Out);
            aclnnInplaceRelu = Relu("aclnn_relu.h", "self where it is positive, else 0") by relu
                (selfRef: Inplace);
            aclnnLeakyRelu = LeakyRelu("aclnn_leaky_relu.h", "self where it is positive, else negativeSlope * self") by leaky_relu
                (self_: Tensor, negativeSlope: Scalar, out: Out);
            aclnnInplaceLeakyRelu = LeakyRelu("aclnn_leaky_relu.h", "self where it is positive, else negativeSlope * self") by leaky_relu
                (selfRef: Inplace, negativeSlope: Scalar);
            aclnnElu = Elu("aclnn_elu.h", "scale * self where it is positive, else alpha * scale * (e^(inputScale * self) - 1)") by elu
                (self_: Tensor, alpha: Scalar, scale: Scalar, inputScale: Scalar, out: Out);
            aclnnInplaceElu = Elu("aclnn_elu.h", "scale * self where it is positive, else alpha * scale * (e^(inputScale * self) - 1)") by elu
                (selfRef: Inplace, alpha: Scalar, scale: Scalar, inputScale: Scalar);
            aclnnSelu = Selu("aclnn_selu.h", "elu with alpha 1.6732632 and scale 1.0507010") by selu
                (self_: Tensor, out: Out);
            aclnnInplaceSelu = Selu("aclnn_selu.h", "elu with alpha 1.6732632 and scale 1.0507010") by selu
                (selfRef: Inplace);
            aclnnCelu = CeluV2("aclnn_celu.h", "self where it is positive, else alpha * (e^(self / alpha) - 1)") by celu
                (self_: Tensor, alpha: Scalar, out: Out);
            aclnnInplaceCelu = CeluV2("aclnn_celu.h", "self where it is positive, else alpha * (e^(self / alpha) - 1)") by celu
                (selfRef: Inplace, alpha: Scalar);
            aclnnGelu = Gelu("aclnn_gelu.h", "self times the part of the normal distribution below it") by gelu
                (self_: Tensor, out: Out);
            aclnnGeluV2 = GeluV2("aclnn_gelu_v2.h", "gelu; approximate 1 takes a formula with tanh") by gelu_by_formula
                (x: Tensor, approximate: Int, y: Out);
            aclnnFastGelu = FastGelu("aclnn_fast_gelu.h", "self * sigmoid(1.702 * self)") by fast_gelu
                (self_: Tensor, out: Out);
            aclnnSilu = Swish("aclnn_silu.h", "self * sigmoid(self)") by silu
                (self_: Tensor, out: Out);
            aclnnSwish = Swish("aclnn_swish.h", "self * sigmoid(betaOptional * self); without it 1") by swish
                (self_: Tensor, betaOptional: OptionalScalar, out: Out);
            aclnnMish = Mish("aclnn_mish.h", "self * tanh(log(1 + e^self))") by mish
                (self_: Tensor, out: Out);
            aclnnInplaceMish = Mish("aclnn_mish.h", "self * tanh(log(1 + e^self))") by mish
                (selfRef: Inplace);
            aclnnSigmoid = Sigmoid("aclnn_sigmoid.h", "1 / (1 + e^-self)") by sigmoid
                (self_: Tensor, out: Out);
            aclnnInplaceSigmoid = Sigmoid("aclnn_sigmoid.h", "1 / (1 + e^-self)") by sigmoid
                (selfRef: Inplace);
            aclnnLogSigmoid = LogSigmoid("aclnn_logsigmoid.h", "log(sigmoid(self))") by log_sigmoid
                (self_: Tensor, out: Out);
            aclnnHardsigmoid = HardSigmoid("aclnn_hardsigmoid.h", "self / 6 + 1/2, not less than 0 and not more than 1") by hard_sigmoid
                (self_: Tensor, out: Out);
            aclnnInplaceHardsigmoid = HardSigmoid("aclnn_hardsigmoid.h", "self / 6 + 1/2, not less than 0 and not more than 1") by hard_sigmoid
                (self_: Inplace);
            aclnnHardswish = HardSwish("aclnn_hardswish.h", "self * hardsigmoid(self)") by hard_swish
                (self_: Tensor, out: Out);
            aclnnInplaceHardswish = HardSwish("aclnn_hardswish.h", "self * hardsigmoid(self)") by hard_swish
                (self_: Inplace);
            aclnnHardtanh = ClipByValue("aclnn_hardtanh.h", "self, not less than clipValueMin and not more than clipValueMax") by hard_tanh
                (self_: Tensor, clipValueMin: Scalar, clipValueMax: Scalar, out: Out);
            aclnnInplaceHardtanh = ClipByValue("aclnn_hardtanh.h", "self, not less than clipValueMin and not more than clipValueMax") by hard_tanh
                (selfRef: Inplace, clipValueMin: Scalar, clipValueMax: Scalar);
            aclnnHardshrink = HardShrink("aclnn_hardshrink.h", "self, but 0 from -lambd to lambd") by hard_shrink
                (self_: Tensor, lambd: Scalar, out: Out);
            aclnnSoftshrink = SoftShrink("aclnn_softshrink.h", "self, moved by lambd towards 0, but 0 from -lambd to lambd") by soft_shrink
                (self_: Tensor, lambd: Scalar, out: Out);
            aclnnSoftplus = SoftplusV2("aclnn_softplus.h", "log(1 + e^(beta * self)) / beta; self where beta * self is above threshold") by softplus
                (self_: Tensor, beta: Scalar, threshold: Scalar, out: Out);
            aclnnSoftsign = Softsign("aclnn_softsign.h", "self / (1 + the absolute value of self)") by softsign
                (self_: Tensor, out: Out);
            aclnnThreshold = Threshold("aclnn_threshold.h", "self where it is above threshold, else value") by threshold
                (self_: Tensor, threshold: Scalar, value: Scalar, out: Out);
            aclnnInplaceThreshold = Threshold("aclnn_threshold.h", "self where it is above threshold, else value") by threshold
                (selfRef: Inplace, threshold: Scalar, value: Scalar);
            aclnnPrelu = PRelu("aclnn_prelu.h", "self where it is positive, else weight * self, with a weight for each extent of axis 1 or one for all") by prelu
                (self_: Tensor, weight: Tensor, out: Out);
            aclnnGlu = GLU("aclnn_glu.h", "the first half of self along dim * sigmoid(the second)") by glu
                (self_: Tensor, dim: Int, out: Out);
            aclnnGeGlu = GeGluV2("aclnn_geglu.h", "the first half of self along dim * outGelu, which is gelu(the second)") by gelu_glu
                (self_: Tensor, dim: Int, approximate: Int, out: Out, outGelu: Out);
            aclnnGeGluV3 = GeGluV2("aclnn_geglu.h", "one half of self along dim * outGelu, which is gelu(the other one)") by gelu_glu
                (self_: Tensor, dim: Int, approximate: Int, activateLeft: Flag, out: Out, outGelu: Out);
            aclnnSwiGlu = SwiGlu("aclnn_swi_glu.h", "silu(the first half of x along dim) * the second") by swish_glu
                (x: Tensor, dim: Int, out: Out);
        }
    };
}
aclnn_activation!(operator_rows);

pub(super) const SMALL_FLOATS: &str = "float16, bfloat16 or float32";

/// Whether engines have every function for this float dtype.
pub(super) fn is_small_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
}

type NodeFunction = fn(&mut OperatorCall<'_>, &Value) -> Composed<Value>;

/// An element-wise function, in at most single precision.
fn pointwise(call: &mut OperatorCall<'_>, function: NodeFunction) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    pointwise_into(call, x, out, function)
}

fn pointwise_into(
    call: &mut OperatorCall<'_>,
    x: &TensorArgument,
    out: &TensorArgument,
    function: NodeFunction,
) -> Composed {
    // Some engines round functions such as e^x to single precision, so float64 would have fewer
    // digits than it promises.
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    typed_into(call, x, out, function)
}

fn typed_into(
    call: &mut OperatorCall<'_>,
    x: &TensorArgument,
    out: &TensorArgument,
    function: NodeFunction,
) -> Composed {
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
    let value = call.read(x, arithmetic_type(x.dtype))?;
    let result = function(call, &value)?;
    call.write(out, &result, x.dtype);
    Ok(())
}

/// Element-wise operators: `name = function;`
macro_rules! pointwise {
    ($($name:ident = $function:ident;)+) => {$(
        fn $name(call: &mut OperatorCall<'_>) -> Composed {
            pointwise(call, $function)
        }
    )+};
}

pointwise! {
    elu = elu_of;
    selu = selu_of;
    celu = celu_of;
    gelu = exact_gelu;
    fast_gelu = fast_gelu_of;
    silu = silu_of;
    swish = swish_of;
    mish = mish_of;
    log_sigmoid = log_sigmoid_of;
    hard_swish = hard_swish_of;
    hard_shrink = hard_shrink_of;
    soft_shrink = soft_shrink_of;
    softplus = softplus_of;
    softsign = softsign_of;
}

/// A scalar argument as a value of the type of `x`.
pub(super) fn parameter(call: &mut OperatorCall<'_>, name: &str, x: &Value) -> Composed<Value> {
    let scalar = call.scalar(name)?;
    call.scalar_value(scalar, x.dtype)
}

fn no_booleans(dtype: DType) -> bool {
    dtype != DType::Bool
}

fn relu(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_dtype(x, no_booleans, "integers or floats")?;
    typed_into(call, x, out, |call, x| {
        let zero = call.constant(0.0, x.dtype);
        // Comparisons with NaN are false, so it stays.
        let is_negative = call.node("Less", &[x, &zero], DType::Bool);
        Ok(call.node("Where", &[&is_negative, &zero, x], x.dtype))
    })
}

fn leaky_relu(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    typed_into(call, x, out, leaky_relu_of)
}

fn leaky_relu_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let slope = parameter(call, "negativeSlope", x)?;
    sloped(call, x, &slope)
}

fn sloped(call: &mut OperatorCall<'_>, x: &Value, slope: &Value) -> Composed<Value> {
    let zero = call.constant(0.0, x.dtype);
    let is_positive = call.node("Greater", &[x, &zero], DType::Bool);
    // Both sides are computed for every element, and the condition selects one, so an infinite
    // product on the other side does no harm.
    let below = call.node("Mul", &[x, slope], x.dtype);
    Ok(call.node("Where", &[&is_positive, x, &below], x.dtype))
}

/// The exponential linear unit, with factors for positive numbers, for other numbers, and for the
/// exponent of others.
fn exponential_linear(
    call: &mut OperatorCall<'_>,
    x: &Value,
    [positive, negative, exponent]: [&Value; 3],
) -> Composed<Value> {
    let zero = call.constant(0.0, x.dtype);
    let is_positive = call.node("Greater", &[x, &zero], DType::Bool);
    let above = call.node("Mul", &[x, positive], x.dtype);
    let exponent = call.node("Mul", &[x, exponent], x.dtype);
    let grown = exp_minus_one(&exponent);
    let below = call.node("Mul", &[&grown, negative], x.dtype);
    Ok(call.node("Where", &[&is_positive, &above, &below], x.dtype))
}

fn elu_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let scale = parameter(call, "scale", x)?;
    let alpha = parameter(call, "alpha", x)?;
    let exponent = parameter(call, "inputScale", x)?;
    let below = call.node("Mul", &[&alpha, &scale], x.dtype);
    exponential_linear(call, x, [&scale, &below, &exponent])
}

pub(super) const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
pub(super) const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

fn selu_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let scale = call.constant(SELU_SCALE, x.dtype);
    let below = call.constant(SELU_SCALE * SELU_ALPHA, x.dtype);
    let one = call.constant(1.0, x.dtype);
    exponential_linear(call, x, [&scale, &below, &one])
}

fn celu_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let alpha = call.scalar("alpha")?;
    if !alpha.is_true() {
        return Err(Refusal::invalid("`alpha` is 0; expected another number"));
    }
    // The quotient is passed to each run, like alpha: another one needs no other graph.
    let exponent = call.number_value(ScalarNumber::Float(1.0 / alpha.as_f64()), x.dtype)?;
    let alpha = call.scalar_value(alpha, x.dtype)?;
    let one = call.constant(1.0, x.dtype);
    exponential_linear(call, x, [&one, &alpha, &exponent])
}

pub(super) fn exact_gelu(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let below = normal_distribution(call, x)?;
    Ok(call.node("Mul", &[x, &below], x.dtype))
}

/// The standard normal CDF of each element.
pub(super) fn normal_distribution(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let half = call.constant(0.5, x.dtype);
    let root = call.constant(-std::f64::consts::FRAC_1_SQRT_2, x.dtype);
    // `erfc` keeps the digits of results near 0, which 1 + erf loses.
    let scaled = call.node("Mul", &[x, &root], x.dtype);
    let rest = erf_rest(&scaled);
    Ok(call.node("Mul", &[&rest, &half], x.dtype))
}

pub(super) const GELU_CUBIC: f64 = 0.044_715;

/// The operand of the approximation's tanh: `sqrt(2/π) (x + 0.044715 x³)`.
pub(super) fn gelu_operand(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let root = call.constant((2.0 / std::f64::consts::PI).sqrt(), x.dtype);
    let cubic = call.constant(GELU_CUBIC, x.dtype);
    let square = call.node("Mul", &[x, x], x.dtype);
    let cube = call.node("Mul", &[&square, x], x.dtype);
    let cube = call.node("Mul", &[&cube, &cubic], x.dtype);
    let sum = call.node("Add", &[x, &cube], x.dtype);
    Ok(call.node("Mul", &[&sum, &root], x.dtype))
}

pub(super) fn approximate_gelu(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let operand = gelu_operand(call, x)?;
    // (1 + tanh u) / 2 is the sigmoid of 2u, which keeps the digits of small results.
    let twice = call.node("Add", &[&operand, &operand], x.dtype);
    let gate = sigmoid_of(call, &twice)?;
    Ok(call.node("Mul", &[x, &gate], x.dtype))
}

/// The formula that `approximate` selects.
fn gelu_formula(call: &OperatorCall<'_>) -> Composed<NodeFunction> {
    match call.int("approximate")? {
        0 => Ok(exact_gelu),
        1 => Ok(approximate_gelu),
        other => {
            let text = format!("`approximate` is {other}; expected 0 (none) or 1 (tanh)");
            Err(Refusal::invalid(text))
        }
    }
}

fn gelu_by_formula(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("x")?, call.tensor("y")?);
    let formula = gelu_formula(call)?;
    pointwise_into(call, x, out, formula)
}

fn fast_gelu_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let beta = call.constant(FAST_GELU, x.dtype);
    gated(call, x, &beta)
}

pub(super) const FAST_GELU: f64 = 1.702;

/// `x · sigmoid(beta · x)`.
fn gated(call: &mut OperatorCall<'_>, x: &Value, beta: &Value) -> Composed<Value> {
    let scaled = call.node("Mul", &[x, beta], x.dtype);
    let gate = sigmoid_of(call, &scaled)?;
    Ok(call.node("Mul", &[x, &gate], x.dtype))
}

fn silu_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let gate = sigmoid_of(call, x)?;
    Ok(call.node("Mul", &[x, &gate], x.dtype))
}

fn swish_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let beta = optional_beta(call, x)?;
    gated(call, x, &beta)
}

pub(super) fn optional_beta(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    // The default is passed to each run too, so that both forms share a graph.
    match call.optional_scalar("betaOptional")? {
        Some(beta) => call.scalar_value(beta, x.dtype),
        None => call.number_value(ScalarNumber::Float(1.0), x.dtype),
    }
}

/// `1 / (1 + e^-x)`. The engines' node is less accurate at the ends.
pub(super) fn sigmoid_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let one = call.constant(1.0, x.dtype);
    let negated = call.node("Neg", &[x], x.dtype);
    let power = call.node("Exp", &[&negated], x.dtype);
    let sum = call.node("Add", &[&power, &one], x.dtype);
    Ok(call.node("Div", &[&one, &sum], x.dtype))
}

fn sigmoid(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    typed_into(call, x, out, sigmoid_of)
}

/// `log(1 + e^x)`, in a form that does not overflow.
pub(super) fn soft_maximum(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let zero = call.constant(0.0, x.dtype);
    let is_negative = call.node("Less", &[x, &zero], DType::Bool);
    let positive = call.node("Where", &[&is_negative, &zero, x], x.dtype);
    let size = call.node("Abs", &[x], x.dtype);
    let negated = call.node("Neg", &[&size], x.dtype);
    let power = call.node("Exp", &[&negated], x.dtype);
    let rest = log_one_plus(&power);
    Ok(call.node("Add", &[&positive, &rest], x.dtype))
}

fn mish_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let inner = soft_maximum(call, x)?;
    let tanh = call.node("Tanh", &[&inner], x.dtype);
    Ok(call.node("Mul", &[x, &tanh], x.dtype))
}

fn log_sigmoid_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let negated = call.node("Neg", &[x], x.dtype);
    let sum = soft_maximum(call, &negated)?;
    Ok(call.node("Neg", &[&sum], x.dtype))
}

fn hard_sigmoid(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let is_known = |dtype| is_small_float(dtype) || dtype == DType::I32;
    call.expect_dtype(x, is_known, "float16, bfloat16, float32 or int32")?;
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
    // Integers are computed as floats, and truncated when stored.
    let value = call.read(x, DType::F32)?;
    let result = hard_gate(call, &value)?;
    call.write(out, &result, x.dtype);
    Ok(())
}

/// `x / 6 + 1/2` between 0 and 1.
fn hard_gate(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let (three, six) = (call.constant(3.0, x.dtype), call.constant(6.0, x.dtype));
    let zero = call.constant(0.0, x.dtype);
    let sum = call.node("Add", &[x, &three], x.dtype);
    let clipped = between(call, &sum, &zero, &six);
    Ok(call.node("Div", &[&clipped, &six], x.dtype))
}

/// Elements between two bounds; NaN stays.
fn between(call: &mut OperatorCall<'_>, x: &Value, low: &Value, high: &Value) -> Value {
    // The upper bound is applied last, as in PyTorch, which matters if the bounds are swapped.
    let is_low = call.node("Less", &[x, low], DType::Bool);
    let raised = call.node("Where", &[&is_low, low, x], x.dtype);
    let is_high = call.node("Greater", &[&raised, high], DType::Bool);
    call.node("Where", &[&is_high, high, &raised], x.dtype)
}

fn hard_swish_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let gate = hard_gate(call, x)?;
    Ok(call.node("Mul", &[x, &gate], x.dtype))
}

/// A scalar argument for elements of a dtype: integer elements require an integer.
fn bound(call: &OperatorCall<'_>, name: &str, dtype: DType) -> Composed<ScalarValue> {
    let scalar = call.scalar(name)?;
    // In an integer dtype a bound of 0.5 would become 0.
    if scalar.is_float() && !is_float(dtype) {
        let text = format!("`{name}` is a float, but elements are {dtype}");
        return Err(Refusal::invalid(text));
    }
    Ok(scalar.clone())
}

fn hard_tanh(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_dtype(x, no_booleans, "integers or floats")?;
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
    let low = bound(call, "clipValueMin", x.dtype)?;
    let high = bound(call, "clipValueMax", x.dtype)?;
    let value = call.read(x, compute_type(x.dtype))?;
    let low = call.scalar_value(&low, value.dtype)?;
    let high = call.scalar_value(&high, value.dtype)?;
    let result = between(call, &value, &low, &high);
    call.write(out, &result, x.dtype);
    Ok(())
}

fn hard_shrink_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let is_small = is_shrunk(call, x, "lambd")?;
    let zero = call.constant(0.0, x.dtype);
    Ok(call.node("Where", &[&is_small, &zero, x], x.dtype))
}

/// Whether elements are between the negated bound and the bound; NaN is not.
pub(super) fn is_shrunk(call: &mut OperatorCall<'_>, x: &Value, name: &str) -> Composed<Value> {
    let bound = parameter(call, name, x)?;
    let negated = call.node("Neg", &[&bound], x.dtype);
    let is_low = call.node("LessOrEqual", &[x, &bound], DType::Bool);
    let is_high = call.node("GreaterOrEqual", &[x, &negated], DType::Bool);
    Ok(call.node("And", &[&is_low, &is_high], DType::Bool))
}

fn soft_shrink_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let scalar = call.scalar("lambd")?;
    if scalar.as_f64() < 0.0 {
        let text = format!("`lambd` is {}; expected 0 or more", scalar.as_f64());
        return Err(Refusal::invalid(text));
    }
    // A negative bound would move elements away from 0, which PyTorch refuses too.
    let is_small = is_shrunk(call, x, "lambd")?;
    let bound = parameter(call, "lambd", x)?;
    let zero = call.constant(0.0, x.dtype);
    let is_positive = call.node("Greater", &[x, &zero], DType::Bool);
    let less = call.node("Sub", &[x, &bound], x.dtype);
    let more = call.node("Add", &[x, &bound], x.dtype);
    let moved = call.node("Where", &[&is_positive, &less, &more], x.dtype);
    Ok(call.node("Where", &[&is_small, &zero, &moved], x.dtype))
}

fn softplus_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let (beta, threshold) = (
        parameter(call, "beta", x)?,
        parameter(call, "threshold", x)?,
    );
    let scaled = call.node("Mul", &[x, &beta], x.dtype);
    let is_linear = call.node("Greater", &[&scaled, &threshold], DType::Bool);
    let sum = soft_maximum(call, &scaled)?;
    let result = call.node("Div", &[&sum, &beta], x.dtype);
    Ok(call.node("Where", &[&is_linear, x, &result], x.dtype))
}

fn softsign_of(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let one = call.constant(1.0, x.dtype);
    let size = call.node("Abs", &[x], x.dtype);
    let sum = call.node("Add", &[&size, &one], x.dtype);
    Ok(call.node("Div", &[x, &sum], x.dtype))
}

fn threshold(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_dtype(x, no_booleans, "integers or floats")?;
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
    let limit = bound(call, "threshold", x.dtype)?;
    let other = bound(call, "value", x.dtype)?;
    let value = call.read(x, compute_type(x.dtype))?;
    let limit = call.scalar_value(&limit, value.dtype)?;
    let other = call.scalar_value(&other, value.dtype)?;
    // NaN stays.
    let is_replaced = call.node("LessOrEqual", &[&value, &limit], DType::Bool);
    let result = call.node("Where", &[&is_replaced, &other, &value], value.dtype);
    call.write(out, &result, x.dtype);
    Ok(())
}

fn prelu(call: &mut OperatorCall<'_>) -> Composed {
    let (x, weight) = (call.tensor("self")?, call.tensor("weight")?);
    let out = call.tensor("out")?;
    for tensor in [x, weight] {
        call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
    }
    call.expect_shape(out, x.dims())?;
    let dtype = call.promote(&[x, weight], &[])?;
    call.expect_cast(out, dtype)?;
    // Tensors with one axis have no channels, and use one weight for all elements.
    let n_channels = x.dims().get(1).copied().unwrap_or(1);
    let n_weights = weight.n_elements();
    if n_weights != 1 && n_weights != n_channels {
        return Err(Refusal::invalid(format!(
            "`weight` has {n_weights} elements; expected 1 or those of axis 1, {n_channels}"
        )));
    }
    let mut dims = vec![1; x.n_axes()];
    if let Some(extent) = dims.get_mut(1) {
        *extent = n_weights;
    }
    let value = call.read(x, DType::F32)?;
    let slope = call.read(weight, DType::F32)?;
    let slope = call.reshaped(&slope, &dims)?;
    let result = sloped(call, &value, &slope)?;
    call.write(out, &result, dtype);
    Ok(())
}

/// The two halves of a tensor along the axis `dim`, and the shape of each.
pub(super) struct Halves {
    pub(super) first: Value,
    pub(super) second: Value,
    pub(super) dims: Vec<usize>,
    pub(super) axis: usize,
}

pub(super) fn halves(call: &mut OperatorCall<'_>, x: &TensorArgument) -> Composed<Halves> {
    let (dim, name) = (call.int("dim")?, call.name(x));
    let axis = axis(dim, x.n_axes()).filter(|_| x.n_axes() > 0);
    let axis = axis.ok_or_else(|| {
        let n = x.n_axes();
        Refusal::invalid(format!("`dim` is {dim}; `{name}` has {n} axes"))
    })?;
    let mut dims = x.dims().to_vec();
    let extent = dims[axis];
    if !extent.is_multiple_of(2) {
        return Err(Refusal::invalid(format!(
            "`{name}` has {extent} elements along axis {axis}; expected an even number"
        )));
    }
    dims[axis] = extent / 2;
    let value = call.read(x, compute_type(x.dtype))?;
    // With the lengths as an input, the node means the same in every operator set.
    let lengths = call.constant_dims(&[extent / 2, extent / 2]);
    let along = vec![("axis", OperatorAttribute::Int(axis.cast_signed() as i64))];
    let inputs = [Some(&value), Some(&lengths)];
    let mut parts = call.node_of_many("Split", &inputs, along, &[value.dtype; 2]);
    Ok(Halves {
        first: parts.swap_remove(0),
        second: parts.swap_remove(0),
        dims,
        axis,
    })
}

fn glu(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    let halves = halves(call, x)?;
    call.expect_shape(out, &halves.dims)?;
    call.expect_cast(out, x.dtype)?;
    let gate = sigmoid_of(call, &halves.second)?;
    let result = call.node("Mul", &[&halves.first, &gate], gate.dtype);
    call.write(out, &result, x.dtype);
    Ok(())
}

fn gelu_glu(call: &mut OperatorCall<'_>) -> Composed {
    let x = call.tensor("self")?;
    let (out, out_gelu) = (call.tensor("out")?, call.tensor("outGelu")?);
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    let formula = gelu_formula(call)?;
    let halves = halves(call, x)?;
    for out in [out, out_gelu] {
        call.expect_shape(out, &halves.dims)?;
        call.expect_cast(out, x.dtype)?;
    }
    // The older function has no such parameter, and activates the second half.
    let is_first = call.has("activateLeft") && call.flag("activateLeft")?;
    let (plain, activated) = if is_first {
        (&halves.second, &halves.first)
    } else {
        (&halves.first, &halves.second)
    };
    let gelu = formula(call, activated)?;
    let result = call.node("Mul", &[plain, &gelu], gelu.dtype);
    call.write(out, &result, x.dtype);
    call.write(out_gelu, &gelu, x.dtype);
    Ok(())
}

fn swish_glu(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("x")?, call.tensor("out")?);
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    let halves = halves(call, x)?;
    call.expect_shape(out, &halves.dims)?;
    call.expect_cast(out, x.dtype)?;
    let gated = silu_of(call, &halves.first)?;
    let result = call.node("Mul", &[&gated, &halves.second], gated.dtype);
    call.write(out, &result, x.dtype);
    Ok(())
}
