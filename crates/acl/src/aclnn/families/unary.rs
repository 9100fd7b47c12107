//! Functions of one operand, element by element.

use opscope_tensor::DType;

use super::elementwise::truncated;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, Value, arithmetic_type, as_float};
use crate::aclnn::promotion::{compute_type, is_float, is_number};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of functions of one operand.
#[macro_export]
macro_rules! aclnn_unary {
    ($rows:ident) => {
        $rows! { "functions of one operand";
            aclnnAbs = Abs("aclnn_abs.h", "the absolute value") by absolute
                (self_: Tensor, out: Out);
            aclnnNeg = Neg("aclnn_neg.h", "-self") by negate
                (self_: Tensor, out: Out);
            aclnnInplaceNeg = Neg("aclnn_neg.h", "-self") by negate
                (selfRef: Inplace);
            aclnnSign = Sign("aclnn_sign.h", "-1, 0 or 1") by sign
                (self_: Tensor, result: Out);
            aclnnExp = Exp("aclnn_exp.h", "e to the power of self") by exp
                (self_: Tensor, out: Out);
            aclnnInplaceExp = Exp("aclnn_exp.h", "e to the power of self") by exp
                (selfRef: Inplace);
            aclnnExp2 = Exp2("aclnn_exp2.h", "2 to the power of self") by exp2
                (self_: Tensor, out: Out);
            aclnnInplaceExp2 = Exp2("aclnn_exp2.h", "2 to the power of self") by exp2
                (selfRef: Inplace);
            aclnnExpm1 = Expm1("aclnn_expm1.h", "e to the power of self, minus 1") by expm1
                (self_: Tensor, out: Out);
            aclnnInplaceExpm1 = Expm1("aclnn_expm1.h", "e to the power of self, minus 1") by expm1
                (selfRef: Inplace);
            aclnnLog = Log("aclnn_log.h", "the natural logarithm") by log
                (self_: Tensor, out: Out);
            aclnnInplaceLog = Log("aclnn_log.h", "the natural logarithm") by log
                (selfRef: Inplace);
            aclnnLog2 = Log2("aclnn_log2.h", "the logarithm to the base of 2") by log2
                (self_: Tensor, out: Out);
            aclnnInplaceLog2 = Log2("aclnn_log2.h", "the logarithm to the base of 2") by log2
                (selfRef: Inplace);
            aclnnLog10 = Log10("aclnn_log10.h", "the logarithm to the base of 10") by log10
                (self_: Tensor, out: Out);
            aclnnInplaceLog10 = Log10("aclnn_log10.h", "the logarithm to the base of 10") by log10
                (selfRef: Inplace);
            aclnnLog1p = Log1p("aclnn_log1p.h", "the natural logarithm of 1 + self") by log1p
                (self_: Tensor, out: Out);
            aclnnInplaceLog1p = Log1p("aclnn_log1p.h", "the natural logarithm of 1 + self") by log1p
                (selfRef: Inplace);
            aclnnSqrt = Sqrt("aclnn_sqrt.h", "the square root") by sqrt
                (self_: Tensor, out: Out);
            aclnnInplaceSqrt = Sqrt("aclnn_sqrt.h", "the square root") by sqrt
                (self_: Inplace);
            aclnnRsqrt = Rsqrt("aclnn_rsqrt.h", "1 / the square root") by rsqrt
                (self_: Tensor, out: Out);
            aclnnInplaceRsqrt = Rsqrt("aclnn_rsqrt.h", "1 / the square root") by rsqrt
                (selfRef: Inplace);
            aclnnReciprocal = Reciprocal("aclnn_reciprocal.h", "1 / self") by reciprocal
                (self_: Tensor, out: Out);
            aclnnInplaceReciprocal = Reciprocal("aclnn_reciprocal.h", "1 / self") by reciprocal
                (selfRef: Inplace);
            aclnnSin = Sin("aclnn_sin.h", "the sine") by sin
                (self_: Tensor, out: Out);
            aclnnInplaceSin = Sin("aclnn_sin.h", "the sine") by sin
                (selfRef: Inplace);
            aclnnCos = Cos("aclnn_cos.h", "the cosine") by cos
                (input: Tensor, out: Out);
            aclnnInplaceCos = Cos("aclnn_cos.h", "the cosine") by cos
                (inputRef: Inplace);
            aclnnTan = Tan("aclnn_tan.h", "the tangent") by tan
                (self_: Tensor, out: Out);
            aclnnInplaceTan = Tan("aclnn_tan.h", "the tangent") by tan
                (selfRef: Inplace);
            aclnnAsin = Asin("aclnn_asin.h", "the angle of this sine") by asin
                (self_: Tensor, out: Out);
            aclnnInplaceAsin = Asin("aclnn_asin.h", "the angle of this sine") by asin
                (selfRef: Inplace);
            aclnnAcos = Acos("aclnn_acos.h", "the angle of this cosine") by acos
                (input: Tensor, out: Out);
            aclnnInplaceAcos = Acos("aclnn_acos.h", "the angle of this cosine") by acos
                (inputRef: Inplace);
            aclnnAtan = Atan("aclnn_atan.h", "the angle of this tangent") by atan
                (input: Tensor, out: Out);
            aclnnInplaceAtan = Atan("aclnn_atan.h", "the angle of this tangent") by atan
                (inputRef: Inplace);
            aclnnSinh = Sinh("aclnn_sinh.h", "the hyperbolic sine") by sinh
                (self_: Tensor, out: Out);
            aclnnInplaceSinh = Sinh("aclnn_sinh.h", "the hyperbolic sine") by sinh
                (selfRef: Inplace);
            aclnnCosh = Cosh("aclnn_cosh.h", "the hyperbolic cosine") by cosh
                (self_: Tensor, out: Out);
            aclnnInplaceCosh = Cosh("aclnn_cosh.h", "the hyperbolic cosine") by cosh
                (selfRef: Inplace);
            aclnnTanh = Tanh("aclnn_tanh.h", "the hyperbolic tangent") by tanh
                (self_: Tensor, out: Out);
            aclnnInplaceTanh = Tanh("aclnn_tanh.h", "the hyperbolic tangent") by tanh
                (selfRef: Inplace);
            aclnnAsinh = Asinh("aclnn_asinh.h", "the inverse of the hyperbolic sine") by asinh
                (input: Tensor, out: Out);
            aclnnInplaceAsinh = Asinh("aclnn_asinh.h", "the inverse of the hyperbolic sine") by asinh
                (inputRef: Inplace);
            aclnnAcosh = Acosh("aclnn_acosh.h", "the inverse of the hyperbolic cosine") by acosh
                (self_: Tensor, out: Out);
            aclnnInplaceAcosh = Acosh("aclnn_acosh.h", "the inverse of the hyperbolic cosine") by acosh
                (selfRef: Inplace);
            aclnnAtanh = Atanh("aclnn_atanh.h", "the inverse of the hyperbolic tangent") by atanh
                (input: Tensor, out: Out);
            aclnnInplaceAtanh = Atanh("aclnn_atanh.h", "the inverse of the hyperbolic tangent") by atanh
                (inputRef: Inplace);
            aclnnErf = Erf("aclnn_erf.h", "the error function") by erf
                (self_: Tensor, out: Out);
            aclnnInplaceErf = Erf("aclnn_erf.h", "the error function") by erf
                (selfRef: Inplace);
            aclnnErfc = Erfc("aclnn_erfc.h", "1 - the error function") by erfc
                (self_: Tensor, out: Out);
            aclnnInplaceErfc = Erfc("aclnn_erfc.h", "1 - the error function") by erfc
                (selfRef: Inplace);
            aclnnFloor = Floor("aclnn_floor.h", "rounded down") by floor
                (self_: Tensor, out: Out);
            aclnnInplaceFloor = Floor("aclnn_floor.h", "rounded down") by floor
                (selfRef: Inplace);
            aclnnCeil = Ceil("aclnn_ceil.h", "rounded up") by ceil
                (self_: Tensor, out: Out);
            aclnnInplaceCeil = Ceil("aclnn_ceil.h", "rounded up") by ceil
                (selfRef: Inplace);
            aclnnRound = Round("aclnn_round.h", "rounded to the nearest integer, halves to the even one") by round
                (self_: Tensor, out: Out);
            aclnnInplaceRound = Round("aclnn_round.h", "rounded to the nearest integer, halves to the even one") by round
                (selfRef: Inplace);
            aclnnTrunc = Trunc("aclnn_trunc.h", "without what stands behind the point") by trunc
                (self_: Tensor, out: Out);
            aclnnInplaceTrunc = Trunc("aclnn_trunc.h", "without what stands behind the point") by trunc
                (selfRef: Inplace);
            aclnnFrac = Frac("aclnn_frac.h", "what stands behind the point") by frac
                (input: Tensor, out: Out);
            aclnnInplaceFrac = Frac("aclnn_frac.h", "what stands behind the point") by frac
                (inputRef: Inplace);
        }
    };
}
aclnn_unary!(operator_rows);

/// Functions with floating-point results, given the operand's value: `name = function;`
macro_rules! float_functions {
    ($($name:ident = $function:ident;)+) => {$(
        fn $name(call: &mut OperatorCall<'_>) -> Composed {
            float_function(call, nodes::$function)
        }
    )+};
}

float_functions! {
    exp = exp;
    exp2 = exp2;
    expm1 = expm1;
    log = log;
    log2 = log2;
    log10 = log10;
    log1p = log1p;
    sqrt = sqrt;
    rsqrt = rsqrt;
    reciprocal = reciprocal;
    sin = sin;
    cos = cos;
    tan = tan;
    asin = asin;
    acos = acos;
    atan = atan;
    sinh = sinh;
    cosh = cosh;
    tanh = tanh;
    asinh = asinh;
    acosh = acosh;
    atanh = atanh;
    erf = erf;
    erfc = erfc;
}

type NodeFunction = fn(&mut OperatorCall<'_>, &Value) -> Composed<Value>;

fn float_function(call: &mut OperatorCall<'_>, function: NodeFunction) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_dtype(x, is_number, "booleans, integers or floats")?;
    let dtype = as_float(x.dtype);
    call.expect_cast(out, dtype)?;
    // Integers are converted to the float dtype of the result on input.
    let value = call.read(x, compute_type(dtype))?;
    let result = function(call, &value)?;
    call.write(out, &result, dtype);
    Ok(())
}

/// A function whose results have the operand's dtype. `of_integers` is the function for integers.
fn typed_function(
    call: &mut OperatorCall<'_>,
    of_floats: NodeFunction,
    of_integers: NodeFunction,
) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, x.dtype)?;
    let value = call.read(x, arithmetic_type(x.dtype))?;
    // Integers have no fraction, so rounding leaves them as they are.
    let function = if is_float(x.dtype) {
        of_floats
    } else {
        of_integers
    };
    let result = function(call, &value)?;
    call.write(out, &result, x.dtype);
    Ok(())
}

fn refuse_booleans(call: &OperatorCall<'_>) -> Composed {
    let x = call.tensor("self")?;
    call.expect_dtype(x, |dtype| dtype != DType::Bool, "integers or floats")
}

fn absolute(call: &mut OperatorCall<'_>) -> Composed {
    refuse_booleans(call)?;
    typed_function(call, nodes::abs, nodes::abs)
}

fn negate(call: &mut OperatorCall<'_>) -> Composed {
    refuse_booleans(call)?;
    typed_function(call, nodes::neg, nodes::neg)
}

fn sign(call: &mut OperatorCall<'_>) -> Composed {
    typed_function(call, nodes::sign, nodes::sign)
}

fn floor(call: &mut OperatorCall<'_>) -> Composed {
    refuse_booleans(call)?;
    typed_function(call, nodes::floor, nodes::same)
}

fn ceil(call: &mut OperatorCall<'_>) -> Composed {
    refuse_booleans(call)?;
    typed_function(call, nodes::ceil, nodes::same)
}

fn round(call: &mut OperatorCall<'_>) -> Composed {
    refuse_booleans(call)?;
    typed_function(call, nodes::round, nodes::same)
}

fn trunc(call: &mut OperatorCall<'_>) -> Composed {
    refuse_booleans(call)?;
    typed_function(call, nodes::trunc, nodes::same)
}

fn frac(call: &mut OperatorCall<'_>) -> Composed {
    let x = call.tensor("self")?;
    call.expect_float(x)?;
    typed_function(call, nodes::frac, nodes::same)
}

/// A float rounded to the nearest integer, halves to the even one.
pub(super) fn rounded(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    nodes::round(call, x)
}

/// `e^x - 1`, with the digits of small numbers.
pub(super) fn exp_minus_one(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    nodes::expm1(call, x)
}

/// `log(1 + x)`, with the digits of small numbers.
pub(super) fn log_one_plus(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    nodes::log1p(call, x)
}

/// `1 - erf(x)`, with the digits of small results.
pub(super) fn erf_rest(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
    nodes::erfc(call, x)
}

/// The nodes of each function.
mod nodes {
    use super::*;

    /// Functions of a single node.
    macro_rules! single_nodes {
        ($($name:ident = $op:literal;)+) => {$(
            pub(super) fn $name(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
                Ok(call.node($op, &[x], x.dtype))
            }
        )+};
    }

    single_nodes! {
        exp = "Exp";
        log = "Log";
        sqrt = "Sqrt";
        sin = "Sin";
        cos = "Cos";
        tan = "Tan";
        asin = "Asin";
        acos = "Acos";
        atan = "Atan";
        sinh = "Sinh";
        cosh = "Cosh";
        asinh = "Asinh";
        acosh = "Acosh";
        abs = "Abs";
        neg = "Neg";
        floor = "Floor";
        ceil = "Ceil";
        same = "Identity";
    }

    /// 0 for NaN, as in PyTorch; engines differ.
    pub(super) fn sign(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        let sign = call.node("Sign", &[x], x.dtype);
        let zero = call.constant(0.0, x.dtype);
        let is_nan = call.is_nan(x);
        Ok(call.node("Where", &[&is_nan, &zero, &sign], x.dtype))
    }

    /// Adding and subtracting 2^52 removes the fraction; engines may lack the operator for float64.
    pub(super) fn round(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        if x.dtype != DType::F64 {
            return Ok(call.node("Round", &[x], x.dtype));
        }
        let dtype = DType::F64;
        let large = call.constant(4_503_599_627_370_496.0, dtype);
        let size = call.node("Abs", &[x], dtype);
        let sum = call.node("Add", &[&size, &large], dtype);
        let rounded = call.node("Sub", &[&sum, &large], dtype);
        let sign = sign(call, x)?;
        let result = call.node("Mul", &[&sign, &rounded], dtype);
        let is_small = call.node("Less", &[&size, &large], DType::Bool);
        Ok(call.node("Where", &[&is_small, &result, x], dtype))
    }

    #[expect(clippy::unnecessary_wraps, reason = "others fail")]
    pub(super) fn trunc(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        Ok(truncated(call, x))
    }

    #[expect(clippy::unnecessary_wraps, reason = "others fail")]
    pub(super) fn frac(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        let whole = truncated(call, x);
        Ok(call.node("Sub", &[x, &whole], x.dtype))
    }

    pub(super) fn exp2(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        let two = call.constant(2.0, x.dtype);
        Ok(call.node("Pow", &[&two, x], x.dtype))
    }

    /// In double precision, as single-precision approximations lack digits.
    #[expect(clippy::unnecessary_wraps, reason = "others fail")]
    pub(super) fn tanh(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        let wide = call.cast(x, DType::F64);
        let result = call.node("Tanh", &[&wide], DType::F64);
        Ok(call.cast(&result, x.dtype))
    }

    /// As half of `log1p(2x / (1 - x))`, which keeps the digits of small numbers.
    pub(super) fn atanh(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        let dtype = DType::F64;
        let wide = call.cast(x, dtype);
        let (one, two) = (call.constant(1.0, dtype), call.constant(2.0, dtype));
        let double = call.node("Mul", &[&wide, &two], dtype);
        let rest = call.node("Sub", &[&one, &wide], dtype);
        let quotient = call.node("Div", &[&double, &rest], dtype);
        let log = log1p(call, &quotient)?;
        let half = call.node("Div", &[&log, &two], dtype);
        Ok(call.cast(&half, x.dtype))
    }

    /// As `(e^x + 1) · tanh(x/2)`, which keeps the digits of small numbers.
    pub(super) fn expm1(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        let dtype = x.dtype;
        let x = &call.cast(x, DType::F64);
        let (half, one) = (call.constant(0.5, x.dtype), call.constant(1.0, x.dtype));
        // tanh is accurate to its last digits near 0, where the power minus 1 is not.
        let half = call.node("Mul", &[x, &half], x.dtype);
        let tanh = call.node("Tanh", &[&half], x.dtype);
        let exp = call.node("Exp", &[x], x.dtype);
        let sum = call.node("Add", &[&exp, &one], x.dtype);
        let result = call.node("Mul", &[&sum, &tanh], x.dtype);
        Ok(call.cast(&result, dtype))
    }

    fn logarithm(call: &mut OperatorCall<'_>, x: &Value, base: f64) -> Composed<Value> {
        let log = call.node("Log", &[x], x.dtype);
        let base = call.constant(base, x.dtype);
        Ok(call.node("Div", &[&log, &base], x.dtype))
    }

    pub(super) fn log2(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        logarithm(call, x, std::f64::consts::LN_2)
    }

    pub(super) fn log10(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        logarithm(call, x, std::f64::consts::LN_10)
    }

    /// As `log(u) · x / (u - 1)` with `u` the rounded `1 + x`, which compensates for the rounding.
    pub(super) fn log1p(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        let dtype = x.dtype;
        let one = call.constant(1.0, dtype);
        let sum = call.node("Add", &[x, &one], dtype);
        let log = call.node("Log", &[&sum], dtype);
        let rounded = call.node("Sub", &[&sum, &one], dtype);
        let factor = call.node("Div", &[x, &rounded], dtype);
        let product = call.node("Mul", &[&log, &factor], dtype);
        let is_one = call.node("Equal", &[&sum, &one], DType::Bool);
        // Of the possible operands only infinities make this quotient NaN.
        let infinity = call.node("Div", &[x, x], dtype);
        // For infinity the factor is NaN.
        let is_odd = call.is_nan(&infinity);
        let large = call.node("Where", &[&is_odd, &log, &product], dtype);
        Ok(call.node("Where", &[&is_one, x, &large], dtype))
    }

    pub(super) fn rsqrt(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        // Engines have no operator for the reciprocal square root.
        let root = call.node("Sqrt", &[x], x.dtype);
        reciprocal(call, &root)
    }

    pub(super) fn reciprocal(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        let one = call.constant(1.0, x.dtype);
        Ok(call.node("Div", &[&one, x], x.dtype))
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

    fn refuse_doubles(x: &Value) -> Composed {
        if x.dtype == DType::F64 {
            // The approximations have single precision.
            let text = "`self` is float64; expected float16, bfloat16, float32 or integers";
            return Err(Refusal::invalid(text));
        }
        Ok(())
    }

    /// 1 - erf, for non-negative numbers in double precision.
    fn erfc_of_positive(call: &mut OperatorCall<'_>, size: &Value) -> Composed<Value> {
        // Errors of the exponent are amplified.
        let dtype = DType::F64;
        let (one, two) = (call.constant(1.0, dtype), call.constant(2.0, dtype));
        let half = call.node("Div", &[size, &two], dtype);
        let below = call.node("Add", &[&one, &half], dtype);
        let t = call.node("Div", &[&one, &below], dtype);
        let sum = polynomial(call, &t, &ERFC)?;
        let square = call.node("Mul", &[size, size], dtype);
        let exponent = call.node("Sub", &[&sum, &square], dtype);
        let power = call.node("Exp", &[&exponent], dtype);
        Ok(call.node("Mul", &[&t, &power], dtype))
    }

    /// The polynomial with these coefficients, highest power first.
    fn polynomial(call: &mut OperatorCall<'_>, x: &Value, coefficients: &[f64]) -> Composed<Value> {
        let mut sum = call.constant(0.0, x.dtype);
        for &coefficient in coefficients {
            let product = call.node("Mul", &[&sum, x], x.dtype);
            let coefficient = call.constant(coefficient, x.dtype);
            sum = call.node("Add", &[&product, &coefficient], x.dtype);
        }
        Ok(sum)
    }

    pub(super) fn erfc(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        refuse_doubles(x)?;
        let dtype = DType::F64;
        let x = call.cast(x, dtype);
        let size = call.node("Abs", &[&x], dtype);
        let right = erfc_of_positive(call, &size)?;
        let (zero, two) = (call.constant(0.0, dtype), call.constant(2.0, dtype));
        let left = call.node("Sub", &[&two, &right], dtype);
        let is_left = call.node("Less", &[&x, &zero], DType::Bool);
        let result = call.node("Where", &[&is_left, &left, &right], dtype);
        Ok(call.cast(&result, DType::F32))
    }

    /// The series around 0, and the complement elsewhere: the engines' functions lack digits for
    /// small numbers.
    pub(super) fn erf(call: &mut OperatorCall<'_>, x: &Value) -> Composed<Value> {
        refuse_doubles(x)?;
        let dtype = DType::F64;
        let x = call.cast(x, dtype);
        let size = call.node("Abs", &[&x], dtype);
        let one = call.constant(1.0, dtype);
        let complement = erfc_of_positive(call, &size)?;
        // From 1 on the complement is so small that its error is negligible.
        let large = call.node("Sub", &[&one, &complement], dtype);
        let square = call.node("Mul", &[&size, &size], dtype);
        let coefficients: Vec<f64> = (0..N_ERF_TERMS).rev().map(erf_coefficient).collect();
        let sum = polynomial(call, &square, &coefficients)?;
        let small = call.node("Mul", &[&size, &sum], dtype);
        let is_small = call.node("Less", &[&size, &one], DType::Bool);
        let result = call.node("Where", &[&is_small, &small, &large], dtype);
        let sign = sign(call, &x)?;
        let result = call.node("Mul", &[&sign, &result], dtype);
        let is_nan = call.is_nan(&x);
        let result = call.node("Where", &[&is_nan, &x, &result], dtype);
        Ok(call.cast(&result, DType::F32))
    }

    /// `2/sqrt(pi) · (-1)^n / (n! (2n + 1))`.
    fn erf_coefficient(n: u32) -> f64 {
        let sign = if n.is_multiple_of(2) { 1.0 } else { -1.0 };
        let factorial: f64 = (1..=n).map(f64::from).product();
        std::f64::consts::FRAC_2_SQRT_PI * sign / (factorial * f64::from(2 * n + 1))
    }
}
