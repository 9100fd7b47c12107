//! Which operators make infinities up, pass them on or take them away.

use opscope_store::record::Operator;

use opscope_overflow::{ArithmeticKind, arithmetic_kind, attributes_may_be_non_finite};

/// Operators of PyTorch that move, choose or make up values, by the middle of their type.
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

/// Operators that compute each element from the elements at its place, and may make an infinity of
/// finite ones. ONNX's and PyTorch's have the same names but for capitals.
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

/// Operators that only ask about values, or choose the largest of a row, as a softmax in parts
/// does.
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

/// The type without the namespace, the overload, and the mark of writing in place; in small
/// letters.
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
    // Without inputs there is nothing that arithmetic could have been done on.
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

/// Whether the operator is an attention, which applies a mask itself and may show what it masked.
pub(super) fn is_attention(operator: &Operator) -> bool {
    let base = base(&operator.op_type);
    base.contains("attention")
}

/// Whether -Inf is what a mask looks like to this operator. `exp` counts where it comes after a
/// difference, as in a softmax in parts.
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
