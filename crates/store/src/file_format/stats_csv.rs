//! The statistics file of AscendCL data dump: one CSV for each operator execution.

/// Which columns follow dtype, layout and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Maximum, minimum, average, count and the counts of what is not finite.
    Plain,
    /// The count and these, in the order of [`Column`].
    Chosen(Vec<Column>),
}

/// A column that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
    /// The arithmetic mean.
    Average,
    /// Number of NaN elements.
    NanCount,
    /// Number of elements that are `-inf`.
    NegativeInfCount,
    /// Number of elements that are `+inf`.
    PositiveInfCount,
    /// The square root of the sum of squares.
    L2Norm,
}
