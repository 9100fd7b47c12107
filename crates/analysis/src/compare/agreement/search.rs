//! Which values of both sides agree.

use std::collections::HashMap;

use opscope_tensor::difference::{self, DifferenceOptions, TensorDifference};
use opscope_tensor::{DType, Shape, Stats, TensorView};

use super::values::{DumpValue, SideValues, ValueIndex};
use crate::compare::matching::SlotRef;
use crate::compare::measure::masked;
use crate::compare::metric::MetricId;
use crate::compare::parts::facts::{self, Fact, FactKind};
use crate::compare::result::{Evidence, Metrics, SlotResult, TensorSummary, VerdictLevel};
use crate::compare::side::{ComparedDump, ExecutionSlot};
use crate::compare::statistics::{StatisticsOutcome, compare_numbers};
use crate::compare::verdict::{Thresholds, is_within, unit, value_in};
use crate::job;

/// Maximum number of values whose elements are compared with one of the other side.
const N_CANDIDATES_MAX: usize = 16;
/// Maximum number of values on either side of a norm that are checked.
const N_NEAR_MAX: usize = 256;
/// Maximum distance of the statistics of one value on two sides, in roundings of its dtype.
const N_ROUNDINGS: f64 = 4.0;
/// The same for printed statistics, relative to the size of the elements.
const PRINTED_APART_MAX: f64 = 1e-4;
/// Maximum relative distance of the extremes of one value, if only statistics are available.
const EXTREMES_APART_MAX: f64 = 0.01;
/// Additional distance because sums round, relative to the largest element.
const EXTREMES_SLACK: f64 = 1e-5;
/// The first bin of relative differences, of 0.1, that elements of one value have by chance alone.
const UNLIKE_BIN: usize = 12;
/// Maximum share of elements at that distance.
const UNLIKE_SHARE_MAX: f64 = 0.25;
/// The share of the elements that is compared first, for large values. It exceeds the limit
/// somewhat, because a few elements of different values agree by chance.
const FIRST_SHARE: f64 = 0.34;
const N_LONG: usize = 1 << 14;
/// Maximum share of quantised values that may differ by one step.
const STEPS_SHARE_MAX: f64 = 0.05;
/// Up to this many roundings values are near.
const N_ROUNDINGS_CLOSE: f64 = 200.0;
/// A rounding of short dtypes counts as this much of that.
const COARSE_ROUNDING: f64 = 5e-6;
/// Maximum distance of the norms of values whose elements are compared, relative to the larger
/// norm.
const NORMS_APART_MAX: f64 = 0.02;

/// For each side, the agreeing value of the other side for each value.
pub(super) struct EqualValues {
    pub(super) of_side: [Vec<Option<ValueIndex>>; 2],
    /// Whether they are so near that only the order of sums differs, or known to be right otherwise.
    pub(super) is_close: [Vec<bool>; 2],
}

/// Finds, for each value of either side, one of the other that agrees with it.
pub(super) fn find_equals(
    dumps: [&ComparedDump; 2],
    sides: &[SideValues; 2],
    thresholds: &Thresholds,
    n_threads: usize,
) -> EqualValues {
    let mut of_length: HashMap<u64, Vec<ValueIndex>> = HashMap::new();
    for (i, value) in sides[1].values.iter().enumerate() {
        // A value keeps its number of elements under every change of shape and layout that is
        // followed.
        let n = value.stats.counts.n_elements;
        of_length.entry(n).or_default().push(ValueIndex(i));
    }
    // Tables may lack norms; the largest magnitude replaces them.
    let has_norms = sides.iter().all(|side| {
        let mut values = side.values.iter();
        values.all(|value| !value.stats.l2.is_nan() || value.stats.counts.n_nan > 0)
    });
    let size_of = |value: &DumpValue| {
        if has_norms {
            value.stats.l2
        } else {
            largest(&value.stats)
        }
    };
    let norm = |value: &ValueIndex| size_of(&sides[1].values[value.0]);
    for values in of_length.values_mut() {
        values.sort_by(|a, b| norm(a).total_cmp(&norm(b)));
    }
    let targets: Vec<usize> = (0..sides[0].values.len()).collect();
    let identical = sides[0].identical(&sides[1]);
    // Golden values that exist anywhere on the target's side, bit for bit.
    let mut is_there = vec![false; sides[1].values.len()];
    for (target, golden) in sides[0].values.iter().zip(&identical) {
        if let Some(golden) = golden.filter(|_| is_plain(target)) {
            is_there[golden.0] = true;
        }
    }
    let found = job::map(&targets, n_threads, |&i| {
        let target = &sides[0].values[i];
        let same_length = of_length.get(&target.stats.counts.n_elements);
        let mut near: Vec<(f64, ValueIndex)> = same_length
            .map_or(&[][..], |values| {
                near_in_norm(values, size_of(target), norm)
            })
            .iter()
            .filter(|_| target.is_distinctive())
            .map(|&golden| (distance(target, &sides[1].values[golden.0]), golden))
            .filter(|(distance, _)| *distance <= NORMS_APART_MAX)
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near.truncate(N_CANDIDATES_MAX);
        let agreeing = near.into_iter().filter_map(|(_, golden)| {
            // Equal digests make another comparison of all elements unnecessary.
            if identical[i] == Some(golden) && is_plain(target) {
                return Some((golden, true));
            }
            // If both have an identical match, their distance does not matter.
            if identical[i].is_some() && is_plain(target) && is_there[golden.0] {
                return None;
            }
            let values = [target, &sides[1].values[golden.0]];
            let nearness = agreement_of(dumps, values, thresholds)?;
            Some((golden, nearness == Nearness::Close))
        });
        agreeing.collect::<Vec<_>>()
    });
    let mut equals = EqualValues {
        of_side: [0, 1].map(|i| vec![None; sides[i].values.len()]),
        is_close: [0, 1].map(|i| vec![false; sides[i].values.len()]),
    };
    for (i, goldens) in found.into_iter().enumerate() {
        equals.of_side[0][i] = goldens.first().map(|(golden, _)| *golden);
        for (golden, is_close) in goldens {
            equals.of_side[1][golden.0].get_or_insert(ValueIndex(i));
            equals.is_close[0][i] |= is_close;
            equals.is_close[1][golden.0] |= is_close;
        }
    }
    equals
}

/// Whether elements of which a value is made are within every limit of themselves: there are some,
/// and all are finite.
fn is_plain(value: &DumpValue) -> bool {
    value.has_counts && !value.stats.has_non_finite()
}

/// The values whose norms are nearest to a norm, from values sorted by norm.
fn near_in_norm(
    values: &[ValueIndex],
    wanted: f64,
    norm: impl Fn(&ValueIndex) -> f64,
) -> &[ValueIndex] {
    let at = values.partition_point(|value| norm(value).total_cmp(&wanted).is_lt());
    // If very many values share one norm, the others are not checked.
    let (start, end) = (
        at.saturating_sub(N_NEAR_MAX),
        (at + N_NEAR_MAX).min(values.len()),
    );
    &values[start..end]
}

/// Lower bound of the distance of two values from their statistics, relative to their size.
fn distance(a: &DumpValue, b: &DumpValue) -> f64 {
    let (a, b) = (&a.stats, &b.stats);
    if is_printed(a) || is_printed(b) {
        let scale = largest(a).max(largest(b));
        let apart = [(a.max, b.max), (a.min, b.min), (a.mean, b.mean)];
        let apart = apart.map(|(a, b)| (a - b).abs());
        let found = apart.into_iter().fold(0.0, f64::max);
        let is_like = a.counts.n_nan == b.counts.n_nan;
        return match (is_like, scale == 0.0) {
            (false, _) => f64::INFINITY,
            (true, true) => 0.0,
            (true, false) => found / scale,
        };
    }
    if a.counts.n_nan != b.counts.n_nan || !(a.l2.is_finite() && b.l2.is_finite()) {
        // Without finite norms, only the counts of non-finite elements are compared.
        return if non_finite_counts(a) == non_finite_counts(b) {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if masked::are_masks([[a.min, a.max], [b.min, b.max]]) {
        return (a.max - b.max).abs() / a.max.abs().max(b.max.abs()).max(1.0);
    }
    let scale = a.l2.max(b.l2);
    if scale == 0.0 {
        return 0.0;
    }
    let extremes = (a.max - b.max).abs().max((a.min - b.min).abs()) / largest(a).max(largest(b));
    ((a.l2 - b.l2).abs() / scale).max(extremes)
}

/// Whether statistics come from a table without norms.
fn is_printed(stats: &Stats) -> bool {
    stats.l2.is_nan() && stats.max.is_finite() && stats.min.is_finite()
}

fn non_finite_counts(stats: &Stats) -> [u64; 3] {
    let counts = &stats.counts;
    [counts.n_nan, counts.n_pos_inf, counts.n_neg_inf]
}

fn largest(stats: &Stats) -> f64 {
    stats.max.abs().max(stats.min.abs())
}

/// Whether the elements of two slots agree, in their order, within the limits of their dtypes.
fn agreement_of(
    dumps: [&ComparedDump; 2],
    values: [&DumpValue; 2],
    thresholds: &Thresholds,
) -> Option<Nearness> {
    let slots = [0, 1].map(|i| {
        let SlotRef { run, slot } = values[i].first;
        &dumps[i].runs[run].slots[slot]
    });
    if let [Some(DType::U8), Some(DType::I8)] | [Some(DType::I8), Some(DType::U8)] =
        slots.map(|slot| slot.dtype)
    {
        return are_same_bytes(dumps, slots).then_some(Nearness::WithinLimits);
    }
    let (evidence, metrics) = likeness(dumps, values, slots)?;
    // Many tensors have nearly the same statistics, so only those that could be the same count.
    let roundings = values.map(|value| unit(value.coarsest).unwrap_or_default());
    let rounding = N_ROUNDINGS * roundings[0].max(roundings[1]);
    let apart = value_in(&metrics, MetricId::StatisticRel);
    let is_far = apart.is_some_and(|apart| apart > rounding.max(PRINTED_APART_MAX));
    if evidence == Evidence::Statistics
        && (is_far || !have_like_extremes(values, rounding.max(EXTREMES_SLACK)))
    {
        return None;
    }
    // For results of rounded values the limits are those of the rounding.
    let [target, golden] = [0, 1].map(|i| {
        let coarsest = values[i].coarsest;
        let is_float = unit(coarsest).is_some();
        TensorSummary {
            dtype: if is_float {
                coarsest.name().into()
            } else {
                slots[i].dtype_name.clone()
            },
            ..TensorSummary::default()
        }
    });
    let slot = SlotResult {
        evidence,
        target: target.into(),
        golden: golden.into(),
        metrics,
        ..SlotResult::default()
    };
    // An error an order of magnitude below the limits is not a wrong value that barely passes.
    let error = value_in(&slot.metrics, MetricId::RelL2);
    let is_float = values.iter().any(|value| unit(value.coarsest).is_some());
    let close_max = N_ROUNDINGS_CLOSE * roundings[0].max(roundings[1]).min(COARSE_ROUNDING);
    let is_close = !is_float || error.is_none_or(|error| error <= close_max);
    (is_within(slot, thresholds) == VerdictLevel::Pass).then_some(if is_close {
        Nearness::Close
    } else {
        Nearness::WithinLimits
    })
}

/// Whether each extreme of two values is the same. The large elements of a mask would hide that the
/// others differ, if distances were relative to them.
fn have_like_extremes([a, b]: [&DumpValue; 2], slack: f64) -> bool {
    let [a, b] = [&a.stats, &b.stats];
    let is_masked = [a, b].map(|stats| masked::is_masked(stats.min, stats.max));
    let largest = largest(a).max(largest(b));
    [(a.max, b.max), (a.min, b.min)].into_iter().all(|(a, b)| {
        let size = a.abs().max(b.abs());
        // The mask contains no information about the remaining elements.
        let scale = if is_masked == [true; 2] {
            size
        } else {
            largest
        };
        let apart_max = EXTREMES_APART_MAX * size + slack * scale;
        let apart = (a - b).abs();
        // Statistics that a table lacks are unknown.
        apart.is_nan() || apart <= apart_max
    })
}

/// How closely two values agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nearness {
    /// Within the limits of their dtypes.
    WithinLimits,
    /// Within a small fraction of the limits.
    Close,
}

/// The evidence and metrics of two values whose elements could be the same.
fn likeness(
    dumps: [&ComparedDump; 2],
    values: [&DumpValue; 2],
    slots: [&ExecutionSlot; 2],
) -> Option<(Evidence, Metrics)> {
    let both = [0, 1].map(|i| (dumps[i], slots[i]));
    let fact = facts::of_pair(FactKind::Likeness, both, None, || {
        let found = match values.map(|value| value.elements.as_ref()) {
            [Some(target), Some(golden)] => elements_measured([target.view(), golden.view()]),
            _ => measured(slots)?,
        };
        // Values that are not alike are a result, too.
        let (evidence, metrics) = found.unwrap_or_default();
        Ok::<_, Unreadable>(Fact {
            metrics,
            numbers: [facts::number_of(&evidence)].into(),
            bytes: Box::default(),
        })
    });
    let fact = fact.ok()?;
    let evidence = facts::evidence_of(fact.numbers.first().copied().unwrap_or_default());
    (evidence != Evidence::None).then_some((evidence, fact.metrics))
}

/// Elements cannot be read.
struct Unreadable;

/// Whether quantised values, of which one side has the signed form, are the same in any order:
/// where an engine moves them, it brings channels last as well.
fn are_same_bytes(dumps: [&ComparedDump; 2], slots: [&ExecutionSlot; 2]) -> bool {
    let both = [0, 1].map(|i| (dumps[i], slots[i]));
    let fact = facts::of_pair(FactKind::SameBytes, both, None, || {
        let is_same = have_same_bytes(slots).ok_or(Unreadable)?;
        Ok::<_, Unreadable>(Fact {
            numbers: [u64::from(is_same)].into(),
            ..Fact::default()
        })
    });
    fact.is_ok_and(|fact| *fact.numbers == [1])
}

/// The same by their elements; `None` if those of one cannot be read.
fn have_same_bytes(slots: [&ExecutionSlot; 2]) -> Option<bool> {
    let sorted = slots.map(|slot| {
        let loaded = slot.load(None).ok()?;
        let is_unsigned = loaded.dtype() == DType::U8;
        let bytes = loaded.view().bytes.iter();
        // The other's sign bit makes the order of both the same.
        let mut elements: Vec<u8> = bytes
            .map(|byte| if is_unsigned { *byte } else { byte ^ 0x80 })
            .collect();
        elements.sort_unstable();
        Some(elements)
    });
    let [Some(a), Some(b)] = sorted else {
        return None;
    };
    let mut steps = a.iter().zip(&b).map(|(a, b)| a.abs_diff(*b));
    let n_apart = steps.clone().filter(|step| *step > 0).count();
    let is_same = a.len() == b.len()
        && steps.all(|step| step <= 1)
        && n_apart as f64 <= STEPS_SHARE_MAX * a.len() as f64;
    Some(is_same)
}

/// The distance of two slots, whatever their shapes; `None` if they are not alike.
fn measured(
    [target, golden]: [&ExecutionSlot; 2],
) -> Result<Option<(Evidence, Metrics)>, Unreadable> {
    if !(target.has_elements && golden.has_elements) {
        return match compare_numbers(target, golden, true) {
            StatisticsOutcome::Measured(found) => Ok(Some((found.evidence, found.metrics))),
            StatisticsOutcome::Unreadable(..) => Err(Unreadable),
            StatisticsOutcome::Shape | StatisticsOutcome::Nothing(_) => Ok(None),
        };
    }
    let [a, b] = [target, golden].map(|slot| slot.load(None).map_err(|_| Unreadable));
    Ok(elements_measured([a?.view(), b?.view()]))
}

fn elements_measured([a, b]: [TensorView<'_>; 2]) -> Option<(Evidence, Metrics)> {
    if have_unlike_beginnings(a, b) {
        return None;
    }
    let found = masked::difference(a, b, DifferenceOptions::default()).ok()?;
    // A few large elements, such as those of a mask, dominate a norm and hide the others.
    let n: u64 = found.histogram.iter().sum();
    if n_unlike(&found) as f64 > UNLIKE_SHARE_MAX * n as f64 {
        return None;
    }
    Some((Evidence::Tensor, Metrics::from_difference(&found)))
}

fn n_unlike(found: &TensorDifference) -> u64 {
    found.histogram[UNLIKE_BIN..].iter().sum()
}

/// Whether so many of the first elements differ that their share of all elements is too large,
/// whatever the others are. Values with the same norm mostly differ, which a third of the elements
/// shows.
fn have_unlike_beginnings(a: TensorView<'_>, b: TensorView<'_>) -> bool {
    let n = a.shape.n_elements();
    let n_first = (n as f64 * FIRST_SHARE) as usize;
    // Packed elements cannot be split at any position.
    let (Some(size_a), Some(size_b)) = (a.dtype.bytes(), b.dtype.bytes()) else {
        return false;
    };
    let (Some(first_a), Some(first_b), Ok(shape)) = (
        a.bytes.get(..n_first * size_a),
        b.bytes.get(..n_first * size_b),
        Shape::new([n_first]),
    ) else {
        return false;
    };
    if n < N_LONG || n != b.shape.n_elements() {
        return false;
    }
    let [a, b] = [(a, first_a), (b, first_b)].map(|(view, bytes)| TensorView {
        shape: &shape,
        bytes,
        ..view
    });
    let found = difference::difference(a, b, DifferenceOptions::default());
    // The histogram may have fewer elements than there are, never more; complex numbers are two.
    let n_counted = n * a.dtype.parts().1.max(b.dtype.parts().1);
    found.is_ok_and(|found| n_unlike(&found) as f64 > UNLIKE_SHARE_MAX * n_counted as f64)
}
