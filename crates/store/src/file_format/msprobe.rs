//! The JSON files of msProbe: what ran with which tensors, inside which modules, called from where.
//!
//! `docs/formats/msprobe.md` lists the keys. Python's `json` writes `NaN` and `Infinity` as bare
//! words, which are not valid JSON; they are read anyway.

mod calls;
mod dump;
mod node;
mod words;

use serde::de::DeserializeOwned;

use super::json_object;
use crate::FormatError;

pub use calls::{parse_construct, parse_stack};
pub use dump::{ProbeDump, ProbeEntry, ProbeTensor, is_dump, parse_dump};

/// Name of the format in errors.
pub const FORMAT_NAME: &str = "msProbe JSON";
/// Maximum size of a file.
pub const FILE_BYTES_MAX: usize = 1 << 30;
/// Number of bytes at the beginning of a file that are enough to recognize a dump.
pub const HEAD_BYTES: usize = 16 << 10;

/// Decodes an object that Python has written.
fn decode<T: DeserializeOwned>(mut bytes: Vec<u8>, expected: &str) -> Result<T, FormatError> {
    words::quote_words(&mut bytes);
    json_object::decode(&bytes, FILE_BYTES_MAX, expected)
}
