//! Functions of one operand, element by element.

use opscope_tensor::DType;

use super::elementwise::truncated;
use crate::aclnn::call::{Composed, OperatorCall, Value, arithmetic_type, as_float, refuse_if};
use crate::aclnn::promotion::{compute_type, is_float, is_number};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of functions of one operand.
#[macro_export]
macro_rules! aclnn_unary {
    ($rows:ident) => {
        $rows! { "functions of one operand";
            Abs("aclnn_abs.h", "the absolute value") by number_function(Value::abs):
                aclnnAbs(self_: Tensor, out: Out);
            Neg("aclnn_neg.h", "-self") by number_function(|x| -x):
                aclnnNeg(self_: Tensor, out: Out), aclnnInplaceNeg(selfRef: Inplace);
            Sign("aclnn_sign.h", "-1, 0 or 1") by typed_function(sign, sign):
                aclnnSign(self_: Tensor, result: Out);
            Exp("aclnn_exp.h", "e to the power of self") by float_function(Value::exp):
                aclnnExp(self_: Tensor, out: Out), aclnnInplaceExp(selfRef: Inplace);
            Exp2("aclnn_exp2.h", "2 to the power of self") by float_function(power_of_two):
                aclnnExp2(self_: Tensor, out: Out), aclnnInplaceExp2(selfRef: Inplace);
            Expm1("aclnn_expm1.h", "e to the power of self, minus 1") by float_function(exp_minus_one):
                aclnnExpm1(self_: Tensor, out: Out), aclnnInplaceExpm1(selfRef: Inplace);
            Log("aclnn_log.h", "the natural logarithm") by float_function(Value::log):
                aclnnLog(self_: Tensor, out: Out), aclnnInplaceLog(selfRef: Inplace);
            Log2("aclnn_log2.h", "the logarithm to the base of 2") by float_function(|x| x.log() / std::f64::consts::LN_2):
                aclnnLog2(self_: Tensor, out: Out), aclnnInplaceLog2(selfRef: Inplace);
            Log10("aclnn_log10.h", "the logarithm to the base of 10") by float_function(|x| x.log() / std::f64::consts::LN_10):
                aclnnLog10(self_: Tensor, out: Out), aclnnInplaceLog10(selfRef: Inplace);
            Log1p("aclnn_log1p.h", "the natural logarithm of 1 + self") by float_function(log_one_plus):
                aclnnLog1p(self_: Tensor, out: Out), aclnnInplaceLog1p(selfRef: Inplace);
            Sqrt("aclnn_sqrt.h", "the square root") by float_function(Value::sqrt):
                aclnnSqrt(self_: Tensor, out: Out), aclnnInplaceSqrt(self_: Inplace);
            Rsqrt("aclnn_rsqrt.h", "1 / the square root") by float_function(|x| 1.0 / x.sqrt()):
                aclnnRsqrt(self_: Tensor, out: Out), aclnnInplaceRsqrt(selfRef: Inplace);
            Reciprocal("aclnn_reciprocal.h", "1 / self") by float_function(|x| 1.0 / x):
                aclnnReciprocal(self_: Tensor, out: Out), aclnnInplaceReciprocal(selfRef: Inplace);
            Sin("aclnn_sin.h", "the sine") by float_function(Value::sin):
                aclnnSin(self_: Tensor, out: Out), aclnnInplaceSin(selfRef: Inplace);
            Cos("aclnn_cos.h", "the cosine") by float_function(Value::cos):
                aclnnCos(input: Tensor, out: Out), aclnnInplaceCos(inputRef: Inplace);
            Tan("aclnn_tan.h", "the tangent") by float_function(Value::tan):
                aclnnTan(self_: Tensor, out: Out), aclnnInplaceTan(selfRef: Inplace);
            Asin("aclnn_asin.h", "the angle of this sine") by float_function(Value::asin):
                aclnnAsin(self_: Tensor, out: Out), aclnnInplaceAsin(selfRef: Inplace);
            Acos("aclnn_acos.h", "the angle of this cosine") by float_function(Value::acos):
                aclnnAcos(input: Tensor, out: Out), aclnnInplaceAcos(inputRef: Inplace);
            Atan("aclnn_atan.h", "the angle of this tangent") by float_function(Value::atan):
                aclnnAtan(input: Tensor, out: Out), aclnnInplaceAtan(inputRef: Inplace);
            Sinh("aclnn_sinh.h", "the hyperbolic sine") by float_function(Value::sinh):
                aclnnSinh(self_: Tensor, out: Out), aclnnInplaceSinh(selfRef: Inplace);
            Cosh("aclnn_cosh.h", "the hyperbolic cosine") by float_function(Value::cosh):
                aclnnCosh(self_: Tensor, out: Out), aclnnInplaceCosh(selfRef: Inplace);
            Tanh("aclnn_tanh.h", "the hyperbolic tangent") by float_function(wide_tanh):
                aclnnTanh(self_: Tensor, out: Out), aclnnInplaceTanh(selfRef: Inplace);
            Asinh("aclnn_asinh.h", "the inverse of the hyperbolic sine") by float_function(Value::asinh):
                aclnnAsinh(input: Tensor, out: Out), aclnnInplaceAsinh(inputRef: Inplace);
            Acosh("aclnn_acosh.h", "the inverse of the hyperbolic cosine") by float_function(Value::acosh):
                aclnnAcosh(self_: Tensor, out: Out), aclnnInplaceAcosh(selfRef: Inplace);
            Atanh("aclnn_atanh.h", "the inverse of the hyperbolic tangent") by float_function(atanh):
                aclnnAtanh(input: Tensor, out: Out), aclnnInplaceAtanh(inputRef: Inplace);
            Erf("aclnn_erf.h", "the error function") by error_function(erf):
                aclnnErf(self_: Tensor, out: Out), aclnnInplaceErf(selfRef: Inplace);
            Erfc("aclnn_erfc.h", "1 - the error function") by error_function(erf_rest):
                aclnnErfc(self_: Tensor, out: Out), aclnnInplaceErfc(selfRef: Inplace);
            Floor("aclnn_floor.h", "rounded down") by rounding(Value::floor):
                aclnnFloor(self_: Tensor, out: Out), aclnnInplaceFloor(selfRef: Inplace);
            Ceil("aclnn_ceil.h", "rounded up") by rounding(Value::ceil):
                aclnnCeil(self_: Tensor, out: Out), aclnnInplaceCeil(selfRef: Inplace);
            Round("aclnn_round.h", "rounded to the nearest integer, halves to the even one") by rounding(rounded):
                aclnnRound(self_: Tensor, out: Out), aclnnInplaceRound(selfRef: Inplace);
            Trunc("aclnn_trunc.h", "without what stands behind the point") by rounding(truncated):
                aclnnTrunc(self_: Tensor, out: Out), aclnnInplaceTrunc(selfRef: Inplace);
            Frac("aclnn_frac.h", "what stands behind the point") by fraction():
                aclnnFrac(input: Tensor, out: Out), aclnnInplaceFrac(inputRef: Inplace);
        }
    };
}
aclnn_unary!(operator_rows);

/// The nodes of a function of one operand.
pub(super) type Formula = fn(&Value) -> Value;

/// A function with floating-point results.
fn float_function(call: &OperatorCall<'_>, function: Formula) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_dtype(x, is_number, "booleans, integers or floats")?;
    let dtype = as_float(x.dtype);
    call.expect_cast(out, dtype)?;
    // Integers are converted to the float dtype of the result on input.
    let value = call.read(x, compute_type(dtype))?;
    call.write(out, function(&value), dtype)
}

/// An error function, whose approximations have single precision.
fn error_function(call: &OperatorCall<'_>, function: Formula) -> Composed {
    float_function(call, function)?;
    refuse_if!(
        call.tensor("self")?.dtype == DType::F64,
        "`self` is float64; expected float16, bfloat16, float32 or integers"
    );
    Ok(())
}

/// A function whose results have the operand's dtype. `of_integers` is the function for integers.
fn typed_function(call: &OperatorCall<'_>, of_floats: Formula, of_integers: Formula) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_like(out, x)?;
    let value = call.read(x, arithmetic_type(x.dtype))?;
    let function = if is_float(x.dtype) {
        of_floats
    } else {
        of_integers
    };
    call.write(out, function(&value), x.dtype)
}

/// Like [`typed_function`], for the same function of floats and integers, but not of booleans.
fn number_function(call: &OperatorCall<'_>, function: Formula) -> Composed {
    let x = call.tensor("self")?;
    call.expect_dtype(x, |dtype| dtype != DType::Bool, "integers or floats")?;
    typed_function(call, function, function)
}

/// Integers have no fraction, so rounding leaves them as they are.
fn rounding(call: &OperatorCall<'_>, function: Formula) -> Composed {
    let x = call.tensor("self")?;
    call.expect_dtype(x, |dtype| dtype != DType::Bool, "integers or floats")?;
    typed_function(call, function, Value::clone)
}

fn fraction(call: &OperatorCall<'_>) -> Composed {
    call.expect_float(call.tensor("self")?)?;
    typed_function(call, |x| x - truncated(x), Value::clone)
}

/// 0 for NaN, as in PyTorch; engines differ.
fn sign(x: &Value) -> Value {
    x.is_nan().choose(0.0, x.sign())
}

/// A sum with this number, 2^52, has no fraction in double precision.
const NO_FRACTION: f64 = 4_503_599_627_370_496.0;

/// A float rounded to the nearest integer, halves to the even one.
pub(super) fn rounded(x: &Value) -> Value {
    if x.dtype != DType::F64 {
        return x.round();
    }
    // Engines may lack the operator for float64.
    let size = x.abs();
    let result = sign(x) * (&size + NO_FRACTION - NO_FRACTION);
    size.less(NO_FRACTION).choose(&result, x)
}

/// 2 to the power of `x`.
fn power_of_two(x: &Value) -> Value {
    x.number(2.0).pow(x)
}

/// In double precision, as single-precision approximations lack digits.
fn wide_tanh(x: &Value) -> Value {
    x.cast(DType::F64).tanh().cast(x.dtype)
}

/// As half of `log1p(2x / (1 - x))`, which keeps the digits of small numbers.
fn atanh(x: &Value) -> Value {
    let wide = x.cast(DType::F64);
    let log = log_one_plus(&(&wide * 2.0 / (1.0 - &wide)));
    (log / 2.0).cast(x.dtype)
}

/// `e^x - 1` as `(e^x + 1) · tanh(x/2)`, which keeps the digits of small numbers.
pub(super) fn exp_minus_one(x: &Value) -> Value {
    let wide = x.cast(DType::F64);
    // tanh is accurate to its last digits near 0, where the power minus 1 is not.
    let tanh = (&wide * 0.5).tanh();
    ((wide.exp() + 1.0) * tanh).cast(x.dtype)
}

/// `log(1 + x)` as `log(u) · x / (u - 1)` with `u` the rounded `1 + x`, which compensates for the
/// rounding.
#[expect(clippy::eq_op, reason = "a quotient of infinities is NaN")]
pub(super) fn log_one_plus(x: &Value) -> Value {
    let sum = x + 1.0;
    let log = sum.log();
    // For infinity the factor is NaN. Of the possible operands only infinities make the quotient
    // of two equal ones NaN.
    let is_infinite = (x / x).is_nan();
    let large = is_infinite.choose(&log, &log * (x / (&sum - 1.0)));
    sum.equal(1.0).choose(x, &large)
}

/// Coefficients of the exponent in powers of `2 / (2 + |x|)`, from the highest one. The error
/// is below 1.2e-7 of the value everywhere (W. H. Press and others, Numerical Recipes).
const ERFC: [f64; 10] = [
    0.170_872_77,
    -0.822_152_23,
    1.488_515_87,
    -1.135_203_98,
    0.278_868_07,
    -0.186_288_06,
    0.096_784_18,
    0.374_091_96,
    1.000_023_68,
    -1.265_512_23,
];

/// Number of terms of the series around 0, sufficient up to 1.
const N_ERF_TERMS: u32 = 13;

/// 1 - erf, for non-negative numbers in double precision.
fn erfc_of_positive(size: &Value) -> Value {
    // Errors of the exponent are amplified.
    let t = 1.0 / (1.0 + size / 2.0);
    &t * (polynomial(&t, &ERFC) - size * size).exp()
}

/// The polynomial with these coefficients, highest power first.
fn polynomial(x: &Value, coefficients: &[f64]) -> Value {
    let zero = x.number(0.0);
    coefficients
        .iter()
        .fold(zero, |sum, &coefficient| sum * x + coefficient)
}

/// `1 - erf(x)`, with the digits of small results.
pub(super) fn erf_rest(x: &Value) -> Value {
    let x = x.cast(DType::F64);
    let right = erfc_of_positive(&x.abs());
    x.less(0.0).choose(2.0 - &right, &right).cast(DType::F32)
}

/// The series around 0, and the complement elsewhere: the engines' functions lack digits for
/// small numbers.
fn erf(x: &Value) -> Value {
    let x = x.cast(DType::F64);
    let size = x.abs();
    // From 1 on the complement is so small that its error is negligible.
    let large = 1.0 - erfc_of_positive(&size);
    let coefficients: Vec<f64> = (0..N_ERF_TERMS).rev().map(erf_coefficient).collect();
    let small = &size * polynomial(&(&size * &size), &coefficients);
    let result = sign(&x) * size.less(1.0).choose(&small, &large);
    x.is_nan().choose(&x, &result).cast(DType::F32)
}

/// `2/sqrt(pi) · (-1)^n / (n! (2n + 1))`.
fn erf_coefficient(n: u32) -> f64 {
    let sign = if n.is_multiple_of(2) { 1.0 } else { -1.0 };
    let factorial: f64 = (1..=n).map(f64::from).product();
    std::f64::consts::FRAC_2_SQRT_PI * sign / (factorial * f64::from(2 * n + 1))
}
