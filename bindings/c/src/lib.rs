//! AscendCL's C functions: `libascendcl.so` and `libascendcl.a`.
//!
//! One file for each group of functions; the headers are in `include/acl`. A function translates
//! C's types into Rust's and calls the [`opscope_acl::AclProcess`] that all bindings of this
//! process share. Most functions are rows of the tables that `table.rs` explains. Opaque pointers
//! are numbers that are looked up and never dereferenced.
//!
//! Addresses arrive as the types of `pointer.rs`, which holds the `unsafe` code. No panic leaves a
//! function: it becomes `ACL_ERROR_INTERNAL_ERROR`, or an empty value.

#![allow(
    non_snake_case,
    unsafe_code,
    clippy::too_many_arguments,
    reason = "names, exported symbols and parameters are the interface's"
)]

mod aclnn;
mod aclnn_objects;
mod aipp;
mod blas;
mod border;
mod callback;
mod data;
mod description;
mod device_only;
mod dump;
mod execution;
mod hi_media;
mod layout;
mod life_cycle;
mod log;
mod media;
mod memory;
mod model;
mod op;
mod op_attribute;
mod pointer;
mod runtime;
mod strings;
mod table;
mod tensor_desc;
