//! The two sides of a comparison.

use serde::{Deserialize, Serialize};

/// One of the two dumps that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Party {
    /// The dump under test.
    Target,
    /// The trusted dump.
    Golden,
}

impl Party {
    /// Both, the target first.
    pub const BOTH: [Party; 2] = [Party::Target, Party::Golden];

    /// Name in results and messages.
    pub fn name(self) -> &'static str {
        match self {
            Party::Target => "target",
            Party::Golden => "golden",
        }
    }

    /// The opposite one.
    #[must_use]
    pub fn other(self) -> Party {
        match self {
            Party::Target => Party::Golden,
            Party::Golden => Party::Target,
        }
    }

    /// This one's of two values, the target's first.
    pub fn pick<T>(self, target: T, golden: T) -> T {
        match self {
            Party::Target => target,
            Party::Golden => golden,
        }
    }

    /// Position in pairs: 0 for the target, 1 for the golden side.
    pub fn index(self) -> usize {
        self as usize
    }
}
