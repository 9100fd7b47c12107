//! Statistics in rows, as the tables of other tools have them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::SharedText;
use crate::reader::tensor_statistics::TensorStatistics;
use crate::slot_table::SlotRow;

/// Titles of statistics, as MindSpore's tables have them; a NaN is the extreme, as there.
const TITLES: [&str; 10] = [
    "Max Value",
    "Min Value",
    "Avg Value",
    "L2Norm Value",
    "Negative Zero Count",
    "Positive Zero Count",
    "Zero Count",
    "NaN Count",
    "Negative Inf Count",
    "Positive Inf Count",
];
/// The title of the digest.
const DIGEST_TITLE: &str = "XXH3";

/// Titles of statistics, which all tensors of a dump share.
pub(super) struct StatisticTitles {
    titles: [SharedText; TITLES.len()],
    digest: SharedText,
}

impl Default for StatisticTitles {
    fn default() -> StatisticTitles {
        StatisticTitles {
            titles: TITLES.map(Into::into),
            digest: DIGEST_TITLE.into(),
        }
    }
}

impl StatisticTitles {
    /// The statistics of a row, each under its title; none that the row does not have.
    pub(super) fn of_row(&self, row: &SlotRow) -> TensorStatistics {
        let mut cells = Vec::new();
        if let Some(stats) = row.stats() {
            let counts = &stats.counts;
            let number = |value: f64| Some(format!("{value:?}").into());
            let count = |n: u64| Some(n.to_string().into());
            let values = [
                number(stats.max_or_nan()),
                number(stats.min_or_nan()),
                number(stats.mean_or_nan()),
                number(stats.l2),
                count(counts.n_negative),
                count(counts.n_positive()),
                count(counts.n_zero),
                count(counts.n_nan),
                count(counts.n_neg_inf),
                count(counts.n_pos_inf),
            ];
            cells.extend(self.titles.iter().cloned().zip(values));
        }
        if let Some(digest) = &row.digest {
            cells.push((self.digest.clone(), Some(digest.clone().into())));
        }
        cells.into()
    }

    /// Whether these are the statistics of a row that has a digest alone.
    pub(super) fn is_digest_of(statistics: &TensorStatistics, row: &SlotRow) -> bool {
        let [(_, Some(known))] = &statistics[..] else {
            return false;
        };
        row.stats().is_none() && row.digest.as_deref() == Some(known.as_str())
    }
}

/// The titles of a table of statistics.
pub(super) fn columns() -> Vec<String> {
    let first = [
        "Input/Output",
        "Index",
        "Data Size",
        "Data Type",
        "Format",
        "Shape",
        "Count",
    ];
    let titles = first.iter().chain(&TITLES).chain([&DIGEST_TITLE]);
    titles.map(|title| (*title).to_owned()).collect()
}

/// The side in the words of such a table.
pub(super) fn side_title(row: &SlotRow) -> String {
    match row.side.as_deref() {
        Some("input") => "Input",
        _ => "Output",
    }
    .to_owned()
}

/// The position in them.
pub(super) fn slot_text(row: &SlotRow) -> String {
    row.slot.unwrap_or(0).to_string()
}

/// The cells of a row whose statistics are known, in the order of [`columns`].
pub(super) fn cells(row: &SlotRow, statistics: &TensorStatistics) -> Vec<String> {
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    let number = |number: Option<i64>| number.map_or_else(String::new, |n| n.to_string());
    let shape = row
        .shape
        .iter()
        .flat_map(|shape| shape.iter())
        .map(i64::to_string);
    let shape: Vec<String> = shape.collect();
    let shape = if shape.is_empty() {
        "-".to_owned()
    } else {
        shape.join("x")
    };
    let mut cells = vec![
        side_title(row),
        slot_text(row),
        number(row.n_bytes),
        text(&row.dtype),
        text(&row.layout),
        shape,
        number(row.n_elements),
    ];
    let known: HashMap<&str, &Option<SharedText>> = statistics
        .iter()
        .map(|(title, cell)| (title.as_str(), cell))
        .collect();
    cells.extend(TITLES.iter().chain([&DIGEST_TITLE]).map(|title| {
        let cell = known.get(title).and_then(|cell| cell.as_deref());
        cell.unwrap_or("NA").to_owned()
    }));
    cells
}
