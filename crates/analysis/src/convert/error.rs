//! Conversion errors.

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
    /// The file name promises an overflow record, but the tensor is not one.
    #[error("{slot} is not a valid overflow record")]
    Record {
        /// Slot of the tensor.
        slot: String,
        /// Offset in the file, and the cause.
        source: FormatError,
    },
    /// There are no elements to convert.
    #[error(transparent)]
    Elements(#[from] ElementsError),
    /// A safetensors file cannot hold these tensors.
    #[error(transparent)]
    Safetensors(#[from] SafetensorsError),
    /// The output file exists and may not be replaced.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
}

impl ConvertError {
    /// The place of a format error in the file, if the file's content is the cause.
    pub fn format_error(&self) -> Option<&FormatError> {
        match self {
            ConvertError::Store(StoreError::Corrupt { source, .. })
            | ConvertError::Record { source, .. } => Some(source),
            ConvertError::Elements(error) => error.format_error(),
            _ => None,
        }
    }
}
