//! Pass, warn or fail: what metrics mean.
//!
//! A verdict is a function of saved numbers and thresholds, so that it can be given anew without reading a
//! tensor again.

mod thresholds;

use opscope_tensor::DType;

use super::measure::{SHAPE_RULE, coarser};
use super::result::{Comparison, Level, OperatorResult, RuleHit, SlotResult};

pub(crate) use thresholds::is_match;
pub use thresholds::{Bounds, Thresholds, ThresholdsError};

/// Judges every slot anew, and each operator by its outputs; then the whole.
pub fn judge(comparison: &mut Comparison, thresholds: &Thresholds) {
    for operator in &mut comparison.operators {
        let (op_type, op_name) = names_of(operator);
        for slot in &mut operator.slots {
            judge_slot(slot, thresholds, (&op_type, &op_name));
        }
        operator.level = level_of(operator);
    }
}

/// Type and name by which thresholds are chosen: the target's last operator.
fn names_of(operator: &OperatorResult) -> (String, String) {
    let name = operator.target.last().or(operator.golden.last());
    name.map(|name| (name.op_type.clone(), name.op_name.clone()))
        .unwrap_or_default()
}

/// The worst of the outputs; of the inputs if no output was compared.
fn level_of(operator: &OperatorResult) -> Level {
    let levels = |is_output: bool| {
        let slots = operator
            .slots
            .iter()
            .filter(move |slot| is_output_slot(slot) == is_output);
        slots
            .map(|slot| slot.level)
            .filter(|level| *level != Level::Skip)
            .max()
    };
    levels(true)
        .or_else(|| levels(false))
        .unwrap_or(Level::Skip)
}

/// Whether a slot is an output.
pub fn is_output_slot(slot: &SlotResult) -> bool {
    slot.slot.starts_with("output")
}

fn judge_slot(slot: &mut SlotResult, thresholds: &Thresholds, (op_type, op_name): (&str, &str)) {
    let is_measured = ["tensor", "statistics", "digest"].contains(&slot.evidence.as_str());
    if !is_measured {
        // Extents that differ, or nothing to judge by.
        let is_shape = slot.rules.iter().any(|rule| rule.metric == SHAPE_RULE);
        slot.level = if is_shape { Level::Fail } else { Level::Skip };
        return;
    }
    let dtype = coarser(&slot.target.dtype, &slot.golden.dtype);
    let bounds = thresholds.bounds(dtype, op_type, op_name);
    slot.rules = hits(slot, &bounds, thresholds.yardstick_factor);
    slot.level = slot
        .rules
        .iter()
        .map(|rule| rule.level)
        .max()
        .unwrap_or(Level::Pass);
}

fn hits(slot: &SlotResult, bounds: &[(String, Bounds)], factor: f64) -> Vec<RuleHit> {
    let mut hits = Vec::new();
    for (metric, bounds) in bounds {
        let Some(value) = value_of(slot, metric) else {
            continue;
        };
        let natural = slot
            .yardstick
            .as_ref()
            .and_then(|natural| derived(natural, metric));
        let widened =
            |bound: f64| natural.map_or(bound, |natural| widen(metric, bound, natural * factor));
        let hit = |bound: Option<f64>, level: Level| {
            let threshold = widened(bound?);
            is_beyond(metric, value, threshold).then(|| RuleHit {
                metric: metric.clone(),
                value,
                threshold,
                level,
            })
        };
        hits.extend(hit(bounds.fail, Level::Fail).or_else(|| hit(bounds.warn, Level::Warn)));
    }
    hits
}

fn value_of(slot: &SlotResult, metric: &str) -> Option<f64> {
    derived(&slot.metrics, metric)
}

/// A metric that is saved, or one that follows from those.
fn derived(metrics: &super::result::Metrics, metric: &str) -> Option<f64> {
    if let Some(value) = metrics.get(metric) {
        return Some(value);
    }
    let get = |name: &str| metrics.get(name);
    match metric {
        "n_non_finite_mismatches" => Some(get("n_nan_mismatches")? + get("n_inf_mismatches")?),
        "share_unequal" => {
            let (n, n_equal) = (get("n")?, get("n_equal")?);
            Some(if n > 0.0 { (n - n_equal) / n } else { 0.0 })
        }
        "scaled_max_abs" => {
            let largest = get("golden_max")?.abs().max(get("golden_min")?.abs());
            let distance = get("max_abs")?;
            Some(if distance == 0.0 {
                0.0
            } else {
                distance / largest
            })
        }
        _ => None,
    }
}

/// Whether large values of a metric are good.
fn is_better_large(metric: &str) -> bool {
    [
        "cosine",
        "snr_db",
        "psnr_db",
        "share_1_1000",
        "share_5_1000",
        "n_equal",
    ]
    .contains(&metric)
}

/// Whether a value is beyond a threshold. NaN is beyond everything.
fn is_beyond(metric: &str, value: f64, threshold: f64) -> bool {
    let is_within = if is_better_large(metric) {
        value >= threshold
    } else {
        value <= threshold
    };
    !is_within
}

/// The wider of a bound and what the dtype alone would lose.
fn widen(metric: &str, bound: f64, natural: f64) -> f64 {
    match metric {
        // Counts and angles do not scale with a loss.
        _ if metric.starts_with("n_") || is_better_large(metric) => bound,
        _ if natural.is_finite() => bound.max(natural),
        _ => bound,
    }
}

/// Whether thresholds of floats apply.
pub(super) fn is_float(dtype: Option<DType>) -> bool {
    dtype.is_none_or(|dtype| {
        dtype.is_float() || matches!(dtype, DType::C64 | DType::C128 | DType::C32)
    })
}
