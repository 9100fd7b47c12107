//! Why something could not be compared, and how far that reaches.

use crate::failure::{Code, Failure};

/// A failure, by what the reference does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// An error with a code. The text becomes the reason in the result, and may be empty.
    Coded(Code, String),
    /// An exception that costs one operator where two device dumps are compared, and ends the
    /// command elsewhere.
    Exception(String),
    /// An exception that always ends the command.
    Fatal(String),
}

impl Stop {
    /// An error whose reason the reference leaves empty.
    pub(super) fn bare(code: Code) -> Stop {
        Stop::Coded(code, String::new())
    }

    pub(super) fn coded(code: Code, reason: impl Into<String>) -> Stop {
        Stop::Coded(code, reason.into())
    }

    /// The exception that a wrong index raises in the reference.
    pub(super) fn index() -> Stop {
        Stop::Fatal("list index out of range".to_owned())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        match failure {
            Failure::Coded(code, message) => Stop::Coded(code, message),
            Failure::Logged(code) => Stop::bare(code),
            Failure::Unexpected(message) => Stop::Exception(message),
        }
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        match stop {
            Stop::Coded(code, reason) if reason.is_empty() => Failure::Logged(code),
            Stop::Coded(code, reason) => Failure::Coded(code, reason),
            Stop::Exception(message) | Stop::Fatal(message) => Failure::Unexpected(message),
        }
    }
}
