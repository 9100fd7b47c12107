//! How operators propagate errors, according to their type.

/// How far the outputs of an operator may be farther apart than its inputs without anything being
/// wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorGrowth {
    /// Relative errors stay of the same size.
    Even,
    /// Sums and differences: absolute errors stay of the same size.
    Additive,
    /// Small errors can become large: powers, quotients, values with their mean subtracted.
    Steep,
    /// Any error can become a whole step.
    Stepped,
    /// Any error of what is picked by can, and those of what is picked from stay of the same size.
    Picking,
}

/// Types that add, in lower case.
const ADDITIVE: &[&str] = &[
    "add",
    "addv2",
    "addn",
    "sub",
    "subtract",
    "biasadd",
    "accumulatenv2",
    "reducesum",
    "reducesumd",
    "reducemean",
    "reducemeand",
    "sum",
    "mean",
    "add_",
    "sub_",
    "assignadd",
    "assignsub",
    "rsub",
    "cumsum",
    // A mean is a sum over a constant, and keeps absolute errors as a sum does.
    "globalaveragepool",
    "averagepool",
    "avgpool",
];
/// Beginnings of types that are steep.
const STEEP: &[&str] = &[
    "exp",
    "pow",
    "log",
    "div",
    "realdiv",
    "reciprocal",
    "rsqrt",
    "tan",
    "sin",
    "cos",
    "sinh",
    "cosh",
    "atanh",
    "acos",
    "asin",
    "softmax",
    "logsoftmax",
    "layernorm",
    "batchnorm",
    "instancenorm",
    "groupnorm",
    "rmsnorm",
    "native_layer_norm",
    "native_batch_norm",
    "native_group_norm",
    "layer_norm",
    "batch_norm",
    "group_norm",
    "lpnorm",
    "var",
    "std",
    "bninfer",
    "bntraining",
    "inverse",
    "matrixinverse",
    "det",
    "cholesky",
    "svd",
    "floormod",
    "mod",
    "fmod",
    "square",
    "erfinv",
    "flashattention",
    "scaled_dot_product",
    "gelu",
    "sigmoid",
    "tanh",
    "elu",
    "selu",
    "softplus",
    "mish",
    "silu",
    "swish",
    "_softmax",
    "_log_softmax",
    "einsum",
];
/// Beginnings of types that make no absolute error larger.
const CONTRACTING: &[&str] = &[
    "softmax", "_softmax", "sigmoid", "tanh", "relu", "clip", "clamp", "hardtanh", "cast",
    "_to_copy", "where", "select",
];
/// Beginnings of types with steps.
const STEPPED: &[&str] = &[
    "arg",
    "topk",
    "sort",
    "round",
    "floor",
    "ceil",
    "trunc",
    "sign",
    "equal",
    "notequal",
    "greater",
    "less",
    "quantize",
    "dynamicquant",
    "ascendquant",
    "nonmaxsuppression",
    "unique",
    "nonzero",
    "isfinite",
    "logical",
    "bitwise",
    "onehot",
    "roi",
    "nms",
    "gridsample",
];
/// Comparisons as PyTorch calls them.
const COMPARISONS: &[&str] = &["eq", "ne", "gt", "lt", "ge", "le"];
/// Beginnings of types that pick elements by others.
const PICKING: &[&str] = &[
    "gather",
    "scatter",
    "embedding",
    "index",
    "select",
    "masked",
    "where",
];
/// Types of which other inputs give another output, whatever the difference: nothing is cut off,
/// picked, or taken off again.
const TELLING: &[&str] = &[
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "exp",
    "log",
    "pow",
    "erf",
    "cos",
    "sin",
    "tanh",
    "leakyrelu",
    "leaky_relu",
    "prelu",
    "elu",
    "softplus",
    "sigmoid",
    "silu",
    "swish",
    "gelu",
    "quickgelu",
    "softmax",
    "_softmax",
    "where",
    "masked_fill",
    "matmul",
    "fusedmatmul",
    "gemm",
    "mm",
    "bmm",
    "addmm",
    "linear",
    "conv",
    "conv2d",
    "convolution",
    "concat",
    "cat",
    "transpose",
    "permute",
    "t",
    "reshape",
    "view",
    "_unsafe_view",
    "flatten",
    "squeeze",
    "unsqueeze",
    "expand",
    "clone",
    "split",
    "split_with_sizes",
    "chunk",
    "unbind",
    "reorderinput",
    "reorderoutput",
];
/// Overloads of PyTorch's operators as in the names of files, after the operator's.
const OVERLOADS: &[&str] = &[
    "_default",
    "_tensor_scalar",
    "_tensor_mode",
    "_tensor",
    "_scalar",
    "_dim_intlist",
    "_dim",
    "_int",
    "_self",
    "_using_ints",
    "_memory_format",
];
/// Types that move elements, views and casts apart, in lower case.
const MOVING: &[&str] = &[
    "cat",
    "concat",
    "concatv2",
    "stack",
    "pack",
    "slice",
    "stridedslice",
    "slice_scatter",
    "split",
    "splitv",
    "split_with_sizes",
    "split_with_sizes_copy",
    "unbind",
    "select",
    "narrow",
    "index",
    "index_select",
    "index_put",
    "index_put_",
    "gather",
    "gatherelements",
    "gatherv2",
    "embedding",
    "scatter",
    "roll",
    "flip",
    "expand",
    "repeat",
    "repeat_interleave",
    "tile",
    "pad",
    "constant_pad_nd",
    "reflection_pad2d",
    "replication_pad2d",
    "clone",
    "copy",
    "copy_",
    "_to_copy",
    "pixel_shuffle",
    "pixel_unshuffle",
    "depthtospace",
    "spacetodepth",
    "unfold",
    "im2col",
    "tril",
    "triu",
    "diagonal",
];
/// Types that have no inputs to inherit from, in lower case.
const SOURCES: &[&str] = &[
    "const",
    "constant",
    "constantofshape",
    "data",
    "anndata",
    "parameter",
    "placeholder",
    "variable",
    "variablev2",
    "valuenode",
    "getnext",
    "iteratorgetnext",
    "input",
    "refdata",
    "get_attr",
    // MindSpore's `Load` returns a parameter.
    "load",
];
/// Types that make a constant of the shape of their input, in lower case.
const SHAPE_FILLING: &[&str] = &[
    "constantofshape",
    "empty_like",
    "full_like",
    "ones_like",
    "oneslike",
    "shape",
    "zeros_like",
    "zeroslike",
];
/// Types of operators with bodies.
const WITH_BODIES: [&str; 4] = ["If", "Loop", "Scan", "SequenceMap"];
/// Prefixes of operator types that write to their inputs.
const IN_PLACE: &[&str] = &["assign", "scatter", "apply", "sparseapply", "inplace"];

/// Whether operators of a type are sums and differences.
pub(crate) fn is_additive(op_type: &str) -> bool {
    manner(op_type) == ErrorGrowth::Additive
}

/// Whether operators of a type add the elements of their input.
pub(crate) fn is_sum(op_type: &str) -> bool {
    matches!(&*plain_type(op_type), "sum" | "reducesum" | "reducesumd")
}

/// Whether operators of a type make no absolute error larger. That counts where few large values,
/// such as those of a mask, are all of an input's norm.
pub(super) fn is_contracting(op_type: &str) -> bool {
    let name = plain_type(op_type);
    CONTRACTING.iter().any(|start| name.starts_with(start))
}

/// The manner of a type.
pub(super) fn manner(op_type: &str) -> ErrorGrowth {
    let name = plain_type(op_type);
    let starts = |all: &[&str]| all.iter().any(|start| name.starts_with(start));
    // Sums go by whole words, as `addmm` begins with `add` and is none; and `expand` begins with
    // `exp` and computes nothing.
    if ADDITIVE.contains(&name.as_str()) {
        ErrorGrowth::Additive
    } else if starts(STEPPED) || COMPARISONS.contains(&name.as_str()) {
        ErrorGrowth::Stepped
    } else if starts(PICKING) {
        ErrorGrowth::Picking
    } else if starts(STEEP) && !name.starts_with("expand") {
        ErrorGrowth::Steep
    } else {
        ErrorGrowth::Even
    }
}

/// Whether what an operator of a type reads is right if what it makes is.
pub(crate) fn is_telling(op_type: &str) -> bool {
    TELLING.contains(&plain_type(op_type).as_str())
}

/// Whether operators of a type make nothing but elements that they read, in another arrangement.
pub(crate) fn moves_elements(op_type: &str) -> bool {
    MOVING.contains(&plain_type(op_type).as_str())
}

/// Whether operators of a type hand out what they were given from outside.
pub(crate) fn is_source(op_type: &str) -> bool {
    SOURCES.contains(&plain_type(op_type).as_str())
}

/// Whether operators of a type only read the shape of their input.
pub(super) fn fills_a_shape(op_type: &str) -> bool {
    SHAPE_FILLING.contains(&plain_type(op_type).as_str())
}

/// Whether operators of a type compute with a body, which may read any value around it.
pub(in crate::compare) fn has_body(op_type: &str) -> bool {
    WITH_BODIES.contains(&op_type)
}

/// Whether operators of a type may change an input, so that a dump shows it as it is afterwards.
pub(crate) fn is_in_place(op_type: &str) -> bool {
    let name = plain_type(op_type);
    // PyTorch's names of such operators end so.
    // Two underscores end Python's special names, such as `__and__`, and say nothing of writing.
    (name.ends_with('_') && !name.ends_with("__")) || IN_PLACE.iter().any(|s| name.starts_with(s))
}

/// The type of an operator in lower case, without PyTorch's namespace and overload:
/// `aten::rand.names` is `rand`, and so is `aten_rand_default`, as names of files have it.
pub(crate) fn plain_type(op_type: &str) -> String {
    let lower = op_type.to_lowercase();
    let name = ["aten::", "aten.", "prims.", "prims::"]
        .into_iter()
        .find_map(|start| lower.strip_prefix(start))
        .unwrap_or(&lower);
    if let Some(name) = ["aten_", "prims_"]
        .into_iter()
        .find_map(|start| name.strip_prefix(start))
    {
        // Files replace punctuation with underscores, so only known overloads are recognized.
        let overload = OVERLOADS.iter().find_map(|end| name.strip_suffix(end));
        return overload.unwrap_or(name).to_owned();
    }
    name.split('.').next().unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_types() {
        for (op_type, expected) in [
            ("MatMulV2", ErrorGrowth::Even),
            ("Conv2D", ErrorGrowth::Even),
            ("Relu", ErrorGrowth::Even),
            ("LeakyRelu", ErrorGrowth::Even),
            ("Add", ErrorGrowth::Additive),
            ("aten.add.Tensor", ErrorGrowth::Additive),
            ("aten_add_Tensor", ErrorGrowth::Additive),
            ("aten_add__Tensor", ErrorGrowth::Additive),
            ("aten_native_layer_norm_default", ErrorGrowth::Steep),
            ("aten_addmm_default", ErrorGrowth::Even),
            ("SoftmaxV2", ErrorGrowth::Steep),
            ("Gelu", ErrorGrowth::Steep),
            ("ArgMaxV2", ErrorGrowth::Stepped),
            ("AscendQuant", ErrorGrowth::Stepped),
            ("Gemm", ErrorGrowth::Even),
            ("Neg", ErrorGrowth::Even),
            ("ExpandDims", ErrorGrowth::Even),
            ("aten.ne.Scalar", ErrorGrowth::Stepped),
            // Where it takes its elements from does not depend on their values.
            ("Resize", ErrorGrowth::Even),
            ("GatherV2", ErrorGrowth::Picking),
            ("", ErrorGrowth::Even),
        ] {
            assert_eq!(manner(op_type), expected, "{op_type}");
        }
        assert!(is_in_place("aten_add__Tensor") && !is_in_place("aten_add_Tensor"));
        assert!(is_telling("aten_mul_Tensor") && is_telling("Gemm") && !is_telling("Relu"));
        assert!(is_in_place("aten::add_.Tensor") && is_in_place("AssignAdd"));
        assert!(!is_in_place("Add") && !is_in_place("aten.__and__.Scalar"));
        assert!(is_contracting("SoftmaxV2") && is_contracting("Cast") && !is_contracting("Exp"));
        assert!(is_source("Const") && !is_source("ConstantPad"));
    }
}
