//! From a file to text.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Largest configuration file that is read.
pub const CONFIG_BYTES_MAX: u64 = 10 << 20;

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// A configuration file that could not be read as text.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The operating system refused.
    #[error("cannot read the configuration `{}`", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// It is no regular file, too large, or not UTF-8.
    #[error("the configuration `{}` {reason}", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Reads a configuration file; a byte order mark at its beginning is passed over.
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
    let file = std::fs::File::open(path).map_err(io)?;
    file.take(CONFIG_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        unusable(format!("is not UTF-8 text from byte {at} on"))
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text))
}
