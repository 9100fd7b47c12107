//! How many steps stay, and what keeps them for good.

use std::num::NonZeroUsize;

/// A ring of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// How many steps of each model stay, the current one among them. Steps that the plan does not
    /// select do not count.
    pub n_steps: NonZeroUsize,
    /// Triggers that keep the steps of the ring for good.
    pub triggers: Triggers,
    /// Whether the end of the session removes what no trigger has kept.
    pub keeps_only_triggered: bool,
}

/// Something that makes the last steps worth keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerKind {
    /// An operator's arithmetic overflowed. Every selected operator is inspected, which takes time.
    /// An input that the plan excludes is unknown, which explains many overflows.
    Overflow,
    /// A selected tensor holds NaN or an infinity.
    NonFinite,
    /// An operator, or a step as a whole, failed.
    Failure,
    /// The flag of the session was set.
    Signal,
}

impl TriggerKind {
    /// All of them.
    pub const ALL: [TriggerKind; 4] = [
        TriggerKind::Overflow,
        TriggerKind::NonFinite,
        TriggerKind::Failure,
        TriggerKind::Signal,
    ];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Triggers(u8);

impl Triggers {
    /// Every kind.
    pub fn all() -> Triggers {
        TriggerKind::ALL.into_iter().collect()
    }

    /// Whether `kind` is among them.
    pub fn contains(self, kind: TriggerKind) -> bool {
        self.0 & kind.bit() != 0
    }
}

impl FromIterator<TriggerKind> for Triggers {
    fn from_iter<I: IntoIterator<Item = TriggerKind>>(kinds: I) -> Triggers {
        Triggers(kinds.into_iter().fold(0, |bits, kind| bits | kind.bit()))
    }
}
