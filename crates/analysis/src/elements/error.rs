//! Errors of reading elements.

use opscope_store::file_format::npy::TextArrayError;
use opscope_store::{FormatError, StoreError};
use opscope_tensor::convert::dtype::DecodeError;
use opscope_tensor::{ShapeError, StatsError};
use thiserror::Error;

use super::RelayoutError;

/// Why the elements of a tensor, or their statistics, are not available.
#[derive(Debug, Error)]
pub enum ElementsError {
    /// Only statistics were dumped.
    #[error("the dump has statistics of this tensor and no elements")]
    NoElements,
    /// The file cannot be read or is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No version of the format defines this dtype number.
    #[error("{slot}: the dtype number {code} is unknown")]
    UnknownDtype {
        /// Which tensor, such as `input.0`.
        slot: String,
        /// The number.
        code: u32,
    },
    /// A tensor, or elements, of an unsupported kind.
    #[error("{slot}: elements of `{word}` are not read")]
    OtherKind {
        /// Slot of the tensor.
        slot: String,
        /// The file's word for the kind.
        word: String,
    },
    /// The bytes do not match dtype and shape, or the dtype has no numeric value.
    #[error("{slot}")]
    Decode {
        /// Which tensor, such as `input.0`.
        slot: String,
        /// The cause.
        source: DecodeError,
    },
    /// Damaged text, or text that the output format cannot hold.
    #[error("{slot}")]
    Text {
        /// Slot of the tensor.
        slot: String,
        /// The cause.
        source: TextArrayError,
    },
    /// The shape is invalid.
    #[error("{slot}")]
    Shape {
        /// Slot of the tensor.
        slot: String,
        /// The cause.
        source: ShapeError,
    },
    /// The tensor cannot be converted to the requested layout.
    #[error("{slot}")]
    Relayout {
        /// Slot of the tensor.
        slot: String,
        /// The cause.
        source: RelayoutError,
    },
    /// The file has no such tensor.
    #[error("there is no {slot}: the file has {n} of that side")]
    NoSlot {
        /// Slot of the tensor.
        slot: String,
        /// Number of tensors in the file.
        n: usize,
    },
    /// The elements have no order.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

impl ElementsError {
    /// The place of a format error in the file, if the file's content is the cause.
    pub fn format_error(&self) -> Option<&FormatError> {
        match self {
            ElementsError::Store(StoreError::Corrupt { source, .. }) => Some(source),
            _ => None,
        }
    }
}
