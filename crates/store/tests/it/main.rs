//! Tests from outside of the crate, in one program: linking takes longer than they do.

mod arrays;
mod debug_mode;
mod mindspore_dumps;
mod mindspore_graphs;
mod mindspore_library;
mod msprobe;
mod sglang;
mod support;
mod torch_save;
mod truncated;
