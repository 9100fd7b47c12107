//! A configuration that was checked.

use super::dump::MindSporeDumpPlan;
use super::settings::MindSporeSettings;
use crate::ConfigIssue;

/// A configuration after it was checked: the dump to make, and remarks about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeConfig {
    /// The dump to make, or `None` if the configuration is accepted and asks for nothing.
    pub dump: Option<MindSporeDumpPlan>,
    /// The settings that MindSpore would have in force.
    pub settings: MindSporeSettings,
    /// Warnings; no errors.
    pub issues: Vec<ConfigIssue>,
}
