//! Positions in a text.

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextPosition {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}
