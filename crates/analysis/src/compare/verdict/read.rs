//! Thresholds in a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Thresholds, ThresholdsError};

/// Largest file that is read.
const N_BYTES_MAX: u64 = 16 << 20;

/// Why a file has no thresholds.
#[derive(Debug, Error)]
pub enum ReadThresholdsError {
    /// The operating system refused.
    #[error("cannot read `{}`", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// It is no JSON, or has other fields.
    #[error("`{}` has no thresholds", .0.display())]
    Invalid(PathBuf, #[source] serde_json::Error),
    /// A name in it does not exist.
    #[error("`{}` has no thresholds", .0.display())]
    Name(PathBuf, #[source] ThresholdsError),
}

impl Thresholds {
    /// The defaults with what a JSON file says laid over them.
    ///
    /// # Errors
    /// [`ReadThresholdsError`].
    pub fn read(path: &Path) -> Result<Thresholds, ReadThresholdsError> {
        let mut text = String::new();
        let result =
            File::open(path).and_then(|file| file.take(N_BYTES_MAX).read_to_string(&mut text));
        result.map_err(|error| ReadThresholdsError::Io(path.to_owned(), error))?;
        let file: Thresholds = serde_json::from_str(&text)
            .map_err(|error| ReadThresholdsError::Invalid(path.to_owned(), error))?;
        file.check()
            .map_err(|error| ReadThresholdsError::Name(path.to_owned(), error))?;
        Ok(file.over_defaults())
    }
}
