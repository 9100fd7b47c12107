//! `dump_step`: `N` or `N-M`, separated by `|`.

use std::ops::RangeInclusive;

use opscope_capture::Steps;

use super::object::{Cursor, Findings};

/// Most parts of the text.
const N_PARTS_MAX: usize = 100;

/// Reads the text; an empty one means every step.
pub(super) fn read(cursor: &Cursor<'_>, text: &str, findings: &mut Findings) -> Option<Steps> {
    if text.is_empty() {
        return Some(Steps::every());
    }
    let parts: Vec<&str> = text.split('|').collect();
    let mut refuse = |pointer: &str, message: &str| {
        findings.error("EP0003", pointer, cursor.place(), message);
        None
    };
    if parts.len() > N_PARTS_MAX {
        let n = parts.len();
        return refuse(
            cursor.pointer(),
            &format!("found {n} parts, at most {N_PARTS_MAX} allowed"),
        );
    }
    let mut ranges = Vec::with_capacity(parts.len());
    for (i, part) in parts.into_iter().enumerate() {
        match range(part) {
            Ok(range) => ranges.push(range),
            Err(message) => {
                return refuse(
                    cursor.pointer(),
                    &format!("part {i}, `{}`, {message}", part.escape_debug()),
                );
            }
        }
    }
    Some(Steps::in_ranges(ranges))
}

fn range(part: &str) -> Result<RangeInclusive<u64>, &'static str> {
    let bounds: Vec<&str> = part.split('-').collect();
    let (first, last) = match bounds[..] {
        [only] => (only, only),
        [first, last] => (first, last),
        _ => return Err("has more than two bounds; expected `N` or `N-M`"),
    };
    let number = |text: &str| match text {
        "" => None,
        _ if text.bytes().all(|b| b.is_ascii_digit()) => {
            // Larger numbers than 64 bits hold mean "never reached", like the largest one.
            Some(text.parse().unwrap_or(i64::MAX as u64).min(i64::MAX as u64))
        }
        _ => None,
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        (Some(_), Some(_)) => Err("runs backwards; expected the smaller bound first"),
        _ => Err("is not made of digits; expected `N` or `N-M`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        for (part, expected) in [
            ("0", Some(0..=0)),
            ("5-10", Some(5..=10)),
            ("3-3", Some(3..=3)),
            ("001", Some(1..=1)),
            (
                "99999999999999999999",
                Some(i64::MAX as u64..=i64::MAX as u64),
            ),
            ("10-5", None),
            ("1-2-3", None),
            ("-1", None),
            ("1-", None),
            ("", None),
            ("1 ", None),
            ("+1", None),
            ("０", None),
            ("1\n", None),
        ] {
            assert_eq!(range(part).ok(), expected, "{part:?}");
        }
    }
}
