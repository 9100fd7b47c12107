//! The AscendCL process: what `aclInit`, `aclmdlSetDump`, `aclmdlExecute` and their like mean, once,
//! for every binding.
//!
//! A [`Process`] holds what the interface keeps between calls. Its methods are the interface's
//! functions, with Rust's types: an [`Answer`] instead of a number and out-parameters, a slice
//! instead of a pointer and a length. Objects that the interface hands out behind pointers are
//! [`Handle`]s: numbers that are looked up and never followed, so a wrong, destroyed or invented one
//! gives a code. A binding translates types and nothing else.

mod skeleton;
pub mod status;
pub use skeleton::*;

pub use status::{Answer, Status};
