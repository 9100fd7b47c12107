//! The difference between two tensors, as an operation on golden's.

use serde::{Deserialize, Serialize};

use crate::number;

/// An operation that turns golden's tensor into the target's. Axes and indices count from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TensorChange {
    /// All elements of the target are one value.
    Constant {
        /// The value.
        #[serde(with = "number")]
        value: f64,
        /// Golden's value, if its elements are all the same too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        golden: Option<f64>,
    },
    /// Each element is golden's times `factor` plus `offset`.
    Affine {
        /// 1 if nothing was multiplied.
        factor: f64,
        /// 0 if nothing was added.
        offset: f64,
    },
    /// Each element is a function of golden's.
    Function {
        /// The function.
        function: ElementFunction,
    },
    /// Axis `k` of the target is axis `order[k]` of golden's.
    Axes {
        /// Golden's axes.
        order: Vec<usize>,
        /// Whether the target has golden's shape all the same: its memory holds the elements in
        /// the order of the other axes.
        in_memory: bool,
    },
    /// The same elements in memory order, in another shape.
    Reshaped,
    /// Mirrored along axes.
    Mirrored {
        /// The axes.
        axes: Vec<usize>,
        /// The length of the blocks that are mirrored separately; 0 for whole axes.
        block: usize,
    },
    /// Rolled as by `numpy.roll`.
    Rolled {
        /// Axes, each with the number of places.
        axes: Vec<(usize, i64)>,
    },
    /// Moved in memory order: element `i` is golden's `i - by`.
    Moved {
        /// The number of places.
        by: i64,
        /// Whether elements beyond an end appear at the other one. If not, those near it have
        /// values from elsewhere.
        wraps: bool,
    },
    /// Two indices of an axis are exchanged.
    Exchanged {
        /// The axis.
        axis: usize,
        /// The indices.
        indices: [usize; 2],
    },
    /// Blocks of an axis are in another order.
    Blocks {
        /// The axis.
        axis: usize,
        /// Indices in a block.
        size: usize,
        /// Golden's blocks in the order in which the target has them.
        order: Vec<usize>,
    },
    /// Parts of an axis are interleaved: the first index of each, then the second of each, …
    Interleaved {
        /// The axis.
        axis: usize,
        /// Number of parts.
        n_parts: usize,
        /// The length of the blocks that are interleaved separately: that of the axis if there is
        /// one.
        block: usize,
    },
    /// The indices of an axis are in an order without a rule.
    Permuted {
        /// The axis.
        axis: usize,
    },
    /// The elements are in an order without a rule.
    Reordered,
    /// Rounded to a number format.
    Rounded {
        /// Its name: `bfloat16`, `integers`, ….
        format: RoundedFormat,
        /// How.
        mode: RoundingMode,
    },
    /// Rounded to multiples of a step, perhaps from an offset on.
    Steps {
        /// The step.
        step: f64,
    },
    /// Limited to a range; `None` where it has no bound.
    Clipped {
        /// The lower bound.
        low: Option<f64>,
        /// The upper bound.
        high: Option<f64>,
    },
    /// One value above or below a diagonal of the last two axes.
    Triangle {
        /// Whether it is the upper triangle.
        is_upper: bool,
        /// The diagonal at which it begins: 0 is the main one, 1 the one above.
        diagonal: i64,
        /// The value.
        #[serde(with = "number")]
        value: f64,
    },
    /// Elements from one on, in memory order, are others.
    CutOff {
        /// How many elements before it agree.
        n_equal: usize,
        /// The value of all others, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<f64>,
    },
    /// Golden's elements that the target's dtype cannot hold are infinite; all others agree up to
    /// rounding.
    Overflow {
        /// The target's dtype.
        dtype: String,
        /// Its largest number.
        largest: f64,
        /// The largest magnitude on the golden side.
        needed: f64,
        /// Number of elements that are infinite.
        n: u64,
    },
    /// Elements that are finite on the golden side are not; all others agree.
    NonFinite {
        /// How many are NaN.
        n_nan: u64,
        /// How many are infinite.
        n_inf: u64,
    },
    /// Scaled or shifted by a number for each index of an axis.
    Channels {
        /// The axis.
        axis: usize,
        /// Whether it is a factor; else it is added.
        is_factor: bool,
        /// The smallest number.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// The bytes of each element are in the opposite order.
    ByteOrder,
    /// Only a part differs.
    Part {
        /// The axes along which it is not the whole tensor.
        axes: Vec<AxisPart>,
        /// The operation there, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Box<TensorChange>>,
    },
    /// Golden's tensor has the operation applied, the target's does not.
    Missing {
        /// The operation.
        change: Box<TensorChange>,
    },
    /// It is another weight of golden's model.
    OtherWeight {
        /// The name of the weight.
        name: String,
    },
}

/// A function of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementFunction {
    /// The magnitude.
    Absolute,
    /// `1/x`.
    Reciprocal,
    /// `x²`.
    Square,
    /// `√x`.
    SquareRoot,
    /// `1/√x`.
    ReciprocalSquareRoot,
    /// `eˣ`.
    Exponential,
    /// The natural logarithm.
    Logarithm,
}

/// A format that elements are rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundedFormat {
    /// Whole numbers.
    Integers,
    /// IEEE 754 binary16.
    Float16,
    /// The range of float32 with 8 bits of precision.
    Bfloat16,
    /// The range of float32 with 11 bits of precision.
    Tf32,
    /// Four bits of exponent, three of mantissa.
    Float8E4m3,
    /// Five bits of exponent, two of mantissa.
    Float8E5m2,
}

/// The direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundingMode {
    /// To the nearest value.
    Nearest,
    /// Towards zero.
    TowardsZero,
    /// Towards negative infinity.
    Down,
    /// Towards positive infinity.
    Up,
}

/// Indices of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisPart {
    /// The axis.
    pub axis: usize,
    /// Ranges, each with the first index and the one after the last.
    pub ranges: Vec<[usize; 2]>,
}
