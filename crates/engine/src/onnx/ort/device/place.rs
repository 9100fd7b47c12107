//! Where values of a device are, and where its results go.

use std::ffi::c_void;
use std::ptr::NonNull;

use opscope_tensor::{DType, DeviceRow, Shape};

/// Values that may wait together for their numbers.
pub(super) const N_ROWS_MAX: usize = 4096;

/// The words of a row as a device stores them.
pub(super) type RowWords = [u64; DeviceRow::N_WORDS];

/// A stream of the engine: its work runs in order. Zero is the default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceStream(pub(crate) usize);

impl DeviceStream {
    /// The stream at this address.
    pub(crate) fn at(address: Option<NonNull<c_void>>) -> DeviceStream {
        DeviceStream(address.map_or(0, |address| address.as_ptr().expose_provenance()))
    }
}

/// A dense tensor in a device's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceMemory {
    pub(crate) address: u64,
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    pub(crate) n_bytes: usize,
}
