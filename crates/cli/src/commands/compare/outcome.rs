//! Exit code of a comparison.

use opscope_analysis::compare::result::{Comparison, Skip, SkipReason, VerdictLevel};

use crate::exit::{FOUND, PARTIAL, UNREADABLE};

/// Level from which a result counts as a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FailOn {
    /// A failure
    #[value(alias = "error")]
    Fail,
    /// A warning or a failure
    Warn,
    /// A warning, a failure, or something that was not compared
    Skip,
}

/// The exit code. Damage comes before differences: the verdict is about what was left.
pub(super) fn code(comparison: &Comparison, fail_on: FailOn) -> u8 {
    let is_open = |skip: &&Skip| !(skip.is_allowed || skip.reason.is_expected());
    let open = || comparison.skips.iter().filter(is_open);
    let has_damage = open().any(|skip| skip.reason == SkipReason::Damaged);
    let level = comparison.summary.level;
    // Where nothing was compared the code is not 0, even if every skip is allowed.
    let has_nothing = level == VerdictLevel::Skip;
    let is_found = match fail_on {
        FailOn::Fail => level == VerdictLevel::Fail,
        FailOn::Warn => matches!(level, VerdictLevel::Warn | VerdictLevel::Fail),
        FailOn::Skip => level != VerdictLevel::Pass || open().next().is_some(),
    };
    if has_damage {
        if has_nothing { UNREADABLE } else { PARTIAL }
    } else if is_found {
        FOUND
    } else if has_nothing || open().next().is_some() {
        PARTIAL
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use opscope_analysis::compare::result::ComparisonSummary;

    use super::*;

    #[test]
    fn damage_before_differences_before_gaps() {
        use FailOn::{Fail, Warn};
        let check = |level, skips: &[(SkipReason, bool)], fail_on, expected| {
            let skip = |&(reason, is_allowed): &(SkipReason, bool)| Skip {
                reason,
                is_allowed,
                ..Skip::default()
            };
            let comparison = Comparison {
                summary: ComparisonSummary {
                    level,
                    ..ComparisonSummary::default()
                },
                skips: skips.iter().map(skip).collect(),
                ..Comparison::default()
            };
            let found = code(&comparison, fail_on);
            assert_eq!(found, expected, "{level:?} {skips:?} {fail_on:?}");
        };
        let (damaged, missing) = ((SkipReason::Damaged, false), (SkipReason::Missing, false));
        check(VerdictLevel::Pass, &[], Fail, 0);
        check(VerdictLevel::Warn, &[], Fail, 0);
        check(VerdictLevel::Warn, &[], Warn, FOUND);
        check(VerdictLevel::Fail, &[], Fail, FOUND);
        check(VerdictLevel::Fail, &[missing], Fail, FOUND);
        check(VerdictLevel::Fail, &[missing, damaged], Fail, PARTIAL);
        check(VerdictLevel::Pass, &[missing], Fail, PARTIAL);
        check(VerdictLevel::Pass, &[missing], Warn, PARTIAL);
        check(VerdictLevel::Pass, &[missing], FailOn::Skip, FOUND);
        check(VerdictLevel::Pass, &[damaged], FailOn::Skip, PARTIAL);
        check(
            VerdictLevel::Pass,
            &[(SkipReason::Missing, true), (SkipReason::Damaged, true)],
            FailOn::Skip,
            0,
        );
        check(VerdictLevel::Skip, &[missing], Fail, PARTIAL);
        check(
            VerdictLevel::Skip,
            &[(SkipReason::Missing, true)],
            Fail,
            PARTIAL,
        );
        check(VerdictLevel::Skip, &[damaged], Fail, UNREADABLE);
    }
}
