//! How good or bad something is.

use serde::{Deserialize, Serialize};

/// How good or bad something is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum VerdictLevel {
    /// Within the thresholds.
    #[default]
    Pass,
    /// Beyond the lower threshold.
    Warn,
    /// Beyond the upper threshold.
    Fail,
    /// Not compared.
    Skip,
}

impl VerdictLevel {
    /// Whether it was compared and did not pass.
    pub fn is_apart(self) -> bool {
        matches!(self, VerdictLevel::Warn | VerdictLevel::Fail)
    }
}
