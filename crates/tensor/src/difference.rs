//! How far two tensors are apart: every metric of a comparison, in one pass over both.
//!
//! `docs/compare/metrics.md` defines each of them, and `specification.rs` in plain, slow code. The
//! fast code processes both sides block by block, decodes each block to doubles, and sums in lanes
//! whose number does not depend on the CPU; every CPU computes the same bits. Blocks are combined
//! with their rounding errors, so that errors do not grow with the tensor. Maximum distance of
//! results from the exact values:
//!
//! | metric | bound |
//! | --- | --- |
//! | counts, `is_identical`, `max_abs`, `max_rel`, `worst`, `first_bad`, `min`, `max`, `max_ulp`, shares, histogram | none but the rounding of each single difference and quotient to a double |
//! | `p99_ulp` | exact below 256, then rounded up by at most 1/16 |
//! | `mean_abs`, `rmse`, `rel_l2`, `accumulated_rel`, `mean_rel`, `l2_norm` | 1e-13 of the value |
//! | `mean` | 1e-13 of the largest magnitude |
//! | `std` | 1e-12 of the value and 1e-13 of the largest magnitude |
//! | `cosine` | 1e-13 |
//! | `snr_db`, `psnr_db` | 1e-12 dB and 1e-13 of the value |
//! | `kl` | 1e-13 and 1e-13 of the value; takes a second look at all elements |
//!
//! Squares neither overflow nor vanish, of whatever doubles. Memory does not grow with the tensors.

mod extent;
mod kl;
mod pairs;
mod piecewise;
mod relative;
mod side;
mod source;
mod sweep;
#[cfg(test)]
mod tests;
mod ulp;
mod wide;

use self::kl::DivergenceTask;
use self::source::BlockSource;
use self::sweep::{DifferenceSweep, SweepResult};
use self::ulp::Ulps;
use crate::{DType, TensorView, cpu};

pub use self::extent::{DifferenceExtent, extent, visit_apart};
pub use self::piecewise::{N_PIECE_STEP, PiecewiseDifference};

/// Optional numbers, in addition to those that are always computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DifferenceOptions {
    /// Whether the Kullback-Leibler divergence is wanted, which takes another pass over the
    /// elements.
    pub has_kl: bool,
}

/// Compares two tensors element by element, in row-major order, whatever their shapes.
///
/// Complex numbers count as two elements each. Where both sides are integers, they are subtracted
/// and compared as such; for all else integers of 64 bits are rounded to doubles.
///
/// Of no elements distances, norms and sums are 0, shares 1, ratios of signal and noise infinite;
/// `min`, `max`, `mean` and `std` are NaN, and there is neither `cosine` nor `kl`. The same holds
/// if no element is finite on both sides.
///
/// # Errors
/// [`DifferenceError`] if the numbers of elements differ, or a dtype has no values.
pub fn difference(
    target: TensorView<'_>,
    golden: TensorView<'_>,
    options: DifferenceOptions,
) -> Result<TensorDifference, DifferenceError> {
    let dtype = coarser(target.dtype, golden.dtype);
    let sources = [BlockSource::new(target)?, BlockSource::new(golden)?];
    let [a, b] = sources.map(|source| source.n());
    if a != b {
        return Err(DifferenceError::Size {
            target: a,
            golden: b,
        });
    }
    let is_same_dtype = target.dtype == golden.dtype;
    let found = cpu::run(DifferenceSweep {
        sources,
        found: SweepResult::new(dtype.map(Ulps::new)),
    });
    let mut result = found.difference();
    result.n = a as u64;
    // The pass sees parts: to it, a `complex64` and a `float32` with the same bytes are alike.
    result.is_identical &= is_same_dtype;
    if options.has_kl && result.n_finite > 0 {
        // Equal distributions do not diverge, so the second look is spared.
        result.kl = Some(if found.is_identical {
            0.0
        } else {
            let ranges = found.pairs.ranges;
            cpu::run(DivergenceTask {
                sources,
                ranges,
                are_all_finite: result.n_finite == result.n,
            })
        });
    }
    Ok(result)
}

impl SweepResult {
    fn difference(&self) -> TensorDifference {
        let [target, golden] = self.sides.map(|side| side.summary());
        let mut result = TensorDifference {
            n_equal: self.n_equal,
            is_identical: self.is_identical,
            n_nan_mismatches: self.n_nan_mismatches,
            n_inf_mismatches: self.n_inf_mismatches,
            n_sign_flips: self.n_sign_flips,
            first_bad: self.first_bad,
            target,
            golden,
            max_ulp: self.ulps.as_ref().map(Ulps::max),
            p99_ulp: self.ulps.as_ref().map(Ulps::p99),
            ..TensorDifference::default()
        };
        self.pairs.finish(&mut result);
        // A NaN or an infinity on one side alone is farther away than any number.
        result.worst = self.first_mismatch.or(result.worst);
        result
    }
}

/// The float dtype with fewer digits of two, in whose steps distances are counted; none unless both
/// are floats.
///
/// Floats of 8 bits and fewer go by the steps of float16, scales (`float8_e8m0`) by those of
/// bfloat16.
pub fn coarser(a: DType, b: DType) -> Option<DType> {
    ulp::coarser(a, b)
}

/// The result of [`difference`]. Unless said otherwise, numbers are taken over the elements that
/// are finite on both sides, in double precision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorDifference {
    /// Number of elements of either tensor.
    pub n: u64,
    /// Number of elements that are finite on both sides.
    pub n_finite: u64,
    /// Number of elements with equal values: NaN equals NaN, and zeros of both signs are equal.
    pub n_equal: u64,
    /// Whether all bytes are equal, which takes equal dtypes.
    pub is_identical: bool,
    /// Elements that are NaN on one side only.
    pub n_nan_mismatches: u64,
    /// Elements that are infinite on one side only, or of another sign.
    pub n_inf_mismatches: u64,
    /// Elements of opposite sign, neither of them zero.
    pub n_sign_flips: u64,
    /// The first tensor.
    pub target: SideSummary,
    /// The second tensor, the reference.
    pub golden: SideSummary,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Mean absolute difference.
    pub mean_abs: f64,
    /// Root of the mean squared difference.
    pub rmse: f64,
    /// Largest relative difference, `|target - golden| / |golden|`. Here and in the two after it
    /// those that are infinite, as the golden element is zero, have no part.
    pub max_rel: f64,
    /// Mean relative difference.
    pub mean_rel: f64,
    /// Sum of the relative differences.
    pub accumulated_rel: f64,
    /// Norm of the difference over the norm of the golden side; infinite if only the latter is 0.
    pub rel_l2: f64,
    /// Cosine of the angle between both; none where one side is all zero and the other is not.
    pub cosine: Option<f64>,
    /// Kullback-Leibler divergence of both, normalised as distributions; `None` unless requested.
    pub kl: Option<f64>,
    /// Signal-to-noise ratio in decibels; infinite if the tensors are equal.
    pub snr_db: f64,
    /// The same of the golden side's largest magnitude.
    pub psnr_db: f64,
    /// Largest distance in units in the last place of the coarser dtype; none for dtypes that are
    /// no floats.
    pub max_ulp: Option<u64>,
    /// The distance that 99 % of the elements do not exceed, rounded up as documented.
    pub p99_ulp: Option<u64>,
    /// Share of elements whose relative difference is below 1/1000.
    pub share_1_1000: f64,
    /// Share of elements whose relative difference is below 5/1000.
    pub share_5_1000: f64,
    /// Where the absolute difference is largest: the first element that is NaN or infinite on one
    /// side alone, if there is one.
    pub worst: Option<WorstElement>,
    /// The first element that is NaN or infinite on the target side and not equally so on the
    /// golden side.
    pub first_bad: Option<u64>,
    /// Number of elements by the decimal exponent of their relative difference: below 1e-12, then
    /// one bin for each power of ten up to 1e3, then above.
    pub histogram: [u64; N_BINS],
}

/// Bins of [`TensorDifference::histogram`].
pub const N_BINS: usize = 17;

/// One side of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SideSummary {
    /// Smallest finite element; NaN if there is none.
    pub min: f64,
    /// Largest finite element; NaN if there is none.
    pub max: f64,
    /// Mean of the finite elements; NaN if there are none.
    pub mean: f64,
    /// Population standard deviation of the finite elements.
    pub std: f64,
    /// Root of the sum of squares of the finite elements.
    pub l2_norm: f64,
    /// Number of NaN.
    pub n_nan: u64,
    /// Number of +inf.
    pub n_positive_inf: u64,
    /// Number of -inf.
    pub n_negative_inf: u64,
    /// Number of zeros.
    pub n_zero: u64,
}

/// The element with the largest absolute difference; the first of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorstElement {
    /// Its position in row-major order.
    pub index: u64,
    /// Its value on the first side.
    pub target: f64,
    /// Its value on the second side.
    pub golden: f64,
}

/// Why two tensors cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DifferenceError {
    /// They have different numbers of elements.
    #[error("{target} elements cannot be compared with {golden}")]
    Size {
        /// Elements of the first.
        target: usize,
        /// Elements of the second.
        golden: usize,
    },
    /// A dtype has no values: text and handles.
    #[error(transparent)]
    Decode(#[from] crate::convert::dtype::DecodeError),
}
