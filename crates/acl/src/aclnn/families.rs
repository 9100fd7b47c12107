//! The operators, a file for each family: its table, which bindings read too, and the functions
//! that compose its operators.

mod activation;
mod activation_backward;
mod attention;
mod comparison;
mod compound;
mod convolution;
mod creation;
mod elementwise;
mod loss;
mod matmul;
mod normalisation;
mod pooling;
mod reduction;
mod unary;

use super::row::OperatorFamily;

/// All families.
pub static FAMILIES: &[OperatorFamily] = &[
    elementwise::FAMILY,
    compound::FAMILY,
    unary::FAMILY,
    comparison::FAMILY,
    reduction::FAMILY,
    creation::FAMILY,
    activation::FAMILY,
    matmul::FAMILY,
    normalisation::FAMILY,
    loss::FAMILY,
    convolution::FAMILY,
    pooling::FAMILY,
    attention::FAMILY,
    activation_backward::FAMILY,
];

/// Calls the macro of that name once for each family, with the family's rows.
#[macro_export]
macro_rules! aclnn_operators {
    ($rows:ident) => {
        $crate::aclnn_elementwise!($rows);
        $crate::aclnn_compound!($rows);
        $crate::aclnn_unary!($rows);
        $crate::aclnn_comparison!($rows);
        $crate::aclnn_reduction!($rows);
        $crate::aclnn_creation!($rows);
        $crate::aclnn_activation!($rows);
        $crate::aclnn_matmul!($rows);
        $crate::aclnn_normalisation!($rows);
        $crate::aclnn_loss!($rows);
        $crate::aclnn_convolution!($rows);
        $crate::aclnn_pooling!($rows);
        $crate::aclnn_attention!($rows);
        $crate::aclnn_activation_backward!($rows);
    };
}
