//! Standard output and standard error: the only access to either.
//!
//! Names, cells and messages come from files. Characters that a terminal would interpret, or not
//! show, are escaped here (`opscope_store::visible`); `cargo xtask check` ensures that no code
//! bypasses this.

use std::fmt;
use std::io::{self, IsTerminal, StdoutLock, Write};

use opscope_store::visible::{EscapeForm, VisibleWriter, visible, visible_lines};
use serde_json::{Map, Value};

/// Standard output, for lines. Values that may contain a line feed must go through [`escaped`] first.
pub(crate) type Out = VisibleWriter<StdoutLock<'static>>;

/// Standard output, for lines of text.
pub(crate) fn out() -> Out {
    coloured(&[])
}

/// Standard output, for lines with our own terminal sequences.
pub(crate) fn coloured(own: &'static [&'static str]) -> Out {
    VisibleWriter::new(io::stdout().lock(), EscapeForm::Lines, own)
}

/// Standard output, for JSON; escaping keeps it equivalent.
pub(crate) fn json_out() -> Out {
    VisibleWriter::new(io::stdout().lock(), EscapeForm::Json, &[])
}

/// Version of the documents that have no version of their own; `docs/schemas` describes them.
const JSON_VERSION: u32 = 1;
/// The member with the version.
const VERSION: &str = "version";

/// Prints a document with a version in front, or several of them.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    let documents = match value {
        Value::Array(documents) => documents.iter().map(versioned_document).collect(),
        document => versioned_document(document),
    };
    writeln!(json_out(), "{documents:#}")
}

fn versioned_document(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(versioned(members.clone())),
        other => other.clone(),
    }
}

/// A document's members after its version.
pub(crate) fn versioned(mut members: Map<String, Value>) -> Map<String, Value> {
    let version = members.shift_remove(VERSION);
    let version = version.unwrap_or_else(|| JSON_VERSION.into());
    std::iter::once((VERSION.to_owned(), version))
        .chain(members)
        .collect()
}

/// Prints generated text in which control characters have a meaning.
pub(crate) fn print_generated(text: &[u8]) -> io::Result<()> {
    io::stdout().write_all(text)
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub(crate) fn is_talk_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Flushes standard output.
pub(crate) fn flush() -> io::Result<()> {
    io::stdout().flush()
}

/// Escapes a value within a line: a name, a path, a message.
pub(crate) fn escaped(value: impl fmt::Display) -> String {
    visible(&value.to_string()).into_owned()
}

/// Writes one line to standard output, or to a writer on top of it, escaping the content.
macro_rules! line {
    ($out:expr, $($argument:tt)*) => {
        writeln!($out, "{}", $crate::console::escaped(format_args!($($argument)*)))
    };
}
pub(crate) use line;

/// Prints one line to standard error.
macro_rules! report {
    ($($argument:tt)*) => {
        $crate::console::report_line(format_args!($($argument)*))
    };
}
pub(crate) use report;

/// Prints one line to standard error, escaping its content.
pub(crate) fn report_line(line: fmt::Arguments<'_>) {
    // A closed standard error cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{}", visible(&line.to_string()));
}

/// Prints our own multi-line text, with values in it, to standard error.
pub(crate) fn report_lines(lines: &str) -> io::Result<()> {
    io::stderr()
        .lock()
        .write_all(visible_lines(lines).as_bytes())
}

/// Like [`report_line`], but first clears a progress bar on that line.
pub(crate) fn report_beside_bar(line: fmt::Arguments<'_>) {
    let mut out = io::stderr().lock();
    // The sequence is our own and erases the bar's line; the bar redraws itself at its next tick.
    // Only the message is escaped.
    let clear = if out.is_terminal() { "\r\x1b[2K" } else { "" };
    // As above.
    let _ = writeln!(out, "{clear}{}", visible(&line.to_string()));
}
