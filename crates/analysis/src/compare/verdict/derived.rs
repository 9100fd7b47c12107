//! Metrics that follow from saved ones.

use crate::compare::measure::masked;
use crate::compare::metric::MetricId;
use crate::compare::result::{Metrics, SlotResult};

use super::exactness::{smallest_normal, unit};

/// Distances up to this many roundings count as rounding.
const N_ROUNDINGS: f64 = 8.0;

/// Flips of sign that are left to chance.
const N_CHANCE_FLIPS: f64 = 3.0;
/// Standard deviations within which independent errors stay.
const N_DEVIATIONS: f64 = 4.0;

/// A metric that is saved, or one that follows from those.
pub(super) fn value(metrics: &Metrics, metric: MetricId) -> Option<f64> {
    if metric == MetricId::RelL2 {
        return finite_rel_l2(metrics);
    }
    if let Some(value) = metrics.get(metric) {
        return Some(value);
    }
    match metric {
        MetricId::NonFiniteMismatches => {
            match (
                metrics.get(MetricId::NanMismatches),
                metrics.get(MetricId::InfMismatches),
            ) {
                (None, None) => None,
                (nan, inf) => Some(nan.unwrap_or(0.0) + inf.unwrap_or(0.0)),
            }
        }
        MetricId::ShareUnequal => {
            let (n, n_equal) = (
                metrics.get(MetricId::Count)?,
                metrics.get(MetricId::EqualCount)?,
            );
            Some(if n > 0.0 { (n - n_equal) / n } else { 0.0 })
        }
        MetricId::ScaledMaxAbs => {
            let distance = metrics.get(MetricId::MaxAbs)?;
            let (min, max) = (
                metrics.get(MetricId::GoldenMin)?,
                metrics.get(MetricId::GoldenMax)?,
            );
            Some(ratio(distance, max.abs().max(min.abs())))
        }
        MetricId::SignFlipShare => {
            // In a small tensor a single flip is a large share, and values near zero have any sign.
            let n_flips = (metrics.get(MetricId::SignFlips)? - N_CHANCE_FLIPS).max(0.0);
            Some(ratio(n_flips, metrics.get(MetricId::FiniteCount)?))
        }
        MetricId::GainError => {
            // Where both sides are all zero the quotient is NaN, which `beyond_chance` drops.
            let gain = metrics.get(MetricId::Cosine)? * metrics.get(MetricId::TargetL2Norm)?
                / metrics.get(MetricId::GoldenL2Norm)?;
            beyond_chance(metrics, (gain - 1.0).abs())
        }
        MetricId::OffsetError => {
            let rms =
                metrics.get(MetricId::GoldenL2Norm)? / metrics.get(MetricId::FiniteCount)?.sqrt();
            let offset =
                (metrics.get(MetricId::TargetMean)? - metrics.get(MetricId::GoldenMean)?).abs();
            beyond_chance(metrics, ratio(offset, rms))
        }
        MetricId::StatisticRel => {
            let all = metrics.iter();
            let all = all.filter(|(metric, _)| metric.is_statistic_distance());
            all.map(|(_, value)| value).reduce(f64::max)
        }
        _ => None,
    }
}

/// The systematic part of an error beyond that of independent errors of the same distance. Exists
/// if both sides have the same finite elements, and enough of them.
fn beyond_chance(metrics: &Metrics, error: f64) -> Option<f64> {
    if let (Some(min), Some(max)) = (
        metrics.get(MetricId::GoldenMin),
        metrics.get(MetricId::GoldenMax),
    ) && masked::is_masked(min, max)
    {
        // Norms and means are those of the mask.
        return None;
    }
    let has_all = value(metrics, MetricId::NonFiniteMismatches)? == 0.0;
    let chance =
        N_DEVIATIONS * metrics.get(MetricId::RelL2)? / metrics.get(MetricId::FiniteCount)?.sqrt();
    (has_all && error.is_finite() && chance.is_finite()).then(|| (error - chance).max(0.0))
}

/// The relative distance of the elements that are finite on both sides. Limits apply to it, as
/// elements that are NaN or infinite on one side alone have a limit of their number.
pub(super) fn finite_rel_l2(metrics: &Metrics) -> Option<f64> {
    let shown = metrics.get(MetricId::RelL2)?;
    let has_mismatch = value(metrics, MetricId::NonFiniteMismatches) > Some(0.0);
    if shown.is_finite() || !has_mismatch {
        return Some(shown);
    }
    let n = metrics.get(MetricId::FiniteCount)?;
    let norm = metrics.get(MetricId::Rmse)? * n.sqrt();
    Some(ratio(norm, metrics.get(MetricId::GoldenL2Norm)?))
}

/// A distance over what it is measured by; none over nothing is 0.
fn ratio(distance: f64, by: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { distance / by }
}

/// Whether a value is beyond a threshold. NaN is beyond everything.
pub(super) fn is_beyond(metric: MetricId, value: f64, threshold: f64) -> bool {
    // Being within is asked, since every comparison with NaN is false.
    let is_within = if metric.is_better_large() {
        value >= threshold
    } else {
        value <= threshold
    };
    !is_within
}

/// The limit that lies `factor` times as far from perfect as the natural loss does; none where a
/// loss says nothing about the metric.
pub(super) fn of_natural_loss(metric: MetricId, natural: f64, factor: f64) -> Option<f64> {
    let limit = match metric {
        // The angle is proportional to the square root of the cosine's distance from 1.
        MetricId::Cosine => 1.0 - factor * factor * (1.0 - natural),
        MetricId::Share1In1000 | MetricId::Share5In1000 => 1.0 - factor * (1.0 - natural),
        MetricId::SnrDb | MetricId::PsnrDb => natural - 20.0 * factor.log10(),
        MetricId::DigestMismatch => return None,
        // A NaN is not a loss of digits.
        _ if metric.counts_mismatches() => return None,
        _ => natural * factor,
    };
    limit.is_finite().then_some(limit)
}

/// Whether every difference is at most `atol`, or smaller than the smallest number that the dtype has
/// with all its digits.
pub(super) fn is_nothing(slot: &SlotResult, atol: f64) -> bool {
    let dtype = super::dtype_of(slot);
    let floor = dtype.and_then(smallest_normal);
    let distance = slot.metrics.get(MetricId::MaxAbs);
    distance.is_some_and(|distance| distance <= atol || floor.is_some_and(|floor| distance < floor))
}

/// Whether both sides are no farther apart than a few roundings, so that values near zero have any
/// sign.
pub(super) fn is_rounding(slot: &SlotResult) -> bool {
    let unit = super::dtype_of(slot).and_then(unit);
    let distance = finite_rel_l2(&slot.metrics);
    unit.is_some_and(|unit| distance.is_some_and(|distance| distance <= N_ROUNDINGS * unit))
}
