//! How operators produce the floating-point numbers in their outputs, and readers of their
//! attributes.

use opscope_store::record::Operator;

/// How an operator produces the numbers in its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticKind {
    /// It moves, selects or generates values, without arithmetic.
    Moves,
    /// It converts each element to another dtype.
    Converts,
    /// It accumulates products, on accelerators in the cube unit.
    Accumulates,
    /// It computes otherwise.
    Computes,
}

/// Operators that move, select or generate values.
///
/// `If` is here because the operators of its branches are checked individually, `ReduceMax`,
/// `MaxPool` and the like because they return an infinity when there is nothing to select from,
/// tree ensembles and encoders because their results are attributes.
const MOVING: &[&str] = &[
    "ArgMax",
    "ArgMin",
    "ArrayFeatureExtractor",
    "Bernoulli",
    "BitCast",
    "BlackmanWindow",
    "CategoryMapper",
    "CenterCropPad",
    "Clip",
    "Compress",
    "Concat",
    "ConcatFromSequence",
    "Constant",
    "ConstantFill",
    "ConstantOfShape",
    "DepthToSpace",
    "DictVectorizer",
    "Expand",
    "ExpandDims",
    "EyeLike",
    "FeatureVectorizer",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "GlobalMaxPool",
    "HammingWindow",
    "HannWindow",
    "Hardmax",
    "Identity",
    "If",
    "ImageDecoder",
    "Imputer",
    "IsInf",
    "IsNaN",
    "LabelEncoder",
    "Max",
    "MaxPool",
    "MaxRoiPool",
    "MaxUnpool",
    "MelWeightMatrix",
    "Min",
    "Multinomial",
    "NonMaxSuppression",
    "NonZero",
    "OneHot",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "Pad",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "ReduceMax",
    "ReduceMin",
    "Reshape",
    "ReverseSequence",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "Shape",
    "Size",
    "Slice",
    "SpaceToDepth",
    "Split",
    "SplitToSequence",
    "Squeeze",
    "TensorScatter",
    "TfIdfVectorizer",
    "Tile",
    "TopK",
    "Transpose",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
    "Trilu",
    "Unique",
    "Unsqueeze",
    "Where",
    "ZipMap",
];

/// Substrings of the names of operators that accumulate products, in every operator set:
/// `QLinearMatMul`, `FusedConv`, `GroupQueryAttention`, `DeformConv`.
const ACCUMULATING: &[&str] = &[
    "Attention",
    "Conv",
    "Einsum",
    "GRU",
    "GEMM",
    "Gemm",
    "LSTM",
    "MatMul",
    "MoE",
    "RNN",
];

/// Prefixes of the types of PyTorch's operators.
const TORCH: [&str; 2] = ["aten.", "prims."];

/// PyTorch's operators that convert, and those that accumulate products. Operators that move values
/// need no list: their inputs or arguments are non-finite too.
const TORCH_CONVERTING: &[&str] = &["aten._to_copy.", "prims.convert_element_type."];
const TORCH_ACCUMULATING: &[&str] = &[
    "aten._convolution",
    "aten._scaled_dot_product",
    "aten._scaled_mm",
    "aten.addbmm.",
    "aten.addmm",
    "aten.addmv.",
    "aten.baddbmm.",
    "aten.bmm.",
    "aten.convolution",
    "aten.dot.",
    "aten.linear.",
    "aten.mkldnn_rnn_layer",
    "aten.mm.",
    "aten.mv.",
    "aten.vdot.",
];

/// Returns how `operator` produces the numbers in its outputs.
pub fn arithmetic_kind(operator: &Operator) -> ArithmeticKind {
    let op_type = operator.op_type.as_str();
    if has_prefix(op_type, &TORCH) {
        // The lists for ONNX do not apply: they match parts of names, and `aten.convolution` would
        // match none of them.
        return match () {
            () if has_prefix(op_type, TORCH_CONVERTING) => ArithmeticKind::Converts,
            () if has_prefix(op_type, TORCH_ACCUMULATING) => ArithmeticKind::Accumulates,
            () => ArithmeticKind::Computes,
        };
    }
    let is_scatter = matches!(op_type, "Scatter" | "ScatterElements" | "ScatterND");
    // A scatter that replaces elements moves values; one that adds or multiplies computes.
    if MOVING.contains(&op_type) || (is_scatter && !reduces_by_arithmetic(operator)) {
        ArithmeticKind::Moves
    } else if matches!(op_type, "Cast" | "CastLike" | "QuantizeLinear") {
        ArithmeticKind::Converts
    // Substrings, so that variants in other domains match too: their arithmetic is the same, and no
    // list of them would stay complete.
    } else if ACCUMULATING.iter().any(|part| op_type.contains(part)) {
        ArithmeticKind::Accumulates
    } else {
        ArithmeticKind::Computes
    }
}

fn reduces_by_arithmetic(operator: &Operator) -> bool {
    matches!(text(operator, "reduction"), Some("\"add\"" | "\"mul\""))
}

/// Whether a type has one of these prefixes.
fn has_prefix(op_type: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| op_type.starts_with(prefix))
}

/// Whether an attribute may hold a non-finite number: the text of attributes truncates long lists
/// and omits tensors.
pub fn attributes_may_be_non_finite(operator: &Operator) -> bool {
    let is_torch = TORCH
        .iter()
        .any(|start| operator.op_type.starts_with(start));
    operator.attributes.iter().any(|(name, value)| {
        // Other attributes describe where the operator comes from.
        if is_torch && !name.starts_with("argument.") {
            return false;
        }
        let value = value.as_str();
        // A quoted text such as `"inf"` is a name or a mode, not a number.
        if value.starts_with('"') || value.starts_with("[\"") {
            return false;
        }
        let is_cut = value.starts_with('[') && value.contains('…');
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        let is_graph = value.starts_with("graph ");
        is_cut
            || value.starts_with("tensor[")
            // The text of a body may name a value `inf`. Overflows inside of the body show in the
            // operator's results.
            || (!is_graph && words.any(|word| matches!(word, "inf" | "NaN" | "nan")))
    })
}

/// The text of an attribute.
pub(super) fn text<'a>(operator: &'a Operator, name: &str) -> Option<&'a str> {
    let mut attributes = operator.attributes.iter();
    attributes
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

/// Whether an integer attribute is present and not 0.
pub(super) fn is_set(operator: &Operator, name: &str) -> bool {
    int(operator, name).is_some_and(|value| value != 0)
}

/// An integer attribute.
pub(super) fn int(operator: &Operator, name: &str) -> Option<i64> {
    text(operator, name)?.parse().ok()
}

/// An attribute with a list of integers that is not truncated.
pub(super) fn ints(operator: &Operator, name: &str) -> Option<Vec<i64>> {
    let list = text(operator, name)?.strip_prefix('[')?.strip_suffix(']')?;
    if list.is_empty() {
        return Some(Vec::new());
    }
    list.split(", ").map(|item| item.parse().ok()).collect()
}
