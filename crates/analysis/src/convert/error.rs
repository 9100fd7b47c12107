//! Why something could not be converted.

use std::path::PathBuf;

use opscope_store::file_format::npy::TextArrayError;
use opscope_store::file_format::safetensors::SafetensorsError;
use opscope_store::{FormatError, StoreError};
use opscope_tensor::ShapeError;
use opscope_tensor::convert::dtype::DecodeError;
use thiserror::Error;

use super::RelayoutError;

/// Why a file or tensor could not be converted.
#[derive(Debug, Error)]
pub enum ConvertError {
    /// The file cannot be read, is damaged, or the result cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The number of a dtype that no version of the format defines.
    #[error("{slot}: the dtype number {code} is unknown")]
    UnknownDtype {
        /// Which tensor, such as `input.0`.
        slot: String,
        /// The number.
        code: u32,
    },
    /// The bytes do not fit dtype and shape, or the dtype has no numeric value.
    #[error("{slot}")]
    Decode {
        /// Which tensor, such as `input.0`.
        slot: String,
        /// Why.
        source: DecodeError,
    },
    /// Text that the result cannot hold, or that is damaged.
    #[error("{slot}")]
    Text {
        /// Which tensor.
        slot: String,
        /// Why.
        source: TextArrayError,
    },
    /// The shape is not usable.
    #[error("{slot}")]
    Shape {
        /// Which tensor.
        slot: String,
        /// Why.
        source: ShapeError,
    },
    /// The tensor cannot be brought into the wanted layout.
    #[error("{slot}")]
    Relayout {
        /// Which tensor.
        slot: String,
        /// Why.
        source: RelayoutError,
    },
    /// The tensor is no overflow record, although the file's name says so.
    #[error("{slot} is not a valid overflow record")]
    Record {
        /// Which tensor.
        slot: String,
        /// Where in the file, and what.
        source: FormatError,
    },
    /// The file has no such tensor.
    #[error("there is no {slot}: the file has {n} of that side")]
    NoSlot {
        /// Which tensor.
        slot: String,
        /// How many there are.
        n: usize,
    },
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
            _ => None,
        }
    }
}
