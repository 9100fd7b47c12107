//! Arithmetic composed of several simpler operators.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::elementwise::{larger, smaller};
use crate::aclnn::call::{
    Composed, OperatorCall, Refusal, Side, Value, arithmetic_type, as_float, refuse_if,
};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{compute_type, is_float, is_integer};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of further arithmetic.
#[macro_export]
macro_rules! aclnn_compound {
    ($rows:ident) => {
        $rows! { "further arithmetic";
            Sub("aclnn_rsub.h", "other - alpha * self") by subtract_from():
                aclnnRsub(self_: Tensor, other: Tensor, alpha: Scalar, out: Out),
                aclnnRsubs(self_: Tensor, other: Scalar, alpha: Scalar, out: Out);
            LogAddExp("aclnn_logaddexp.h", "log(e^self + e^other)") by log_add(std::f64::consts::E):
                aclnnLogAddExp(self_: Tensor, other: Tensor, out: Out);
            LogAddExp2("aclnn_logaddexp2.h", "log2(2^self + 2^other)") by log_add(2.0):
                aclnnLogAddExp2(self_: Tensor, other: Tensor, out: Out);
            Xlogy("aclnn_x_log_y_tensor.h", "self * log(other); 0 where self is") by x_log_y():
                aclnnXLogYTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceXLogYTensor(selfRef: Inplace, other: Tensor);
            Xlogy("aclnn_x_log_y_scalar_other.h", "self * log(other); 0 where self is") by x_log_y():
                aclnnXLogYScalarOther(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceXLogYScalarOther(selfRef: Inplace, other: Scalar);
            Xlogy("aclnn_x_log_y_scalar_self.h", "self * log(other); 0 where self is") by x_log_y():
                aclnnXLogYScalarSelf(self_: Scalar, other: Tensor, out: Out);
            Square("aclnn_square.h", "self * self") by square():
                aclnnSquare(self_: Tensor, out: Out);
            Round("aclnn_round.h", "rounded to decimals behind the point") by round_decimals():
                aclnnRoundDecimals(self_: Tensor, decimals: Int, out: Out),
                aclnnInplaceRoundDecimals(selfRef: Inplace, decimals: Int);
            Sinc("aclnn_sinc.h", "sin(pi * self) / (pi * self)") by sinc():
                aclnnSinc(self_: Tensor, out: Out), aclnnInplaceSinc(selfRef: Inplace);
            SignBit("aclnn_signbit.h", "whether self has a minus sign") by sign_bit():
                aclnnSignbit(self_: Tensor, out: Out);
            IsClose("aclnn_isclose.h", "|self - other| <= atol + rtol * |other|") by is_close():
                aclnnIsClose(self_: Tensor, other: Tensor, rtol: Double, atol: Double, equal_nan: Flag, out: Out);
            TensorEqual("aclnn_equal.h", "whether both have one shape and equal elements") by equal_tensors():
                aclnnEqual(self_: Tensor, other: Tensor, out: Out);
            LeftShift("aclnn_left_shift.h", "the bits of self, shiftBits places up") by shift_left():
                aclnnLeftShift(self_: Tensor, shiftBits: Tensor, out: Out),
                aclnnLeftShifts(self_: Tensor, shiftBits: Scalar, out: Out);
            RightShift("aclnn_right_shift.h", "the bits of input, shiftBits places down") by shift_right():
                aclnnRightShift(input: Tensor, shiftBits: Tensor, out: Out);
            AddN("aclnn_add_n.h", "the sum of all tensors") by folded(|a, b| a + b):
                aclnnAddN(tensors: TensorList, out: Out);
            AddN("aclnn_sum.h", "the sum of all tensors") by folded(|a, b| a + b):
                aclnnSum(tensors: TensorList, out: Out);
            MaxN("aclnn_maxn.h", "the largest of all tensors, element by element") by folded(larger):
                aclnnMaxN(tensors: TensorList, out: Out);
            MinN("aclnn_minn.h", "the smallest of all tensors, element by element") by folded(smaller):
                aclnnMinN(tensors: TensorList, out: Out);
            TanhGrad("aclnn_tanh_backward.h", "gradOutput * (1 - output * output)") by tanh_backward():
                aclnnTanhBackward(gradOutput: Tensor, output: Tensor, gradInput: Out);
            SqrtGrad("aclnn_sqrt_backward.h", "dy / (2 * y)") by sqrt_backward():
                aclnnSqrtBackward(y: Tensor, dy: Tensor, z: Out);
        }
    };
}
aclnn_compound!(operator_rows);

/// Two operands as values of the compute dtype, and the dtype of the result.
struct Operands<'a> {
    a: Value,
    b: Value,
    out: &'a TensorArgument,
    dtype: DType,
}

fn operands<'a>(
    call: &OperatorCall<'a>,
    [a, b, out]: [&str; 3],
    result_type: fn(DType) -> DType,
) -> Composed<Operands<'a>> {
    let (a, b, out) = (call.side(a)?, call.side(b)?, call.tensor(out)?);
    call.broadcast(&[a, b], out)?;
    let dtype = result_type(call.promote_sides(&[a, b])?);
    call.expect_cast(out, dtype)?;
    let compute = arithmetic_type(dtype);
    Ok(Operands {
        a: call.read_side(a, dtype, compute)?,
        b: call.read_side(b, dtype, compute)?,
        out,
        dtype,
    })
}

fn same(dtype: DType) -> DType {
    dtype
}

/// For operators that only support floats.
fn expect_floats(operands: &Operands<'_>) -> Composed {
    if is_float(operands.dtype) {
        return Ok(());
    }
    let text = format!("operands have the type {}; expected floats", operands.dtype);
    Err(Refusal::invalid(text))
}

fn subtract_from(call: &OperatorCall<'_>) -> Composed {
    let alpha = call.scalar("alpha")?;
    let two = operands(call, ["self", "other", "out"], same)?;
    refuse_if!(
        two.dtype == DType::Bool || alpha.is_float() && !is_float(two.dtype),
        "`alpha` is {}, for a result of type {}",
        alpha.dtype,
        two.dtype
    );
    let alpha = call.scalar_value(alpha, two.a.dtype)?;
    call.write(two.out, &two.b - &two.a * &alpha, two.dtype)
}

/// `log(b^x + b^y) / log(b)`, computed from the larger operand to avoid overflow.
fn log_add(call: &OperatorCall<'_>, base: f64) -> Composed {
    let two = operands(call, ["self", "other", "out"], same)?;
    expect_floats(&two)?;
    let dtype = DType::F64;
    let a = two.a.cast(dtype);
    let b = two.b.cast(dtype);
    let largest = larger(&a, &b);
    // For equal infinities the distance is NaN, and the result is that infinity.
    let log = ((a.equal(&b).choose(0.0, &a - &b).abs() * -base.ln()).exp() + 1.0).log();
    call.write(two.out, &largest + &log / base.ln(), two.dtype)
}

fn x_log_y(call: &OperatorCall<'_>) -> Composed {
    let two = operands(call, ["self", "other", "out"], as_float)?;
    // If the logarithm's operand is NaN the result is NaN, whatever the factor.
    let is_nan = two.b.is_nan();
    let result = is_nan.choose(&two.b, two.a.equal(0.0).choose(0.0, &two.a * two.b.log()));
    call.write(two.out, &result, two.dtype)
}

fn square(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_like(out, x)?;
    let value = call.read(x, arithmetic_type(x.dtype))?;
    call.write(out, &value * &value, x.dtype)
}

/// Maximum number of decimals whose power of ten is exact in double precision.
const N_DECIMALS_MAX: i64 = 22;

fn round_decimals(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let decimals = call.int("decimals")?;
    call.expect_like(out, x)?;
    call.expect_float(x)?;
    let scale = i32::try_from(decimals).ok();
    let scale = scale.filter(|_| decimals.abs() <= N_DECIMALS_MAX);
    let scale = scale.ok_or_else(|| {
        Refusal::invalid(format!(
            "`decimals` is {decimals}; expected -{N_DECIMALS_MAX} to {N_DECIMALS_MAX}"
        ))
    })?;
    let dtype = compute_type(x.dtype);
    let value = call.read(x, dtype)?;
    let power = call.number_value(ScalarNumber::Float(10_f64.powi(scale.abs())), dtype)?;
    // A power of ten below 1 is not exact, so the inverse operator is used.
    let (first, second) = if scale >= 0 {
        ("Mul", "Div")
    } else {
        ("Div", "Mul")
    };
    let scaled = call.node(first, &[&value, &power], dtype);
    let rounded = super::unary::rounded(&scaled);
    let result = call.node(second, &[&rounded, &power], dtype);
    call.write(out, &result, x.dtype)
}

fn sinc(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    let dtype = as_float(x.dtype);
    call.expect_cast(out, dtype)?;
    // Near the zeros of the sine the product with pi needs more digits.
    let value = call.read_as(x, dtype, DType::F64)?;
    let angle = &value * std::f64::consts::PI;
    let sine = call.node("Sin", &[&angle], DType::F64);
    call.write(out, value.equal(0.0).choose(1.0, &sine / &angle), dtype)
}

fn sign_bit(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, DType::Bool)?;
    if matches!(x.dtype, DType::Bool | DType::U8) {
        return call.fill(out, ScalarNumber::Int(0));
    }
    // From the bits: zeros and NaN have signs too. Narrow floats are read without their sign.
    let bits = call.read_raw(x)?;
    let result = match x.dtype.bits() {
        Some(n_bits @ ..32) => bits.greater_or_equal(2_f64.powi(n_bits.cast_signed() - 1)),
        _ => bits.less(0.0),
    };
    call.write(out, &result, DType::Bool)
}

fn is_close(call: &OperatorCall<'_>) -> Composed {
    let (a, b, out) = (call.side("self")?, call.side("other")?, call.tensor("out")?);
    call.broadcast(&[a, b], out)?;
    call.expect_cast(out, DType::Bool)?;
    let (rtol, atol) = (call.number("rtol")?, call.number("atol")?);
    refuse_if!(
        !(rtol >= 0.0 && atol >= 0.0),
        "`rtol` and `atol` are {rtol} and {atol}; expected 0 or more"
    );
    let dtype = DType::F64;
    let (a, b) = (
        call.read_side(a, dtype, dtype)?,
        call.read_side(b, dtype, dtype)?,
    );
    let distance = (&a - &b).abs();
    let rtol = call.number_value(ScalarNumber::Float(rtol), dtype)?;
    let atol = call.number_value(ScalarNumber::Float(atol), dtype)?;
    // An infinite distance is never close, even with an infinite tolerance.
    let is_near = distance.less_or_equal(&rtol * b.abs() + &atol) & distance.less(f64::INFINITY);
    let mut result = a.equal(&b) | &is_near;
    if call.flag("equal_nan")? {
        result = &result | a.is_nan() & b.is_nan();
    }
    call.write(out, &result, DType::Bool)
}

fn equal_tensors(call: &OperatorCall<'_>) -> Composed {
    let (a, b, out) = (
        call.tensor("self")?,
        call.tensor("other")?,
        call.tensor("out")?,
    );
    if out.n_elements() != 1 || out.n_axes() > 1 {
        let found = out.dims();
        let text = format!("`out` has the shape {found:?}; expected one element");
        return Err(Refusal::invalid(text));
    }
    call.expect_cast(out, DType::Bool)?;
    if a.dims() != b.dims() || a.is_empty() {
        let is_equal = a.dims() == b.dims();
        return call.fill(out, ScalarNumber::Int(is_equal.into()));
    }
    let dtype = call.promote(&[a, b], &[])?;
    let compute = arithmetic_type(dtype);
    let (a, b) = (
        call.read_as(a, dtype, compute)?,
        call.read_as(b, dtype, compute)?,
    );
    // One axis, for any shape.
    let flat = call.constant_ints(&[-1]);
    let flat = a.equal(&b).cast(DType::I64).reshaped_by(&flat);
    let attributes = vec![("axes", OperatorAttribute::Ints(vec![0]))];
    let least = call.node_with("ReduceMin", &[&flat], attributes, DType::I64);
    call.write(out, least.reshaped(out.dims()), DType::Bool)
}

/// The integers, the power of two for each shift, and whether the shift is within the width of the
/// dtype.
fn shifted<'a>(call: &OperatorCall<'a>) -> Composed<(Operands<'a>, Value, Value)> {
    let two = operands(call, ["self", "shiftBits", "out"], same)?;
    refuse_if!(
        !is_integer(two.dtype),
        "operands have the type {}; expected integers",
        two.dtype
    );
    let int = DType::I64;
    let n_bits = two.dtype.bits().unwrap_or(64);
    let is_within = two.b.greater_or_equal(0.0) & two.b.less(f64::from(n_bits));
    // A shift outside of the list would abort the run.
    let distance = is_within.choose(&two.b, 0.0);
    // A lookup table, because engines compute powers of integers as floats.
    let powers: Vec<i64> = (0..n_bits).map(|bit| 1_i64 << bit).collect();
    let powers = call.constant_ints(&powers);
    let power = call.node("Gather", &[&powers, &distance], int);
    Ok((two, power, is_within))
}

fn shift_left(call: &OperatorCall<'_>) -> Composed {
    let (two, power, is_within) = shifted(call)?;
    call.write(two.out, is_within.choose(&two.a * &power, 0.0), two.dtype)
}

fn shift_right(call: &OperatorCall<'_>) -> Composed {
    let (two, power, is_within) = shifted(call)?;
    let int = DType::I64;
    let is_below = two.a.less(0.0);
    let last = -is_below.cast(int);
    // Rounds down instead of truncating: negative numbers go through their complement.
    let positive = is_below.choose(-(&two.a + 1.0), &two.a);
    // The power of the highest bit is negative, and only the sign bit remains.
    let is_power = power.greater(0.0);
    let quotient = &positive / is_power.choose(&power, 1.0);
    let result = is_power.choose(is_below.choose(-(&quotient + 1.0), &quotient), &last);
    call.write(two.out, is_within.choose(&result, &last), two.dtype)
}

/// Folds a list of tensors with an operator.
fn folded(call: &OperatorCall<'_>, join: fn(&Value, &Value) -> Value) -> Composed {
    let (tensors, out) = (call.tensors("tensors")?, call.tensor("out")?);
    let sides: Vec<Side<'_>> = tensors.iter().map(Side::Tensor).collect();
    refuse_if!(
        sides.is_empty(),
        "`tensors` is empty; expected a tensor at least"
    );
    call.broadcast(&sides, out)?;
    let dtype = call.promote_sides(&sides)?;
    call.expect_cast(out, dtype)?;
    // Rounded once, for any number of tensors.
    let compute = arithmetic_type(dtype);
    let mut result: Option<Value> = None;
    for side in sides {
        let value = call.read_side(side, dtype, compute)?;
        result = Some(match result {
            None => value,
            Some(known) => join(&known, &value),
        });
    }
    if let Some(result) = result {
        call.write(out, &result, dtype)?;
    }
    Ok(())
}

fn tanh_backward(call: &OperatorCall<'_>) -> Composed {
    let two = operands(call, ["gradOutput", "output", "gradInput"], same)?;
    expect_floats(&two)?;
    call.write(two.out, &two.a * (1.0 - &two.b * &two.b), two.dtype)
}

fn sqrt_backward(call: &OperatorCall<'_>) -> Composed {
    let two = operands(call, ["dy", "y", "z"], same)?;
    expect_floats(&two)?;
    call.write(two.out, &two.a / (&two.b + &two.b), two.dtype)
}
