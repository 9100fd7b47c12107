//! Lines on stderr in the reference's form, and its help and tables on stdout: the only output of
//! the drop-in.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use opscope_store::visible::{visible, visible_lines};

/// Characters that would break a line, and their URL encoding.
const REPLACED: [&str; 13] = [
    "\n", "\r", "\t", "\u{8}", "\u{c}", "\u{b}", "\u{7f}", "%08", "%0a", "%0b", "%0c", "%0d", "%7f",
];

pub(super) fn info(message: &str) {
    line("INFO", message);
}

pub(super) fn warning(message: &str) {
    line("WARNING", message);
}

pub(super) fn error(message: &str) {
    line("ERROR", message);
}

/// A path as the reference quotes it: Python's `repr` of the text, in quotes.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string().replace('\\', "\\\\");
    // Python takes the other quotes for a text that holds an apostrophe and none of them.
    if text.contains('\'') && !text.contains('"') {
        return format!("\"\"{text}\"\"");
    }
    format!("\"'{}'\"", text.replace('\'', "\\'"))
}

/// Dumps are private data, and files owned by root are a nuisance.
pub(super) fn warn_if_root() {
    // The owner of a process's `/proc` entry is its effective user.
    if std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0) {
        warning("msaccucmp is running as root; an ordinary user is enough.");
    }
}

/// Prints help and tables of results. A closed pipe is not an error.
pub(super) fn help(text: &str) {
    let _ = std::io::stdout()
        .lock()
        .write_all(visible_lines(text).as_bytes());
}

/// Prints a usage error.
pub(super) fn usage(text: &str) {
    // There is nowhere to report a closed stderr.
    let _ = std::io::stderr()
        .lock()
        .write_all(visible_lines(text).as_bytes());
}

fn line(level: &str, message: &str) {
    let message = REPLACED
        .iter()
        .fold(message.to_owned(), |text, bad| text.replace(bad, "_"));
    let time = opscope_store::clock::local()
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string();
    let message = visible(&message);
    let text = format!("{time} ({}) - [{level}] {message}\n", std::process::id());
    // There is nowhere to report a closed stderr.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_as_python_does() {
        for (path, expected) in [
            ("/a/b.npy", r#""'/a/b.npy'""#),
            ("/it's", r#"""/it's"""#),
            (r#"/it's "x""#, r#""'/it\'s "x"'""#),
            (r"/a\b", r#""'/a\\b'""#),
        ] {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }
}
