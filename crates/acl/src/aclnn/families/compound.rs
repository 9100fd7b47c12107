//! Arithmetic composed of several simpler operators.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use super::elementwise::extreme;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, arithmetic_type, as_float};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{compute_type, is_float, is_integer};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of further arithmetic.
#[macro_export]
macro_rules! aclnn_compound {
    ($rows:ident) => {
        $rows! { "further arithmetic";
            aclnnRsub = Sub("aclnn_rsub.h", "other - alpha * self") by subtract_from
                (self_: Tensor, other: Tensor, alpha: Scalar, out: Out);
            aclnnRsubs = Sub("aclnn_rsub.h", "other - alpha * self") by subtract_from
                (self_: Tensor, other: Scalar, alpha: Scalar, out: Out);
            aclnnLogAddExp = LogAddExp("aclnn_logaddexp.h", "log(e^self + e^other)") by log_add_exp
                (self_: Tensor, other: Tensor, out: Out);
            aclnnLogAddExp2 = LogAddExp2("aclnn_logaddexp2.h", "log2(2^self + 2^other)") by log_add_exp2
                (self_: Tensor, other: Tensor, out: Out);
            aclnnXLogYTensor = Xlogy("aclnn_x_log_y_tensor.h", "self * log(other); 0 where self is") by x_log_y
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceXLogYTensor = Xlogy("aclnn_x_log_y_tensor.h", "self * log(other); 0 where self is") by x_log_y
                (selfRef: Inplace, other: Tensor);
            aclnnXLogYScalarOther = Xlogy("aclnn_x_log_y_scalar_other.h", "self * log(other); 0 where self is") by x_log_y
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceXLogYScalarOther = Xlogy("aclnn_x_log_y_scalar_other.h", "self * log(other); 0 where self is") by x_log_y
                (selfRef: Inplace, other: Scalar);
            aclnnXLogYScalarSelf = Xlogy("aclnn_x_log_y_scalar_self.h", "self * log(other); 0 where self is") by x_log_y
                (self_: Scalar, other: Tensor, out: Out);
            aclnnSquare = Square("aclnn_square.h", "self * self") by square
                (self_: Tensor, out: Out);
            aclnnRoundDecimals = Round("aclnn_round.h", "rounded to decimals behind the point") by round_decimals
                (self_: Tensor, decimals: Int, out: Out);
            aclnnInplaceRoundDecimals = Round("aclnn_round.h", "rounded to decimals behind the point") by round_decimals
                (selfRef: Inplace, decimals: Int);
            aclnnSinc = Sinc("aclnn_sinc.h", "sin(pi * self) / (pi * self)") by sinc
                (self_: Tensor, out: Out);
            aclnnInplaceSinc = Sinc("aclnn_sinc.h", "sin(pi * self) / (pi * self)") by sinc
                (selfRef: Inplace);
            aclnnSignbit = SignBit("aclnn_signbit.h", "whether self has a minus sign") by sign_bit
                (self_: Tensor, out: Out);
            aclnnIsClose = IsClose("aclnn_isclose.h", "|self - other| <= atol + rtol * |other|") by is_close
                (self_: Tensor, other: Tensor, rtol: Double, atol: Double, equal_nan: Flag, out: Out);
            aclnnEqual = TensorEqual("aclnn_equal.h", "whether both have one shape and equal elements") by equal_tensors
                (self_: Tensor, other: Tensor, out: Out);
            aclnnLeftShift = LeftShift("aclnn_left_shift.h", "the bits of self, shiftBits places up") by shift_left
                (self_: Tensor, shiftBits: Tensor, out: Out);
            aclnnLeftShifts = LeftShift("aclnn_left_shift.h", "the bits of self, shiftBits places up") by shift_left
                (self_: Tensor, shiftBits: Scalar, out: Out);
            aclnnRightShift = RightShift("aclnn_right_shift.h", "the bits of input, shiftBits places down") by shift_right
                (input: Tensor, shiftBits: Tensor, out: Out);
            aclnnAddN = AddN("aclnn_add_n.h", "the sum of all tensors") by sum_of_tensors
                (tensors: TensorList, out: Out);
            aclnnSum = AddN("aclnn_sum.h", "the sum of all tensors") by sum_of_tensors
                (tensors: TensorList, out: Out);
            aclnnMaxN = MaxN("aclnn_maxn.h", "the largest of all tensors, element by element") by largest_of_tensors
                (tensors: TensorList, out: Out);
            aclnnMinN = MinN("aclnn_minn.h", "the smallest of all tensors, element by element") by smallest_of_tensors
                (tensors: TensorList, out: Out);
            aclnnTanhBackward = TanhGrad("aclnn_tanh_backward.h", "gradOutput * (1 - output * output)") by tanh_backward
                (gradOutput: Tensor, output: Tensor, gradInput: Out);
            aclnnSqrtBackward = SqrtGrad("aclnn_sqrt_backward.h", "dy / (2 * y)") by sqrt_backward
                (y: Tensor, dy: Tensor, z: Out);
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
    call: &mut OperatorCall<'a>,
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

fn subtract_from(call: &mut OperatorCall<'_>) -> Composed {
    let alpha = call.scalar("alpha")?;
    let two = operands(call, ["self", "other", "out"], same)?;
    if two.dtype == DType::Bool || alpha.is_float() && !is_float(two.dtype) {
        let text = format!(
            "`alpha` is {}, for a result of type {}",
            alpha.dtype, two.dtype
        );
        return Err(Refusal::invalid(text));
    }
    let alpha = call.scalar_value(alpha, two.a.dtype)?;
    let scaled = call.node("Mul", &[&two.a, &alpha], two.a.dtype);
    let result = call.node("Sub", &[&two.b, &scaled], two.a.dtype);
    call.write(two.out, &result, two.dtype);
    Ok(())
}

/// `log(b^x + b^y) / log(b)`, computed from the larger operand to avoid overflow.
fn log_add(call: &mut OperatorCall<'_>, base: f64) -> Composed {
    let two = operands(call, ["self", "other", "out"], same)?;
    expect_floats(&two)?;
    let dtype = DType::F64;
    let (a, b) = (call.cast(&two.a, dtype), call.cast(&two.b, dtype));
    let largest = extreme(call, "Greater", &a, &b);
    let distance = call.node("Sub", &[&a, &b], dtype);
    // For equal infinities the distance is NaN, and the result is that infinity.
    let is_equal = call.node("Equal", &[&a, &b], DType::Bool);
    let zero = call.constant(0.0, dtype);
    let distance = call.node("Where", &[&is_equal, &zero, &distance], dtype);
    let size = call.node("Abs", &[&distance], dtype);
    let factor = call.constant(-base.ln(), dtype);
    let exponent = call.node("Mul", &[&size, &factor], dtype);
    let power = call.node("Exp", &[&exponent], dtype);
    let one = call.constant(1.0, dtype);
    let sum = call.node("Add", &[&power, &one], dtype);
    let log = call.node("Log", &[&sum], dtype);
    let divisor = call.constant(base.ln(), dtype);
    let log = call.node("Div", &[&log, &divisor], dtype);
    let result = call.node("Add", &[&largest, &log], dtype);
    call.write(two.out, &result, two.dtype);
    Ok(())
}

fn log_add_exp(call: &mut OperatorCall<'_>) -> Composed {
    log_add(call, std::f64::consts::E)
}

fn log_add_exp2(call: &mut OperatorCall<'_>) -> Composed {
    log_add(call, 2.0)
}

fn x_log_y(call: &mut OperatorCall<'_>) -> Composed {
    let two = operands(call, ["self", "other", "out"], as_float)?;
    let dtype = two.a.dtype;
    let log = call.node("Log", &[&two.b], dtype);
    let product = call.node("Mul", &[&two.a, &log], dtype);
    let zero = call.constant(0.0, dtype);
    let is_zero = call.node("Equal", &[&two.a, &zero], DType::Bool);
    let result = call.node("Where", &[&is_zero, &zero, &product], dtype);
    // If the logarithm's operand is NaN the result is NaN, whatever the factor.
    let is_nan = call.is_nan(&two.b);
    let result = call.node("Where", &[&is_nan, &two.b, &result], dtype);
    call.write(two.out, &result, two.dtype);
    Ok(())
}

fn square(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
    let value = call.read(x, arithmetic_type(x.dtype))?;
    let result = call.node("Mul", &[&value, &value], value.dtype);
    call.write(out, &result, x.dtype);
    Ok(())
}

/// Maximum number of decimals whose power of ten is exact in double precision.
const N_DECIMALS_MAX: i64 = 22;

fn round_decimals(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    let decimals = call.int("decimals")?;
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
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
    let rounded = super::unary::rounded(call, &scaled)?;
    let result = call.node(second, &[&rounded, &power], dtype);
    call.write(out, &result, x.dtype);
    Ok(())
}

fn sinc(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    let dtype = as_float(x.dtype);
    call.expect_cast(out, dtype)?;
    // Near the zeros of the sine the product with pi needs more digits.
    let value = call.read_as(x, dtype, DType::F64)?;
    let pi = call.constant(std::f64::consts::PI, DType::F64);
    let angle = call.node("Mul", &[&value, &pi], DType::F64);
    let sine = call.node("Sin", &[&angle], DType::F64);
    let quotient = call.node("Div", &[&sine, &angle], DType::F64);
    let (zero, one) = (
        call.constant(0.0, DType::F64),
        call.constant(1.0, DType::F64),
    );
    let is_zero = call.node("Equal", &[&value, &zero], DType::Bool);
    let result = call.node("Where", &[&is_zero, &one, &quotient], DType::F64);
    call.write(out, &result, dtype);
    Ok(())
}

fn sign_bit(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, DType::Bool)?;
    if matches!(x.dtype, DType::Bool | DType::U8) {
        call.fill(out, ScalarNumber::Int(0));
        return Ok(());
    }
    // From the bits: zeros and NaN have signs too. Narrow floats are read without their sign.
    let bits = call.read_raw(x)?;
    let result = match x.dtype.bits() {
        Some(n_bits @ ..32) => {
            let first = call.constant(2_f64.powi(n_bits.cast_signed() - 1), bits.dtype);
            call.node("GreaterOrEqual", &[&bits, &first], DType::Bool)
        }
        _ => {
            let zero = call.constant(0.0, bits.dtype);
            call.node("Less", &[&bits, &zero], DType::Bool)
        }
    };
    call.write(out, &result, DType::Bool);
    Ok(())
}

fn is_close(call: &mut OperatorCall<'_>) -> Composed {
    let (a, b, out) = (call.side("self")?, call.side("other")?, call.tensor("out")?);
    call.broadcast(&[a, b], out)?;
    call.expect_cast(out, DType::Bool)?;
    let (rtol, atol) = (call.number("rtol")?, call.number("atol")?);
    if !(rtol >= 0.0 && atol >= 0.0) {
        let text = format!("`rtol` and `atol` are {rtol} and {atol}; expected 0 or more");
        return Err(Refusal::invalid(text));
    }
    let dtype = DType::F64;
    let (a, b) = (
        call.read_side(a, dtype, dtype)?,
        call.read_side(b, dtype, dtype)?,
    );
    let is_equal = call.node("Equal", &[&a, &b], DType::Bool);
    let distance = call.node("Sub", &[&a, &b], dtype);
    let distance = call.node("Abs", &[&distance], dtype);
    let size = call.node("Abs", &[&b], dtype);
    let rtol = call.number_value(ScalarNumber::Float(rtol), dtype)?;
    let atol = call.number_value(ScalarNumber::Float(atol), dtype)?;
    let room = call.node("Mul", &[&rtol, &size], dtype);
    let room = call.node("Add", &[&room, &atol], dtype);
    let is_near = call.node("LessOrEqual", &[&distance, &room], DType::Bool);
    // An infinite distance is never close, even with an infinite tolerance.
    let infinity = call.constant(f64::INFINITY, dtype);
    let is_finite = call.node("Less", &[&distance, &infinity], DType::Bool);
    let is_near = call.node("And", &[&is_near, &is_finite], DType::Bool);
    let mut result = call.node("Or", &[&is_equal, &is_near], DType::Bool);
    if call.flag("equal_nan")? {
        let (of_a, of_b) = (call.is_nan(&a), call.is_nan(&b));
        let are_nan = call.node("And", &[&of_a, &of_b], DType::Bool);
        result = call.node("Or", &[&result, &are_nan], DType::Bool);
    }
    call.write(out, &result, DType::Bool);
    Ok(())
}

fn equal_tensors(call: &mut OperatorCall<'_>) -> Composed {
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
        call.fill(out, ScalarNumber::Int(is_equal.into()));
        return Ok(());
    }
    let dtype = call.promote(&[a, b], &[])?;
    let compute = arithmetic_type(dtype);
    let (a, b) = (
        call.read_as(a, dtype, compute)?,
        call.read_as(b, dtype, compute)?,
    );
    let is_equal = call.node("Equal", &[&a, &b], DType::Bool);
    let counted = call.cast(&is_equal, DType::I64);
    // One axis, for any shape.
    let flat = call.constant_ints(&[-1]);
    let flat = call.node("Reshape", &[&counted, &flat], DType::I64);
    let attributes = vec![("axes", OperatorAttribute::Ints(vec![0]))];
    let least = call.node_with("ReduceMin", &[&flat], attributes, DType::I64);
    let dims = call.constant_dims(out.dims());
    let result = call.node("Reshape", &[&least, &dims], DType::I64);
    call.write(out, &result, DType::Bool);
    Ok(())
}

/// The integers, the power of two for each shift, and whether the shift is within the width of the
/// dtype.
fn shifted<'a>(call: &mut OperatorCall<'a>) -> Composed<(Operands<'a>, Value, Value)> {
    let two = operands(call, ["self", "shiftBits", "out"], same)?;
    if !is_integer(two.dtype) {
        let text = format!("operands have the type {}; expected integers", two.dtype);
        return Err(Refusal::invalid(text));
    }
    let int = DType::I64;
    let n_bits = two.dtype.bits().unwrap_or(64);
    let zero = call.constant(0.0, int);
    let end = call.constant(f64::from(n_bits), int);
    let is_there = call.node("GreaterOrEqual", &[&two.b, &zero], DType::Bool);
    let is_short = call.node("Less", &[&two.b, &end], DType::Bool);
    let is_within = call.node("And", &[&is_there, &is_short], DType::Bool);
    // A shift outside of the list would abort the run.
    let distance = call.node("Where", &[&is_within, &two.b, &zero], int);
    // A lookup table, because engines compute powers of integers as floats.
    let powers: Vec<i64> = (0..n_bits).map(|bit| 1_i64 << bit).collect();
    let powers = call.constant_ints(&powers);
    let power = call.node("Gather", &[&powers, &distance], int);
    Ok((two, power, is_within))
}

fn shift_left(call: &mut OperatorCall<'_>) -> Composed {
    let (two, power, is_within) = shifted(call)?;
    let product = call.node("Mul", &[&two.a, &power], DType::I64);
    let zero = call.constant(0.0, DType::I64);
    let result = call.node("Where", &[&is_within, &product, &zero], DType::I64);
    call.write(two.out, &result, two.dtype);
    Ok(())
}

fn shift_right(call: &mut OperatorCall<'_>) -> Composed {
    let (two, power, is_within) = shifted(call)?;
    let int = DType::I64;
    let (zero, one) = (call.constant(0.0, int), call.constant(1.0, int));
    let is_below = call.node("Less", &[&two.a, &zero], DType::Bool);
    let below = call.cast(&is_below, int);
    let last = call.node("Neg", &[&below], int);
    // Rounds down instead of truncating: negative numbers go through their complement.
    let complement = call.node("Add", &[&two.a, &one], int);
    let complement = call.node("Neg", &[&complement], int);
    let positive = call.node("Where", &[&is_below, &complement, &two.a], int);
    // The power of the highest bit is negative, and only the sign bit remains.
    let is_power = call.node("Greater", &[&power, &zero], DType::Bool);
    let divisor = call.node("Where", &[&is_power, &power, &one], int);
    let quotient = call.node("Div", &[&positive, &divisor], int);
    let turned = call.node("Add", &[&quotient, &one], int);
    let turned = call.node("Neg", &[&turned], int);
    let result = call.node("Where", &[&is_below, &turned, &quotient], int);
    let result = call.node("Where", &[&is_power, &result, &last], int);
    let result = call.node("Where", &[&is_within, &result, &last], int);
    call.write(two.out, &result, two.dtype);
    Ok(())
}

/// Folds a list of tensors with an operator.
fn folded(
    call: &mut OperatorCall<'_>,
    join: fn(&mut OperatorCall<'_>, &Value, &Value) -> Value,
) -> Composed {
    let (tensors, out) = (call.tensors("tensors")?, call.tensor("out")?);
    let sides: Vec<Side<'_>> = tensors.iter().map(Side::Tensor).collect();
    if sides.is_empty() {
        return Err(Refusal::invalid(
            "`tensors` is empty; expected a tensor at least",
        ));
    }
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
            Some(known) => join(call, &known, &value),
        });
    }
    if let Some(result) = result {
        call.write(out, &result, dtype);
    }
    Ok(())
}

fn sum_of_tensors(call: &mut OperatorCall<'_>) -> Composed {
    folded(call, |call, a, b| call.node("Add", &[a, b], a.dtype))
}

fn largest_of_tensors(call: &mut OperatorCall<'_>) -> Composed {
    folded(call, |call, a, b| extreme(call, "Greater", a, b))
}

fn smallest_of_tensors(call: &mut OperatorCall<'_>) -> Composed {
    folded(call, |call, a, b| extreme(call, "Less", a, b))
}

fn tanh_backward(call: &mut OperatorCall<'_>) -> Composed {
    let two = operands(call, ["gradOutput", "output", "gradInput"], same)?;
    expect_floats(&two)?;
    let dtype = two.a.dtype;
    let one = call.constant(1.0, dtype);
    let square = call.node("Mul", &[&two.b, &two.b], dtype);
    let slope = call.node("Sub", &[&one, &square], dtype);
    let result = call.node("Mul", &[&two.a, &slope], dtype);
    call.write(two.out, &result, two.dtype);
    Ok(())
}

fn sqrt_backward(call: &mut OperatorCall<'_>) -> Composed {
    let two = operands(call, ["dy", "y", "z"], same)?;
    expect_floats(&two)?;
    let dtype = two.a.dtype;
    let double = call.node("Add", &[&two.b, &two.b], dtype);
    let result = call.node("Div", &[&two.a, &double], dtype);
    call.write(two.out, &result, two.dtype);
    Ok(())
}
