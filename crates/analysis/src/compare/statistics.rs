//! Comparing slots of which one side, or both, has statistics or digests only.

use super::result::Metrics;
use super::side::Slot;

/// What could be compared, `statistics` or `digest`, and the numbers; none if both have nothing in common.
pub(super) fn compare(target: &Slot, golden: &Slot) -> Option<(&'static str, Metrics)> {
    let of = |slot: &Slot| slot.statistics.clone();
    let (target, golden) = (of(target), of(golden));
    let mut metrics = Vec::new();
    for (title, value) in &target {
        let other = golden
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(title));
        let (Some(a), Some(b)) = (value, other.and_then(|(_, value)| value.as_ref())) else {
            continue;
        };
        if let (Ok(a), Ok(b)) = (a.parse::<f64>(), b.parse::<f64>()) {
            let distance = (a - b).abs();
            let relative = if distance == 0.0 {
                0.0
            } else {
                distance / b.abs()
            };
            metrics.push((format!("{}_rel", title.to_lowercase()), relative));
        }
    }
    (!metrics.is_empty()).then_some(("statistics", Metrics(metrics)))
}
