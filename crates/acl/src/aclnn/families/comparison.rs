//! Comparisons, logic, and bitwise operators.

use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Refusal, Side, Value, arithmetic_type};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::promotion::{compute_type, is_float};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of comparisons, logic and operators on bits.
#[macro_export]
macro_rules! aclnn_comparison {
    ($rows:ident) => {
        $rows! { "comparisons, logic and bits";
            aclnnEqTensor = Equal("aclnn_eq_tensor.h", "self == other") by equal
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceEqTensor = Equal("aclnn_eq_tensor.h", "self == other") by equal
                (selfRef: Inplace, other: Tensor);
            aclnnEqScalar = Equal("aclnn_eq_scalar.h", "self == other") by equal
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceEqScalar = Equal("aclnn_eq_scalar.h", "self == other") by equal
                (selfRef: Inplace, other: Scalar);
            aclnnNeTensor = NotEqual("aclnn_ne_tensor.h", "self != other") by not_equal
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceNeTensor = NotEqual("aclnn_ne_tensor.h", "self != other") by not_equal
                (selfRef: Inplace, other: Tensor);
            aclnnNeScalar = NotEqual("aclnn_ne_scalar.h", "self != other") by not_equal
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceNeScalar = NotEqual("aclnn_ne_scalar.h", "self != other") by not_equal
                (selfRef: Inplace, other: Scalar);
            aclnnLtTensor = Less("aclnn_lt_tensor.h", "self < other") by less
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceLtTensor = Less("aclnn_lt_tensor.h", "self < other") by less
                (selfRef: Inplace, other: Tensor);
            aclnnLtScalar = Less("aclnn_lt_scalar.h", "self < other") by less
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceLtScalar = Less("aclnn_lt_scalar.h", "self < other") by less
                (selfRef: Inplace, other: Scalar);
            aclnnLeTensor = LessEqual("aclnn_le_tensor.h", "self <= other") by less_or_equal
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceLeTensor = LessEqual("aclnn_le_tensor.h", "self <= other") by less_or_equal
                (selfRef: Inplace, other: Tensor);
            aclnnLeScalar = LessEqual("aclnn_le_scalar.h", "self <= other") by less_or_equal
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceLeScalar = LessEqual("aclnn_le_scalar.h", "self <= other") by less_or_equal
                (selfRef: Inplace, other: Scalar);
            aclnnGtTensor = Greater("aclnn_gt_tensor.h", "self > other") by greater
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceGtTensor = Greater("aclnn_gt_tensor.h", "self > other") by greater
                (selfRef: Inplace, other: Tensor);
            aclnnGtScalar = Greater("aclnn_gt_scalar.h", "self > other") by greater
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceGtScalar = Greater("aclnn_gt_scalar.h", "self > other") by greater
                (selfRef: Inplace, other: Scalar);
            aclnnGeTensor = GreaterEqual("aclnn_ge_tensor.h", "self >= other") by greater_or_equal
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceGeTensor = GreaterEqual("aclnn_ge_tensor.h", "self >= other") by greater_or_equal
                (selfRef: Inplace, other: Tensor);
            aclnnGeScalar = GreaterEqual("aclnn_ge_scalar.h", "self >= other") by greater_or_equal
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceGeScalar = GreaterEqual("aclnn_ge_scalar.h", "self >= other") by greater_or_equal
                (selfRef: Inplace, other: Scalar);
            aclnnLogicalAnd = LogicalAnd("aclnn_logical_and.h", "whether both are other than 0") by logical_and
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceLogicalAnd = LogicalAnd("aclnn_logical_and.h", "whether both are other than 0") by logical_and
                (selfRef: Inplace, other: Tensor);
            aclnnLogicalOr = LogicalOr("aclnn_logical_or.h", "whether one is other than 0") by logical_or
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceLogicalOr = LogicalOr("aclnn_logical_or.h", "whether one is other than 0") by logical_or
                (selfRef: Inplace, other: Tensor);
            aclnnLogicalXor = LogicalXor("aclnn_logical_xor.h", "whether one alone is other than 0") by logical_xor
                (self_: Tensor, other: Tensor, out: Out);
            aclnnLogicalNot = LogicalNot("aclnn_logical_not.h", "whether self is 0") by logical_not
                (self_: Tensor, out: Out);
            aclnnInplaceLogicalNot = LogicalNot("aclnn_logical_not.h", "whether self is 0") by logical_not
                (selfRef: Inplace);
            aclnnBitwiseAndTensor = BitwiseAnd("aclnn_bitwise_and_tensor.h", "the bits that both have") by bitwise_and
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceBitwiseAndTensor = BitwiseAnd("aclnn_bitwise_and_tensor.h", "the bits that both have") by bitwise_and
                (selfRef: Inplace, other: Tensor);
            aclnnBitwiseAndScalar = BitwiseAnd("aclnn_bitwise_and_scalar.h", "the bits that both have") by bitwise_and
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceBitwiseAndScalar = BitwiseAnd("aclnn_bitwise_and_scalar.h", "the bits that both have") by bitwise_and
                (selfRef: Inplace, other: Scalar);
            aclnnBitwiseOrTensor = BitwiseOr("aclnn_bitwise_or_tensor.h", "the bits that one has") by bitwise_or
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceBitwiseOrTensor = BitwiseOr("aclnn_bitwise_or_tensor.h", "the bits that one has") by bitwise_or
                (selfRef: Inplace, other: Tensor);
            aclnnBitwiseOrScalar = BitwiseOr("aclnn_bitwise_or_scalar.h", "the bits that one has") by bitwise_or
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceBitwiseOrScalar = BitwiseOr("aclnn_bitwise_or_scalar.h", "the bits that one has") by bitwise_or
                (selfRef: Inplace, other: Scalar);
            aclnnBitwiseXorTensor = BitwiseXor("aclnn_bitwise_xor_tensor.h", "the bits that one alone has") by bitwise_xor
                (self_: Tensor, other: Tensor, out: Out);
            aclnnInplaceBitwiseXorTensor = BitwiseXor("aclnn_bitwise_xor_tensor.h", "the bits that one alone has") by bitwise_xor
                (selfRef: Inplace, other: Tensor);
            aclnnBitwiseXorScalar = BitwiseXor("aclnn_bitwise_xor_scalar.h", "the bits that one alone has") by bitwise_xor
                (self_: Tensor, other: Scalar, out: Out);
            aclnnInplaceBitwiseXorScalar = BitwiseXor("aclnn_bitwise_xor_scalar.h", "the bits that one alone has") by bitwise_xor
                (selfRef: Inplace, other: Scalar);
            aclnnBitwiseNot = BitwiseNot("aclnn_bitwise_not.h", "the bits that self has not") by bitwise_not
                (self_: Tensor, out: Out);
            aclnnIsFinite = IsFinite("aclnn_isfinite.h", "whether self is neither infinite nor NaN") by is_finite
                (self_: Tensor, out: Out);
            aclnnIsPosInf = IsPosInf("aclnn_is_pos_inf.h", "whether self is positive infinity") by is_positive_infinity
                (self_: Tensor, out: Out);
            aclnnIsNegInf = IsNegInf("aclnn_is_neg_inf.h", "whether self is negative infinity") by is_negative_infinity
                (self_: Tensor, out: Out);
        }
    };
}
aclnn_comparison!(operator_rows);

fn compared(call: &mut OperatorCall<'_>, op: &'static str) -> Composed<Value> {
    let (a, b, out) = (call.side("self")?, call.side("other")?, call.tensor("out")?);
    call.broadcast(&[a, b], out)?;
    call.expect_cast(out, DType::Bool)?;
    let dtype = call.promote_sides(&[a, b])?;
    // Both are converted to the common dtype first, as in PyTorch: 0.1 differs in half precision.
    let compute = arithmetic_type(dtype);
    let (a, b) = (
        call.read_side(a, dtype, compute)?,
        call.read_side(b, dtype, compute)?,
    );
    Ok(call.node(op, &[&a, &b], DType::Bool))
}

fn write_truth(call: &mut OperatorCall<'_>, result: &Value) -> Composed {
    let out = call.tensor("out")?;
    call.write(out, result, DType::Bool);
    Ok(())
}

fn comparison(call: &mut OperatorCall<'_>, op: &'static str) -> Composed {
    let result = compared(call, op)?;
    write_truth(call, &result)
}

fn equal(call: &mut OperatorCall<'_>) -> Composed {
    comparison(call, "Equal")
}

fn not_equal(call: &mut OperatorCall<'_>) -> Composed {
    // ONNX has no such operator. With this form NaN also differs from everything.
    let is_equal = compared(call, "Equal")?;
    let result = call.node("Not", &[&is_equal], DType::Bool);
    write_truth(call, &result)
}

fn less(call: &mut OperatorCall<'_>) -> Composed {
    comparison(call, "Less")
}

fn less_or_equal(call: &mut OperatorCall<'_>) -> Composed {
    comparison(call, "LessOrEqual")
}

fn greater(call: &mut OperatorCall<'_>) -> Composed {
    comparison(call, "Greater")
}

fn greater_or_equal(call: &mut OperatorCall<'_>) -> Composed {
    comparison(call, "GreaterOrEqual")
}

fn logical(call: &mut OperatorCall<'_>, op: &'static str) -> Composed {
    // Each is compared with zero in its dtype: conversion to a common one could round a small
    // number to zero.
    let (a, b, out) = (call.side("self")?, call.side("other")?, call.tensor("out")?);
    call.broadcast(&[a, b], out)?;
    call.expect_cast(out, DType::Bool)?;
    let a = call.read_side(a, a.dtype(), DType::Bool)?;
    let b = call.read_side(b, b.dtype(), DType::Bool)?;
    let result = call.node(op, &[&a, &b], DType::Bool);
    write_truth(call, &result)
}

fn logical_and(call: &mut OperatorCall<'_>) -> Composed {
    logical(call, "And")
}

fn logical_or(call: &mut OperatorCall<'_>) -> Composed {
    logical(call, "Or")
}

fn logical_xor(call: &mut OperatorCall<'_>) -> Composed {
    logical(call, "Xor")
}

fn logical_not(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, DType::Bool)?;
    let x = call.read(x, DType::Bool)?;
    let result = call.node("Not", &[&x], DType::Bool);
    write_truth(call, &result)
}

/// A bitwise operator, which on booleans is a logical one.
fn bitwise(call: &mut OperatorCall<'_>, on_bits: &'static str, logical: &'static str) -> Composed {
    let (a, b, out) = (call.side("self")?, call.side("other")?, call.tensor("out")?);
    call.broadcast(&[a, b], out)?;
    let dtype = integer_dtype(call, &[a, b])?;
    call.expect_cast(out, dtype)?;
    let compute = compute_type(dtype);
    let (a, b) = (
        call.read_side(a, dtype, compute)?,
        call.read_side(b, dtype, compute)?,
    );
    let op = if compute == DType::Bool {
        logical
    } else {
        call.use_opset(BITWISE_OPSET);
        on_bits
    };
    let result = call.node(op, &[&a, &b], compute);
    call.write(out, &result, dtype);
    Ok(())
}

/// The operator set with bitwise operators.
const BITWISE_OPSET: i64 = 18;

fn integer_dtype(call: &OperatorCall<'_>, sides: &[Side<'_>]) -> Composed<DType> {
    let dtype = call.promote_sides(sides)?;
    if is_float(dtype) {
        let text = format!("operands have the type {dtype}; expected integers or booleans");
        return Err(Refusal::invalid(text));
    }
    Ok(dtype)
}

fn bitwise_and(call: &mut OperatorCall<'_>) -> Composed {
    bitwise(call, "BitwiseAnd", "And")
}

fn bitwise_or(call: &mut OperatorCall<'_>) -> Composed {
    bitwise(call, "BitwiseOr", "Or")
}

fn bitwise_xor(call: &mut OperatorCall<'_>) -> Composed {
    bitwise(call, "BitwiseXor", "Xor")
}

fn bitwise_not(call: &mut OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    let dtype = integer_dtype(call, &[Side::Tensor(x)])?;
    call.expect_cast(out, dtype)?;
    let value = call.read(x, compute_type(dtype))?;
    let result = if dtype == DType::Bool {
        call.node("Not", &[&value], DType::Bool)
    } else {
        // Inverting every bit is -x - 1. Engines have no such operator in this operator set.
        let last = call.constant(-1.0, DType::I64);
        call.node("Sub", &[&last, &value], DType::I64)
    };
    call.write(out, &result, dtype);
    Ok(())
}

/// Floats, and whether they are infinities with one of these signs; `None` for integers, which
/// never are.
fn infinite(call: &mut OperatorCall<'_>, signs: &[f64]) -> Composed<Option<(Value, Value)>> {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, DType::Bool)?;
    // This needs no engine.
    if !is_float(x.dtype) {
        return Ok(None);
    }
    let value = call.read(x, compute_type(x.dtype))?;
    let mut result: Option<Value> = None;
    for sign in signs {
        let infinity = call.constant(sign * f64::INFINITY, value.dtype);
        let is_infinite = call.node("Equal", &[&value, &infinity], DType::Bool);
        result = Some(match result {
            None => is_infinite,
            Some(other) => call.node("Or", &[&other, &is_infinite], DType::Bool),
        });
    }
    Ok(result.map(|result| (value, result)))
}

fn is_finite(call: &mut OperatorCall<'_>) -> Composed {
    match infinite(call, &[1.0, -1.0])? {
        Some((value, is_infinite)) => {
            let is_nan = call.is_nan(&value);
            let is_odd = call.node("Or", &[&is_infinite, &is_nan], DType::Bool);
            let result = call.node("Not", &[&is_odd], DType::Bool);
            write_truth(call, &result)
        }
        None => fill_truth(call, 1),
    }
}

fn fill_truth(call: &mut OperatorCall<'_>, truth: i64) -> Composed {
    let out = call.tensor("out")?;
    call.fill(out, ScalarNumber::Int(truth));
    Ok(())
}

fn is_positive_infinity(call: &mut OperatorCall<'_>) -> Composed {
    match infinite(call, &[1.0])? {
        Some((_, result)) => write_truth(call, &result),
        None => fill_truth(call, 0),
    }
}

fn is_negative_infinity(call: &mut OperatorCall<'_>) -> Composed {
    match infinite(call, &[-1.0])? {
        Some((_, result)) => write_truth(call, &result),
        None => fill_truth(call, 0),
    }
}
