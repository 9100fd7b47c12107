//! Names of arguments that a dump of PyTorch numbers.

use super::attribution::kinds::plain_type;

/// Operators, the position of an argument, and the names of that one and of those after it, as the
/// schemas of PyTorch 2.15 have them. Where overloads of tensors disagree, an argument has no row.
const ARGUMENTS: [(&str, usize, &str); 71] = [
    ("_adaptive_avg_pool2d", 1, "output_size"),
    ("_log_softmax", 1, "dim half_to_float"),
    (
        "_native_batch_norm_legit_functional",
        5,
        "training momentum eps",
    ),
    (
        "_scaled_dot_product_flash_attention_for_cpu",
        3,
        "dropout_p is_causal",
    ),
    ("_softmax", 1, "dim half_to_float"),
    ("adaptive_avg_pool2d", 1, "output_size"),
    ("add", 1, "other alpha"),
    ("amax", 1, "dim keepdim"),
    ("amin", 1, "dim keepdim"),
    ("argmax", 1, "dim keepdim"),
    ("argmin", 1, "dim keepdim"),
    (
        "avg_pool2d",
        1,
        "kernel_size stride padding ceil_mode count_include_pad divisor_override",
    ),
    ("batch_norm", 5, "training momentum eps cudnn_enabled"),
    ("cat", 1, "dim"),
    ("celu", 1, "alpha"),
    ("clamp", 1, "min max"),
    ("clamp_max", 1, "max"),
    ("clamp_min", 1, "min"),
    ("constant_pad_nd", 1, "pad value"),
    ("conv1d", 3, "stride padding dilation groups"),
    ("conv2d", 3, "stride padding dilation groups"),
    ("conv3d", 3, "stride padding dilation groups"),
    (
        "convolution",
        3,
        "stride padding dilation transposed output_padding groups",
    ),
    ("cumprod", 1, "dim"),
    ("cumsum", 1, "dim"),
    ("div", 1, "other"),
    ("dropout", 1, "p train"),
    ("elu", 1, "alpha scale input_scale"),
    ("embedding", 2, "padding_idx scale_grad_by_freq sparse"),
    ("flip", 1, "dims"),
    ("gather", 1, "dim"),
    ("glu", 1, "dim"),
    (
        "grid_sampler_2d",
        2,
        "interpolation_mode padding_mode align_corners",
    ),
    ("group_norm", 1, "num_groups"),
    ("group_norm", 4, "eps cudnn_enabled"),
    ("hardtanh", 1, "min_val max_val"),
    ("index_select", 1, "dim"),
    ("layer_norm", 1, "normalized_shape"),
    ("layer_norm", 4, "eps cudnn_enable"),
    ("leaky_relu", 1, "negative_slope"),
    ("linalg_vector_norm", 1, "ord dim keepdim"),
    ("logsumexp", 1, "dim keepdim"),
    (
        "max_pool2d_with_indices",
        1,
        "kernel_size stride padding dilation ceil_mode",
    ),
    ("mean", 1, "dim keepdim"),
    ("mul", 1, "other"),
    ("narrow", 1, "dim start length"),
    ("native_batch_norm", 5, "training momentum eps"),
    ("native_dropout", 1, "p train"),
    ("native_group_norm", 3, "N C HxW group eps"),
    ("native_layer_norm", 1, "normalized_shape"),
    ("native_layer_norm", 4, "eps"),
    ("nll_loss_forward", 3, "reduction ignore_index"),
    ("permute", 1, "dims"),
    ("pow", 1, "exponent"),
    ("rms_norm", 1, "normalized_shape"),
    ("rms_norm", 3, "eps"),
    ("roll", 1, "shifts dims"),
    ("rsub", 1, "other alpha"),
    ("scaled_dot_product_attention", 4, "dropout_p is_causal"),
    ("select", 1, "dim index"),
    ("slice", 1, "dim start end step"),
    ("softplus", 1, "beta threshold"),
    ("split", 1, "split_size dim"),
    ("split_with_sizes", 1, "split_sizes dim"),
    ("sub", 1, "other alpha"),
    ("sum", 1, "dim keepdim"),
    ("topk", 1, "k dim largest sorted"),
    ("transpose", 1, "dim0 dim1"),
    ("tril", 1, "diagonal"),
    ("triu", 1, "diagonal"),
    ("upsample_bilinear2d", 1, "output_size align_corners"),
];

/// The argument that an attribute such as `argument.4` of an operator is, if its schema is known.
pub(super) fn argument_name(op_type: &str, attribute: &str) -> Option<&'static str> {
    let position: usize = attribute.strip_prefix("argument.")?.parse().ok()?;
    let op_type = plain_type(op_type);
    let rows = ARGUMENTS.iter().filter(|(name, ..)| *name == op_type);
    rows.filter_map(|(_, first, names)| names.split(' ').nth(position.checked_sub(*first)?))
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_have_the_names_of_the_schema() {
        for (op_type, attribute, expected) in [
            ("aten_native_layer_norm_default", "argument.4", Some("eps")),
            ("aten_native_layer_norm_default", "argument.3", None),
            ("aten_convolution_default", "argument.8", Some("groups")),
            ("aten_convolution_default", "argument.9", None),
            ("aten_mean_dim", "argument.1", Some("dim")),
            ("aten_add_Tensor", "argument.alpha", None),
            ("LayerNormalization", "epsilon", None),
        ] {
            assert_eq!(
                argument_name(op_type, attribute),
                expected,
                "{op_type} {attribute}"
            );
        }
    }
}
