//! How a dump was made, from the run record next to it.

use serde::{Deserialize, Serialize};

/// How a dump was made, from the run record next to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// The command or interface, as in the record.
    pub command: String,
    /// The vendor whose dialect the configuration has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dialect: String,
    /// The path of the configuration, as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The file of the model, without directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
