//! Numbers of slots in words: the worst ones, the limits that they are beyond, and elements.

use crate::compare::result::{
    Comparison, MetricId, OperatorResult, RuleHit, RuleName, SlotResult, VerdictLevel,
};
use crate::compare::verdict::value_of;

/// Numbers of a verdict's line.
const N_WORST: usize = 2;
/// Differences beyond this may matter to any network.
const NEXT_TO_NOTHING: f64 = 1e-7;

/// The slot by which an operator is shown: the worst output, or the worst input if there is no
/// output.
pub fn worst_slot(operator: &OperatorResult) -> Option<&SlotResult> {
    let key = |slot: &SlotResult| {
        let distance = slot.metrics.get(MetricId::RelL2).filter(|d| !d.is_nan());
        (
            slot.level != VerdictLevel::Skip,
            slot.is_output(),
            slot.level,
            distance.unwrap_or(f64::NEG_INFINITY),
        )
    };
    operator.slots.iter().reduce(|best, slot| {
        let (a, b) = (key(slot), key(best));
        let by_kind = (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2));
        let is_worse = by_kind.then(a.3.total_cmp(&b.3)).is_gt();
        if is_worse { slot } else { best }
    })
}

/// `rel_l2 0.2 (limit 0.01)` of the rules that were broken worst. Of a failure the limits of
/// failures are quoted.
pub fn worst_numbers(slot: &SlotResult) -> Vec<String> {
    let worst = worst_rules(&slot.rules);
    worst.into_iter().take(N_WORST).map(rule_words).collect()
}

/// The only element of each side.
pub(super) fn sole_element(slot: &SlotResult) -> Option<[String; 2]> {
    let [n, target, golden] = [
        MetricId::Count,
        MetricId::WorstTarget,
        MetricId::WorstGolden,
    ]
    .map(|metric| value_of(slot, metric));
    (n == Some(1.0)).then_some([element(target?), element(golden?)])
}

/// The rule that was broken worst, in brackets behind a sentence.
pub(super) fn worst_number(rules: &[RuleHit]) -> Option<String> {
    let worst = *worst_rules(rules).first()?;
    let words = match worst.metric {
        RuleName::Metric(MetricId::NonFiniteMismatches) => {
            let n = number(worst.value);
            let element = if n == "1" {
                "element is"
            } else {
                "elements are"
            };
            format!("{n} {element} NaN or infinite on one side alone")
        }
        RuleName::Metric(metric) => {
            let (value, limit) = (number(worst.value), number(worst.threshold));
            format!("{metric} {value}, limit {limit}")
        }
        _ => rule_words(worst),
    };
    Some(format!(" ({words})"))
}

/// The rules of the worst level, sorted by excess over the limit.
fn worst_rules(rules: &[RuleHit]) -> Vec<&RuleHit> {
    let worst = rules.iter().map(|rule| rule.level).max();
    let rules = rules.iter().filter(|rule| Some(rule.level) == worst);
    let mut rules: Vec<&RuleHit> = rules.collect();
    rules.sort_by(|a, b| excess(b).total_cmp(&excess(a)));
    rules
}

/// A broken rule in words.
pub fn rule_words(rule: &RuleHit) -> String {
    match rule.metric {
        RuleName::Shape => return "the shapes differ".to_owned(),
        RuleName::NotJudged => return "two runs need not agree on it".to_owned(),
        RuleName::Agreement => return "the other side has it elsewhere".to_owned(),
        RuleName::Replicas => return "replicas are not the same".to_owned(),
        RuleName::Metric(_) => {}
    }
    let (value, limit) = (number(rule.value), number(rule.threshold));
    format!("{} {value} (limit {limit})", rule.metric)
}

/// How many times a value is beyond its threshold, whichever direction is the bad one.
pub fn excess(rule: &RuleHit) -> f64 {
    let mut ratio = rule.value / rule.threshold;
    if rule.metric == RuleName::Metric(MetricId::Cosine) {
        // The distance from the same direction, as the cosine itself is hardly ever small.
        ratio = (1.0 - rule.value) / (1.0 - rule.threshold);
    }
    match ratio {
        0.0..1.0 => 1.0 / ratio,
        1.0.. => ratio,
        // No number, or of the other sign, as no threshold allows.
        _ => f64::INFINITY,
    }
}

/// A share as percent.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// A number with four significant digits.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else if value == value.trunc() && magnitude < 1e7 {
        // Without the sign of zero.
        format!("{}", value + 0.0)
    } else if (1e-3..1e7).contains(&magnitude) {
        let n_decimals = match magnitude {
            m if m >= 1e3 => 1,
            m if m >= 1e2 => 2,
            m if m >= 1e1 => 3,
            m if m >= 1.01 => 3,
            // Cosines.
            m if m >= 0.99 => 6,
            m if m >= 1e-1 => 4,
            m if m >= 1e-2 => 5,
            _ => 6,
        };
        let text = format!("{value:.n_decimals$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.3e}")
    }
}

/// An element's value with enough digits to distinguish 32-bit floats.
pub(super) fn element(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() || value == value.trunc() && magnitude < 1e15 {
        return number(value);
    }
    let text = format!("{value:.8e}");
    let rounded: f64 = text.parse().unwrap_or(value);
    if (1e-4..1e9).contains(&magnitude) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    }
}

/// A hint at the absolute tolerance that would let everything pass, where all that fails differs by
/// next to nothing: a gradient that is zero but for rounding is never the same twice.
pub fn tolerance_hint(comparison: &Comparison) -> Option<String> {
    let slots = comparison
        .operators
        .iter()
        .flat_map(|operator| &operator.slots);
    let failed = slots.filter(|slot| slot.level == VerdictLevel::Fail);
    let distances = failed.map(|slot| {
        let is_finite = value_of(slot, MetricId::NonFiniteMismatches) == Some(0.0);
        slot.metrics.get(MetricId::MaxAbs).filter(|_| is_finite)
    });
    let largest = distances.reduce(|a, b| Some(a?.max(b?)))??;
    if !(largest > 0.0 && largest <= NEXT_TO_NOTHING) {
        return None;
    }
    let unit = 10_f64.powi(largest.log10().floor() as i32);
    let rounded_up = (largest / unit).ceil() * unit;
    Some(format!(
        "all that fails differs by {largest:.2e} or less: `--atol {rounded_up:.0e}` if that is \
         nothing to this network"
    ))
}

/// The largest absolute difference: NaN or infinite if an element is so on one side alone.
pub fn largest_difference(slot: &SlotResult) -> Option<f64> {
    let worst = slot
        .metrics
        .get(MetricId::WorstTarget)
        .zip(slot.metrics.get(MetricId::WorstGolden));
    let worst = worst.map(|(target, golden)| (target - golden).abs());
    let n_broken = value_of(slot, MetricId::NonFiniteMismatches);
    match worst {
        Some(worst) if n_broken > Some(0.0) => Some(worst),
        _ => slot.metrics.get(MetricId::MaxAbs),
    }
}

/// The largest difference: where it is, with both values.
pub fn worst_element(slot: &SlotResult) -> Option<String> {
    let (target, golden) = (
        slot.metrics.get(MetricId::WorstTarget)?,
        slot.metrics.get(MetricId::WorstGolden)?,
    );
    let index = position(slot, slot.metrics.get(MetricId::WorstIndex)?);
    Some(format!(
        "[{index}] {} / {}",
        element(target),
        element(golden)
    ))
}

/// An element's index along each axis; its row-major index if the shape is not the compared one.
fn position(slot: &SlotResult, flat: f64) -> String {
    let shape = &slot.target.shape;
    let n = shape.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim));
    let is_same = slot.layout.is_none() && slot.metrics.get(MetricId::Count) == n.map(|n| n as f64);
    let mut rest = flat as u64;
    if !is_same || n.is_none_or(|n| rest >= n) {
        return format!("{flat}");
    }
    let mut indices: Vec<String> = Vec::with_capacity(shape.len());
    for &dim in shape.iter().rev() {
        indices.push((rest % dim).to_string());
        rest /= dim;
    }
    indices.reverse();
    indices.join(", ")
}
