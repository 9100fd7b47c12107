//! `iteration`: the iterations to dump.

use std::ops::RangeInclusive;

use opscope_capture::Steps;

use super::section::SectionItem;
use crate::dialect::findings::{IssueCollector, shown};

/// The word for every iteration.
pub(super) const ALL: &str = "all";
/// The character between numbers and ranges.
const SEPARATOR: char = '|';

/// Whether MindSpore accepts the text.
pub(super) fn is_accepted(text: &str) -> bool {
    let mut bytes = text.bytes();
    text == ALL
        || (!text.is_empty()
            && bytes.all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'|')))
}

/// The iterations of an accepted text, as ascending ranges that do not touch: the text may have any
/// number of pieces, and each iteration is looked up. Pieces that match no iteration are dropped.
pub(super) fn steps(text: &str) -> Steps {
    if text == ALL {
        return Steps::every();
    }
    let pieces = text.split(SEPARATOR);
    let mut ranges: Vec<_> = pieces.filter_map(|piece| range(piece).ok()).collect();
    // Overlapping pieces are merged, because every step of a run is looked up in these ranges.
    ranges.sort_unstable_by_key(|range| *range.start());
    let mut joined: Vec<RangeInclusive<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if *range.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=*last.end().max(range.end());
            }
            _ => joined.push(range),
        }
    }
    Steps::in_ranges(joined)
}

/// Warns about pieces that match no iteration, which MindSpore silently accepts.
pub(super) fn warn_never(item: &SectionItem<'_>, text: &str, findings: &mut IssueCollector) {
    if text == ALL {
        return;
    }
    for piece in text.split(SEPARATOR) {
        if let Err(why) = range(piece) {
            let piece = shown(piece);
            findings.warn(item.warning(format!("`{piece}` matches no iteration: {why}")));
        }
    }
}

/// The iterations of a piece, or why there are none.
fn number(text: &str) -> Result<u64, &'static str> {
    match text {
        "" => Err("a number is missing"),
        _ => text.parse().map_err(|_| "the number has more than 64 bits"),
    }
}

fn range(piece: &str) -> Result<RangeInclusive<u64>, &'static str> {
    match piece.split_once('-') {
        None => number(piece).map(|step| step..=step),
        // MindSpore accepts such a piece, but it matches no iteration.
        Some((_, high)) if high.contains('-') => Err("a range has two ends, not more"),
        Some((low, high)) => match (number(low)?, number(high)?) {
            (low, high) if low <= high => Ok(low..=high),
            _ => Err("the range is reversed"),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn recorded_matches() {
        let table = include_str!("../../../tests/data/mindspore_iterations.json");
        let table: Value = serde_json::from_str(table).unwrap();
        let cases = table["cases"].as_array().unwrap();
        // The table includes texts that are invalid in a configuration.
        let accepted = cases
            .iter()
            .map(|case| (case, case["iteration"].as_str().unwrap()))
            .filter(|(_, text)| is_accepted(text));
        assert_eq!((cases.len(), accepted.clone().count()), (31, 28));
        for (case, text) in accepted {
            let steps = steps(text);
            let probed = case["probed"].as_array().unwrap().iter();
            let kept: Vec<_> = probed
                .filter(|step| steps.contains(step.as_u64().unwrap()))
                .collect();
            let expected: Vec<_> = case["dumped"].as_array().unwrap().iter().collect();
            assert_eq!(kept, expected, "{text}");
        }
    }

    #[test]
    fn ranges_are_joined() {
        for (text, expected) in [
            ("7|0-3|2|4|9-8", &[0..=4, 7..=7][..]),
            ("0-18446744073709551615|5", &[0..=u64::MAX]),
            ("|-", &[]),
        ] {
            assert_eq!(steps(text).ranges(), Some(expected), "{text}");
        }
    }
}
