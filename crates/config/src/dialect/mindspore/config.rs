//! A configuration that was checked.

use super::dump::MindSporeDump;
use super::settings::Settings;
use crate::Issue;

/// A configuration after it was checked: the dump to make, and remarks about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MindSporeConfig {
    /// The dump to make, or `None` if the configuration is accepted and asks for nothing.
    pub dump: Option<MindSporeDump>,
    /// The settings that MindSpore would have in force.
    pub settings: Settings,
    /// Warnings; no errors.
    pub issues: Vec<Issue>,
}
