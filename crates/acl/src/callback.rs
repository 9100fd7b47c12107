//! Passes dumps to the program instead of writing them.

use std::sync::Arc;

/// A piece of a file that would have been written. Pieces of one file come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePiece<'a> {
    /// The absolute path that the file would have had.
    pub file_name: &'a str,
    /// The next bytes of the file.
    pub bytes: &'a [u8],
    /// Whether the file ends with them.
    pub is_last: bool,
}

/// Receives dumps. Its result is ignored, as in the vendor's library: nothing is written to disk
/// instead.
pub type DumpCallback = Arc<dyn Fn(&FilePiece<'_>) -> i32 + Send + Sync>;
