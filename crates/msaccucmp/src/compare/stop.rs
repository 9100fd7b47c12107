//! Why something could not be compared, and how far that reaches.

use crate::failure::{ErrorCode, ToolFailure};

/// A failure, by what the reference does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CompareStop {
    /// An error with a code. The text becomes the reason in the result, and may be empty.
    Coded(ErrorCode, String),
    /// An exception that costs one operator where two device dumps are compared, and ends the
    /// command elsewhere.
    Exception(String),
    /// An exception that always ends the command.
    Fatal(String),
}

impl CompareStop {
    /// An error whose reason the reference leaves empty.
    pub(super) fn bare(code: ErrorCode) -> CompareStop {
        CompareStop::Coded(code, String::new())
    }

    pub(super) fn coded(code: ErrorCode, reason: impl Into<String>) -> CompareStop {
        CompareStop::Coded(code, reason.into())
    }

    /// The exception that a wrong index raises in the reference.
    pub(super) fn index() -> CompareStop {
        CompareStop::Fatal("list index out of range".to_owned())
    }
}

impl From<ToolFailure> for CompareStop {
    fn from(failure: ToolFailure) -> CompareStop {
        match failure {
            ToolFailure::Coded(code, message) => CompareStop::Coded(code, message),
            ToolFailure::Logged(code) => CompareStop::bare(code),
            ToolFailure::Unexpected(message) => CompareStop::Exception(message),
        }
    }
}

impl From<CompareStop> for ToolFailure {
    fn from(stop: CompareStop) -> ToolFailure {
        match stop {
            CompareStop::Coded(code, reason) if reason.is_empty() => ToolFailure::Logged(code),
            CompareStop::Coded(code, reason) => ToolFailure::Coded(code, reason),
            CompareStop::Exception(message) | CompareStop::Fatal(message) => {
                ToolFailure::Unexpected(message)
            }
        }
    }
}
