//! One tensor: its dtype, shape, layout and bytes, and the numbers that describe it.
//!
//! This crate opens no file and starts no thread. Everything that reads or writes a dump, runs a
//! model or parses a configuration lives above it.
//!
//! | type | what it is |
//! | --- | --- |
//! | [`DType`] | the element type, with its width in bits |
//! | [`Shape`] | the extents of the axes, with checked element and byte counts |
//! | [`Layout`] | what the axes mean (`NCHW`, `ND`, `FRACTAL_NZ`, …) |
//! | [`Tensor`] | dtype, shape, layout and shared bytes; cloning copies no data |
//! | [`TensorView`] | the same, borrowed |
//! | [`convert::dtype::decode`] | the same values in a dtype that numpy can hold |
//! | [`convert::layout::Plan`] | the same elements in the order of another layout |
//! | [`RangeLoss`] | what would overflow, vanish or become subnormal in a narrower dtype |
//! | [`Stats`] | minimum, maximum, mean, L2 norm and the counts of NaN and infinities |

pub mod convert;
mod dtype;
mod layout;
mod range;
mod shape;
mod stats;
mod tensor;

pub use dtype::{DType, ParseDTypeError};
pub use layout::{Layout, ParseLayoutError};
pub use range::{Largest, RangeLoss, is_wider_range, range_loss};
pub use shape::{Shape, ShapeError};
pub use stats::{NonFinite, Stats, StatsError, has_non_finite, non_finite, stats};
pub use tensor::{SharedBytes, Tensor, TensorError, TensorView};
