//! Logs of PyTorch's `DebugMode`: calls of operators with dtypes, shapes and hashes of their
//! tensors.
//!
//! The mode writes them in two forms: JSON (`save_logs`) and text for people (`debug_string`). Both
//! become a [`DebugLog`]. `docs/formats/debug_mode.md` explains the parts.

mod hashes;
mod json;
mod literal;
mod modules;
mod tensors;
mod text;
mod unwritten;

use crate::FormatError;

pub use hashes::{HASH_TITLE, NORM_TITLE, XOR_TITLE};

/// Name of the format in errors.
pub const FORMAT_NAME: &str = "DebugMode log";
/// Maximum size of a file.
pub const FILE_BYTES_MAX: usize = 1 << 30;
/// Maximum number of calls of a log.
pub const N_CALLS_MAX: usize = 1 << 22;
/// Maximum number of tensors of all calls of a log.
pub const N_TENSORS_MAX: usize = 1 << 23;
/// Number of bytes at the beginning of a file that are enough to recognize a log.
pub const HEAD_BYTES: usize = 16 << 10;

/// The calls of a log, in the order in which they began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DebugLog {
    /// The calls.
    pub calls: Vec<DebugCall>,
    /// Parts of the log that could not be read.
    pub unread: UnreadParts,
}

/// The parts of a log that could not be read, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadParts {
    /// Number of lines other than calls.
    pub n_lines: usize,
    /// The number of the first of them, counted from 1, and how it begins.
    pub first_line: Option<(usize, String)>,
    /// How many calls have hashes that do not belong to their tensors one by one.
    pub n_hashed: usize,
    /// The first of those calls, by its operator.
    pub first_hashed: Option<String>,
}

/// A call of an operator, a function or a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugCall {
    /// The operator: `aten::mm`, `torch.nn.functional.linear`, the name of a kernel.
    pub name: String,
    /// Path of the module that it is called in; empty where the log does not say.
    pub module: String,
    /// File, line and function of the program; empty where the log does not say.
    pub source: String,
    /// Tensors among its arguments, in their order.
    pub inputs: Vec<DebugTensor>,
    /// Tensors among its results, in their order.
    pub outputs: Vec<DebugTensor>,
}

/// A tensor as a log describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugTensor {
    /// Its dtype in the mode's words, such as `bf16`; empty of a result that has a hash and is not
    /// shown.
    pub dtype: String,
    /// `None` if a dimension is a symbol, or the result is not shown.
    pub shape: Option<Vec<u64>>,
    /// How a distributed tensor is spread, such as `S(0)`.
    pub placement: Option<String>,
    /// The number that the log gives to the tensor, if it gives any. Tensors that are views of one
    /// another have different ones.
    pub number: Option<u64>,
    /// Whether it is in memory that no call has written, so that its contents are meaningless.
    pub is_unwritten: bool,
    /// Hashes with their titles.
    pub hashes: Vec<(&'static str, String)>,
}

/// Whether a file that begins like this is a log.
pub fn is_log(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    json::is_log(&head) || text::is_log(&head)
}

/// Reads a log in either form.
///
/// # Errors
/// [`FormatError`] if it is neither, or larger than any that is read.
pub fn parse(bytes: &[u8]) -> Result<DebugLog, FormatError> {
    if bytes.len() > FILE_BYTES_MAX {
        let expected = format!("at most {FILE_BYTES_MAX} bytes");
        let found = format!("{} bytes", bytes.len());
        return Err(FormatError::new(FILE_BYTES_MAX as u64, expected, found));
    }
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return json::parse(bytes).map(written_alone);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let expected = "text in UTF-8";
        FormatError::new(error.valid_up_to() as u64, expected, "something else")
    })?;
    text::parse(text).map(written_alone)
}

fn written_alone(mut log: DebugLog) -> DebugLog {
    unwritten::forget_unwritten(&mut log.calls);
    log
}

impl DebugLog {
    /// Adds a call, unless there are too many.
    fn add(&mut self, call: DebugCall, n_tensors: &mut usize) -> Result<(), String> {
        *n_tensors += call.inputs.len() + call.outputs.len();
        if self.calls.len() == N_CALLS_MAX {
            return Err(format!("more than {N_CALLS_MAX} calls"));
        }
        if *n_tensors > N_TENSORS_MAX {
            return Err(format!("more than {N_TENSORS_MAX} tensors"));
        }
        self.calls.push(call);
        Ok(())
    }
}

impl UnreadParts {
    fn add_line(&mut self, number: usize, line: &str) {
        const N_CHARS_MAX: usize = 60;
        self.n_lines += 1;
        self.first_line
            .get_or_insert_with(|| (number, line.trim().chars().take(N_CHARS_MAX).collect()));
    }

    fn add_hashed(&mut self, name: &str) {
        self.n_hashed += 1;
        self.first_hashed.get_or_insert_with(|| name.to_owned());
    }
}

/// The name of an operator without what changes from run to run.
fn stable_name(name: &str) -> String {
    const ADDRESS: &str = " at 0x";
    let mut stable = String::new();
    let mut rest = name.trim();
    while let Some((before, behind)) = rest.split_once(ADDRESS) {
        stable.push_str(before);
        rest = behind.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    stable.push_str(rest);
    stable
}

#[cfg(test)]
mod tests;
