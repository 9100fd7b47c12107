//! A checked configuration.

use super::dump::MindSporeDumpPlan;
use super::settings::MindSporeSettings;
use crate::ConfigIssue;

/// A checked configuration: the dump, and remarks about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeConfig {
    /// The dump, or `None` if the configuration is valid but requests none.
    pub dump: Option<MindSporeDumpPlan>,
    /// The settings that MindSpore would use.
    pub settings: MindSporeSettings,
    /// Warnings; no errors.
    pub issues: Vec<ConfigIssue>,
}
