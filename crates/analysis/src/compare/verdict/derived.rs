//! Metrics that follow from saved ones.

use crate::compare::result::{Metrics, SlotResult};

use super::exactness::{smallest_normal, unit};

/// Distances up to this many roundings are nothing but rounding.
const N_ROUNDINGS: f64 = 8.0;

/// Flips of sign that are left to chance.
const N_CHANCE_FLIPS: f64 = 3.0;
/// Standard deviations within which independent errors stay.
const N_DEVIATIONS: f64 = 4.0;

/// Metrics that can have limits: those of a tensor, those that follow from them, those of statistics.
pub(super) const METRICS: [&str; 25] = [
    "cosine",
    "rel_l2",
    "max_abs",
    "mean_abs",
    "rmse",
    "max_rel",
    "mean_rel",
    "accumulated_rel",
    "kl",
    "max_ulp",
    "p99_ulp",
    "snr_db",
    "psnr_db",
    "share_1_1000",
    "share_5_1000",
    "n_sign_flips",
    "n_nan_mismatches",
    "n_inf_mismatches",
    "n_non_finite_mismatches",
    "share_unequal",
    "scaled_max_abs",
    "sign_flip_share",
    "gain_error",
    "offset_error",
    "digest_mismatch",
];

/// The beginning of the name of a metric of statistics; see [`is_statistic`].
const STATISTIC: &str = "statistic_";

/// Whether a metric is about a statistic, or is the largest distance of all.
pub(super) fn is_statistic(metric: &str) -> bool {
    metric.starts_with(STATISTIC) && (metric.ends_with("_rel") || metric.ends_with("_share"))
}

/// A metric that is saved, or one that follows from those.
pub(super) fn value(metrics: &Metrics, metric: &str) -> Option<f64> {
    if let Some(value) = metrics.get(metric) {
        return Some(value);
    }
    let get = |name: &str| metrics.get(name);
    match metric {
        "n_non_finite_mismatches" => match (get("n_nan_mismatches"), get("n_inf_mismatches")) {
            (None, None) => None,
            (nan, inf) => Some(nan.unwrap_or(0.0) + inf.unwrap_or(0.0)),
        },
        "share_unequal" => {
            let (n, n_equal) = (get("n")?, get("n_equal")?);
            Some(if n > 0.0 { (n - n_equal) / n } else { 0.0 })
        }
        "scaled_max_abs" => {
            let distance = get("max_abs")?;
            let (min, max) = (get("golden_min")?, get("golden_max")?);
            Some(ratio(distance, max.abs().max(min.abs())))
        }
        "sign_flip_share" => {
            let n_flips = (get("n_sign_flips")? - N_CHANCE_FLIPS).max(0.0);
            Some(ratio(n_flips, get("n_finite")?))
        }
        "gain_error" => {
            let gain = get("cosine")? * get("target_l2_norm")? / get("golden_l2_norm")?;
            beyond_chance(metrics, (gain - 1.0).abs())
        }
        "offset_error" => {
            let rms = get("golden_l2_norm")? / get("n_finite")?.sqrt();
            let offset = (get("target_mean")? - get("golden_mean")?).abs();
            beyond_chance(metrics, ratio(offset, rms))
        }
        "statistic_rel" => {
            let is_distance = |name: &str| name.starts_with(STATISTIC) && name.ends_with("_rel");
            let all = metrics.0.iter().filter(|(name, _)| is_distance(name));
            all.map(|(_, value)| *value).reduce(f64::max)
        }
        _ => None,
    }
}

/// A systematic error less what errors that know nothing of each other make of the same distance. It exists
/// where both sides have the same elements finite, and enough of them to tell.
fn beyond_chance(metrics: &Metrics, error: f64) -> Option<f64> {
    let get = |name: &str| metrics.get(name);
    let has_all = value(metrics, "n_non_finite_mismatches")? == 0.0;
    let chance = N_DEVIATIONS * get("rel_l2")? / get("n_finite")?.sqrt();
    (has_all && error.is_finite() && chance.is_finite()).then(|| (error - chance).max(0.0))
}

/// A distance over what it is measured by; none over nothing is 0.
fn ratio(distance: f64, by: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { distance / by }
}

/// Whether large values of a metric are good.
pub(super) fn is_better_large(metric: &str) -> bool {
    [
        "cosine",
        "snr_db",
        "psnr_db",
        "share_1_1000",
        "share_5_1000",
    ]
    .contains(&metric)
}

/// Whether a value is beyond a threshold. NaN is beyond everything.
pub(super) fn is_beyond(metric: &str, value: f64, threshold: f64) -> bool {
    let is_within = if is_better_large(metric) {
        value >= threshold
    } else {
        value <= threshold
    };
    !is_within
}

/// The limit that lies `factor` times as far from perfect as the natural loss does; none where a loss says
/// nothing about the metric.
pub(super) fn of_natural_loss(metric: &str, natural: f64, factor: f64) -> Option<f64> {
    let limit = match metric {
        // The angle goes with the square root of what a cosine lacks.
        "cosine" => 1.0 - factor * factor * (1.0 - natural),
        "share_1_1000" | "share_5_1000" => 1.0 - factor * (1.0 - natural),
        "snr_db" | "psnr_db" => natural - 20.0 * factor.log10(),
        "digest_mismatch" => return None,
        // A NaN is no loss of digits.
        _ if metric.ends_with("_mismatches") => return None,
        _ => natural * factor,
    };
    limit.is_finite().then_some(limit)
}

/// Whether every difference is smaller than the smallest number that the dtype has with all its digits.
pub(super) fn is_below_range(slot: &SlotResult) -> bool {
    let dtype = super::dtype_of(slot);
    let floor = dtype.and_then(smallest_normal);
    let distance = slot.metrics.get("max_abs");
    floor.is_some_and(|floor| distance.is_some_and(|distance| distance < floor))
}

/// Whether both sides are no farther apart than a few roundings, so that values near zero have any sign.
pub(super) fn is_rounding(slot: &SlotResult) -> bool {
    let unit = super::dtype_of(slot).and_then(unit);
    let distance = slot.metrics.get("rel_l2");
    unit.is_some_and(|unit| distance.is_some_and(|distance| distance <= N_ROUNDINGS * unit))
}
