//! Why a comparison failed, and the scope of the failure.

use std::path::Path;

use crate::failure::{ErrorCode, ToolFailure};
use crate::log;

/// A failure, by the reference's reaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CompareStop {
    /// An error with a code. The text becomes the reason in the result, and may be empty.
    Coded(ErrorCode, String),
    /// An exception that costs one operator if two device dumps are compared, and ends the command
    /// otherwise.
    Exception(String),
    /// An exception that always ends the command.
    Fatal(String),
}

impl CompareStop {
    /// An error whose reason is empty in the reference.
    pub(super) fn bare(code: ErrorCode) -> CompareStop {
        CompareStop::Coded(code, String::new())
    }

    /// Reports a file that is no array of NumPy.
    pub(super) fn not_numpy(path: &Path, reason: &str) -> CompareStop {
        log::error(&format!(
            "Failed to parse dump file {}. Only data of the numpy format is supported. {reason}",
            log::quoted(path)
        ));
        CompareStop::bare(ErrorCode::InvalidDumpData)
    }

    pub(super) fn coded(code: ErrorCode, reason: impl Into<String>) -> CompareStop {
        CompareStop::Coded(code, reason.into())
    }

    /// The reference's exception for an invalid index.
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
