//! Tests from outside of the crate, in one program: linking takes longer than they do. The choice of
//! a library of ONNX Runtime holds for a process, so its test is a program next to this one.

mod layout_refusals;
mod layouts;
mod onnxruntime;
mod overflow;
mod single_operator;
mod tract;
