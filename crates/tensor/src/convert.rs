//! Turning a tensor into another form of itself: other elements ([`dtype`]), other order
//! ([`layout`]), or the numbers that
//! quantised elements stand for ([`mod@dequantise`]).
//!
//! [`mod@reference`] holds the wrong numbers that one vendor's tool gives for some dtypes. It
//! exists so that a drop-in can give the same ones, and nothing else may use it.

pub mod dequantise;
pub mod dtype;
pub mod layout;
pub mod reference;
