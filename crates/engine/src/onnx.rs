//! Engines for ONNX models.

mod layout;
mod proto;
mod tract;

pub use tract::Tract;
