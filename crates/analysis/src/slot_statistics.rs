//! The statistics that a dump has of a slot, under the names of the tables' columns.

use opscope_store::slot_table::StatisticsCells;

use crate::compare::side::ExecutionSlot;

/// Titles of statistics, in lower case, with their column.
const NUMBERS: [(&str, usize); 9] = [
    ("min value", 0),
    ("min", 0),
    ("max value", 1),
    ("max", 1),
    ("avg value", 3),
    ("avg", 3),
    ("mean", 3),
    ("l2norm value", 6),
    ("l2norm", 6),
];
/// Titles of counts, likewise. MindSpore's negative zeros are the elements below zero.
const COUNTS: [(&str, usize); 5] = [
    ("nan count", 0),
    ("positive inf count", 1),
    ("negative inf count", 2),
    ("zero count", 3),
    ("negative zero count", 5),
];
/// The dump's statistics of a slot. A NaN that stands for a missing element is not counted.
///
/// If the dump does not count NaN and infinities, they are inferred from other statistics: counts
/// are 0 if all elements must be finite, and at least 1 if some must be NaN or infinite.
pub fn statistics_of(slot: &ExecutionSlot) -> StatisticsCells {
    if let Some(cells) = slot.statistics.numbers() {
        return cells;
    }
    let mut cells = StatisticsCells::default();
    let mut written = cells.numbers;
    for (title, text) in slot.statistics.iter() {
        let title = title.trim().to_lowercase();
        // An empty cell, such as a statistic that was not requested.
        let Some(text) = text else {
            continue;
        };
        if let Some((_, nth)) = NUMBERS.iter().find(|(known, _)| *known == title) {
            let number: Option<f64> = text.parse().ok();
            written[*nth] = number;
            cells.numbers[*nth] = number.filter(|number| !number.is_nan());
        }
        if let Some((_, nth)) = COUNTS.iter().find(|(known, _)| *known == title) {
            cells.counts[*nth] = text.parse().ok();
        }
    }
    // Statistics of zero elements are NaN, although no element is.
    let is_counted = cells.counts[..3].iter().any(Option::is_some);
    if !is_counted && slot.n_elements() != Some(0) {
        cells.counts[..3].copy_from_slice(&least_counts(written));
    }
    cells
}

/// Whether the dump counts NaN or infinities of a slot.
pub(crate) fn has_counts(slot: &ExecutionSlot) -> bool {
    let mut statistics = slot.statistics.iter();
    slot.statistics.numbers().is_some()
        || statistics.any(|(title, text)| {
            let title = title.trim().to_lowercase();
            let mut counts = COUNTS.iter();
            text.is_some() && counts.any(|(known, nth)| *known == title && *nth < 3)
        })
}

/// Lower bounds for the counts of NaN, positive and negative infinities, inferred from statistics;
/// `None` if these do not suffice. A sum or a norm may overflow without an infinite element if some
/// elements are near the limit of the dtype.
fn least_counts(numbers: [Option<f64>; 7]) -> [Option<i64>; 3] {
    let [min, max, sum, mean, _, l1, l2] = numbers;
    // Every element contributes to these; a maximum may ignore NaN.
    let sums = [sum, mean, l1, l2];
    if sums.into_iter().flatten().any(|sum| sum.is_finite()) {
        return [Some(0); 3];
    }
    let has_infinite = numbers.into_iter().flatten().any(f64::is_infinite);
    // With a finite maximum, only negative ones are possible.
    let has_negative = [min, max, sum, mean].contains(&Some(f64::NEG_INFINITY))
        || has_infinite && max.is_some_and(f64::is_finite);
    // A NaN would have made the mean NaN, too.
    let has_nan = numbers.into_iter().flatten().any(f64::is_nan);
    match (has_nan, has_infinite) {
        (false, false) => [None; 3],
        (has_nan, has_infinite) => [
            Some(i64::from(has_nan)),
            Some(i64::from(has_infinite && !has_negative)),
            Some(i64::from(has_negative)),
        ],
    }
}
