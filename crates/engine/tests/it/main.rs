//! Tests from outside of the crate, in one program: linking takes longer than they do.

mod layout_refusals;
mod layouts;
mod onnxruntime;
mod onnxruntime_library;
mod overflow;
mod single_operator;
mod tract;
