//! The operators, one file for each family: its table, which bindings also read, and the functions
//! that compose its operators.

mod activation;
mod activation_backward;
mod adaptive_pooling;
mod attention;
mod attention_backward;
mod attention_inference;
mod attention_keys;
mod attention_masks;
mod attention_operands;
mod batch_normalisation;
mod comparison;
mod compound;
mod convolution;
mod convolution_backward;
mod creation;
mod diagonals;
mod elementwise;
mod entries;
mod gates;
mod group_normalisation;
mod index_lists;
mod indexing;
mod joining;
mod loss;
mod matmul;
mod movement;
mod moves;
mod normalisation;
mod padding;
mod pooling;
mod pooling_backward;
mod reduction;
mod resizing;
mod rotary;
mod running;
mod scattering;
mod searching;
mod selecting;
mod slices;
mod softmax;
mod sorting;
mod unary;
mod uniqueness;
mod vectors;
mod windows;

use super::row::OperatorFamily;

/// All families.
pub static FAMILIES: &[OperatorFamily] = &[
    elementwise::FAMILY,
    compound::FAMILY,
    unary::FAMILY,
    comparison::FAMILY,
    reduction::FAMILY,
    creation::FAMILY,
    moves::FAMILY,
    slices::FAMILY,
    joining::FAMILY,
    padding::FAMILY,
    diagonals::FAMILY,
    indexing::FAMILY,
    scattering::FAMILY,
    entries::FAMILY,
    selecting::FAMILY,
    index_lists::FAMILY,
    sorting::FAMILY,
    running::FAMILY,
    searching::FAMILY,
    uniqueness::FAMILY,
    gates::FAMILY,
    vectors::FAMILY,
    resizing::FAMILY,
    activation::FAMILY,
    matmul::FAMILY,
    normalisation::FAMILY,
    group_normalisation::FAMILY,
    batch_normalisation::FAMILY,
    loss::FAMILY,
    softmax::FAMILY,
    convolution::FAMILY,
    pooling::FAMILY,
    adaptive_pooling::FAMILY,
    attention::FAMILY,
    attention_inference::FAMILY,
    rotary::FAMILY,
    activation_backward::FAMILY,
    attention_backward::FAMILY,
    convolution_backward::FAMILY,
    pooling_backward::FAMILY,
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
        $crate::aclnn_moves!($rows);
        $crate::aclnn_slices!($rows);
        $crate::aclnn_joining!($rows);
        $crate::aclnn_padding!($rows);
        $crate::aclnn_diagonals!($rows);
        $crate::aclnn_indexing!($rows);
        $crate::aclnn_scattering!($rows);
        $crate::aclnn_entries!($rows);
        $crate::aclnn_selecting!($rows);
        $crate::aclnn_index_lists!($rows);
        $crate::aclnn_sorting!($rows);
        $crate::aclnn_running!($rows);
        $crate::aclnn_searching!($rows);
        $crate::aclnn_uniqueness!($rows);
        $crate::aclnn_gates!($rows);
        $crate::aclnn_vectors!($rows);
        $crate::aclnn_resizing!($rows);
        $crate::aclnn_activation!($rows);
        $crate::aclnn_matmul!($rows);
        $crate::aclnn_normalisation!($rows);
        $crate::aclnn_group_normalisation!($rows);
        $crate::aclnn_batch_normalisation!($rows);
        $crate::aclnn_loss!($rows);
        $crate::aclnn_softmax!($rows);
        $crate::aclnn_convolution!($rows);
        $crate::aclnn_pooling!($rows);
        $crate::aclnn_adaptive_pooling!($rows);
        $crate::aclnn_attention!($rows);
        $crate::aclnn_attention_inference!($rows);
        $crate::aclnn_rotary!($rows);
        $crate::aclnn_activation_backward!($rows);
        $crate::aclnn_attention_backward!($rows);
        $crate::aclnn_convolution_backward!($rows);
        $crate::aclnn_pooling_backward!($rows);
    };
}
