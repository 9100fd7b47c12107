//! The difference between two tensors: its numbers, and the operation that it is.
//!
//! | module | job |
//! | --- | --- |
//! | [`metric`] | the metrics, their names and units |
//! | [`metrics`] | their values for a pair of tensors |
//! | [`change`] | the difference as one operation: axes exchanged, scaled, rounded |
//! | [`party`] | the two sides of a comparison |
//! | [`number`] | numbers in JSON, NaN and infinities included |
//!
//! `opscope_tensor::difference` has the arithmetic.

pub mod change;
pub mod metric;
pub mod metrics;
pub mod number;
pub mod party;
