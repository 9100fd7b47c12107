//! AscendCL's C functions: `libascendcl.so` and `libascendcl.a`.
//!
//! One file for each group of functions; the headers are in `include/acl`. A function translates
//! C's types into Rust's and asks the [`opscope_acl::AclProcess`] that all bindings of this process
//! share. Most functions are rows of the tables that `table.rs` explains. Objects behind opaque
//! pointers are numbers that are looked up and never followed.
//!
//! Addresses come in as the types of `pointer.rs`, which is where the `unsafe` code is. No panic
//! leaves a function: it becomes `ACL_ERROR_INTERNAL_ERROR`, or the value that stands for nothing.

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
mod kept;
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
mod table;
mod tensor_desc;
