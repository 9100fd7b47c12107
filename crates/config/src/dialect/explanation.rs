//! The explanation of a configuration in plain words.

use std::ops::RangeInclusive;

/// Maximum number of names in a row.
const N_SHOWN_MAX: usize = 20;

/// A description of the effects of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// One sentence.
    pub summary: String,
    /// Subjects with their descriptions. A subject may appear more than once.
    pub rows: Vec<(&'static str, String)>,
}

/// The first few, and the number of the rest.
pub(super) fn list(texts: &[String]) -> String {
    // A list of kernels may have thousands of entries, too many to read.
    let first = &texts[..texts.len().min(N_SHOWN_MAX)];
    match texts.len() - first.len() {
        0 if texts.is_empty() => "none".to_owned(),
        0 => first.join(", "),
        n => format!("{} and {n} more", first.join(", ")),
    }
}

/// Numbers and ranges of numbers.
pub(super) fn list_ranges(ranges: &[RangeInclusive<u64>]) -> String {
    list(
        &ranges
            .iter()
            .map(|range| {
                if range.start() == range.end() {
                    range.start().to_string()
                } else {
                    format!("{} to {}", range.start(), range.end())
                }
            })
            .collect::<Vec<_>>(),
    )
}
