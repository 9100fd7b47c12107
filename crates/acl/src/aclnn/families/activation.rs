//! Activation functions.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::unary::{Formula, erf_rest, exp_minus_one, log_one_plus};
use crate::aclnn::call::{
    Composed, Operand, OperatorCall, Refusal, Value, arithmetic_type, refuse_if,
};
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
            Relu("aclnn_relu.h", "self where it is positive, else 0") by relu():
                aclnnRelu(self_: Tensor, out: Out), aclnnInplaceRelu(selfRef: Inplace);
            LeakyRelu("aclnn_leaky_relu.h", "self where it is positive, else negativeSlope * self") by leaky_relu():
                aclnnLeakyRelu(self_: Tensor, negativeSlope: Scalar, out: Out),
                aclnnInplaceLeakyRelu(selfRef: Inplace, negativeSlope: Scalar);
            Elu("aclnn_elu.h", "scale * self where it is positive, else alpha * scale * (e^(inputScale * self) - 1)") by pointwise(elu):
                aclnnElu(self_: Tensor, alpha: Scalar, scale: Scalar, inputScale: Scalar, out: Out),
                aclnnInplaceElu(selfRef: Inplace, alpha: Scalar, scale: Scalar, inputScale: Scalar);
            Selu("aclnn_selu.h", "elu with alpha 1.6732632 and scale 1.0507010") by formula(selu):
                aclnnSelu(self_: Tensor, out: Out), aclnnInplaceSelu(selfRef: Inplace);
            CeluV2("aclnn_celu.h", "self where it is positive, else alpha * (e^(self / alpha) - 1)") by pointwise(celu):
                aclnnCelu(self_: Tensor, alpha: Scalar, out: Out),
                aclnnInplaceCelu(selfRef: Inplace, alpha: Scalar);
            Gelu("aclnn_gelu.h", "self times the part of the normal distribution below it") by formula(exact_gelu):
                aclnnGelu(self_: Tensor, out: Out);
            GeluV2("aclnn_gelu_v2.h", "gelu; approximate 1 takes a formula with tanh") by gelu_by_formula():
                aclnnGeluV2(x: Tensor, approximate: Int, y: Out);
            FastGelu("aclnn_fast_gelu.h", "self * sigmoid(1.702 * self)") by formula(fast_gelu):
                aclnnFastGelu(self_: Tensor, out: Out);
            Swish("aclnn_silu.h", "self * sigmoid(self)") by formula(silu):
                aclnnSilu(self_: Tensor, out: Out);
            Swish("aclnn_swish.h", "self * sigmoid(betaOptional * self); without it 1") by pointwise(swish):
                aclnnSwish(self_: Tensor, betaOptional: OptionalScalar, out: Out);
            Mish("aclnn_mish.h", "self * tanh(log(1 + e^self))") by formula(mish):
                aclnnMish(self_: Tensor, out: Out), aclnnInplaceMish(selfRef: Inplace);
            Sigmoid("aclnn_sigmoid.h", "1 / (1 + e^-self)") by sigmoid():
                aclnnSigmoid(self_: Tensor, out: Out), aclnnInplaceSigmoid(selfRef: Inplace);
            LogSigmoid("aclnn_logsigmoid.h", "log(sigmoid(self))") by formula(log_sigmoid):
                aclnnLogSigmoid(self_: Tensor, out: Out);
            HardSigmoid("aclnn_hardsigmoid.h", "self / 6 + 1/2, not less than 0 and not more than 1") by hard_sigmoid():
                aclnnHardsigmoid(self_: Tensor, out: Out), aclnnInplaceHardsigmoid(self_: Inplace);
            HardSwish("aclnn_hardswish.h", "self * hardsigmoid(self)") by formula(hard_swish):
                aclnnHardswish(self_: Tensor, out: Out), aclnnInplaceHardswish(self_: Inplace);
            ClipByValue("aclnn_hardtanh.h", "self, not less than clipValueMin and not more than clipValueMax") by hard_tanh():
                aclnnHardtanh(self_: Tensor, clipValueMin: Scalar, clipValueMax: Scalar, out: Out),
                aclnnInplaceHardtanh(selfRef: Inplace, clipValueMin: Scalar, clipValueMax: Scalar);
            HardShrink("aclnn_hardshrink.h", "self, but 0 from -lambd to lambd") by pointwise(hard_shrink):
                aclnnHardshrink(self_: Tensor, lambd: Scalar, out: Out);
            SoftShrink("aclnn_softshrink.h", "self, moved by lambd towards 0, but 0 from -lambd to lambd") by pointwise(soft_shrink):
                aclnnSoftshrink(self_: Tensor, lambd: Scalar, out: Out);
            SoftplusV2("aclnn_softplus.h", "log(1 + e^(beta * self)) / beta; self where beta * self is above threshold") by pointwise(softplus):
                aclnnSoftplus(self_: Tensor, beta: Scalar, threshold: Scalar, out: Out);
            Softsign("aclnn_softsign.h", "self / (1 + the absolute value of self)") by formula(softsign):
                aclnnSoftsign(self_: Tensor, out: Out);
            Threshold("aclnn_threshold.h", "self where it is above threshold, else value") by threshold():
                aclnnThreshold(self_: Tensor, threshold: Scalar, value: Scalar, out: Out),
                aclnnInplaceThreshold(selfRef: Inplace, threshold: Scalar, value: Scalar);
            PRelu("aclnn_prelu.h", "self where it is positive, else weight * self, with a weight for each extent of axis 1 or one for all") by prelu():
                aclnnPrelu(self_: Tensor, weight: Tensor, out: Out);
            GLU("aclnn_glu.h", "the first half of self along dim * sigmoid(the second)") by glu():
                aclnnGlu(self_: Tensor, dim: Int, out: Out);
            GeGluV2("aclnn_geglu.h", "the first half of self along dim * outGelu, which is gelu(the second)") by gelu_glu():
                aclnnGeGlu(self_: Tensor, dim: Int, approximate: Int, out: Out, outGelu: Out);
            GeGluV2("aclnn_geglu.h", "one half of self along dim * outGelu, which is gelu(the other one)") by gelu_glu():
                aclnnGeGluV3(self_: Tensor, dim: Int, approximate: Int, activateLeft: Flag, out: Out, outGelu: Out);
            SwiGlu("aclnn_swi_glu.h", "silu(the first half of x along dim) * the second") by swish_glu():
                aclnnSwiGlu(x: Tensor, dim: Int, out: Out);
        }
    };
}
aclnn_activation!(operator_rows);

pub(super) const SMALL_FLOATS: &str = "float16, bfloat16 or float32";

/// Whether engines have every function for this float dtype.
pub(super) fn is_small_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
}

/// An element-wise function, in at most single precision.
fn pointwise(
    call: &OperatorCall<'_>,
    function: fn(&OperatorCall<'_>, &Value) -> Composed<Value>,
) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    pointwise_into(call, x, out, |x| function(call, x))
}

/// Like [`pointwise`], for a function without parameters.
fn formula(call: &OperatorCall<'_>, function: Formula) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    pointwise_into(call, x, out, |x| Ok(function(x)))
}

fn pointwise_into(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    out: &TensorArgument,
    function: impl FnOnce(&Value) -> Composed<Value>,
) -> Composed {
    // Some engines round functions such as e^x to single precision, so float64 would have fewer
    // digits than it promises.
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    typed_into(call, x, out, function)
}

fn typed_into(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    out: &TensorArgument,
    function: impl FnOnce(&Value) -> Composed<Value>,
) -> Composed {
    call.expect_like(out, x)?;
    let value = call.read(x, arithmetic_type(x.dtype))?;
    call.write(out, &function(&value)?, x.dtype)
}

/// A scalar argument as a value of the type of `x`.
pub(super) fn parameter(call: &OperatorCall<'_>, name: &str, x: &Value) -> Composed<Value> {
    let scalar = call.scalar(name)?;
    call.scalar_value(scalar, x.dtype)
}

fn no_booleans(dtype: DType) -> bool {
    dtype != DType::Bool
}

fn relu(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_dtype(x, no_booleans, "integers or floats")?;
    // Comparisons with NaN are false, so it stays.
    typed_into(call, x, out, |x| Ok(x.less(0.0).choose(0.0, x)))
}

fn leaky_relu(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    typed_into(call, x, out, |x| {
        Ok(sloped(x, &parameter(call, "negativeSlope", x)?))
    })
}

fn sloped(x: &Value, slope: &Value) -> Value {
    // Both sides are computed for every element, and the condition selects one, so an infinite
    // product on the other side does no harm.
    x.greater(0.0).choose(x, x * slope)
}

/// The exponential linear unit, with factors for positive numbers, for other numbers, and for the
/// exponent of others.
fn exponential_linear(
    x: &Value,
    positive: impl Operand,
    negative: impl Operand,
    exponent: impl Operand,
) -> Value {
    let grown = exp_minus_one(&(x * exponent));
    x.greater(0.0).choose(x * positive, grown * negative)
}

fn elu(call: &OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let scale = parameter(call, "scale", x)?;
    let below = parameter(call, "alpha", x)? * &scale;
    let exponent = parameter(call, "inputScale", x)?;
    Ok(exponential_linear(x, scale, below, exponent))
}

pub(super) const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
pub(super) const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

fn selu(x: &Value) -> Value {
    exponential_linear(x, SELU_SCALE, SELU_SCALE * SELU_ALPHA, 1.0)
}

fn celu(call: &OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let alpha = call.scalar("alpha")?;
    refuse_if!(!alpha.is_true(), "`alpha` is 0; expected another number");
    // The quotient is passed to each run, like alpha: another one needs no other graph.
    let exponent = call.number_value(ScalarNumber::Float(1.0 / alpha.as_f64()), x.dtype)?;
    let alpha = call.scalar_value(alpha, x.dtype)?;
    Ok(exponential_linear(x, 1.0, alpha, exponent))
}

pub(super) fn exact_gelu(x: &Value) -> Value {
    x * normal_distribution(x)
}

/// The standard normal CDF of each element.
pub(super) fn normal_distribution(x: &Value) -> Value {
    // `erfc` keeps the digits of results near 0, which 1 + erf loses.
    erf_rest(&(x * -std::f64::consts::FRAC_1_SQRT_2)) * 0.5
}

pub(super) const GELU_CUBIC: f64 = 0.044_715;

/// The operand of the approximation's tanh: `sqrt(2/π) (x + 0.044715 x³)`.
pub(super) fn gelu_operand(x: &Value) -> Value {
    (x + x * x * x * GELU_CUBIC) * (2.0 / std::f64::consts::PI).sqrt()
}

pub(super) fn approximate_gelu(x: &Value) -> Value {
    let operand = gelu_operand(x);
    // (1 + tanh u) / 2 is the sigmoid of 2u, which keeps the digits of small results.
    x * sigmoid_of(&(&operand + &operand))
}

/// The formula that `approximate` selects.
fn gelu_formula(call: &OperatorCall<'_>) -> Composed<Formula> {
    match call.int("approximate")? {
        0 => Ok(exact_gelu),
        1 => Ok(approximate_gelu),
        other => {
            let text = format!("`approximate` is {other}; expected 0 (none) or 1 (tanh)");
            Err(Refusal::invalid(text))
        }
    }
}

fn gelu_by_formula(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("x")?, call.tensor("y")?);
    let formula = gelu_formula(call)?;
    pointwise_into(call, x, out, |x| Ok(formula(x)))
}

fn fast_gelu(x: &Value) -> Value {
    gated(x, FAST_GELU)
}

pub(super) const FAST_GELU: f64 = 1.702;

/// `x · sigmoid(beta · x)`.
fn gated(x: &Value, beta: impl Operand) -> Value {
    x * sigmoid_of(&(x * beta))
}

pub(super) fn silu(x: &Value) -> Value {
    x * sigmoid_of(x)
}

fn swish(call: &OperatorCall<'_>, x: &Value) -> Composed<Value> {
    Ok(gated(x, optional_beta(call, x)?))
}

pub(super) fn optional_beta(call: &OperatorCall<'_>, x: &Value) -> Composed<Value> {
    // The default is passed to each run too, so that both forms share a graph.
    match call.optional_scalar("betaOptional")? {
        Some(beta) => call.scalar_value(beta, x.dtype),
        None => call.number_value(ScalarNumber::Float(1.0), x.dtype),
    }
}

/// `1 / (1 + e^-x)`. The engines' node is less accurate at the ends.
pub(super) fn sigmoid_of(x: &Value) -> Value {
    1.0 / ((-x).exp() + 1.0)
}

fn sigmoid(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    typed_into(call, x, out, |x| Ok(sigmoid_of(x)))
}

/// `log(1 + e^x)`, in a form that does not overflow.
pub(super) fn soft_maximum(x: &Value) -> Value {
    x.less(0.0).choose(0.0, x) + log_one_plus(&(-x.abs()).exp())
}

fn mish(x: &Value) -> Value {
    x * soft_maximum(x).tanh()
}

fn log_sigmoid(x: &Value) -> Value {
    -soft_maximum(&-x)
}

fn hard_sigmoid(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let expected = "float16, bfloat16, float32 or int32";
    call.expect_dtype(
        x,
        |dtype| is_small_float(dtype) || dtype == DType::I32,
        expected,
    )?;
    call.expect_like(out, x)?;
    // Integers are computed as floats, and truncated when stored.
    let value = call.read(x, DType::F32)?;
    call.write(out, hard_gate(&value), x.dtype)
}

/// `x / 6 + 1/2` between 0 and 1.
fn hard_gate(x: &Value) -> Value {
    between(&(x + 3.0), &x.number(0.0), &x.number(6.0)) / 6.0
}

/// Elements between two bounds; NaN stays.
fn between(x: &Value, low: &Value, high: &Value) -> Value {
    // The upper bound is applied last, as in PyTorch, which matters if the bounds are swapped.
    let raised = x.less(low).choose(low, x);
    raised.greater(high).choose(high, &raised)
}

fn hard_swish(x: &Value) -> Value {
    x * hard_gate(x)
}

/// A scalar argument for elements of a dtype: integer elements require an integer.
fn bound(call: &OperatorCall<'_>, name: &str, dtype: DType) -> Composed<ScalarValue> {
    let scalar = call.scalar(name)?;
    // In an integer dtype a bound of 0.5 would become 0.
    refuse_if!(
        scalar.is_float() && !is_float(dtype),
        "`{name}` is a float, but elements are {dtype}"
    );
    Ok(scalar.clone())
}

fn hard_tanh(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_dtype(x, no_booleans, "integers or floats")?;
    call.expect_like(out, x)?;
    let low = bound(call, "clipValueMin", x.dtype)?;
    let high = bound(call, "clipValueMax", x.dtype)?;
    let value = call.read(x, compute_type(x.dtype))?;
    let low = call.scalar_value(&low, value.dtype)?;
    let high = call.scalar_value(&high, value.dtype)?;
    call.write(out, between(&value, &low, &high), x.dtype)
}

fn hard_shrink(call: &OperatorCall<'_>, x: &Value) -> Composed<Value> {
    Ok(is_shrunk(call, x, "lambd")?.choose(0.0, x))
}

/// Whether elements are between the negated bound and the bound; NaN is not.
pub(super) fn is_shrunk(call: &OperatorCall<'_>, x: &Value, name: &str) -> Composed<Value> {
    let bound = parameter(call, name, x)?;
    Ok(x.less_or_equal(&bound) & x.greater_or_equal(-&bound))
}

fn soft_shrink(call: &OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let scalar = call.scalar("lambd")?;
    refuse_if!(
        scalar.as_f64() < 0.0,
        "`lambd` is {}; expected 0 or more",
        scalar.as_f64()
    );
    // A negative bound would move elements away from 0, which PyTorch refuses too.
    let is_small = is_shrunk(call, x, "lambd")?;
    let bound = parameter(call, "lambd", x)?;
    Ok(is_small.choose(0.0, x.greater(0.0).choose(x - &bound, x + &bound)))
}

fn softplus(call: &OperatorCall<'_>, x: &Value) -> Composed<Value> {
    let beta = parameter(call, "beta", x)?;
    let scaled = x * &beta;
    let is_linear = scaled.greater(parameter(call, "threshold", x)?);
    Ok(is_linear.choose(x, soft_maximum(&scaled) / &beta))
}

fn softsign(x: &Value) -> Value {
    x / (x.abs() + 1.0)
}

fn threshold(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_dtype(x, no_booleans, "integers or floats")?;
    call.expect_like(out, x)?;
    let limit = bound(call, "threshold", x.dtype)?;
    let other = bound(call, "value", x.dtype)?;
    let value = call.read(x, compute_type(x.dtype))?;
    let limit = call.scalar_value(&limit, value.dtype)?;
    let other = call.scalar_value(&other, value.dtype)?;
    // NaN stays.
    call.write(
        out,
        value.less_or_equal(&limit).choose(&other, &value),
        x.dtype,
    )
}

fn prelu(call: &OperatorCall<'_>) -> Composed {
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
    refuse_if!(
        n_weights != 1 && n_weights != n_channels,
        "`weight` has {n_weights} elements; expected 1 or those of axis 1, {n_channels}"
    );
    let mut dims = vec![1; x.n_axes()];
    if let Some(extent) = dims.get_mut(1) {
        *extent = n_weights;
    }
    let value = call.read(x, DType::F32)?;
    let slope = call.read(weight, DType::F32)?;
    call.write(out, sloped(&value, &slope.reshaped(&dims)), dtype)
}

/// The two halves of a tensor along the axis `dim`, and the shape of each.
pub(super) struct Halves {
    pub(super) first: Value,
    pub(super) second: Value,
    pub(super) dims: Vec<usize>,
    pub(super) axis: usize,
}

pub(super) fn halves(call: &OperatorCall<'_>, x: &TensorArgument) -> Composed<Halves> {
    let (dim, name) = (call.int("dim")?, call.name(x));
    let axis = axis(dim, x.n_axes()).filter(|_| x.n_axes() > 0);
    let axis = axis.ok_or_else(|| {
        let n = x.n_axes();
        Refusal::invalid(format!("`dim` is {dim}; `{name}` has {n} axes"))
    })?;
    let mut dims = x.dims().to_vec();
    let extent = dims[axis];
    refuse_if!(
        !extent.is_multiple_of(2),
        "`{name}` has {extent} elements along axis {axis}; expected an even number"
    );
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

fn glu(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_float(x)?;
    let halves = halves(call, x)?;
    call.expect_shape(out, &halves.dims)?;
    call.expect_cast(out, x.dtype)?;
    call.write(out, halves.first * sigmoid_of(&halves.second), x.dtype)
}

fn gelu_glu(call: &OperatorCall<'_>) -> Composed {
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
    let gelu = formula(activated);
    call.write(out, &(plain * &gelu), x.dtype)?;
    call.write(out_gelu, &gelu, x.dtype)
}

fn swish_glu(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("x")?, call.tensor("out")?);
    call.expect_dtype(x, is_small_float, SMALL_FLOATS)?;
    let halves = halves(call, x)?;
    call.expect_shape(out, &halves.dims)?;
    call.expect_cast(out, x.dtype)?;
    call.write(out, silu(&halves.first) * halves.second, x.dtype)
}
