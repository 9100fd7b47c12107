//! Two readings of the same words.

/// Whose verdict counts where the vendor's checker does not do what its documents say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleAuthority {
    /// The checker's, as it was recorded.
    Checker,
    /// The documents'.
    Documents,
}
