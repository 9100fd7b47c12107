//! `MindSpore`'s `.pb` file: a graph for its debugger.
//!
//! A protobuf message of package `debugger`, root `ModelProto`; `docs/formats/mindspore.md` lists
//! the fields. It is not the message that `MS_DEV_SAVE_GRAPHS` writes, though the two are alike.
//! Source: files of real runs.

mod decode;
mod encode;
mod numbers;

pub use decode::decode;
pub use encode::encode;

/// The name used in error messages.
pub const FORMAT_NAME: &str = "MindSpore graph (.pb)";
/// How a file's name ends.
pub const EXTENSION: &str = "pb";
/// Version that files carry.
const IR_VERSION: u64 = 1;
/// Maximum nesting of values and types.
const DEPTH_MAX: usize = 64;

#[cfg(test)]
mod tests;
