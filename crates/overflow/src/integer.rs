//! Integer arithmetic that left its dtype.

use opscope_store::record::Record;

use super::elementwise::{BinaryOperation, binary, negate, sum};
use super::reduce::{Fold, cumulate, reduce};
use super::{OutputOverflow, conv, einsum, matmul};

/// Returns where an operator on integers overflowed; `None` if it did not. The inputs are
/// recomputed in wider arithmetic: the engine's results do not matter.
pub(super) fn place(record: &Record) -> Option<OutputOverflow> {
    match record.operator.op_type.as_str() {
        "Add" => binary(record, BinaryOperation::Add),
        "Sub" => binary(record, BinaryOperation::Sub),
        "Mul" => binary(record, BinaryOperation::Mul),
        "Div" => binary(record, BinaryOperation::Div),
        "Pow" => binary(record, BinaryOperation::Pow),
        "PRelu" => binary(record, BinaryOperation::PRelu),
        "Sum" => sum(record),
        // The magnitude of the smallest integer does not fit its type, with or without the sign.
        "Neg" | "Abs" => negate(record),
        "ReduceSum" => reduce(record, Fold::Sum),
        "ReduceL1" => reduce(record, Fold::SumOfMagnitudes),
        "ReduceL2" => reduce(record, Fold::RootOfSquares),
        "ReduceSumSquare" => reduce(record, Fold::SumOfSquares),
        "ReduceProd" => reduce(record, Fold::Product),
        "CumSum" => cumulate(record, Fold::Sum),
        "CumProd" => cumulate(record, Fold::Product),
        "MatMul" => matmul::matmul(record),
        "MatMulInteger" => matmul::matmul_integer(record),
        "QLinearMatMul" => matmul::qlinear_matmul(record),
        "Gemm" => matmul::gemm(record),
        "Einsum" => einsum::place(record),
        "ConvInteger" => conv::conv_integer(record),
        "QLinearConv" => conv::qlinear_conv(record),
        _ => None,
    }
}
