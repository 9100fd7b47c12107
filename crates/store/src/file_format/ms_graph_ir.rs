//! `MindSpore`'s `.ir` file: a graph as text, for people.
//!
//! Written: the dialect of `MindSpore` 2.10, byte for byte, given the same graph. Read: that
//! dialect and those of older versions; unknown constructs are kept as text or skipped.
//! `docs/formats/mindspore.md` has the grammar. Source: files of real runs.

mod attribute;
mod read;
mod scan;
mod values;
mod write;

pub use read::decode;
pub use write::encode;

/// The name used in error messages.
pub const FORMAT_NAME: &str = "MindSpore graph (.ir)";
/// How a file's name ends.
pub const EXTENSION: &str = "ir";
/// Maximum nesting of values and types.
const DEPTH_MAX: usize = 64;
/// How functional primitives begin.
const FUNCTIONAL_PREFIX: &str = "PrimFunc_";
/// Text before a place in the source.
const IN_FILE: &str = "# In file ";

#[cfg(test)]
mod tests;
