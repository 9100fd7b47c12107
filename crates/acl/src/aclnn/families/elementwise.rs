//! Element-wise arithmetic of two or more operands.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, arithmetic_type, as_float};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::promotion::{compute_type, is_float, is_integer};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of arithmetic.
#[macro_export]
macro_rules! aclnn_elementwise {
    ($rows:ident) => {
        $rows! { "arithmetic";
            aclnnAdd = Add("aclnn_add.h", "self + alpha * other") by add
                (self_: Tensor, other: Tensor, alpha: Scalar, out: Out);
            aclnnInplaceAdd = Add("aclnn_add.h", "self + alpha * other") by add
                (selfRef: Inplace, other: Tensor, alpha: Scalar);
            aclnnAdds = Add("aclnn_add.h", "self + alpha * other") by add
                (self_: Tensor, other: Scalar, alpha: Scalar, out: Out);
            aclnnInplaceAdds = Add("aclnn_add.h", "self + alpha * other") by add
                (selfRef: Inplace, other: Scalar, alpha: Scalar);
            aclnnSub = Sub("aclnn_sub.h", "self - alpha * other") by subtract
                (self_: Tensor, other: Tensor, alpha: Scalar, out: Out);
            aclnnInplaceSub = Sub("aclnn_sub.h", "self - alpha * other") by subtract
                (selfRef: Inplace, other: Tensor, alpha: Scalar);
            aclnnSubs = Sub("aclnn_sub.h", "self - alpha * other") by subtract
                (self_: Tensor, other: Scalar, alpha: Scalar, out: Out);
            aclnnInplaceSubs = Sub("aclnn_sub.h", "self - alpha * other") by subtract
                (selfRef: Inplace, other: Scalar, alpha: Scalar);
            aclnnMul = Mul("aclnn_mul.h", "self * other") by multiply
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceMul = Mul("aclnn_mul.h", "self * other") by multiply
                (selfRef: Inplace, other: Tensor);
            aclnnMuls = Mul("aclnn_mul.h", "self * other") by multiply
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceMuls = Mul("aclnn_mul.h", "self * other") by multiply
                (selfRef: Inplace, other: Scalar);
            aclnnDiv = Div("aclnn_div.h", "self / other") by divide
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceDiv = Div("aclnn_div.h", "self / other") by divide
                (selfRef: Inplace, other: Tensor);
            aclnnDivs = Div("aclnn_div.h", "self / other") by divide
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceDivs = Div("aclnn_div.h", "self / other") by divide
                (selfRef: Inplace, other: Scalar);
            aclnnDivMod = DivMod("aclnn_div.h", "self / other; mode 1 cuts the quotient off, mode 2 rounds it down") by divide_by_mode
                (self_: Tensor, other: Tensor, mode: Int32, out: Out);
            aclnnInplaceDivMod = DivMod("aclnn_div.h", "self / other; mode 1 cuts the quotient off, mode 2 rounds it down") by divide_by_mode
                (selfRef: Inplace, other: Tensor, mode: Int32);
            aclnnDivMods = DivMod("aclnn_div.h", "self / other; mode 1 cuts the quotient off, mode 2 rounds it down") by divide_by_mode
                (self_: Tensor, other: Scalar, mode: Int32, out: Out);
            aclnnInplaceDivMods = DivMod("aclnn_div.h", "self / other; mode 1 cuts the quotient off, mode 2 rounds it down") by divide_by_mode
                (selfRef: Inplace, other: Scalar, mode: Int32);
            aclnnFloorDivide = FloorDiv("aclnn_floor_divide.h", "self / other, rounded down") by floor_divide
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceFloorDivide = FloorDiv("aclnn_floor_divide.h", "self / other, rounded down") by floor_divide
                (selfRef: Inplace, other: Tensor);
            aclnnFloorDivides = FloorDiv("aclnn_floor_divide.h", "self / other, rounded down") by floor_divide
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceFloorDivides = FloorDiv("aclnn_floor_divide.h", "self / other, rounded down") by floor_divide
                (selfRef: Inplace, other: Scalar);
            aclnnRemainderTensorTensor = FloorMod("aclnn_remainder.h", "the rest of self / other, with the sign of other") by remainder
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceRemainderTensorTensor = FloorMod("aclnn_remainder.h", "the rest of self / other, with the sign of other") by remainder
                (selfRef: Inplace, other: Tensor);
            aclnnRemainderTensorScalar = FloorMod("aclnn_remainder.h", "the rest of self / other, with the sign of other") by remainder
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceRemainderTensorScalar = FloorMod("aclnn_remainder.h", "the rest of self / other, with the sign of other") by remainder
                (selfRef: Inplace, other: Scalar);
            aclnnRemainderScalarTensor = FloorMod("aclnn_remainder.h", "the rest of self / other, with the sign of other") by remainder
                (self_: Scalar, other: Tensor, out: Out);
            aclnnFmodTensor = Mod("aclnn_fmod_tensor.h", "the rest of self / other, with the sign of self") by fmod
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceFmodTensor = Mod("aclnn_fmod_tensor.h", "the rest of self / other, with the sign of self") by fmod
                (selfRef: Inplace, other: Tensor);
            aclnnFmodScalar = Mod("aclnn_fmod_scalar.h", "the rest of self / other, with the sign of self") by fmod
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceFmodScalar = Mod("aclnn_fmod_scalar.h", "the rest of self / other, with the sign of self") by fmod
                (selfRef: Inplace, other: Scalar);
            aclnnAtan2 = Atan2("aclnn_atan2.h", "the angle of the point (other, self)") by atan2
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceAtan2 = Atan2("aclnn_atan2.h", "the angle of the point (other, self)") by atan2
                (selfRef: Inplace, other: Tensor);
            aclnnMaximum = Maximum("aclnn_maximum.h", "the larger of self and other; NaN if one is") by maximum
                (self_: Tensor, other: Tensor, out: Out);
            aclnnMinimum = Minimum("aclnn_minimum.h", "the smaller of self and other; NaN if one is") by minimum
                (self_: Tensor, other: Tensor, out: Out);
            aclnnClamp = ClipByValue("aclnn_clamp.h", "self, not less than clipValueMin and not more than clipValueMax") by clamp
                (self_: Tensor, clipValueMin: OptionalScalar, clipValueMax: OptionalScalar, out: Out);
            aclnnClampTensor = ClipByValue("aclnn_clamp.h", "self, not less than clipValueMin and not more than clipValueMax") by clamp
                (self_: Tensor, clipValueMin: OptionalTensor, clipValueMax: OptionalTensor, out: Out);
            aclnnClampMin = ClipByValue("aclnn_clamp.h", "self, not less than clipValueMin") by clamp
                (self_: Tensor, clipValueMin: Scalar, out: Out);
            aclnnClampMinTensor = ClipByValue("aclnn_clamp.h", "self, not less than clipValueMin") by clamp
                (self_: Tensor, clipValueMin: Tensor, out: Out);
            aclnnInplaceClampMinTensor = ClipByValue("aclnn_clamp.h", "self, not less than clipValueMin") by clamp
                (selfRef: Inplace, clipValueMin: Tensor);
            aclnnClampMax = ClipByValue("aclnn_clamp.h", "self, not more than clipValueMax") by clamp
                (self_: Tensor, clipValueMax: Scalar, out: Out);
            aclnnInplaceClampMax = ClipByValue("aclnn_clamp.h", "self, not more than clipValueMax") by clamp
                (selfRef: Inplace, clipValueMax: Scalar);
            aclnnClampMaxTensor = ClipByValue("aclnn_clamp.h", "self, not more than max") by clamp
                (self_: Tensor, max: Tensor, out: Out);
            aclnnInplaceClampMaxTensor = ClipByValue("aclnn_clamp.h", "self, not more than max") by clamp
                (selfRef: Inplace, max: Tensor);
            aclnnPowTensorTensor = Pow("aclnn_pow_tensor_tensor.h", "self to the power of exponent") by power
                (self_: Tensor, exponent: Tensor, out: Out);
            aclnnInplacePowTensorTensor = Pow("aclnn_pow_tensor_tensor.h", "self to the power of exponent") by power
                (self_: Inplace, exponent: Tensor);
            aclnnPowTensorScalar = Pow("aclnn_pow.h", "self to the power of exponent") by power
                (self_: Tensor, exponent: Scalar, out: Out);
            aclnnInplacePowTensorScalar = Pow("aclnn_pow.h", "self to the power of exponent") by power
                (self_: Inplace, exponent: Scalar);
            aclnnPowScalarTensor = Pow("aclnn_pow.h", "self to the power of exponent") by power
                (self_: Scalar, exponent: Tensor, out: Out);
            aclnnAddcmul = Addcmul("aclnn_addcmul.h", "self + value * tensor1 * tensor2") by addcmul
                (self_: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar, out: Out);
            aclnnInplaceAddcmul = Addcmul("aclnn_addcmul.h", "self + value * tensor1 * tensor2") by addcmul
                (selfRef: Inplace, tensor1: Tensor, tensor2: Tensor, value: Scalar);
            aclnnAddcdiv = Addcdiv("aclnn_addcdiv.h", "self + value * tensor1 / tensor2") by addcdiv
                (self_: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar, out: Out);
            aclnnInplaceAddcdiv = Addcdiv("aclnn_addcdiv.h", "self + value * tensor1 / tensor2") by addcdiv
                (selfRef: Inplace, tensor1: Tensor, tensor2: Tensor, value: Scalar);
            aclnnLerp = Lerp("aclnn_lerp_tensor.h", "self + weight * (end - self)") by lerp
                (self_: Tensor, end: Tensor, weight: Tensor, out: Out);
            aclnnInplaceLerp = Lerp("aclnn_lerp_tensor.h", "self + weight * (end - self)") by lerp
                (selfRef: Inplace, end: Tensor, weight: Tensor);
            aclnnLerps = Lerp("aclnn_lerp_scalar.h", "self + weight * (end - self)") by lerp
                (self_: Tensor, end: Tensor, weight: Scalar, out: Out);
            aclnnInplaceLerps = Lerp("aclnn_lerp_scalar.h", "self + weight * (end - self)") by lerp
                (selfRef: Inplace, end: Tensor, weight: Scalar);
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
    fn read(&self, call: &mut OperatorCall<'_>) -> Composed<(Value, Value)> {
        let compute = arithmetic_type(self.dtype);
        Ok((
            self.side(call, self.a, compute)?,
            self.side(call, self.b, compute)?,
        ))
    }

    fn side(&self, call: &mut OperatorCall<'_>, side: Side<'_>, to: DType) -> Composed<Value> {
        match side {
            Side::Tensor(_) => call.read_side(side, self.dtype, to),
            Side::Scalar(_) => call.read_side(side, to, to),
        }
    }

    /// Both, rounded to the result dtype first.
    fn read_rounded(&self, call: &mut OperatorCall<'_>) -> Composed<(Value, Value)> {
        let compute = arithmetic_type(self.dtype);
        let a = call.read_side(self.a, self.dtype, compute)?;
        Ok((a, call.read_side(self.b, self.dtype, compute)?))
    }

    fn write(&self, call: &mut OperatorCall<'_>, result: &Value) -> Composed {
        call.expect_cast(self.out, self.dtype)?;
        call.write(self.out, result, self.dtype);
        Ok(())
    }
}

fn add(call: &mut OperatorCall<'_>) -> Composed {
    sum(call, "Add")
}

fn subtract(call: &mut OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    if pair.a.dtype() == DType::Bool && pair.b.dtype() == DType::Bool {
        let text = "`self` and `other` are booleans; expected numbers to subtract";
        return Err(Refusal::invalid(text));
    }
    sum(call, "Sub")
}

fn sum(call: &mut OperatorCall<'_>, op: &'static str) -> Composed {
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
        b = call.node("Mul", &[&b, &alpha], b.dtype);
    }
    let result = call.node(op, &[&a, &b], a.dtype);
    pair.write(call, &result)
}

fn multiply(call: &mut OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    // The product of booleans is their conjunction.
    let (a, b) = pair.read(call)?;
    let result = call.node("Mul", &[&a, &b], a.dtype);
    pair.write(call, &result)
}

/// Two operands with a floating-point result.
fn float_pair<'a>(call: &OperatorCall<'a>) -> Composed<Pair<'a>> {
    let pair = pair(call, "other")?;
    let dtype = as_float(pair.dtype);
    Ok(Pair { dtype, ..pair })
}

fn divide(call: &mut OperatorCall<'_>) -> Composed {
    let pair = float_pair(call)?;
    let (a, b) = pair.read(call)?;
    let result = call.node("Div", &[&a, &b], a.dtype);
    pair.write(call, &result)
}

fn divide_by_mode(call: &mut OperatorCall<'_>) -> Composed {
    match call.int("mode")? {
        0 => divide(call),
        1 => truncated_quotient(call),
        2 => floor_divide(call),
        mode => Err(Refusal::invalid(format!(
            "`mode` is {mode}; expected 0, 1 or 2"
        ))),
    }
}

fn truncated_quotient(call: &mut OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    let (a, b) = if is_float(pair.dtype) {
        pair.read(call)?
    } else {
        divided_integers(call, &pair)?
    };
    let quotient = call.node("Div", &[&a, &b], a.dtype);
    // The quotient of integers is already truncated.
    let result = if is_float(pair.dtype) {
        truncated(call, &quotient)
    } else {
        quotient
    };
    pair.write(call, &result)
}

fn divided_integers(call: &mut OperatorCall<'_>, pair: &Pair<'_>) -> Composed<(Value, Value)> {
    let a = call.read_side(pair.a, pair.dtype, DType::I64)?;
    Ok((a, call.read_divisor(pair.b, pair.dtype)?))
}

/// Truncates a float.
pub(super) fn truncated(call: &mut OperatorCall<'_>, value: &Value) -> Value {
    let sign = call.node("Sign", &[value], value.dtype);
    let size = call.node("Abs", &[value], value.dtype);
    let floor = call.node("Floor", &[&size], value.dtype);
    let result = call.node("Mul", &[&sign, &floor], value.dtype);
    // Some engines return 0 as the sign of NaN.
    let is_nan = call.is_nan(value);
    call.node("Where", &[&is_nan, value, &result], value.dtype)
}

/// The remainder of a division, with the sign of the dividend. tract swaps the operands if one is
/// broadcast, so both are expanded first.
fn rest(call: &mut OperatorCall<'_>, a: &Value, b: &Value) -> Composed<Value> {
    let dims = call.tensor("out")?.dims();
    let dims = call.constant_dims(dims);
    let a = call.node("Expand", &[a, &dims], a.dtype);
    let b = call.node("Expand", &[b, &dims], b.dtype);
    let fmod = vec![("fmod", OperatorAttribute::Int(1))];
    Ok(call.node_with("Mod", &[&a, &b], fmod, a.dtype))
}

/// Whether a nonzero remainder and the divisor have opposite signs.
fn is_opposed(call: &mut OperatorCall<'_>, rest: &Value, divisor: &Value) -> Composed<Value> {
    // Compared separately: a product of the two could underflow or overflow.
    let zero = call.constant(0.0, rest.dtype);
    let is_below = call.node("Less", &[rest, &zero], DType::Bool);
    let is_above = call.node("Greater", &[rest, &zero], DType::Bool);
    let is_negative = call.node("Less", &[divisor, &zero], DType::Bool);
    let is_positive = call.node("Greater", &[divisor, &zero], DType::Bool);
    let below = call.node("And", &[&is_below, &is_positive], DType::Bool);
    let above = call.node("And", &[&is_above, &is_negative], DType::Bool);
    Ok(call.node("Or", &[&below, &above], DType::Bool))
}

fn floor_divide(call: &mut OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    let result = if is_float(pair.dtype) {
        let (a, b) = pair.read(call)?;
        floor_quotient(call, &a, &b)?
    } else {
        let (a, b) = divided_integers(call, &pair)?;
        let quotient = call.node("Div", &[&a, &b], DType::I64);
        let rest = rest(call, &a, &b)?;
        let is_opposed = is_opposed(call, &rest, &b)?;
        let one = call.cast(&is_opposed, DType::I64);
        call.node("Sub", &[&quotient, &one], DType::I64)
    };
    pair.write(call, &result)
}

/// The quotient of floats, rounded down like in PyTorch: from the exact remainder, since a quotient
/// may be rounded up to the next integer.
fn floor_quotient(call: &mut OperatorCall<'_>, a: &Value, b: &Value) -> Composed<Value> {
    let dtype = a.dtype;
    let plain = call.node("Div", &[a, b], dtype);
    let rest = rest(call, a, b)?;
    let whole = call.node("Sub", &[a, &rest], dtype);
    let mut quotient = call.node("Div", &[&whole, b], dtype);
    let is_opposed = is_opposed(call, &rest, b)?;
    let one = call.cast(&is_opposed, dtype);
    quotient = call.node("Sub", &[&quotient, &one], dtype);
    // The quotient of exact multiples may still miss the integer by an ulp.
    let floor = call.node("Floor", &[&quotient], dtype);
    let distance = call.node("Sub", &[&quotient, &floor], dtype);
    let half = call.constant(0.5, dtype);
    let is_next = call.node("Greater", &[&distance, &half], DType::Bool);
    let next = call.cast(&is_next, dtype);
    let rounded = call.node("Add", &[&floor, &next], dtype);
    let zero = call.constant(0.0, dtype);
    let by_zero = call.node("Equal", &[b, &zero], DType::Bool);
    Ok(call.node("Where", &[&by_zero, &plain, &rounded], dtype))
}

fn remainder(call: &mut OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    let (a, b) = if is_float(pair.dtype) {
        pair.read_rounded(call)?
    } else {
        divided_integers(call, &pair)?
    };
    let rest = rest(call, &a, &b)?;
    let is_opposed = is_opposed(call, &rest, &b)?;
    let turned = call.node("Add", &[&rest, &b], a.dtype);
    let result = call.node("Where", &[&is_opposed, &turned, &rest], a.dtype);
    pair.write(call, &result)
}

fn fmod(call: &mut OperatorCall<'_>) -> Composed {
    let pair = pair(call, "other")?;
    let (a, b) = if is_float(pair.dtype) {
        pair.read_rounded(call)?
    } else {
        divided_integers(call, &pair)?
    };
    let result = rest(call, &a, &b)?;
    pair.write(call, &result)
}

fn atan2(call: &mut OperatorCall<'_>) -> Composed {
    let pair = float_pair(call)?;
    let (y, x) = pair.read_rounded(call)?;
    let dtype = y.dtype;
    let (far, near) = (
        call.node("Abs", &[&x], dtype),
        call.node("Abs", &[&y], dtype),
    );
    let is_steep = call.node("Greater", &[&near, &far], DType::Bool);
    let largest = call.node("Where", &[&is_steep, &near, &far], dtype);
    let least = call.node("Where", &[&is_steep, &far, &near], dtype);
    let quotient = call.node("Div", &[&least, &largest], dtype);
    // Equal sizes are the diagonal, infinite ones too, but for two zeros.
    let (zero, one) = (call.constant(0.0, dtype), call.constant(1.0, dtype));
    let is_diagonal = call.node("Equal", &[&least, &largest], DType::Bool);
    let sum = call.node("Add", &[&least, &largest], dtype);
    let is_origin = call.node("Equal", &[&sum, &zero], DType::Bool);
    let quotient = call.node("Where", &[&is_diagonal, &one, &quotient], dtype);
    let quotient = call.node("Where", &[&is_origin, &zero, &quotient], dtype);
    let angle = call.node("Atan", &[&quotient], dtype);
    let quarter = call.constant(std::f64::consts::FRAC_PI_2, dtype);
    let from_top = call.node("Sub", &[&quarter, &angle], dtype);
    let angle = call.node("Where", &[&is_steep, &from_top, &angle], dtype);
    let half = call.constant(std::f64::consts::PI, dtype);
    let from_left = call.node("Sub", &[&half, &angle], dtype);
    let is_left = is_negative(call, &x)?;
    let angle = call.node("Where", &[&is_left, &from_left, &angle], dtype);
    let below = call.node("Neg", &[&angle], dtype);
    let is_below = is_negative(call, &y)?;
    let result = call.node("Where", &[&is_below, &below, &angle], dtype);
    pair.write(call, &result)
}

/// Whether a float has a negative sign, including -0.
fn is_negative(call: &mut OperatorCall<'_>, value: &Value) -> Composed<Value> {
    let zero = call.constant(0.0, value.dtype);
    // The reciprocal of a zero is an infinity with its sign.
    let one = call.constant(1.0, value.dtype);
    let is_zero = call.node("Equal", &[value, &zero], DType::Bool);
    let inverse = call.node("Div", &[&one, value], value.dtype);
    let shown = call.node("Where", &[&is_zero, &inverse, value], value.dtype);
    Ok(call.node("Less", &[&shown, &zero], DType::Bool))
}

/// The larger value (`Greater`) or the smaller one (`Less`); NaN if either is.
pub(super) fn extreme(
    call: &mut OperatorCall<'_>,
    comparison: &'static str,
    a: &Value,
    b: &Value,
) -> Value {
    let mut is_first = call.node(comparison, &[a, b], DType::Bool);
    if is_float(a.dtype) {
        let is_nan = call.is_nan(a);
        is_first = call.node("Or", &[&is_first, &is_nan], DType::Bool);
    }
    call.node("Where", &[&is_first, a, b], a.dtype)
}

fn maximum(call: &mut OperatorCall<'_>) -> Composed {
    extreme_of_pair(call, "Greater")
}

fn minimum(call: &mut OperatorCall<'_>) -> Composed {
    extreme_of_pair(call, "Less")
}

fn extreme_of_pair(call: &mut OperatorCall<'_>, comparison: &'static str) -> Composed {
    let pair = pair(call, "other")?;
    let (a, b) = pair.read_rounded(call)?;
    let result = extreme(call, comparison, &a, &b);
    pair.write(call, &result)
}

fn clamp(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.side("self")?, call.tensor("out")?);
    let mut bounds = Vec::new();
    for (name, comparison) in [
        ("clipValueMin", "Greater"),
        ("clipValueMax", "Less"),
        ("max", "Less"),
    ] {
        if call.has(name)
            && let Some(bound) = call.optional_side(name)?
        {
            bounds.push((bound, comparison));
        }
    }
    if bounds.is_empty() {
        let text = "`clipValueMin` and `clipValueMax` are null; expected one of them";
        return Err(Refusal::invalid(text));
    }
    let mut sides = vec![x];
    sides.extend(bounds.iter().map(|(bound, _)| *bound));
    call.broadcast(&sides, out)?;
    let dtype = call.promote_sides(&sides)?;
    call.expect_cast(out, dtype)?;
    let compute = arithmetic_type(dtype);
    let mut result = call.read_side(x, dtype, compute)?;
    for (bound, comparison) in bounds {
        // A bound beyond the range of a narrow integer must not wrap around.
        let via = if is_float(dtype) { dtype } else { compute };
        let bound = call.read_side(bound, via, compute)?;
        result = extreme(call, comparison, &result, &bound);
    }
    call.write(out, &result, dtype);
    Ok(())
}

fn power(call: &mut OperatorCall<'_>) -> Composed {
    let pair = pair(call, "exponent")?;
    if is_float(pair.dtype) {
        let compute = compute_type(pair.dtype);
        let base = call.read_side(pair.a, pair.dtype, compute)?;
        let exponent = match pair.b {
            // An exponent that a narrow dtype cannot represent is not rounded to it.
            Side::Scalar(_) => call.read_side(pair.b, compute, compute)?,
            Side::Tensor(_) => call.read_side(pair.b, pair.dtype, compute)?,
        };
        let result = call.node("Pow", &[&base, &exponent], compute);
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
    let result = integer_power(call, &base, &exponent, pair.dtype)?;
    pair.write(call, &result)
}

/// Integer powers by repeated squaring; negative exponents yield the truncated reciprocal.
fn integer_power(
    call: &mut OperatorCall<'_>,
    base: &Value,
    exponent: &Value,
    dtype: DType,
) -> Composed<Value> {
    let int = DType::I64;
    let (zero, one, two) = (
        call.constant(0.0, int),
        call.constant(1.0, int),
        call.constant(2.0, int),
    );
    let n_bits = 8 * dtype.bytes().unwrap_or(8);
    let (mut result, mut square) = (one.clone(), base.clone());
    // The exponent's bits select the squares to multiply; products wrap around as required.
    let mut left = call.node("Abs", &[exponent], int);
    for bit in 0..n_bits {
        if bit > 0 {
            square = call.node("Mul", &[&square, &square], int);
            left = call.node("Div", &[&left, &two], int);
        }
        let digit = call.node("Mod", &[&left, &two], int);
        let is_set = call.node("Equal", &[&digit, &one], DType::Bool);
        let factor = call.node("Where", &[&is_set, &square, &one], int);
        result = call.node("Mul", &[&result, &factor], int);
    }
    let is_negative = call.node("Less", &[exponent, &zero], DType::Bool);
    // 1 and -1 are their own reciprocals; every other reciprocal is truncated to 0.
    let size = call.node("Abs", &[base], int);
    let is_unit = call.node("Equal", &[&size, &one], DType::Bool);
    let inverse = call.node("Where", &[&is_unit, &result, &zero], int);
    Ok(call.node("Where", &[&is_negative, &inverse, &result], int))
}

fn addcmul(call: &mut OperatorCall<'_>) -> Composed {
    addc(call, "Mul")
}

fn addcdiv(call: &mut OperatorCall<'_>) -> Composed {
    let sides = [call.side("tensor1")?, call.side("tensor2")?];
    if sides
        .iter()
        .all(|side| is_integer(side.dtype()) || side.dtype() == DType::Bool)
    {
        let text = "`tensor1` and `tensor2` are integers; expected a float to divide";
        return Err(Refusal::invalid(text));
    }
    addc(call, "Div")
}

fn addc(call: &mut OperatorCall<'_>, op: &'static str) -> Composed {
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
    let scaled = call.node("Mul", &[&value, &a], compute);
    let term = call.node(op, &[&scaled, &b], compute);
    let result = call.node("Add", &[&x, &term], compute);
    call.write(out, &result, dtype);
    Ok(())
}

fn lerp(call: &mut OperatorCall<'_>) -> Composed {
    let (start, end) = (call.tensor("self")?, call.tensor("end")?);
    let (weight, out) = (call.side("weight")?, call.tensor("out")?);
    call.expect_float(start)?;
    call.broadcast(&[Side::Tensor(start), Side::Tensor(end), weight], out)?;
    let dtype = call.promote_sides(&[Side::Tensor(start), Side::Tensor(end), weight])?;
    call.expect_cast(out, dtype)?;
    let compute = compute_type(dtype);
    let (a, b) = (call.read(start, compute)?, call.read(end, compute)?);
    let weight = call.read_side(weight, compute, compute)?;
    let way = call.node("Sub", &[&b, &a], compute);
    let step = call.node("Mul", &[&weight, &way], compute);
    let from_start = call.node("Add", &[&a, &step], compute);
    // Computed from the nearer end, so that a weight of 1 yields the end.
    let one = call.constant(1.0, compute);
    let rest = call.node("Sub", &[&one, &weight], compute);
    let back = call.node("Mul", &[&way, &rest], compute);
    let from_end = call.node("Sub", &[&b, &back], compute);
    let half = call.constant(0.5, compute);
    let size = call.node("Abs", &[&weight], compute);
    let is_near = call.node("Less", &[&size, &half], DType::Bool);
    let result = call.node("Where", &[&is_near, &from_start, &from_end], compute);
    call.write(out, &result, dtype);
    Ok(())
}
