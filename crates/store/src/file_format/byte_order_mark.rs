//! The mark with which spreadsheets and editors of Windows begin a text in UTF-8.

/// The mark in UTF-8.
const MARK: &str = "\u{feff}";
/// Its size.
pub(super) const N_BYTES: usize = MARK.len();

/// The text after the mark, or all of it without one.
pub(super) fn behind(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// [`behind`] of bytes.
pub(super) fn bytes_behind(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK.as_bytes()).unwrap_or(bytes)
}

/// Bytes before the text that [`behind`] returns.
pub(super) fn n_bytes(text: &[u8]) -> usize {
    text.len() - bytes_behind(text).len()
}
