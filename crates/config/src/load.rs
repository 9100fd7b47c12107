//! Reads a configuration file as text.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use opscope_store::regular_file;
use thiserror::Error;

use crate::text_position::TextPosition;
use crate::{ConfigIssue, json};

/// Maximum size of a configuration file.
pub const CONFIG_BYTES_MAX: u64 = 10 << 20;

/// A configuration file that could not be read as text.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// An error of the operating system.
    #[error("cannot read the configuration `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// It is not a regular file, or too large.
    #[error("the configuration `{}` {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why it is not usable.
        reason: String,
    },
    /// It is not UTF-8.
    #[error("the configuration `{}` is not UTF-8 text from line {}, column {} on", path.display(), place.line, place.column)]
    Encoding {
        /// The file.
        path: PathBuf,
        /// The position of the first invalid byte.
        place: TextPosition,
    },
}

impl ConfigError {
    /// The error as an issue, if the file could be read: another encoding is not valid JSON.
    pub fn issue(&self) -> Option<ConfigIssue> {
        match self {
            ConfigError::Encoding { place, .. } => Some(json::syntax(*place, "it is not UTF-8")),
            ConfigError::Io { .. } | ConfigError::Unusable { .. } => None,
        }
    }
}

/// Reads a configuration file.
///
/// # Errors
/// [`ConfigError`] if the file cannot be read, is not a regular file, is larger than
/// [`CONFIG_BYTES_MAX`] or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, ConfigError> {
    let io = |source| ConfigError::Io {
        path: path.to_owned(),
        source,
    };
    let unusable = |reason: String| ConfigError::Unusable {
        path: path.to_owned(),
        reason,
    };
    let metadata = std::fs::metadata(path).map_err(io)?;
    // Opening a named pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(unusable("is not a regular file".into()));
    }
    if metadata.len() > CONFIG_BYTES_MAX {
        let n = metadata.len();
        return Err(unusable(format!(
            "has {n} bytes; at most {CONFIG_BYTES_MAX} are read"
        )));
    }
    let mut bytes = Vec::new();
    let (file, _) = regular_file::open(path).map_err(io)?;
    // The file may have grown since its size was read.
    file.take(CONFIG_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    String::from_utf8(bytes).map_err(|error| {
        // Positions count characters, which are valid only up to the first invalid byte.
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line_start = valid
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        let before = String::from_utf8_lossy(&valid[line_start..]);
        ConfigError::Encoding {
            path: path.to_owned(),
            place: TextPosition {
                line: valid.iter().filter(|&&b| b == b'\n').count() + 1,
                column: before.chars().count() + 1,
            },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_text_has_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acl.json");
        std::fs::write(&path, b"{\n \"\xc3\xa4\xff\"}").unwrap();
        let issue = read_text(&path).unwrap_err().issue().unwrap();
        assert_eq!(issue.code(), Some("EP0004"));
        assert_eq!(issue.place, TextPosition { line: 2, column: 4 });
        assert!(read_text(dir.path()).unwrap_err().issue().is_none());
    }
}
