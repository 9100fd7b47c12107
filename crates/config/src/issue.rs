//! Errors, warnings and notes about a configuration.

use std::fmt;

use crate::report::ErrorReport;
use crate::text_position::TextPosition;

/// The severity of an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// It is accepted; some part has no effect or an unexpected one.
    Warning,
    /// It works here; elsewhere it may not.
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

/// An issue, with its position in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigIssue {
    /// Its severity.
    pub severity: Severity,
    /// JSON pointer (RFC 6901) to the value; empty for the whole file.
    pub pointer: String,
    /// The same in the notation of the dialect's tools, such as `dump_list[0].layer[1]`.
    pub item: String,
    /// Line and column of that value.
    pub place: TextPosition,
    /// The found value, if relevant, and the allowed ones.
    pub message: String,
    /// The value in the file.
    pub found: Option<String>,
    /// The allowed values.
    pub expected: Option<String>,
    /// Advice on how to fix it.
    pub hint: Option<String>,
    /// The first line that the vendor's tool prints; `None` if it prints nothing, or if
    /// [`ConfigIssue::report`] covers it.
    pub vendor_text: Option<String>,
    /// The report of the vendor's library; `None` if it makes none.
    pub report: Option<ErrorReport>,
}

impl ConfigIssue {
    /// An issue of the whole file.
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

    /// The vendor's code, such as `EP0001`.
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
