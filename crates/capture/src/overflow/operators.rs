//! What each operator does to numbers.

/// How an operator comes by the numbers in its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It moves, chooses or makes up values: none of them is the result of arithmetic.
    Moves,
    /// It converts each element to another dtype.
    Converts,
    /// It accumulates products, which accelerators do in their cube unit.
    Accumulates,
    /// It computes.
    Computes,
}

/// Operators that move, choose or make up values.
const MOVING: &[&str] = &[
    "ArgMax",
    "ArgMin",
    "BitCast",
    "Constant",
    "ConstantOfShape",
    "Identity",
    "If",
    "IsInf",
    "IsNaN",
    "Pad",
    "Shape",
    "Where",
];

const CONVERTING: &[&str] = &["Cast", "CastLike"];

const ACCUMULATING: &[&str] = &["Conv", "ConvTranspose", "Gemm", "MatMul"];

/// The kind of operators of this type.
pub(super) fn kind(op_type: &str) -> Kind {
    if MOVING.contains(&op_type) {
        Kind::Moves
    } else if CONVERTING.contains(&op_type) {
        Kind::Converts
    } else if ACCUMULATING.contains(&op_type) {
        Kind::Accumulates
    } else {
        Kind::Computes
    }
}
