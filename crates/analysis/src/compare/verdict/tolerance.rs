//! How far one element may be off, by the limits of its slot.

use super::bounds::MetricBounds;
use super::{derived, dtype_of, names_of};
use crate::compare::metric::MetricId;
use crate::compare::result::{OperatorResult, SlotResult, VerdictLevel};
use crate::compare::verdict::Thresholds;

/// The absolute difference that the limits of a slot's level leave to an element: that of `rel_l2`
/// times the root mean square of the golden side, that of `scaled_max_abs` times its largest
/// magnitude, or that of `max_abs`, whichever is smallest. It is 0 where unequal elements are
/// counted, as of integers, or nothing else is limited.
///
/// If all elements were within the first or the second, the slot would be within that limit. So a
/// slot that is beyond one of them has elements beyond the tolerance.
pub(crate) fn element_tolerance(
    operator: &OperatorResult,
    slot: &SlotResult,
    thresholds: &Thresholds,
) -> f64 {
    let (op_type, op_name) = names_of(operator);
    let judged_as = slot.judged_as.as_deref().and_then(|name| name.parse().ok());
    let limits = thresholds.bounds(judged_as.or(dtype_of(slot)), &op_type, &op_name);
    let scales = limits.iter().filter_map(|&(metric, bounds)| {
        let limit = limit_of(bounds, slot.level)?;
        let natural = slot.yardstick.as_ref();
        let natural = natural.and_then(|natural| derived::value(natural, metric));
        Some(thresholds.with_yardstick(metric, limit, natural) * scale(slot, metric)?)
    });
    // `f64::min` leaves out NaN, which is what nothing times an infinity comes to.
    let smallest = scales.fold(f64::NAN, f64::min);
    if smallest.is_finite() { smallest } else { 0.0 }
}

fn limit_of(bounds: MetricBounds, level: VerdictLevel) -> Option<f64> {
    let of_failure = (level == VerdictLevel::Fail).then_some(bounds.fail);
    of_failure.unwrap_or(bounds.warn.or(bounds.fail))
}

/// The element difference that corresponds to a metric of 1.
fn scale(slot: &SlotResult, metric: MetricId) -> Option<f64> {
    match metric {
        // The root mean square of what `rel_l2` divides by.
        MetricId::RelL2 => {
            Some(slot.metrics.get(MetricId::Rmse)? / derived::finite_rel_l2(&slot.metrics)?)
        }
        MetricId::ScaledMaxAbs => {
            let ends = [
                slot.metrics.get(MetricId::GoldenMin)?,
                slot.metrics.get(MetricId::GoldenMax)?,
            ];
            Some(ends[0].abs().max(ends[1].abs()))
        }
        MetricId::MaxAbs => Some(1.0),
        MetricId::ShareUnequal => Some(0.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::result::TensorSummary;

    fn check(dtype: &str, metrics: &[(MetricId, f64)], level: VerdictLevel, expected: f64) {
        let tensor = TensorSummary {
            dtype: dtype.into(),
            ..TensorSummary::default()
        };
        let slot = SlotResult {
            target: tensor.clone().into(),
            golden: tensor.into(),
            metrics: metrics.to_vec().into(),
            level,
            ..SlotResult::default()
        };
        let operator = OperatorResult::default();
        let found = element_tolerance(&operator, &slot, &Thresholds::default());
        assert_eq!(found, expected, "{dtype} {metrics:?}");
    }

    #[test]
    fn the_strictest_limit_of_the_level_counts() {
        let scales = [
            (MetricId::RelL2, 0.5),
            (MetricId::Rmse, 4.0),
            (MetricId::GoldenMin, -100.0),
            (MetricId::GoldenMax, 1.0),
        ];
        check("float16", &scales, VerdictLevel::Fail, 0.02 * 8.0);
        check("float16", &scales, VerdictLevel::Warn, 0.005 * 8.0);
        // A NaN on every other place leaves no distance to take a scale from.
        check("float16", &scales[2..], VerdictLevel::Fail, 0.05 * 100.0);
        check("float16", &[], VerdictLevel::Fail, 0.0);
        check("int32", &scales, VerdictLevel::Fail, 0.0);
        let of_zeros = [(MetricId::RelL2, f64::INFINITY), (MetricId::Rmse, 1.0)];
        check("float32", &of_zeros, VerdictLevel::Fail, 0.0);
    }
}
