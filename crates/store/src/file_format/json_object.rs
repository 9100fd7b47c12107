//! Files of our own that are one JSON object.

use serde::de::DeserializeOwned;

use super::byte_order_mark;
use crate::FormatError;

/// Decodes the object that a file consists of. `expected` names it in errors.
///
/// # Errors
/// [`FormatError`] if there are more than `n_bytes_max` bytes, or if they are not such an object;
/// with the place where decoding ended.
pub(super) fn decode<T: DeserializeOwned>(
    bytes: &[u8],
    n_bytes_max: usize,
    expected: &str,
) -> Result<T, FormatError> {
    if bytes.len() > n_bytes_max {
        let found = format!("{} bytes", bytes.len());
        let expected = format!("at most {n_bytes_max} bytes");
        return Err(FormatError::new(n_bytes_max as u64, expected, found));
    }
    let n_mark = byte_order_mark::n_bytes(bytes);
    let bytes = byte_order_mark::bytes_behind(bytes);
    // Serde would take a list for the fields in their order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(FormatError::new(0, "an object", "something else"));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let mut error = not_decoded(bytes, expected, &error);
        error.offset += n_mark as u64;
        error
    })
}

/// The error of a text that serde_json refused.
pub(super) fn not_decoded(bytes: &[u8], expected: &str, error: &serde_json::Error) -> FormatError {
    // serde_json reports a line and a column, and our errors use an offset.
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let before = lines.take(error.line().saturating_sub(1));
    let offset = before.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
    FormatError::new(offset as u64, expected, error.to_string())
}
