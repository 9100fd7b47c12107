//! Statistics in rows, as the tables of other tools have them.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::reader::tensor_statistics::{DIGEST_TITLE, TITLES, TensorStatistics};
use crate::slot_table::SlotRow;

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

/// The side's title in a table of statistics.
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
        row.n_bytes.map_or_else(String::new, |n| n.to_string()),
        row.dtype.as_deref().unwrap_or_default().to_owned(),
        row.layout.as_deref().unwrap_or_default().to_owned(),
        shape,
        row.n_elements.map_or_else(String::new, |n| n.to_string()),
    ];
    let mut known: HashMap<&str, Option<Cow<'_, str>>> = statistics.iter().collect();
    cells.extend(TITLES.iter().chain([&DIGEST_TITLE]).map(|title| {
        let cell = known.remove(title).flatten();
        cell.map_or_else(|| "NA".to_owned(), Cow::into_owned)
    }));
    cells
}
