//! What is wrong, or worth knowing, about a configuration.

use std::fmt;

use crate::load::Place;

/// How much an issue matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// It is accepted; something in it has no effect or an unexpected one.
    Warning,
}

/// One finding, with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// How much it matters.
    pub severity: Severity,
    /// The code under which the vendor's tools report it, such as `EP0001`.
    pub code: Option<&'static str>,
    /// JSON pointer (RFC 6901) to the value it is about.
    pub pointer: String,
    /// Line and column of that value.
    pub place: Place,
    /// What was found, and what is allowed.
    pub message: String,
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{}: {severity}", self.place.line, self.place.column)?;
        if let Some(code) = self.code {
            write!(f, " {code}")?;
        }
        if !self.pointer.is_empty() {
            write!(f, " at `{}`", self.pointer)?;
        }
        write!(f, ": {}", self.message)
    }
}
