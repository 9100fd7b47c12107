//! `dump_step`: `N` or `N-M`, separated by `|`.

use std::ops::RangeInclusive;

use opscope_capture::Steps;

use super::object::{ConfigRefusal, IssueCollector, shown};
use super::raw::RawText;
use crate::report::RefusalReason;

/// Maximum number of parts.
const N_PARTS_MAX: usize = 100;
/// Larger steps are treated as this one.
const STEP_MAX: u64 = i64::MAX as u64;

/// Parses the text; an empty one means every step.
pub(super) fn read(
    text: &RawText<'_>,
    findings: &mut IssueCollector,
) -> Result<Steps, ConfigRefusal> {
    if text.is_empty() {
        return Ok(Steps::every());
    }
    // Parts are counted before any is parsed, so that too many separators are refused early.
    let n = text.value.split('|').count();
    if n > N_PARTS_MAX {
        let message = format!("found {n} steps and ranges, at most {N_PARTS_MAX} are allowed");
        let issue = text
            .at
            .unusable(text.value, RefusalReason::TooManySteps, message);
        return Err(findings.refuse(issue));
    }
    let mut ranges = Vec::with_capacity(n);
    for (i, part) in text.value.split('|').enumerate() {
        match range(part) {
            Ok(range) => ranges.push(range),
            Err(reason) => {
                let message = format!("found `{}`, {}", shown(part), advice(reason));
                let issue = text.at.unusable_part(i, part, reason, message);
                return Err(findings.refuse(issue));
            }
        }
    }
    Ok(Steps::in_ranges(ranges))
}

fn advice(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::StepFormat => "expected one step `N` or two, `N-M`",
        RefusalReason::StepReversed => "expected the smaller step first",
        _ => "expected digits: `N` or `N-M`, with `|` between them",
    }
}

fn range(part: &str) -> Result<RangeInclusive<u64>, RefusalReason> {
    let bounds: Vec<&str> = part.split('-').collect();
    let (first, last) = match bounds[..] {
        [only] => (only, only),
        [first, last] => (first, last),
        _ => return Err(RefusalReason::StepFormat),
    };
    let ends = [first, last].map(|text| {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // Larger numbers mean "never reached", like the largest one that the vendor compares.
        is_number.then(|| text.parse().unwrap_or(STEP_MAX).min(STEP_MAX))
    });
    match ends {
        [Some(first), Some(last)] if first <= last => Ok(first..=last),
        [Some(_), Some(_)] => Err(RefusalReason::StepReversed),
        _ => Err(RefusalReason::StepNotDigits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        use RefusalReason::{StepFormat, StepNotDigits, StepReversed};
        for (part, expected) in [
            ("0", Ok(0..=0)),
            ("5-10", Ok(5..=10)),
            ("3-3", Ok(3..=3)),
            ("001", Ok(1..=1)),
            ("99999999999999999999", Ok(STEP_MAX..=STEP_MAX)),
            ("1-99999999999999999999", Ok(1..=STEP_MAX)),
            ("10-5", Err(StepReversed)),
            ("1-2-3", Err(StepFormat)),
            ("a-b-c", Err(StepFormat)),
            ("-1", Err(StepNotDigits)),
            ("1-", Err(StepNotDigits)),
            ("-", Err(StepNotDigits)),
            ("", Err(StepNotDigits)),
            ("1 ", Err(StepNotDigits)),
            ("+1", Err(StepNotDigits)),
            ("０", Err(StepNotDigits)),
            ("1\n", Err(StepNotDigits)),
        ] {
            assert_eq!(range(part), expected, "{part:?}");
        }
    }
}
