//! One tensor: its dtype, shape, layout and bytes, and the numbers that describe it.
//!
//! This crate opens no file and starts no thread. Crates above it read and write dumps, run models
//! and parse configurations.
//!
//! | type | what it is |
//! | --- | --- |
//! | [`DType`] | the element type, with its width in bits and what its elements stand for |
//! | [`NumpyType`] | the element types that numpy has, to which the others decode |
//! | [`Shape`] | the dimensions of the axes, with checked element and byte counts |
//! | [`Layout`] | what the axes mean (`NCHW`, `ND`, `FRACTAL_NZ`, …) |
//! | [`Tensor`] | dtype, shape, layout and shared elements; cloning copies no data |
//! | [`TensorElements`] | where the elements are |
//! | [`DeviceElements`] | elements on a device, and what the host gets of them |
//! | [`DeviceRow`] | statistics that a device has computed |
//! | [`TensorIdentity`] | which of an engine's tensors one is |
//! | [`TensorView`] | a tensor in the host's memory, borrowed |
//! | [`convert::dtype::decode`] | the same values in a dtype that numpy can hold |
//! | [`convert::dequantise::dequantise`] | the floats that quantised elements stand for |
//! | [`convert::layout::LayoutPlan`] | the same elements in the order of another layout |
//! | [`RangeLoss`] | what would overflow, vanish or become subnormal in a narrower dtype |
//! | [`RoundingFormat`] | rounds elements to the values that a narrower format has |
//! | [`Stats`] | extremes, mean, norms, standard deviation and counts of what is special |
//! | [`PartialStats`] | the same of a part of a tensor, to be put together in order |
//! | [`sequential`] | statistics that are summed one element after the other, as MindSpore's |
//! | [`dense_copy`] | elements that do not lie side by side, put side by side |
//! | [`difference`] | how far two tensors are apart |
//! | [`Numbers`] | elements of any numeric dtype, read as `f64` |
//! | [`distribution`] | bins of equal width, and percentiles |
//! | [`mod@slice`] | a slice as a picture |
//! | [`text`] | tensors whose elements are text |
//! | [`digest_and_stats`] | statistics and digest in one pass |
//! | [`digest`] | MD5, SHA-1 and XXH3 of bytes |

mod add_fields;
pub mod convert;
mod cpu;
mod device;
pub mod difference;
pub mod digest;
pub mod distribution;
mod dtype;
mod identity;
mod layout;
mod memo;
mod numbers;
mod pieces;
mod range;
mod rounding;
mod shape;
mod single_pass;
pub mod slice;
mod stats;
mod strided;
mod tensor;
pub mod text;

pub use device::{DeviceArrival, DeviceElements, DeviceRow};
pub use dtype::{DType, ElementKind, NumpyType, ParseDTypeError};
pub use identity::TensorIdentity;
pub use layout::{Layout, ParseLayoutError};
pub use memo::{TensorMemo, TensorObserver};
pub use numbers::Numbers;
pub use range::{LargestElement, RangeLoss, is_wider_range, largest_finite, range_loss};
pub use rounding::{Channels, RoundingFormat};
pub use shape::{Shape, ShapeError};
pub use single_pass::{PiecewiseNumbers, digest_and_non_finite, digest_and_stats};
pub use stats::{
    CHUNK_ELEMENTS, ElementCounts, Histogram, NonFinite, NonFinitePlaces, PartialStats, Stats,
    StatsAndWeight, StatsError, StatsOptions, TensorChunk, chunks, first_non_finite,
    has_non_finite, non_finite, non_finite_places, sequential, stats, stats_strided, weighed_stats,
};
pub use strided::{StridedError, dense_copy};
pub use tensor::{HostAccessError, SharedBytes, Tensor, TensorElements, TensorError, TensorView};
