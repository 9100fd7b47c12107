//! Errors of files: content that does not follow its format, and failures of the operating system.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Bytes that do not follow their format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {offset}: expected {expected}, found {found}")]
pub struct FormatError {
    /// Where in the file, counted from 0.
    pub offset: u64,
    /// Content that the format asks for there.
    pub expected: String,
    /// The actual content.
    pub found: String,
}

impl FormatError {
    /// Says what was expected and found at a byte offset.
    pub fn new(offset: u64, expected: impl Into<String>, found: impl Into<String>) -> FormatError {
        FormatError {
            offset,
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// An unreadable part of a file, for functions whose other errors concern the content.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the signature that `map_err` asks for"
    )]
    pub(crate) fn unreadable(error: io::Error) -> FormatError {
        FormatError::new(0, "a file that can be read", error.to_string())
    }

    /// The same error in a file in which the parsed bytes begin at `base`.
    #[must_use]
    pub fn shifted(self, base: u64) -> FormatError {
        FormatError {
            offset: self.offset.saturating_add(base),
            ..self
        }
    }
}

/// A file or directory that could not be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// Attempted action, such as `read` or `create the directory`.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The content does not follow its format.
    #[error("`{}` is not a valid {format} file", path.display())]
    Corrupt {
        /// Which format was expected, such as `npy`.
        format: &'static str,
        /// Which file.
        path: PathBuf,
        /// Where and what.
        source: FormatError,
    },
}

impl StoreError {
    /// Whether a part of the path does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        match self {
            StoreError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            StoreError::Corrupt { .. } => false,
        }
    }

    /// Whether the name is taken.
    pub(crate) fn is_already_there(&self) -> bool {
        match self {
            StoreError::Io { source, .. } => source.kind() == io::ErrorKind::AlreadyExists,
            StoreError::Corrupt { .. } => false,
        }
    }

    /// Turns the error of an action on a path into [`StoreError::Io`].
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Io {
            action,
            path,
            source,
        }
    }

    /// Turns the error of a format into [`StoreError::Corrupt`].
    pub fn corrupt(format: &'static str, path: &Path) -> impl FnOnce(FormatError) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Corrupt {
            format,
            path,
            source,
        }
    }
}
