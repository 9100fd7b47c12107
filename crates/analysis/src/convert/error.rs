//! Why something could not be converted.

use std::path::PathBuf;

use opscope_store::file_format::safetensors::SafetensorsError;
use opscope_store::{FormatError, StoreError};
use thiserror::Error;

use crate::elements::ElementsError;

/// Why a file or tensor could not be converted.
#[derive(Debug, Error)]
pub enum ConvertError {
    /// The file cannot be read or is damaged, or the result cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tensor is no overflow record, although the file's name says so.
    #[error("{slot} is not a valid overflow record")]
    Record {
        /// Which tensor.
        slot: String,
        /// Where in the file, and what.
        source: FormatError,
    },
    /// There are no elements to convert.
    #[error(transparent)]
    Elements(#[from] ElementsError),
    /// The tensors cannot be held by a safetensors file.
    #[error(transparent)]
    Safetensors(#[from] SafetensorsError),
    /// The result exists and is not to be replaced.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
}

impl ConvertError {
    /// Where in the file the problem is, if it is the file's content.
    pub fn format_error(&self) -> Option<&FormatError> {
        match self {
            ConvertError::Store(StoreError::Corrupt { source, .. })
            | ConvertError::Record { source, .. } => Some(source),
            ConvertError::Elements(error) => error.format_error(),
            _ => None,
        }
    }
}
