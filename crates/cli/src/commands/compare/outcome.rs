//! Exit code of a comparison.

use opscope_analysis::compare::result::{Comparison, Conclusion, SkipReason};

use crate::exit::{FOUND, PARTIAL, UNREADABLE};

/// Level from which a result counts as a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FailOn {
    /// A failure
    #[value(alias = "error")]
    Fail,
    /// A warning or a failure
    Warn,
    /// A warning, a failure, or an uncompared item
    Skip,
}

/// The exit code that follows from the conclusion. Damage takes precedence over differences because
/// the verdict covers only the readable rest.
pub(super) fn code(comparison: &Comparison, fail_on: FailOn) -> u8 {
    let skips = comparison.skips.iter();
    let mut open = skips.filter(|skip| !(skip.is_allowed || skip.reason.is_expected()));
    let has_skips = open.clone().next().is_some();
    let has_damage = open.any(|skip| skip.reason == SkipReason::Damaged);
    let conclusion = comparison.contract.conclusion;
    if has_damage {
        let [n_pass, n_warn, n_fail, _] = comparison.summary.slots;
        let has_nothing = n_pass + n_warn + n_fail == 0;
        return if has_nothing { UNREADABLE } else { PARTIAL };
    }
    let is_found = match fail_on {
        FailOn::Fail => false,
        FailOn::Warn => matches!(conclusion, Conclusion::Warn | Conclusion::QuantisedWithin),
        FailOn::Skip => conclusion != Conclusion::Pass || has_skips,
    };
    match conclusion {
        _ if is_found => FOUND,
        Conclusion::Fail | Conclusion::Quantised => FOUND,
        Conclusion::Incomplete => PARTIAL,
        Conclusion::Pass | Conclusion::Warn | Conclusion::QuantisedWithin => 0,
    }
}

#[cfg(test)]
mod tests {
    use opscope_analysis::compare::result::{ComparisonSummary, Contract, Skip};

    use super::*;

    #[test]
    fn damage_before_differences_before_gaps() {
        use Conclusion::{Fail, Incomplete, Pass, Quantised, QuantisedWithin, Warn};
        let check = |conclusion, skips: &[(SkipReason, bool)], fail_on, expected| {
            let skip = |&(reason, is_allowed): &(SkipReason, bool)| Skip {
                reason,
                is_allowed,
                ..Skip::default()
            };
            let comparison = Comparison {
                contract: Contract {
                    conclusion,
                    ..Contract::default()
                },
                summary: ComparisonSummary {
                    slots: [1, 0, 0, 0],
                    ..ComparisonSummary::default()
                },
                skips: skips.iter().map(skip).collect(),
                ..Comparison::default()
            };
            let found = code(&comparison, fail_on);
            assert_eq!(found, expected, "{conclusion:?} {skips:?} {fail_on:?}");
        };
        let (damaged, missing) = ((SkipReason::Damaged, false), (SkipReason::Missing, false));
        check(Pass, &[], FailOn::Fail, 0);
        check(Warn, &[], FailOn::Fail, 0);
        check(Warn, &[], FailOn::Warn, FOUND);
        check(Fail, &[], FailOn::Fail, FOUND);
        check(Fail, &[missing], FailOn::Fail, FOUND);
        check(Fail, &[missing, damaged], FailOn::Fail, PARTIAL);
        // Unmatched operators do not matter as long as the outputs agree.
        check(Pass, &[missing], FailOn::Fail, 0);
        check(Pass, &[missing], FailOn::Skip, FOUND);
        check(Incomplete, &[missing], FailOn::Fail, PARTIAL);
        check(Incomplete, &[missing], FailOn::Warn, PARTIAL);
        check(Incomplete, &[missing], FailOn::Skip, FOUND);
        check(Incomplete, &[damaged], FailOn::Skip, PARTIAL);
        let allowed = [(SkipReason::Missing, true), (SkipReason::Damaged, true)];
        check(Pass, &allowed, FailOn::Skip, 0);
        check(Quantised, &[], FailOn::Fail, FOUND);
        check(QuantisedWithin, &[], FailOn::Fail, 0);
        check(QuantisedWithin, &[], FailOn::Warn, FOUND);
    }

    #[test]
    fn damage_that_leaves_nothing_is_unreadable() {
        let comparison = Comparison {
            skips: vec![Skip {
                reason: SkipReason::Damaged,
                ..Skip::default()
            }],
            ..Comparison::default()
        };
        assert_eq!(code(&comparison, FailOn::Skip), UNREADABLE);
    }
}
