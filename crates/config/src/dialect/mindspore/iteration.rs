//! `iteration`: which iterations are dumped.

use opscope_capture::Steps;

use super::section::Item;
use crate::dialect::findings::{Findings, shown};

/// The word for every iteration.
pub(super) const ALL: &str = "all";
/// What stands between numbers and ranges.
const SEPARATOR: char = '|';

/// Whether MindSpore accepts the text.
pub(super) fn is_accepted(text: &str) -> bool {
    let is_list = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'|'))
    };
    text == ALL || (!text.is_empty() && is_list(text))
}

/// The iterations of an accepted text. Pieces that no iteration matches are left out.
pub(super) fn steps(text: &str) -> Steps {
    if text == ALL {
        return Steps::every();
    }
    let pieces = text.split(SEPARATOR);
    Steps::in_ranges(pieces.filter_map(|piece| range(piece).ok()).collect())
}

/// Warns about the pieces that no iteration matches, which MindSpore accepts without a word.
pub(super) fn warn_never(item: &Item<'_>, text: &str, findings: &mut Findings) {
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

/// The iterations of one piece, or why there are none.
fn range(piece: &str) -> Result<std::ops::RangeInclusive<u64>, &'static str> {
    let number = |text: &str| match text {
        "" => Err("a number is missing"),
        _ => text
            .parse::<u64>()
            .map_err(|_| "the number has more than 64 bits"),
    };
    match piece.split_once('-') {
        None => number(piece).map(|step| step..=step),
        Some((_, high)) if high.contains('-') => Err("a range has two ends, not more"),
        Some((low, high)) => match (number(low)?, number(high)?) {
            (low, high) if low <= high => Ok(low..=high),
            _ => Err("the range runs backwards"),
        },
    }
}
