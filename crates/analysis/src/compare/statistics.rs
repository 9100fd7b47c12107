//! Comparing slots of which one side, or both, has statistics or digests only.
//!
//! Extremes, mean and norm of two tensors differ by no more than the tensors themselves do, so
//! limits of the latter serve for the former: what fails here would fail there. What passes may
//! still differ.

mod described;
mod number;

use opscope_tensor::convert::layout::{LayoutConversion, LayoutPlan};
use opscope_tensor::{ElementCounts, Layout, Shape, Stats};

use self::described::{DescribedSlot, REALS, SHARES, is_extreme};
use self::number::RoundedNumber;
use super::evidence::Evidence;
use super::measure::masked;
use super::metric::{MetricId, TensorStatistic};
use super::parts::facts::{self, Fact};
use super::party::Party;
use super::result::Metrics;
use super::side::{ExecutionSlot, LoadError};

/// The outcome of comparing statistics.
pub(super) enum StatisticsOutcome {
    /// Both have something in common.
    Measured(StatisticsMatch),
    /// The shapes differ.
    Shape,
    /// There is nothing to compare, and why.
    Nothing(String),
    /// The elements of the target, or of the golden side, cannot be read.
    Unreadable(Party, LoadError),
}

/// Relative distance of norms above which two tensors are different ones, and not one tensor whose
/// elements were rounded.
const OTHER_NORM_MIN: f64 = 0.01;

/// Whether the tables of two slots tell that they show different tensors.
pub(super) fn digests_differ(target: &ExecutionSlot, golden: &ExecutionSlot) -> bool {
    let [target, golden] = [target, golden].map(DescribedSlot::of_table);
    match target.digest_distance(&golden) {
        Some(distance) => distance > OTHER_NORM_MIN,
        None => target.digest_mismatch(&golden) == Some(true),
    }
}

/// The numbers of a comparison, and the evidence that they come from.
pub(super) struct StatisticsMatch {
    /// Statistics or digests.
    pub(super) evidence: Evidence,
    /// The numbers.
    pub(super) metrics: Metrics,
    /// Bytes of elements that were read.
    pub(super) n_bytes: u64,
}

impl StatisticsMatch {
    pub(super) fn into_fact(self) -> Fact {
        Fact {
            metrics: self.metrics,
            numbers: [facts::number_of(&self.evidence), self.n_bytes].into(),
            bytes: Box::default(),
        }
    }
}

impl From<Fact> for StatisticsMatch {
    fn from(fact: Fact) -> StatisticsMatch {
        StatisticsMatch {
            evidence: facts::evidence_of(fact.numbers.first().copied().unwrap_or_default()),
            n_bytes: fact.numbers.get(1).copied().unwrap_or_default(),
            metrics: fact.metrics,
        }
    }
}

/// Compares what both sides have; of elements statistics are computed. `layout` is the one that
/// both sides would be brought to if they had elements.
pub(super) fn compare(
    target: &ExecutionSlot,
    golden: &ExecutionSlot,
    layout: Option<Layout>,
) -> StatisticsOutcome {
    let named = |slot: &ExecutionSlot| slot.layout.filter(|layout| *layout != Layout::Nd);
    // Statistics do not depend on the order of elements, so those of other layouts serve as well,
    // unless one of them counts padding.
    let turned = layout.filter(|_| named(target) != named(golden));
    if let (Some(a), Some(b)) = (&target.shape, &golden.shape) {
        let is_same = match turned {
            None if has_same_extents(a, b) => Some(true),
            None if named(target) == named(golden) || n_elements(a) == n_elements(b) => Some(false),
            None => None,
            Some(layout) => {
                let turned = [target, golden].map(|slot| extents_in(slot, layout));
                let [a, b] = &turned;
                a.as_ref()
                    .zip(b.as_ref())
                    .map(|(a, b)| has_same_extents(a, b))
            }
        };
        match is_same {
            Some(true) => {}
            Some(false) => return StatisticsOutcome::Shape,
            None => {
                let message =
                    "one side has no elements, and its layout says nothing of the other's";
                return StatisticsOutcome::Nothing(message.to_owned());
            }
        }
    }
    compare_numbers(target, golden, turned.is_some())
}

/// Compares the numbers of both sides, whatever their shapes. Digests do not apply to reordered
/// elements.
pub(super) fn compare_numbers(
    target: &ExecutionSlot,
    golden: &ExecutionSlot,
    is_reordered: bool,
) -> StatisticsOutcome {
    let (a, b) = match (
        DescribedSlot::describe(target),
        DescribedSlot::describe(golden),
    ) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error), _) => return StatisticsOutcome::Unreadable(Party::Target, error),
        (_, Err(error)) => return StatisticsOutcome::Unreadable(Party::Golden, error),
    };
    let mut metrics = Vec::new();
    let has_statistics = numbers(&a, &b, &mut metrics);
    // Digests do depend on the order: those of equal tensors in two layouts differ.
    let digest = if is_reordered {
        None
    } else {
        a.digest_mismatch(&b)
    };
    metrics.extend(digest.map(|is| (MetricId::DigestMismatch, f64::from(u8::from(is)))));
    let distance = digest.and_then(|_| a.digest_distance(&b));
    metrics.extend(distance.map(|distance| (MetricId::DigestRel, distance)));
    let evidence = match (has_statistics, digest) {
        (true, _) => Evidence::Statistics,
        (false, Some(_)) => Evidence::Digest,
        (false, None) => {
            let message =
                "one side has no elements, and both have no statistic and no digest in common";
            return StatisticsOutcome::Nothing(message.to_owned());
        }
    };
    if has_statistics {
        metrics.extend(a.summary(Party::Target));
        metrics.extend(b.summary(Party::Golden));
    }
    StatisticsOutcome::Measured(StatisticsMatch {
        evidence,
        metrics: metrics.into(),
        n_bytes: a.n_bytes + b.n_bytes,
    })
}

/// A table's statistics of a slot; `None` without count and extremes. Missing statistics are NaN.
pub(super) fn table_stats(slot: &ExecutionSlot) -> Option<Stats> {
    let described = DescribedSlot::of_table(slot);
    let get = |name| {
        described
            .get(name)
            .map(|number: RoundedNumber| number.value)
    };
    let count = |name| get(name).unwrap_or(0.0) as u64;
    Some(Stats {
        counts: ElementCounts {
            n_elements: get(TensorStatistic::Count)? as u64,
            n_nan: count(TensorStatistic::NanCount),
            n_pos_inf: count(TensorStatistic::PositiveInfCount),
            n_neg_inf: count(TensorStatistic::NegativeInfCount),
            ..ElementCounts::EMPTY
        },
        min: get(TensorStatistic::Min)?,
        max: get(TensorStatistic::Max)?,
        sum: f64::NAN,
        mean: get(TensorStatistic::Mean).unwrap_or(f64::NAN),
        std: f64::NAN,
        l1: f64::NAN,
        l2: get(TensorStatistic::L2Norm).unwrap_or(f64::NAN),
    })
}

/// Whether shapes are the same, apart from axes of 1.
pub(super) fn has_same_extents<T: Copy + PartialEq + From<u8>>(a: &[T], b: &[T]) -> bool {
    let [a, b] = [a, b].map(|dims| dims.iter().filter(|&&dim| dim != T::from(1)));
    a.eq(b)
}

/// The shape of a slot in another layout; `None` unless both name their axes.
fn extents_in(slot: &ExecutionSlot, layout: Layout) -> Option<Vec<u64>> {
    let (dims, from) = (slot.shape.as_ref()?, slot.layout?);
    if from == layout {
        return Some(dims.clone());
    }
    if from.n_named_axes()? != dims.len() || layout.n_named_axes().is_none() {
        return None;
    }
    let dims: Option<Vec<usize>> = dims.iter().map(|&dim| dim.try_into().ok()).collect();
    let shape = Shape::new(dims?).ok()?;
    let plan = LayoutPlan::new(&LayoutConversion::new(from, &shape, layout, 1)).ok()?;
    let dims = plan.out_shape().dims().iter();
    Some(dims.map(|&dim| dim as u64).collect())
}

fn n_elements(dims: &[u64]) -> Option<u64> {
    dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim))
}

/// Adds what both have in common, and says whether that is anything.
fn numbers(a: &DescribedSlot, b: &DescribedSlot, metrics: &mut Vec<(MetricId, f64)>) -> bool {
    let mut has_any = false;
    let extremes = [a, b].map(|side| {
        let extremes = [TensorStatistic::Min, TensorStatistic::Max];
        extremes.map(|name| side.get(name).map_or(f64::NAN, |number| number.value))
    });
    let are_masks = masked::are_masks(extremes);
    for name in REALS {
        let (Some(x), Some(y)) = (a.get(name), b.get(name)) else {
            continue;
        };
        // All but the largest score is the mask's.
        if are_masks && name != TensorStatistic::Max {
            continue;
        }
        // Tables differ in whether a NaN shows in the extremes.
        if is_extreme(name) && a.family != b.family && (a.has_nan() || b.has_nan()) {
            continue;
        }
        has_any = true;
        if x.value.is_finite() && y.value.is_finite() {
            let distance = x.distance(y);
            // Nothing over nothing would be NaN, which is beyond every limit.
            let relative = if distance == 0.0 {
                0.0
            } else {
                distance / scale(b, name, y)
            };
            metrics.extend(name.distance().map(|metric| (metric, relative)));
        }
    }
    for name in SHARES {
        let n = b
            .get(TensorStatistic::Count)
            .or(a.get(TensorStatistic::Count));
        let (Some(x), Some(y), Some(n)) = (a.get(name), b.get(name), n) else {
            continue;
        };
        has_any = true;
        let share = x.distance(y) / n.value.max(1.0);
        metrics.extend(name.distance().map(|metric| (metric, share)));
    }
    // The counts are added whatever was found before, which `||` would not do.
    has_any |= non_finite(a, b, metrics);
    has_any
}

/// Returns the scale that a distance is measured by: the golden side's largest magnitude, as far as
/// it is known, and its norm for a norm. A mean cannot be farther off than the elements are in the
/// square mean, so it is measured by that.
fn scale(golden: &DescribedSlot, name: TensorStatistic, own: RoundedNumber) -> f64 {
    let finite = |name: TensorStatistic| golden.get(name).filter(|number| number.value.is_finite());
    let magnitude = |name: TensorStatistic| finite(name).map(|number| number.value.abs());
    let n = magnitude(TensorStatistic::Count).filter(|n| *n > 0.0);
    let rms = n.zip(magnitude(TensorStatistic::L2Norm));
    let rms = rms.map(|(n, norm)| norm / n.sqrt());
    let largest = [
        magnitude(TensorStatistic::Max),
        magnitude(TensorStatistic::Min),
        rms,
    ];
    let largest = largest.into_iter().flatten().reduce(f64::max);
    let [min, max] = [TensorStatistic::Min, TensorStatistic::Max]
        .map(|name| finite(name).map_or(0.0, |number| number.value));
    match name {
        TensorStatistic::L2Norm => own.value.abs(),
        // Scores vanish next to the numbers of a mask. A softmax reads them, so that differences of
        // a small part of 1 do not count.
        TensorStatistic::Max if masked::is_masked(min, max) => own.value.abs().max(1.0),
        TensorStatistic::Mean => rms.or(largest).unwrap_or(own.value.abs()),
        _ => largest.unwrap_or(own.value.abs()),
    }
}

/// Counts of NaN and infinities that only one side has: by their counts, or at least one where
/// extremes, mean or norm show one.
fn non_finite(a: &DescribedSlot, b: &DescribedSlot, metrics: &mut Vec<(MetricId, f64)>) -> bool {
    let both = |name: TensorStatistic| Some((a.get(name)?.value, b.get(name)?.value));
    let count = |name: TensorStatistic| both(name).map(|(x, y)| (x - y).abs());
    let seen = |names: &[TensorStatistic], is: fn(f64) -> bool| {
        let names = names.iter().copied();
        let names = names.filter(|name| !is_extreme(*name) || a.family == b.family);
        let pairs: Vec<(f64, f64)> = names.filter_map(both).collect();
        let differs = pairs.iter().any(|&(x, y)| {
            // An infinity next to a NaN is NaN in some means and an infinity in others.
            is(x) != is(y) && (x.is_finite() || y.is_finite())
        });
        (!pairs.is_empty()).then(|| f64::from(u8::from(differs)))
    };
    let n_nan = count(TensorStatistic::NanCount).or_else(|| {
        seen(
            &[
                TensorStatistic::L2Norm,
                TensorStatistic::Mean,
                TensorStatistic::Max,
                TensorStatistic::Min,
            ],
            f64::is_nan,
        )
    });
    let n_inf = match (
        count(TensorStatistic::PositiveInfCount),
        count(TensorStatistic::NegativeInfCount),
    ) {
        (Some(x), Some(y)) => Some(x + y),
        (x, y) => x.or(y).or_else(|| {
            seen(
                &[TensorStatistic::Max, TensorStatistic::Min],
                f64::is_infinite,
            )
        }),
    };
    let is_counted = count(TensorStatistic::NanCount).is_some()
        || count(TensorStatistic::PositiveInfCount).is_some()
        || count(TensorStatistic::NegativeInfCount).is_some();
    let has_new = a.has_non_finite() && (n_nan.unwrap_or(0.0) + n_inf.unwrap_or(0.0) > 0.0);
    let all = [
        (MetricId::NanMismatches, n_nan),
        (MetricId::InfMismatches, n_inf),
    ];
    for (metric, value) in all {
        metrics.extend(value.map(|value| (metric, value)));
    }
    // Of tensors the place of the first one says that there is one.
    if has_new && a.n_non_finite() >= b.n_non_finite() {
        metrics.push((MetricId::IsBad, 1.0));
    }
    is_counted
}

impl DescribedSlot {
    /// The numbers of a side under the names that tensors have.
    fn summary(&self, party: Party) -> Vec<(MetricId, f64)> {
        let all = self.numbers.iter();
        all.map(|(name, number)| (MetricId::of_tensor(party, *name), number.value))
            .collect()
    }

    fn has_nan(&self) -> bool {
        let is_counted = self
            .get(TensorStatistic::NanCount)
            .is_some_and(|n| n.value > 0.0);
        is_counted || self.numbers.iter().any(|(_, number)| number.value.is_nan())
    }

    fn has_non_finite(&self) -> bool {
        self.n_non_finite() > 0.0
            || self
                .numbers
                .iter()
                .any(|(_, number)| !number.value.is_finite())
    }

    fn n_non_finite(&self) -> f64 {
        let counts = [
            TensorStatistic::NanCount,
            TensorStatistic::PositiveInfCount,
            TensorStatistic::NegativeInfCount,
        ];
        let counts = counts.into_iter().filter_map(|name| self.get(name));
        let counted: f64 = counts.map(|number| number.value).sum();
        let is_seen = self
            .numbers
            .iter()
            .any(|(_, number)| !number.value.is_finite());
        counted.max(f64::from(u8::from(is_seen)))
    }
}
