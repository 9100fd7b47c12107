//! Standard output and standard error: the only way to either.
//!
//! Names, cells and messages come from files. Characters that a terminal would obey, or not show,
//! are escaped on the way (`opscope_store::visible`); `cargo xtask check` sees to it that nothing
//! goes around this.

use std::fmt;
use std::io::{self, IsTerminal, StdoutLock, Write};

use opscope_store::visible::{EscapeForm, VisibleWriter, visible, visible_lines};
use serde_json::Value;

/// Standard output, for lines. Values that may hold a line feed go through [`shown`] before.
pub(crate) type Out = VisibleWriter<StdoutLock<'static>>;

/// Standard output, for lines of text.
pub(crate) fn out() -> Out {
    coloured(&[])
}

/// Standard output, for lines with sequences of our own.
pub(crate) fn coloured(own: &'static [&'static str]) -> Out {
    VisibleWriter::new(io::stdout().lock(), EscapeForm::Lines, own)
}

/// Standard output, for JSON, which stays the same JSON.
pub(crate) fn json_out() -> Out {
    VisibleWriter::new(io::stdout().lock(), EscapeForm::Json, &[])
}

/// Prints a document.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    writeln!(json_out(), "{value:#}")
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub(crate) fn is_talk_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Hands on what standard output still holds.
pub(crate) fn flush() -> io::Result<()> {
    io::stdout().flush()
}

/// A value for a part of a line: a name, a path, a message.
pub(crate) fn shown(value: impl fmt::Display) -> String {
    visible(&value.to_string()).into_owned()
}

/// Writes one line to standard output, or to what ends there, whatever is in it.
macro_rules! line {
    ($out:expr, $($argument:tt)*) => {
        writeln!($out, "{}", $crate::console::shown(format_args!($($argument)*)))
    };
}
pub(crate) use line;

/// Says one line on standard error.
macro_rules! report {
    ($($argument:tt)*) => {
        $crate::console::report_line(format_args!($($argument)*))
    };
}
pub(crate) use report;

/// Says one line on standard error, whatever is in it.
pub(crate) fn report_line(line: fmt::Arguments<'_>) {
    // There is nobody to tell that standard error is closed.
    let _ = writeln!(io::stderr().lock(), "{}", visible(&line.to_string()));
}

/// Says lines of our own on standard error, with values among them.
pub(crate) fn report_lines(lines: &str) -> io::Result<()> {
    io::stderr()
        .lock()
        .write_all(visible_lines(lines).as_bytes())
}

/// The same as [`report_line`] where a progress bar may stand in the line, which gives way.
pub(crate) fn report_beside_bar(line: fmt::Arguments<'_>) {
    let mut out = io::stderr().lock();
    // The sequence is our own and erases the bar's line, which the bar draws again at its next
    // tick. Escaping is for the message alone.
    let clear = if out.is_terminal() { "\r\x1b[2K" } else { "" };
    // As above.
    let _ = writeln!(out, "{clear}{}", visible(&line.to_string()));
}
