//! Two interpretations of a configuration.

/// Whose verdict counts where the vendor's checker contradicts its documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleAuthority {
    /// The checker's, as recorded.
    Checker,
    /// The documentation's.
    Documents,
}
