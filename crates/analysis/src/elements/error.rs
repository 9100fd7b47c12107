//! Why there are no elements.

use opscope_store::file_format::npy::TextArrayError;
use opscope_store::{FormatError, StoreError};
use opscope_tensor::convert::dtype::DecodeError;
use opscope_tensor::{ShapeError, StatsError};
use thiserror::Error;

use super::RelayoutError;

/// Why the elements of a tensor, or statistics of them, cannot be had.
#[derive(Debug, Error)]
pub enum ElementsError {
    /// Only statistics were dumped.
    #[error("the dump has statistics of this tensor and no elements")]
    NoElements,
    /// The file cannot be read or is damaged.
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
    /// A tensor, or elements, of a kind that is not read.
    #[error("{slot}: elements of `{word}` are not read")]
    OtherKind {
        /// Which tensor.
        slot: String,
        /// The word of the file for what it is.
        word: String,
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
    /// The file has no such tensor.
    #[error("there is no {slot}: the file has {n} of that side")]
    NoSlot {
        /// Which tensor.
        slot: String,
        /// How many there are.
        n: usize,
    },
    /// The elements have no order.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

impl ElementsError {
    /// Where in the file the problem is, if it is the file's content.
    pub fn format_error(&self) -> Option<&FormatError> {
        match self {
            ElementsError::Store(StoreError::Corrupt { source, .. }) => Some(source),
            _ => None,
        }
    }
}
