//! The record of an arithmetic overflow: the output of an `Opdebug.Node_OpDebug` dump file.
//!
//! Two layouts exist, distinguished by their first four bytes; `docs/formats/op_debug.md` draws
//! both. Numbers are little-endian. Sources: the public overflow document, `hicann/runtime`,
//! msaccucmp.

mod accelerator;
mod blocks;
mod data;
mod json;
mod members;
mod status;
mod words;

use serde_json::Value;

pub use accelerator::{ACC_TYPE_OFFSET, AccType, AcceleratorRecord};
pub use blocks::{AiCore, BlockRecord, TaskInfo};
pub use data::{Accelerator, CoreData, CpuData, SdmaData};
pub use json::{JSON_BYTES_MAX, JSON_SUFFIX, from_json};
pub use status::{KNOWN_CAUSES, StatusCause, causes};

use crate::FormatError;

/// The name used in error messages.
pub const FORMAT_NAME: &str = "overflow record";
/// How the names of dump files that hold records begin.
pub const FILE_NAME_PREFIX: &str = "Opdebug.Node_OpDebug.";
/// First four bytes of the second layout.
pub const MAGIC: u32 = 0x5a5a_5a5a;
/// Exact size of a record of the first layout.
pub const BLOCK_RECORD_BYTES: usize = 2048;

/// An overflow record of either layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverflowRecord {
    /// First layout: one block for each unit that can overflow.
    Blocks(BlockRecord),
    /// Second layout: one accelerator.
    Accelerator(AcceleratorRecord),
}

impl OverflowRecord {
    /// Reads a record. Bytes after one of the second layout are ignored; one of the first layout
    /// must have exactly [`BLOCK_RECORD_BYTES`].
    ///
    /// # Errors
    /// [`FormatError`] if there are too few bytes, or the accelerator is none of the known four.
    pub fn decode(bytes: &[u8]) -> Result<OverflowRecord, FormatError> {
        if has_magic(bytes) {
            AcceleratorRecord::decode(bytes).map(OverflowRecord::Accelerator)
        } else {
            BlockRecord::decode(bytes).map(OverflowRecord::Blocks)
        }
    }

    /// The bytes of the record, padded to the size that devices write.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = match self {
            OverflowRecord::Blocks(record) => record.encode(),
            OverflowRecord::Accelerator(record) => record.encode(),
        };
        bytes.resize(BLOCK_RECORD_BYTES, 0);
        bytes
    }

    /// The record as the vendor's converter prints it: four spaces of indentation, addresses as
    /// `0x…` strings, no line end after the last brace.
    pub fn to_json_text(&self) -> String {
        let mut text = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
        // Neither a `Value` nor a vector in memory can fail to serialize.
        let _ = serde::Serialize::serialize(&self.to_json(), &mut serializer);
        String::from_utf8(text).unwrap_or_default()
    }

    /// The record as a JSON object, keys in the vendor's order.
    pub fn to_json(&self) -> Value {
        match self {
            OverflowRecord::Blocks(record) => record.to_json(),
            OverflowRecord::Accelerator(record) => record.to_json(),
        }
    }
}

/// Whether a file of this name holds records. Documents and runtimes spell the prefix in several
/// letter cases; all of them count.
pub fn is_record_name(file_name: &str) -> bool {
    file_name
        // An index would panic where the cut falls inside a character.
        .get(..FILE_NAME_PREFIX.len())
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case(FILE_NAME_PREFIX))
}

/// Whether a file of this name holds a record in JSON.
pub fn is_json_record_name(file_name: &str) -> bool {
    is_record_name(file_name) && file_name.ends_with(JSON_SUFFIX)
}

/// Whether the bytes begin as a record of the second layout does.
pub fn has_magic(bytes: &[u8]) -> bool {
    bytes.first_chunk() == Some(&MAGIC.to_le_bytes())
}

/// The little-endian number at byte `at`.
fn u32_at(bytes: &[u8], at: usize) -> Result<u32, FormatError> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, FormatError> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

/// `N` numbers, one after the other from byte `at`.
fn u64s_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u64; N], FormatError> {
    let mut numbers = [0; N];
    for (i, number) in numbers.iter_mut().enumerate() {
        *number = u64_at(bytes, at.saturating_add(8 * i))?;
    }
    Ok(numbers)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], FormatError> {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.first_chunk().copied().ok_or_else(|| {
        let found = format!("{} bytes", rest.len());
        FormatError::new(at as u64, format!("{N} bytes of an overflow record"), found)
    })
}

#[cfg(test)]
mod tests;
