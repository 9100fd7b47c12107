//! The reference's ten metrics, identical to the last digit.
//!
//! The reference computes with numpy on `float32` arrays. So each step is rounded to `float32` here
//! too, sums follow numpy's order, and logarithms are numpy's. That determines the results for NaN,
//! infinities, zeros and constants; the few special cases are documented at each metric. Booleans
//! on both sides are compared as booleans, and only by two of the metrics.

mod log;
mod sum;

use std::hint::black_box;

use sum::{LANES, pairwise, pairwise_f64, pairwise_lanes, sum_of_f32_as_f64};

/// Smaller numbers count as zero: the distance from 1 to the next `float64`.
const DOUBLE_EPSILON: f64 = f64::EPSILON;
/// Smaller means and deviations are printed as zero.
const DEVIATION_MIN: f64 = 0.001;
const NO_MAXIMUM: &str = "zero-size array to reduction operation maximum which has no identity";
const NO_BOOL_SUBTRACT: &str = "numpy boolean subtract, the `-` operator, is not supported, use \
    the bitwise_xor, the `^` operator, or the logical_xor function instead.";

/// The text of a missing value.
pub(super) const NAN: &str = "NaN";

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    CosineSimilarity,
    MaxAbsoluteError,
    AccumulatedRelativeError,
    RelativeEuclideanDistance,
    KullbackLeiblerDivergence,
    StandardDeviation,
    MeanAbsoluteError,
    RootMeanSquareError,
    MaxRelativeError,
    MeanRelativeError,
}

/// Elements of both sides, equal in number.
#[derive(Clone, Copy)]
pub(super) enum ComparedElements<'a> {
    Floats(&'a [f32], &'a [f32]),
    /// Each element is zero or one.
    Bools(&'a [u8], &'a [u8]),
}

/// Properties of the tensors that metrics depend on.
#[derive(Clone, Copy)]
pub(super) struct TensorFacts<'a> {
    pub(super) my_file: &'a str,
    pub(super) golden_file: &'a str,
    pub(super) is_scalar: bool,
}

/// The text of a result, and a possibly empty reason.
pub(super) type Outcome = (String, String);

impl Metric {
    /// All metrics, by number.
    pub(super) const ALL: [Metric; 10] = [
        Metric::CosineSimilarity,
        Metric::MaxAbsoluteError,
        Metric::AccumulatedRelativeError,
        Metric::RelativeEuclideanDistance,
        Metric::KullbackLeiblerDivergence,
        Metric::StandardDeviation,
        Metric::MeanAbsoluteError,
        Metric::RootMeanSquareError,
        Metric::MaxRelativeError,
        Metric::MeanRelativeError,
    ];

    /// The name of the metric and its column.
    pub(super) fn name(self) -> &'static str {
        match self {
            Metric::CosineSimilarity => "CosineSimilarity",
            Metric::MaxAbsoluteError => "MaxAbsoluteError",
            Metric::AccumulatedRelativeError => "AccumulatedRelativeError",
            Metric::RelativeEuclideanDistance => "RelativeEuclideanDistance",
            Metric::KullbackLeiblerDivergence => "KullbackLeiblerDivergence",
            Metric::StandardDeviation => "StandardDeviation",
            Metric::MeanAbsoluteError => "MeanAbsoluteError",
            Metric::RootMeanSquareError => "RootMeanSquareError",
            Metric::MaxRelativeError => "MaxRelativeError",
            Metric::MeanRelativeError => "MeanRelativeError",
        }
    }

    /// Whether it supports booleans.
    pub(super) fn takes_bools(self) -> bool {
        matches!(
            self,
            Metric::CosineSimilarity | Metric::RelativeEuclideanDistance
        )
    }

    /// The result; an error holds the message of the reference's exception.
    pub(super) fn run(
        self,
        pair: ComparedElements<'_>,
        about: &TensorFacts<'_>,
    ) -> Result<Outcome, String> {
        let (a, b) = match pair {
            ComparedElements::Floats(a, b) => (a, b),
            ComparedElements::Bools(a, b) => return self.run_bools(a, b, about),
        };
        let value = match self {
            Metric::CosineSimilarity => return Ok(cosine(a, b, about)),
            Metric::KullbackLeiblerDivergence => return divergence(a, b, about),
            Metric::StandardDeviation => return Ok((deviations(a, b), String::new())),
            Metric::MaxAbsoluteError => {
                maximum(a.len(), |i| (a[i] - b[i]).abs()).ok_or(NO_MAXIMUM)?
            }
            Metric::MaxRelativeError => {
                maximum(a.len(), |i| relative(a[i], b[i])).ok_or(NO_MAXIMUM)?
            }
            Metric::AccumulatedRelativeError => pairwise(a.len(), |i| relative(a[i], b[i])),
            Metric::MeanRelativeError => mean(a.len(), |i| relative(a[i], b[i])),
            Metric::MeanAbsoluteError => mean(a.len(), |i| (a[i] - b[i]).abs()),
            Metric::RootMeanSquareError => mean(a.len(), |i| square(a[i] - b[i])).sqrt(),
            Metric::RelativeEuclideanDistance => distance(a, b),
        };
        Ok((six_places(value.into()), String::new()))
    }

    fn run_bools(self, a: &[u8], b: &[u8], about: &TensorFacts<'_>) -> Result<Outcome, String> {
        match self {
            Metric::CosineSimilarity => Ok(cosine_of_bools(a, b, about)),
            // The reference divides by the norm only if the golden side is not zero, and then
            // subtracts booleans, which numpy refuses.
            Metric::RelativeEuclideanDistance if b.contains(&1) => Err(NO_BOOL_SUBTRACT.to_owned()),
            _ => Ok((six_places(0.0), String::new())),
        }
    }
}

/// A number with six decimals, as Python prints it.
pub(super) fn six_places(value: f64) -> String {
    places(value, 6)
}

fn places(value: f64, n: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    format!("{value:.n$}")
}

fn square(x: f32) -> f32 {
    x * x
}

/// The relative error of an element; none if the golden one is zero or NaN.
fn relative(a: f32, b: f32) -> f32 {
    if f64::from(b.abs()) > DOUBLE_EPSILON {
        (a / b - 1.0).abs()
    } else {
        0.0
    }
}

/// numpy's mean: the sum in `float32`, the quotient in `float64`, rounded.
fn mean(n: usize, value: impl Fn(usize) -> f32) -> f32 {
    (f64::from(pairwise(n, value)) / n as f64) as f32
}

/// The largest value, or NaN if there is one; `None` without values.
fn maximum(n: usize, value: impl Fn(usize) -> f32) -> Option<f32> {
    let mut max = f32::NEG_INFINITY;
    let mut has_nan = false;
    for i in 0..n {
        let value = value(i);
        has_nan |= value.is_nan();
        // `f32::max` drops NaN where numpy propagates it, so NaN is tracked separately: a branch
        // would prevent vectorisation.
        max = max.max(value);
    }
    match n {
        0 => None,
        _ if has_nan => Some(f32::NAN),
        _ => Some(max),
    }
}

/// `x ** 0.5` of one number, for which numpy calls the C library's `pow` rather than `sqrt`.
fn half_power(x: f32) -> f32 {
    // The compiler would replace this power by a square root, which differs in the last bit.
    x.powf(black_box(0.5))
}

/// 1 for scalars; a constant and a reason if one side is zero.
fn cosine(a: &[f32], b: &[f32], about: &TensorFacts<'_>) -> Outcome {
    if about.is_scalar {
        return scalar();
    }
    let (norm_a, norm_b) = (norm(a), norm(b));
    let zero = zero_side(
        norm_a.into(),
        norm_b.into(),
        // The reference takes the root of the norm once more before it checks for a zero side.
        [norm_a, norm_b].map(|n| n.sqrt().into()),
    );
    if let Some(zero) = zero {
        return zero.outcome(about);
    }
    let value = pairwise(a.len(), |i| (a[i] / norm_a) * (b[i] / norm_b));
    (six_places(at_most_one(value.into())), String::new())
}

/// The Euclidean norm, summed like numpy.
fn norm(x: &[f32]) -> f32 {
    pairwise(x.len(), |i| square(x[i])).sqrt()
}

fn cosine_of_bools(a: &[u8], b: &[u8], about: &TensorFacts<'_>) -> Outcome {
    if about.is_scalar {
        return scalar();
    }
    let (norm_a, norm_b) = (bool_norm(a), bool_norm(b));
    if let Some(zero) = zero_side(norm_a, norm_b, [norm_a.sqrt(), norm_b.sqrt()]) {
        return zero.outcome(about);
    }
    let value = pairwise_f64(a.len(), |i| {
        (f64::from(a[i]) / norm_a) * (f64::from(b[i]) / norm_b)
    });
    (six_places(at_most_one(value)), String::new())
}

/// The Euclidean norm of booleans.
fn bool_norm(x: &[u8]) -> f64 {
    pairwise_f64(x.len(), |i| f64::from(x[i])).sqrt()
}

fn scalar() -> Outcome {
    (six_places(1.0), "This tensor is scalar.".to_owned())
}

/// Python's `min` with 1, which keeps NaN.
fn at_most_one(value: f64) -> f64 {
    // Python compares the new value with the smallest so far, and comparisons with NaN are false.
    if 1.0 < value { 1.0 } else { value }
}

/// The side that counts as zero.
enum ZeroSide {
    Both,
    Mine,
    Golden,
}

fn zero_side(norm_a: f64, norm_b: f64, roots: [f64; 2]) -> Option<ZeroSide> {
    // One comparison includes the limit and the other does not, as in the reference.
    if norm_a <= DOUBLE_EPSILON && norm_b < DOUBLE_EPSILON {
        return Some(ZeroSide::Both);
    }
    if roots[0] <= DOUBLE_EPSILON {
        return Some(ZeroSide::Mine);
    }
    (roots[1] <= DOUBLE_EPSILON).then_some(ZeroSide::Golden)
}

impl ZeroSide {
    fn outcome(&self, about: &TensorFacts<'_>) -> Outcome {
        let file = match self {
            ZeroSide::Both => return ("1.0".to_owned(), String::new()),
            ZeroSide::Mine => about.my_file,
            ZeroSide::Golden => about.golden_file,
        };
        let reason =
            format!("Cannot compare by Cosine Similarity. All the data is zero in {file}.");
        (NAN.to_owned(), reason)
    }
}

/// 0 if the golden side is zero.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    let golden = pairwise(b.len(), |i| square(b[i]));
    if f64::from(half_power(golden)) <= DOUBLE_EPSILON {
        return 0.0;
    }
    half_power(pairwise(a.len(), |i| square(a[i] - b[i])) / golden)
}

/// Both sides as distributions: scaled to 0…1 unless they are constant, clamped to at least
/// `float32`'s epsilon, then divided by their sum.
fn divergence(a: &[f32], b: &[f32], about: &TensorFacts<'_>) -> Result<Outcome, String> {
    let (p, q) = (ValueDistribution::new(a)?, ValueDistribution::new(b)?);
    let term = |i: usize| {
        let (p, q) = (p.at(a[i]), q.at(b[i]));
        p * log::ln(p / q)
    };
    let value = pairwise_lanes(a.len(), term, |i| {
        let my: [f32; LANES] = std::array::from_fn(|lane| p.at(a[i + lane]));
        // Eight at a time, in the order of numpy's sum, so that the logarithm is vectorised and the
        // digits stay the same.
        let quotients: [f32; LANES] = std::array::from_fn(|lane| my[lane] / q.at(b[i + lane]));
        let logs = log::ln_of_all(quotients);
        std::array::from_fn(|lane| my[lane] * logs[lane])
    });
    // Rounding leaves a tiny value of either sign, which would be printed as `-0.000000`.
    let value = if f64::from(value.abs()) < DOUBLE_EPSILON {
        0.0
    } else {
        value
    };
    let mut reason = String::new();
    if value == f32::INFINITY {
        let file = about.golden_file;
        reason = format!("Cannot compare by KL Divergence. The data contains 0 in '{file}'.");
    }
    Ok((six_places(value.into()), reason))
}

struct ValueDistribution {
    min: f32,
    /// Zero if all elements are the same.
    range: f32,
    sum: f32,
}

impl ValueDistribution {
    fn new(x: &[f32]) -> Result<ValueDistribution, String> {
        let max = maximum(x.len(), |i| x[i]).ok_or(NO_MAXIMUM)?;
        let min = -maximum(x.len(), |i| -x[i]).ok_or(NO_MAXIMUM)?;
        let range = max - min;
        let unsummed = ValueDistribution {
            min,
            range,
            sum: 1.0,
        };
        let sum = pairwise(x.len(), |i| unsummed.normal(x[i]));
        Ok(ValueDistribution { sum, ..unsummed })
    }

    fn normal(&self, x: f32) -> f32 {
        let x = if self.range == 0.0 {
            x
        } else {
            (x - self.min) / self.range
        };
        // Keeps NaN, like numpy's maximum.
        if x < f32::EPSILON { f32::EPSILON } else { x }
    }

    fn at(&self, x: f32) -> f32 {
        self.normal(x) / self.sum
    }
}

fn deviations(a: &[f32], b: &[f32]) -> String {
    format!("{},{}", describe(a), describe(b))
}

/// The mean and the standard deviation in parentheses.
fn describe(x: &[f32]) -> String {
    let n = x.len() as f64;
    let mean = sum_of_f32_as_f64(x) / n;
    let deviation = (pairwise_f64(x.len(), |i| {
        let difference: f64 = f64::from(x[i]) - mean;
        difference * difference
    }) / n)
        .sqrt();
    format!("({};{})", deviation_text(mean), deviation_text(deviation))
}

/// A mean or deviation with three decimals; tiny values become 0.
fn deviation_text(value: f64) -> String {
    let value = if value.abs() < DEVIATION_MIN {
        0.0
    } else {
        value
    };
    places(value, 3)
}

#[cfg(test)]
mod tests;
