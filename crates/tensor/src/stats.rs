//! Statistics of one tensor.
//!
//! `specification.rs` defines them in plain code: one element after the other, in a fixed order of
//! summation. The fast code computes the same bits for every input, on every CPU and for any split
//! into parts. `docs/statistics.md` has the definitions.

mod block;
mod codes;
mod counts;
mod float;
mod histogram;
mod integer;
mod kind;
mod non_finite;
mod partial;
pub mod sequential;
mod strided;
#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::{DType, HostAccessError, TensorView};

pub use counts::ElementCounts;
pub use histogram::Histogram;
pub(crate) use non_finite::non_finite_beside;
pub use non_finite::{
    NonFinite, NonFinitePlaces, first_non_finite, has_non_finite, non_finite, non_finite_places,
};
pub use partial::{CHUNK_ELEMENTS, PartialStats, StatsOptions, TensorChunk, chunks};
pub use strided::stats_strided;

/// Numbers that describe one tensor's elements.
///
/// For an empty tensor, and for one with only NaN, `min` is `+inf`, `max` is `-inf`, `mean` and
/// `std` are NaN and the sums and norms are 0. Integers of 64 bits are rounded to the nearest
/// `f64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Numbers of elements of each kind.
    pub counts: ElementCounts,
    /// The smallest element; -0 is smaller than +0.
    pub min: f64,
    /// The largest element; -0 is smaller than +0.
    pub max: f64,
    /// The sum of the elements; NaN where infinities of both signs meet.
    pub sum: f64,
    /// The arithmetic mean of the elements that are not NaN; NaN where infinities of both signs
    /// meet.
    pub mean: f64,
    /// The standard deviation of the elements that are not NaN, as those of a whole population
    /// (divided by their number); NaN if any is infinite.
    pub std: f64,
    /// The sum of magnitudes.
    pub l1: f64,
    /// The square root of the sum of squares.
    pub l2: f64,
}

impl Stats {
    /// Whether any element is NaN or infinite.
    pub fn has_non_finite(&self) -> bool {
        self.counts.n_nan + self.counts.n_pos_inf + self.counts.n_neg_inf > 0
    }

    /// The smallest element, or NaN if any element is.
    pub fn min_or_nan(&self) -> f64 {
        if self.counts.n_nan > 0 {
            f64::NAN
        } else {
            self.min
        }
    }

    /// The largest element, or NaN if any element is.
    pub fn max_or_nan(&self) -> f64 {
        if self.counts.n_nan > 0 {
            f64::NAN
        } else {
            self.max
        }
    }

    /// The mean, or NaN if any element is.
    pub fn mean_or_nan(&self) -> f64 {
        if self.counts.n_nan > 0 {
            f64::NAN
        } else {
            self.mean
        }
    }
}

/// Why a tensor has no statistics.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatsError {
    /// The elements have no order, such as text or complex numbers.
    #[error("elements of type `{0}` have no minimum, maximum or mean")]
    Dtype(DType),
    /// The elements were dropped before their statistics were computed.
    #[error(transparent)]
    Elements(#[from] HostAccessError),
}

/// Computes the statistics of `tensor`.
///
/// Sums are accumulated in `f64`, in one fixed order, so that they do not depend on threads or on
/// the CPU.
///
/// # Errors
/// [`StatsError::Dtype`] if the elements are text, complex or of a type without a numeric value.
pub fn stats(tensor: TensorView<'_>) -> Result<Stats, StatsError> {
    Ok(weighed_stats(tensor)?.stats)
}

/// Statistics, and what bounds the rounding of a sum that is taken element after element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatsAndWeight {
    /// The statistics.
    pub stats: Stats,
    /// [`PartialStats::prefix_weight`].
    pub prefix_weight: f64,
}

/// [`stats`](crate::stats()) together with the weight.
///
/// # Errors
/// As for [`stats`](crate::stats()).
pub fn weighed_stats(tensor: TensorView<'_>) -> Result<StatsAndWeight, StatsError> {
    let mut total = PartialStats::default();
    for chunk in chunks(tensor.dtype, tensor.shape.n_elements(), tensor.bytes)? {
        total.append(&chunk.look(StatsOptions::default()));
    }
    Ok(total.weighed())
}
