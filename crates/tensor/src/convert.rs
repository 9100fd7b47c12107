//! Conversions of a tensor: to another dtype ([`dtype`]), another layout ([`layout`]), or the
//! numbers that quantised elements represent ([`mod@dequantise`]).
//!
//! [`mod@reference`] reproduces the wrong numbers of one vendor's tool for some dtypes. Only the
//! drop-in replacement of that tool may use it.

pub mod dequantise;
pub mod dtype;
pub mod layout;
pub mod reference;
