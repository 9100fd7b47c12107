//! Errors, warnings and notes about a configuration.

use std::fmt;

use crate::report::ErrorReport;
use crate::text_position::TextPosition;

/// How much an issue matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// It is accepted; something in it has no effect or an unexpected one.
    Warning,
    /// It does what it says; elsewhere it may not.
    Note,
}

impl Severity {
    /// `error`, `warning` or `note`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// One finding, with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigIssue {
    /// How much it matters.
    pub severity: Severity,
    /// JSON pointer (RFC 6901) to the value it is about; empty for the whole file.
    pub pointer: String,
    /// The same as the dialect's own tools write it, such as `dump_list[0].layer[1]`.
    pub item: String,
    /// Line and column of that value.
    pub place: TextPosition,
    /// The value found, if that is worth telling, and the values that are allowed.
    pub message: String,
    /// The text that stands in the file.
    pub found: Option<String>,
    /// The values that may stand there.
    pub expected: Option<String>,
    /// Advice on how to fix it.
    pub hint: Option<String>,
    /// The first line that the vendor's tool prints; `None` where it prints nothing, or where
    /// [`ConfigIssue::report`] says it.
    pub vendor_text: Option<String>,
    /// The report that the vendor's library would make; `None` where it makes none.
    pub report: Option<ErrorReport>,
}

impl ConfigIssue {
    /// A finding about the whole file.
    pub(crate) fn of_file(
        severity: Severity,
        place: TextPosition,
        message: impl Into<String>,
    ) -> ConfigIssue {
        ConfigIssue {
            severity,
            pointer: String::new(),
            item: String::new(),
            place,
            message: message.into(),
            found: None,
            expected: None,
            hint: None,
            vendor_text: None,
            report: None,
        }
    }

    /// The code under which the vendor's library reports it, such as `EP0001`.
    pub fn code(&self) -> Option<&'static str> {
        self.report.as_ref().map(ErrorReport::code)
    }
}

impl fmt::Display for ConfigIssue {
    /// `LINE:COLUMN: severity code at pointer: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = self.severity.name();
        write!(f, "{}:{}: {severity}", self.place.line, self.place.column)?;
        if let Some(code) = self.code() {
            write!(f, " {code}")?;
        }
        if !self.pointer.is_empty() {
            write!(f, " at `{}`", self.pointer)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}
