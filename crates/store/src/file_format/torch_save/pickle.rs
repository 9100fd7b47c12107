//! Pickles, taken apart into plain values. No name in one is looked up, and nothing is called.
//!
//! Opcodes are those that protocols 2 to 5 write for plain data, for names, calls and persistent
//! ids. A call stays a call: its reader says what it means. Source: Python's `pickletools`.

mod machine;

use machine::PickleMachine;

use crate::FormatError;

/// Maximum number of bytes of a pickle.
pub const PICKLE_BYTES_MAX: usize = 128 << 20;
/// Maximum number of values that may be put on the stack, those from the memo included.
pub const N_VALUES_MAX: usize = 1 << 22;
/// Maximum number of places in the memo.
pub const N_MEMO_MAX: usize = 1 << 22;
/// Maximum number of bytes of text and bytes.
pub const TEXT_BYTES_MAX: usize = 64 << 20;
/// Maximum nesting of marks.
pub const N_MARKS_MAX: usize = 1 << 10;
/// Maximum number of bytes of a name's module, and of the name in it.
pub const NAME_BYTES_MAX: usize = 1 << 10;

/// Which value of a [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueId(u32);

/// The module and name of a class, a function or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PickleName<'a>(pub &'a str, pub &'a str);

/// A value. Values hold others by their numbers, and may hold themselves.
#[derive(Clone, Debug, PartialEq)]
pub enum PickleValue<'a> {
    /// Nothing.
    None,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that takes more than 64 bits.
    Long,
    /// A number.
    Float(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A fixed list.
    Tuple(Vec<ValueId>),
    /// A list.
    List(Vec<ValueId>),
    /// A set.
    Set(Vec<ValueId>),
    /// Keys and values in their order; a key may come again.
    Dict(Vec<(ValueId, ValueId)>),
    /// Something outside the pickle.
    Name(PickleName<'a>),
    /// A call of a name, which is never executed.
    Call(PickleCall<'a>),
    /// Data outside the pickle, under the id in the value.
    Persistent(ValueId),
}

/// A name with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct PickleCall<'a> {
    /// Function or class.
    pub name: Box<PickleName<'a>>,
    /// A tuple.
    pub args: ValueId,
    /// Where the call is in the pickle.
    pub at: u32,
}

/// A pickle that was taken apart.
#[derive(Debug)]
pub struct Pickle<'a> {
    values: Vec<PickleValue<'a>>,
    root: ValueId,
}

impl<'a> Pickle<'a> {
    /// The value that the pickle is about.
    pub fn root(&self) -> ValueId {
        self.root
    }

    /// The value of a number.
    pub fn value(&self, id: ValueId) -> &PickleValue<'a> {
        self.values.get(id.0 as usize).unwrap_or(&PickleValue::None)
    }
}

/// Takes a pickle apart. `is_known` says which names it may have.
///
/// # Errors
/// [`FormatError`] with a place in `bytes` if the pickle is damaged, too large, or has an opcode or
/// a name that is not known.
pub fn decode(
    bytes: &[u8],
    is_known: fn(PickleName<'_>) -> bool,
) -> Result<Pickle<'_>, FormatError> {
    if bytes.len() > PICKLE_BYTES_MAX {
        let expected = format!("a pickle of at most {PICKLE_BYTES_MAX} bytes");
        return Err(FormatError::new(0, expected, bytes.len().to_string()));
    }
    let mut machine = PickleMachine::new(bytes, is_known);
    while machine.step()? {}
    machine.finish()
}

/// The beginning of a text, for an error.
pub(super) fn excerpt(text: &str) -> &str {
    const N_CHARS_MAX: usize = 100;
    let end = text.char_indices().nth(N_CHARS_MAX);
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
