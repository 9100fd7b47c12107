//! Which operators create infinities without arithmetic, pass them on or remove them.

use opscope_store::record::Operator;

use opscope_overflow::{ArithmeticKind, arithmetic_kind, attributes_may_be_non_finite};

/// Operators of PyTorch that move, select or create values without arithmetic, by the middle part
/// of their type.
const TORCH_MOVING: &[&str] = &[
    "_adaptive_max_pool2d",
    "_to_dense",
    "_unsafe_index",
    "_unsafe_view",
    "alias",
    "amax",
    "amin",
    "aminmax",
    "as_strided",
    "broadcast_in_dim",
    "broadcast_to",
    "cat",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clone",
    "constant_pad_nd",
    "copy",
    "cummax",
    "cummin",
    "diagonal",
    "expand",
    "fill",
    "flip",
    "full",
    "full_like",
    "gather",
    "index",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "lift",
    "lift_fresh",
    "lift_fresh_copy",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "max",
    "max_pool1d",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "maximum",
    "min",
    "minimum",
    "narrow",
    "new_full",
    "pad",
    "permute",
    "pin_memory",
    "repeat",
    "reshape",
    "roll",
    "scalar_tensor",
    "scatter",
    "select",
    "select_scatter",
    "slice",
    "slice_scatter",
    "sort",
    "split",
    "split_with_sizes",
    "squeeze",
    "stack",
    "t",
    "take",
    "threshold",
    "topk",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
    "where",
];

/// Operators that compute each element from those at the same position, and may produce an infinity
/// from finite ones. ONNX and PyTorch use the same names except for letter case.
const ELEMENTWISE: &[&str] = &[
    "_to_copy",
    "add",
    "addcdiv",
    "addcmul",
    "cast",
    "castlike",
    "convert_element_type",
    "cosh",
    "div",
    "exp",
    "exp2",
    "expm1",
    "lerp",
    "log",
    "log10",
    "log1p",
    "log2",
    "mul",
    "neg",
    "pow",
    "reciprocal",
    "rsqrt",
    "rsub",
    "sinh",
    "square",
    "sub",
    "true_divide",
];

/// Operators that only test values, or select the largest of a row, as in a decomposed softmax.
const ASKING: &[&str] = &[
    "all",
    "amax",
    "any",
    "argmax",
    "eq",
    "equal",
    "ge",
    "greater",
    "greaterorequal",
    "gt",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "le",
    "less",
    "lessorequal",
    "logical_not",
    "lt",
    "max",
    "ne",
    "not",
    "reducemax",
    "shape",
    "size",
    "sym_size",
];

/// The type in lower case, without namespace, overload and the suffix of in-place operators.
pub(super) fn base(op_type: &str) -> String {
    let mut parts = op_type.split('.');
    let name = match (parts.next(), parts.next()) {
        (_, Some(name)) => name,
        (Some(name), None) => name,
        (None, None) => "",
    };
    // PyTorch's `add_` computes as `add` does and writes the result in place.
    let name = name.strip_suffix('_').unwrap_or(name);
    name.to_ascii_lowercase()
}

/// Whether no output of the operator results from arithmetic, so that an infinity in it was copied
/// from an input or requested.
pub(super) fn makes_up(operator: &Operator) -> bool {
    // Without inputs there is no arithmetic.
    operator.inputs.iter().all(String::is_empty)
        || arithmetic_kind(operator) == ArithmeticKind::Moves
        || (is_of_torch(operator) && TORCH_MOVING.contains(&base(&operator.op_type).as_str()))
        || attributes_may_be_non_finite(operator)
}

fn is_of_torch(operator: &Operator) -> bool {
    ["aten.", "prims."]
        .iter()
        .any(|start| operator.op_type.starts_with(start))
}

/// Whether each output element depends only on the input elements at the same position.
pub(super) fn is_elementwise(operator: &Operator) -> bool {
    ELEMENTWISE.contains(&base(&operator.op_type).as_str())
}

/// Whether the operator is an attention, which applies a mask itself and may output masked values.
pub(super) fn is_attention(operator: &Operator) -> bool {
    let base = base(&operator.op_type);
    base.contains("attention")
}

/// Whether -Inf in an input of this operator is probably a mask. `exp` counts after a difference,
/// as in a decomposed softmax.
pub(super) fn is_softmax(operator: &Operator, comes_after: Option<&Operator>) -> bool {
    let base = base(&operator.op_type);
    let is_part = base == "exp" && comes_after.is_some_and(is_difference);
    is_part || base.contains("softmax") || base.contains("attention") || base.contains("logsumexp")
}

fn is_difference(operator: &Operator) -> bool {
    base(&operator.op_type) == "sub"
}

/// Whether the operator only tests its input's values.
pub(super) fn is_asking(operator: &Operator) -> bool {
    ASKING.contains(&base(&operator.op_type).as_str())
}
