//! Element-wise arithmetic of two or more operands.

use std::borrow::Borrow;

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{
    Composed, OperatorCall, Refusal, Side, Value, arithmetic_type, as_float, refuse_if,
};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{compute_type, is_float, is_integer};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of arithmetic.
#[macro_export]
macro_rules! aclnn_elementwise {
    ($rows:ident) => {
        $rows! { "arithmetic";
            Add("aclnn_add.h", "self + alpha * other") by sum("Add"):
                aclnnAdd(self_: Tensor, other: Tensor, alpha: Scalar, out: Out),
                aclnnInplaceAdd(selfRef: Inplace, other: Tensor, alpha: Scalar),
                aclnnAdds(self_: Tensor, other: Scalar, alpha: Scalar, out: Out),
                aclnnInplaceAdds(selfRef: Inplace, other: Scalar, alpha: Scalar);
            Sub("aclnn_sub.h", "self - alpha * other") by subtract():
                aclnnSub(self_: Tensor, other: Tensor, alpha: Scalar, out: Out),
                aclnnInplaceSub(selfRef: Inplace, other: Tensor, alpha: Scalar),
                aclnnSubs(self_: Tensor, other: Scalar, alpha: Scalar, out: Out),
                aclnnInplaceSubs(selfRef: Inplace, other: Scalar, alpha: Scalar);
            Mul("aclnn_mul.h", "self * other") by multiply():
                aclnnMul(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceMul(selfRef: Inplace, other: Tensor),
                aclnnMuls(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceMuls(selfRef: Inplace, other: Scalar);
            Div("aclnn_div.h", "self / other") by divide():
                aclnnDiv(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceDiv(selfRef: Inplace, other: Tensor),
                aclnnDivs(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceDivs(selfRef: Inplace, other: Scalar);
            DivMod("aclnn_div.h", "self / other; mode 1 cuts the quotient off, mode 2 rounds it down") by divide_by_mode():
                aclnnDivMod(self_: Tensor, other: Tensor, mode: Int32, out: Out),
                aclnnInplaceDivMod(selfRef: Inplace, other: Tensor, mode: Int32),
                aclnnDivMods(self_: Tensor, other: Scalar, mode: Int32, out: Out),
                aclnnInplaceDivMods(selfRef: Inplace, other: Scalar, mode: Int32);
            FloorDiv("aclnn_floor_divide.h", "self / other, rounded down") by floor_divide():
                aclnnFloorDivide(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceFloorDivide(selfRef: Inplace, other: Tensor),
                aclnnFloorDivides(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceFloorDivides(selfRef: Inplace, other: Scalar);
            FloorMod("aclnn_remainder.h", "the rest of self / other, with the sign of other") by remainder():
                aclnnRemainderTensorTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceRemainderTensorTensor(selfRef: Inplace, other: Tensor),
                aclnnRemainderTensorScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceRemainderTensorScalar(selfRef: Inplace, other: Scalar),
                aclnnRemainderScalarTensor(self_: Scalar, other: Tensor, out: Out);
            Mod("aclnn_fmod_tensor.h", "the rest of self / other, with the sign of self") by fmod():
                aclnnFmodTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceFmodTensor(selfRef: Inplace, other: Tensor);
            Mod("aclnn_fmod_scalar.h", "the rest of self / other, with the sign of self") by fmod():
                aclnnFmodScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceFmodScalar(selfRef: Inplace, other: Scalar);
            Atan2("aclnn_atan2.h", "the angle of the point (other, self)") by atan2():
                aclnnAtan2(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceAtan2(selfRef: Inplace, other: Tensor);
            Maximum("aclnn_maximum.h", "the larger of self and other; NaN if one is") by extreme_of_pair(larger):
                aclnnMaximum(self_: Tensor, other: Tensor, out: Out);
            Minimum("aclnn_minimum.h", "the smaller of self and other; NaN if one is") by extreme_of_pair(smaller):
                aclnnMinimum(self_: Tensor, other: Tensor, out: Out);
            ClipByValue("aclnn_clamp.h", "self, not less than clipValueMin and not more than clipValueMax") by clamp():
                aclnnClamp(self_: Tensor, clipValueMin: OptionalScalar, clipValueMax: OptionalScalar, out: Out),
                aclnnClampTensor(self_: Tensor, clipValueMin: OptionalTensor, clipValueMax: OptionalTensor, out: Out);
            ClipByValue("aclnn_clamp.h", "self, not less than clipValueMin") by clamp():
                aclnnClampMin(self_: Tensor, clipValueMin: Scalar, out: Out),
                aclnnClampMinTensor(self_: Tensor, clipValueMin: Tensor, out: Out),
                aclnnInplaceClampMinTensor(selfRef: Inplace, clipValueMin: Tensor);
            ClipByValue("aclnn_clamp.h", "self, not more than clipValueMax") by clamp():
                aclnnClampMax(self_: Tensor, clipValueMax: Scalar, out: Out),
                aclnnInplaceClampMax(selfRef: Inplace, clipValueMax: Scalar);
            ClipByValue("aclnn_clamp.h", "self, not more than max") by clamp():
                aclnnClampMaxTensor(self_: Tensor, max: Tensor, out: Out),
                aclnnInplaceClampMaxTensor(selfRef: Inplace, max: Tensor);
            Pow("aclnn_pow_tensor_tensor.h", "self to the power of exponent") by power():
                aclnnPowTensorTensor(self_: Tensor, exponent: Tensor, out: Out),
                aclnnInplacePowTensorTensor(self_: Inplace, exponent: Tensor);
            Pow("aclnn_pow.h", "self to the power of exponent") by power():
                aclnnPowTensorScalar(self_: Tensor, exponent: Scalar, out: Out),
                aclnnInplacePowTensorScalar(self_: Inplace, exponent: Scalar),
                aclnnPowScalarTensor(self_: Scalar, exponent: Tensor, out: Out);
            Addcmul("aclnn_addcmul.h", "self + value * tensor1 * tensor2") by addc("Mul"):
                aclnnAddcmul(self_: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar, out: Out),
                aclnnInplaceAddcmul(selfRef: Inplace, tensor1: Tensor, tensor2: Tensor, value: Scalar);
            Addcdiv("aclnn_addcdiv.h", "self + value * tensor1 / tensor2") by addcdiv():
                aclnnAddcdiv(self_: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar, out: Out),
                aclnnInplaceAddcdiv(selfRef: Inplace, tensor1: Tensor, tensor2: Tensor, value: Scalar);
            Lerp("aclnn_lerp_tensor.h", "self + weight * (end - self)") by lerp():
                aclnnLerp(self_: Tensor, end: Tensor, weight: Tensor, out: Out),
                aclnnInplaceLerp(selfRef: Inplace, end: Tensor, weight: Tensor);
            Lerp("aclnn_lerp_scalar.h", "self + weight * (end - self)") by lerp():
                aclnnLerps(self_: Tensor, end: Tensor, weight: Scalar, out: Out),
                aclnnInplaceLerps(selfRef: Inplace, end: Tensor, weight: Scalar);
        }
    };
}
aclnn_elementwise!(operator_rows);

/// Two operands with the dtype of their result, which the output can hold.
struct Pair<'a> {
    a: Side<'a>,
    b: Side<'a>,
    out: &'a TensorArgument,
    dtype: DType,
}

fn pair<'a>(call: &OperatorCall<'a>, b: &str) -> Composed<Pair<'a>> {
    let (a, b, out) = (call.side("self")?, call.side(b)?, call.tensor("out")?);
    call.broadcast(&[a, b], out)?;
    let dtype = call.promote_sides(&[a, b])?;
    Ok(Pair { a, b, out, dtype })
}

impl Pair<'_> {
    /// Both as values of the compute dtype. A scalar keeps its precision.
    fn read(&self, call: &OperatorCall<'_>) -> Composed<(Value, Value)> {
        let compute = arithmetic_type(self.dtype);
        Ok((
            self.side(call, self.a, compute)?,
            self.side(call, self.b, compute)?,
        ))
    }

    fn side(&self, call: &OperatorCall<'_>, side: Side<'_>, to: DType) -> Composed<Value> {
        match side {
            Side::Tensor(_) => call.read_side(side, self.dtype, to),
            Side::Scalar(_) => call.read_side(side, to, to),
        }
    }

    /// Both, rounded to the result dtype first.
    fn read_rounded(&self, call: &OperatorCall<'_>) -> Composed<(Value, Value)> {
        let compute = arithmetic_type(self.dtype);
        let a = call.read_side(self.a, self.dtype, compute)?;
        Ok((a, call.read_side(self.b, self.dtype, compute)?))
    }

    fn write(&self, call: &OperatorCall<'_>, result: impl Borrow<Value>) -> Composed {
        call.expect_cast(self.out, self.dtype)?;
        call.write(self.out, result, self.dtype)
    }
}

fn subtract(call: &OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    refuse_if!(
        pair.a.dtype() == DType::Bool && pair.b.dtype() == DType::Bool,
        "`self` and `other` are booleans; expected numbers to subtract"
    );
    sum(call, "Sub")
}

fn sum(call: &OperatorCall<'_>, op: &'static str) -> Composed {
    let pair = pair(call, "other")?;
    let alpha = call.scalar("alpha")?;
    if alpha.is_float() && !is_float(pair.dtype) {
        let (found, dtype) = (alpha.dtype, pair.dtype);
        return Err(Refusal::invalid(format!(
            "`alpha` is {found}; expected an integer for results of type {dtype}"
        )));
    }
    let (a, mut b) = pair.read(call)?;
    // Multiplying by 1 would change nothing.
    if alpha.as_f64() != 1.0 {
        let alpha = call.scalar_value(alpha, b.dtype)?;
        b = &b * &alpha;
    }
    let result = call.node(op, &[&a, &b], a.dtype);
    pair.write(call, &result)
}

fn multiply(call: &OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    // The product of booleans is their conjunction.
    let (a, b) = pair.read(call)?;
    pair.write(call, &a * &b)
}

/// Two operands with a floating-point result.
fn float_pair<'a>(call: &OperatorCall<'a>) -> Composed<Pair<'a>> {
    let pair = pair(call, "other")?;
    let dtype = as_float(pair.dtype);
    Ok(Pair { dtype, ..pair })
}

fn divide(call: &OperatorCall<'_>) -> Composed {
    let pair = float_pair(call)?;
    let (a, b) = pair.read(call)?;
    pair.write(call, &a / &b)
}

fn divide_by_mode(call: &OperatorCall<'_>) -> Composed {
    match call.int("mode")? {
        0 => divide(call),
        1 => truncated_quotient(call),
        2 => floor_divide(call),
        mode => Err(Refusal::invalid(format!(
            "`mode` is {mode}; expected 0, 1 or 2"
        ))),
    }
}

fn truncated_quotient(call: &OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    let (a, b) = if is_float(pair.dtype) {
        pair.read(call)?
    } else {
        divided_integers(call, &pair)?
    };
    let quotient = &a / &b;
    // The quotient of integers is already truncated.
    let result = if is_float(pair.dtype) {
        truncated(&quotient)
    } else {
        quotient
    };
    pair.write(call, &result)
}

fn divided_integers(call: &OperatorCall<'_>, pair: &Pair<'_>) -> Composed<(Value, Value)> {
    let a = call.read_side(pair.a, pair.dtype, DType::I64)?;
    Ok((a, call.read_divisor(pair.b, pair.dtype)?))
}

/// Truncates a float.
pub(super) fn truncated(value: &Value) -> Value {
    // Some engines return 0 as the sign of NaN.
    value
        .is_nan()
        .choose(value, value.sign() * value.abs().floor())
}

/// The remainder of a division, with the sign of the dividend. tract swaps the operands if one is
/// broadcast, so both are expanded first.
fn rest(call: &OperatorCall<'_>, a: &Value, b: &Value) -> Composed<Value> {
    let dims = call.tensor("out")?.dims();
    let a = a.expanded(dims);
    let b = b.expanded(dims);
    let fmod = vec![("fmod", OperatorAttribute::Int(1))];
    Ok(call.node_with("Mod", &[&a, &b], fmod, a.dtype))
}

/// Whether a nonzero remainder and the divisor have opposite signs.
fn is_opposed(rest: &Value, divisor: &Value) -> Value {
    // Compared separately: a product of the two could underflow or overflow.
    rest.less(0.0) & divisor.greater(0.0) | rest.greater(0.0) & divisor.less(0.0)
}

fn floor_divide(call: &OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    let result = if is_float(pair.dtype) {
        let (a, b) = pair.read(call)?;
        floor_quotient(call, &a, &b)?
    } else {
        let (a, b) = divided_integers(call, &pair)?;
        let rest = rest(call, &a, &b)?;
        let is_opposed = is_opposed(&rest, &b);
        &a / &b - is_opposed.cast(DType::I64)
    };
    pair.write(call, &result)
}

/// The quotient of floats, rounded down like in PyTorch: from the exact remainder, since a quotient
/// may be rounded up to the next integer.
fn floor_quotient(call: &OperatorCall<'_>, a: &Value, b: &Value) -> Composed<Value> {
    let dtype = a.dtype;
    let rest = rest(call, a, b)?;
    let mut quotient = (a - &rest) / b;
    let is_opposed = is_opposed(&rest, b);
    quotient = &quotient - is_opposed.cast(dtype);
    // The quotient of exact multiples may still miss the integer by an ulp.
    let floor = quotient.floor();
    Ok(b.equal(0.0).choose(
        a / b,
        &floor + (&quotient - &floor).greater(0.5).cast(dtype),
    ))
}

fn remainder(call: &OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    let (a, b) = if is_float(pair.dtype) {
        pair.read_rounded(call)?
    } else {
        divided_integers(call, &pair)?
    };
    let rest = rest(call, &a, &b)?;
    let is_opposed = is_opposed(&rest, &b);
    pair.write(call, is_opposed.choose(&rest + &b, &rest))
}

fn fmod(call: &OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    let (a, b) = if is_float(pair.dtype) {
        pair.read_rounded(call)?
    } else {
        divided_integers(call, &pair)?
    };
    let result = rest(call, &a, &b)?;
    pair.write(call, &result)
}

fn atan2(call: &OperatorCall<'_>) -> Composed {
    let pair = float_pair(call)?;
    let (y, x) = pair.read_rounded(call)?;
    let dtype = y.dtype;
    let far = x.abs();
    let near = y.abs();
    let is_steep = near.greater(&far);
    let largest = is_steep.choose(&near, &far);
    let least = is_steep.choose(&far, &near);
    // Equal sizes are the diagonal, infinite ones too, but for two zeros.
    let is_diagonal = least.equal(&largest);
    let quotient = is_diagonal.choose(1.0, &least / &largest);
    let quotient = (&least + &largest).equal(0.0).choose(0.0, &quotient);
    let angle = call.node("Atan", &[&quotient], dtype);
    let angle = is_steep.choose(std::f64::consts::FRAC_PI_2 - &angle, &angle);
    let is_left = is_negative(&x);
    let angle = is_left.choose(std::f64::consts::PI - &angle, &angle);
    let is_below = is_negative(&y);
    pair.write(call, is_below.choose(-&angle, &angle))
}

/// Whether a float has a negative sign, including -0.
fn is_negative(value: &Value) -> Value {
    // The reciprocal of a zero is an infinity with its sign.
    let is_zero = value.equal(0.0);
    is_zero.choose(1.0 / value, value).less(0.0)
}

/// The larger value; NaN if either is.
pub(super) fn larger(a: &Value, b: &Value) -> Value {
    extreme(a.greater(b), a, b)
}

/// The smaller value; NaN if either is.
pub(super) fn smaller(a: &Value, b: &Value) -> Value {
    extreme(a.less(b), a, b)
}

fn extreme(is_first: Value, a: &Value, b: &Value) -> Value {
    if is_float(a.dtype) {
        (is_first | a.is_nan()).choose(a, b)
    } else {
        is_first.choose(a, b)
    }
}

/// The function of an extreme.
type Extreme = fn(&Value, &Value) -> Value;

fn extreme_of_pair(call: &OperatorCall<'_>, extreme: Extreme) -> Composed {
    let pair = pair(call, "other")?;
    let (a, b) = pair.read_rounded(call)?;
    pair.write(call, extreme(&a, &b))
}

fn clamp(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.side("self")?, call.tensor("out")?);
    let extremes: [(&str, Extreme); 3] = [
        ("clipValueMin", larger),
        ("clipValueMax", smaller),
        ("max", smaller),
    ];
    let mut bounds = Vec::new();
    for (name, extreme) in extremes {
        if call.has(name)
            && let Some(bound) = call.optional_side(name)?
        {
            bounds.push((bound, extreme));
        }
    }
    refuse_if!(
        bounds.is_empty(),
        "`clipValueMin` and `clipValueMax` are null; expected one of them"
    );
    let mut sides = vec![x];
    sides.extend(bounds.iter().map(|(bound, _)| *bound));
    call.broadcast(&sides, out)?;
    let dtype = call.promote_sides(&sides)?;
    call.expect_cast(out, dtype)?;
    let compute = arithmetic_type(dtype);
    let mut result = call.read_side(x, dtype, compute)?;
    for (bound, extreme) in bounds {
        // A bound beyond the range of a narrow integer must not wrap around.
        let via = if is_float(dtype) { dtype } else { compute };
        let bound = call.read_side(bound, via, compute)?;
        result = extreme(&result, &bound);
    }
    call.write(out, &result, dtype)
}

fn power(call: &OperatorCall<'_>) -> Composed {
    let pair = pair(call, "exponent")?;
    if is_float(pair.dtype) {
        let compute = compute_type(pair.dtype);
        let base = call.read_side(pair.a, pair.dtype, compute)?;
        let exponent = match pair.b {
            // An exponent that a narrow dtype cannot represent is not rounded to it.
            Side::Scalar(_) => call.read_side(pair.b, compute, compute)?,
            Side::Tensor(_) => call.read_side(pair.b, pair.dtype, compute)?,
        };
        let result = base.pow(&exponent);
        return pair.write(call, &result);
    }
    if let Side::Scalar(exponent) = pair.b
        && exponent.as_i64() < 0
    {
        let text = "`exponent` is negative; expected a float for `self`, or 0 or more";
        return Err(Refusal::invalid(text));
    }
    let base = call.read_side(pair.a, pair.dtype, DType::I64)?;
    let exponent = call.read_side(pair.b, pair.dtype, DType::I64)?;
    // Engines compute powers of integers as floats, which lack digits.
    pair.write(call, integer_power(call, &base, &exponent, pair.dtype))
}

/// Integer powers by repeated squaring; negative exponents yield the truncated reciprocal.
fn integer_power(call: &OperatorCall<'_>, base: &Value, exponent: &Value, dtype: DType) -> Value {
    let int = DType::I64;
    let one = call.constant(1.0, int);
    let two = call.constant(2.0, int);
    let n_bits = 8 * dtype.bytes().unwrap_or(8);
    let (mut result, mut square) = (one.clone(), base.clone());
    // The exponent's bits select the squares to multiply; products wrap around as required.
    let mut left = exponent.abs();
    for bit in 0..n_bits {
        if bit > 0 {
            square = &square * &square;
            left = &left / &two;
        }
        let digit = call.node("Mod", &[&left, &two], int);
        result = &result * digit.equal(&one).choose(&square, &one);
    }
    // 1 and -1 are their own reciprocals; every other reciprocal is truncated to 0.
    let is_unit = base.abs().equal(&one);
    exponent
        .less(0.0)
        .choose(is_unit.choose(&result, 0.0), &result)
}

fn addcdiv(call: &OperatorCall<'_>) -> Composed {
    let sides = [call.side("tensor1")?, call.side("tensor2")?];
    refuse_if!(
        sides
            .iter()
            .all(|side| is_integer(side.dtype()) || side.dtype() == DType::Bool),
        "`tensor1` and `tensor2` are integers; expected a float to divide"
    );
    addc(call, "Div")
}

fn addc(call: &OperatorCall<'_>, op: &'static str) -> Composed {
    let sides = [
        call.side("self")?,
        call.side("tensor1")?,
        call.side("tensor2")?,
    ];
    let (value, out) = (call.scalar("value")?, call.tensor("out")?);
    call.broadcast(&sides, out)?;
    let dtype = call.promote_sides(&sides)?;
    call.expect_cast(out, dtype)?;
    let compute = arithmetic_type(dtype);
    let [x, a, b] = sides.map(|side| call.read_side(side, dtype, compute));
    let (x, a, b) = (x?, a?, b?);
    // PyTorch's order of operations, for the same rounding.
    let value = call.scalar_value(value, compute)?;
    let scaled = &value * &a;
    let term = call.node(op, &[&scaled, &b], compute);
    call.write(out, &x + &term, dtype)
}

fn lerp(call: &OperatorCall<'_>) -> Composed {
    let (start, end) = (call.tensor("self")?, call.tensor("end")?);
    let (weight, out) = (call.side("weight")?, call.tensor("out")?);
    call.expect_float(start)?;
    call.broadcast(&[Side::Tensor(start), Side::Tensor(end), weight], out)?;
    let dtype = call.promote_sides(&[Side::Tensor(start), Side::Tensor(end), weight])?;
    call.expect_cast(out, dtype)?;
    let compute = compute_type(dtype);
    let (a, b) = (call.read(start, compute)?, call.read(end, compute)?);
    let weight = call.read_side(weight, compute, compute)?;
    let way = &b - &a;
    // Computed from the nearer end, so that a weight of 1 yields the end.
    let from_end = &b - &way * (1.0 - &weight);
    let result = weight
        .abs()
        .less(0.5)
        .choose(&a + &weight * &way, &from_end);
    call.write(out, &result, dtype)
}
