//! Which operators of ONNX take it for granted what the axes of their operands mean.
//!
//! All others name axes by number, or treat all elements alike: they compute the same whatever the
//! axes are called.

/// The part that an operand plays for such an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandRole {
    /// Batch, channels, then spatial axes.
    Image,
    /// The kernels of a convolution: two axes of channels, then spatial ones.
    Kernel,
    /// A list with an element for each axis of the image.
    PerAxis,
    /// Something whose axes are not those of an image: one for each channel, or a number.
    Other,
}

use OperandRole::{Image, Kernel, Other, PerAxis};

/// Roles of the inputs; those behind are [`OperandRole::Other`]. The first output is an image.
const IMAGE_OPERATORS: &[(&str, &[OperandRole])] = &[
    ("AveragePool", &[Image]),
    ("BatchNormalization", &[Image]),
    ("Conv", &[Image, Kernel]),
    ("ConvInteger", &[Image, Kernel]),
    ("ConvTranspose", &[Image, Kernel]),
    ("DeformConv", &[Image, Kernel, Image, Other, Image]),
    ("DepthToSpace", &[Image]),
    ("GlobalAveragePool", &[Image]),
    ("GlobalLpPool", &[Image]),
    ("GlobalMaxPool", &[Image]),
    ("GridSample", &[Image]),
    ("GroupNormalization", &[Image]),
    ("InstanceNormalization", &[Image]),
    ("LRN", &[Image]),
    ("LpPool", &[Image]),
    ("MaxPool", &[Image]),
    ("MaxRoiPool", &[Image]),
    ("MaxUnpool", &[Image, Image]),
    ("MeanVarianceNormalization", &[Image]),
    ("QLinearConv", &[Image, Other, Other, Kernel]),
    ("Resize", &[Image, PerAxis, PerAxis, PerAxis]),
    ("RoiAlign", &[Image]),
    ("SpaceToDepth", &[Image]),
    ("Upsample", &[Image, PerAxis]),
];

/// Operators that treat all elements alike: operands that say different things of their axes are a
/// contradiction.
const ELEMENTWISE: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "BitShift",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Div",
    "Dropout",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Where",
    "Xor",
];

/// Returns the roles of an operator's inputs, if it takes them for granted; the first output is an
/// image then.
pub(super) fn of_inputs(op_type: &str) -> Option<&'static [OperandRole]> {
    let mut known = IMAGE_OPERATORS.iter();
    known
        .find(|(name, _)| *name == op_type)
        .map(|(_, roles)| *roles)
}

/// Whether an operator treats all elements alike.
pub(super) fn is_elementwise(op_type: &str) -> bool {
    ELEMENTWISE.contains(&op_type)
}
