//! A dtype or layout as a dump names it.

use std::fmt;

/// A dtype or a layout, as a dump has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DumpTerm<T> {
    /// One that is known under its own name.
    Known(T),
    /// A number that nothing defines.
    Number(u32),
    /// A word of the dump's, with its meaning if that is known.
    Word(String, Option<T>),
}

impl<T: Copy> DumpTerm<T> {
    /// The dtype or layout that is meant; none if that is unknown.
    pub fn value(&self) -> Option<T> {
        match self {
            DumpTerm::Known(value) => Some(*value),
            DumpTerm::Number(_) => None,
            DumpTerm::Word(_, meaning) => *meaning,
        }
    }
}

impl<T: fmt::Display> fmt::Display for DumpTerm<T> {
    /// The name, `#` and the number, or the word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpTerm::Known(value) => value.fmt(f),
            DumpTerm::Number(number) => write!(f, "#{number}"),
            DumpTerm::Word(word, _) => f.write_str(word),
        }
    }
}
