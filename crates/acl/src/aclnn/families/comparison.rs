//! Comparisons, logic, and bitwise operators.

use opscope_tensor::DType;

use crate::aclnn::call::{Composed, OperatorCall, Side, Value, arithmetic_type, refuse_if};
use crate::aclnn::object::ScalarNumber;
use crate::aclnn::promotion::{compute_type, is_float};
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of comparisons, logic and operators on bits.
#[macro_export]
macro_rules! aclnn_comparison {
    ($rows:ident) => {
        $rows! { "comparisons, logic and bits";
            Equal("aclnn_eq_tensor.h", "self == other") by comparison("Equal"):
                aclnnEqTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceEqTensor(selfRef: Inplace, other: Tensor);
            Equal("aclnn_eq_scalar.h", "self == other") by comparison("Equal"):
                aclnnEqScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceEqScalar(selfRef: Inplace, other: Scalar);
            NotEqual("aclnn_ne_tensor.h", "self != other") by not_equal():
                aclnnNeTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceNeTensor(selfRef: Inplace, other: Tensor);
            NotEqual("aclnn_ne_scalar.h", "self != other") by not_equal():
                aclnnNeScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceNeScalar(selfRef: Inplace, other: Scalar);
            Less("aclnn_lt_tensor.h", "self < other") by comparison("Less"):
                aclnnLtTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceLtTensor(selfRef: Inplace, other: Tensor);
            Less("aclnn_lt_scalar.h", "self < other") by comparison("Less"):
                aclnnLtScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceLtScalar(selfRef: Inplace, other: Scalar);
            LessEqual("aclnn_le_tensor.h", "self <= other") by comparison("LessOrEqual"):
                aclnnLeTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceLeTensor(selfRef: Inplace, other: Tensor);
            LessEqual("aclnn_le_scalar.h", "self <= other") by comparison("LessOrEqual"):
                aclnnLeScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceLeScalar(selfRef: Inplace, other: Scalar);
            Greater("aclnn_gt_tensor.h", "self > other") by comparison("Greater"):
                aclnnGtTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceGtTensor(selfRef: Inplace, other: Tensor);
            Greater("aclnn_gt_scalar.h", "self > other") by comparison("Greater"):
                aclnnGtScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceGtScalar(selfRef: Inplace, other: Scalar);
            GreaterEqual("aclnn_ge_tensor.h", "self >= other") by comparison("GreaterOrEqual"):
                aclnnGeTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceGeTensor(selfRef: Inplace, other: Tensor);
            GreaterEqual("aclnn_ge_scalar.h", "self >= other") by comparison("GreaterOrEqual"):
                aclnnGeScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceGeScalar(selfRef: Inplace, other: Scalar);
            LogicalAnd("aclnn_logical_and.h", "whether both are other than 0") by logical("And"):
                aclnnLogicalAnd(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceLogicalAnd(selfRef: Inplace, other: Tensor);
            LogicalOr("aclnn_logical_or.h", "whether one is other than 0") by logical("Or"):
                aclnnLogicalOr(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceLogicalOr(selfRef: Inplace, other: Tensor);
            LogicalXor("aclnn_logical_xor.h", "whether one alone is other than 0") by logical("Xor"):
                aclnnLogicalXor(self_: Tensor, other: Tensor, out: Out);
            LogicalNot("aclnn_logical_not.h", "whether self is 0") by logical_not():
                aclnnLogicalNot(self_: Tensor, out: Out), aclnnInplaceLogicalNot(selfRef: Inplace);
            BitwiseAnd("aclnn_bitwise_and_tensor.h", "the bits that both have") by bitwise("BitwiseAnd", "And"):
                aclnnBitwiseAndTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceBitwiseAndTensor(selfRef: Inplace, other: Tensor);
            BitwiseAnd("aclnn_bitwise_and_scalar.h", "the bits that both have") by bitwise("BitwiseAnd", "And"):
                aclnnBitwiseAndScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceBitwiseAndScalar(selfRef: Inplace, other: Scalar);
            BitwiseOr("aclnn_bitwise_or_tensor.h", "the bits that one has") by bitwise("BitwiseOr", "Or"):
                aclnnBitwiseOrTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceBitwiseOrTensor(selfRef: Inplace, other: Tensor);
            BitwiseOr("aclnn_bitwise_or_scalar.h", "the bits that one has") by bitwise("BitwiseOr", "Or"):
                aclnnBitwiseOrScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceBitwiseOrScalar(selfRef: Inplace, other: Scalar);
            BitwiseXor("aclnn_bitwise_xor_tensor.h", "the bits that one alone has") by bitwise("BitwiseXor", "Xor"):
                aclnnBitwiseXorTensor(self_: Tensor, other: Tensor, out: Out),
                aclnnInplaceBitwiseXorTensor(selfRef: Inplace, other: Tensor);
            BitwiseXor("aclnn_bitwise_xor_scalar.h", "the bits that one alone has") by bitwise("BitwiseXor", "Xor"):
                aclnnBitwiseXorScalar(self_: Tensor, other: Scalar, out: Out),
                aclnnInplaceBitwiseXorScalar(selfRef: Inplace, other: Scalar);
            BitwiseNot("aclnn_bitwise_not.h", "the bits that self has not") by bitwise_not():
                aclnnBitwiseNot(self_: Tensor, out: Out);
            IsFinite("aclnn_isfinite.h", "whether self is neither infinite nor NaN") by is_finite():
                aclnnIsFinite(self_: Tensor, out: Out);
            IsPosInf("aclnn_is_pos_inf.h", "whether self is positive infinity") by is_positive_infinity():
                aclnnIsPosInf(self_: Tensor, out: Out);
            IsNegInf("aclnn_is_neg_inf.h", "whether self is negative infinity") by is_negative_infinity():
                aclnnIsNegInf(self_: Tensor, out: Out);
        }
    };
}
aclnn_comparison!(operator_rows);

fn compared(call: &OperatorCall<'_>, op: &'static str) -> Composed<Value> {
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

fn write_truth(call: &OperatorCall<'_>, result: &Value) -> Composed {
    let out = call.tensor("out")?;
    call.write(out, result, DType::Bool)
}

fn comparison(call: &OperatorCall<'_>, op: &'static str) -> Composed {
    let result = compared(call, op)?;
    write_truth(call, &result)
}

fn not_equal(call: &OperatorCall<'_>) -> Composed {
    // ONNX has no such operator. With this form NaN also differs from everything.
    let is_equal = compared(call, "Equal")?;
    let result = !&is_equal;
    write_truth(call, &result)
}

fn logical(call: &OperatorCall<'_>, op: &'static str) -> Composed {
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

fn logical_not(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    call.expect_cast(out, DType::Bool)?;
    let x = call.read(x, DType::Bool)?;
    let result = !&x;
    write_truth(call, &result)
}

/// A bitwise operator, which on booleans is a logical one.
fn bitwise(call: &OperatorCall<'_>, on_bits: &'static str, logical: &'static str) -> Composed {
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
    call.write(out, &result, dtype)
}

/// The operator set with bitwise operators.
const BITWISE_OPSET: i64 = 18;

fn integer_dtype(call: &OperatorCall<'_>, sides: &[Side<'_>]) -> Composed<DType> {
    let dtype = call.promote_sides(sides)?;
    refuse_if!(
        is_float(dtype),
        "operands have the type {dtype}; expected integers or booleans"
    );
    Ok(dtype)
}

fn bitwise_not(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("self")?, call.tensor("out")?);
    call.expect_shape(out, x.dims())?;
    let dtype = integer_dtype(call, &[Side::Tensor(x)])?;
    call.expect_cast(out, dtype)?;
    let value = call.read(x, compute_type(dtype))?;
    let result = if dtype == DType::Bool {
        !&value
    } else {
        // Inverting every bit is -x - 1. Engines have no such operator in this operator set.
        -1.0 - &value
    };
    call.write(out, &result, dtype)
}

/// Floats, and whether they are infinities with one of these signs; `None` for integers, which
/// never are.
fn infinite(call: &OperatorCall<'_>, signs: &[f64]) -> Composed<Option<(Value, Value)>> {
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
        let is_infinite = value.equal(sign * f64::INFINITY);
        result = Some(match result {
            None => is_infinite,
            Some(other) => &other | &is_infinite,
        });
    }
    Ok(result.map(|result| (value, result)))
}

fn is_finite(call: &OperatorCall<'_>) -> Composed {
    match infinite(call, &[1.0, -1.0])? {
        Some((value, is_infinite)) => {
            let result = !(&is_infinite | value.is_nan());
            write_truth(call, &result)
        }
        None => fill_truth(call, 1),
    }
}

fn fill_truth(call: &OperatorCall<'_>, truth: i64) -> Composed {
    let out = call.tensor("out")?;
    call.fill(out, ScalarNumber::Int(truth))
}

fn is_positive_infinity(call: &OperatorCall<'_>) -> Composed {
    match infinite(call, &[1.0])? {
        Some((_, result)) => write_truth(call, &result),
        None => fill_truth(call, 0),
    }
}

fn is_negative_infinity(call: &OperatorCall<'_>) -> Composed {
    match infinite(call, &[-1.0])? {
        Some((_, result)) => write_truth(call, &result),
        None => fill_truth(call, 0),
    }
}
