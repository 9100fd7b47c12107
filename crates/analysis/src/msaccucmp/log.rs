//! Lines on stderr in the reference's form.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Characters that would break a line, and the same written as in URLs.
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

/// A path as the reference quotes it.
pub(super) fn quoted(path: &Path) -> String {
    format!("\"'{}'\"", path.display())
}

/// Dumps are private data, and files that root wrote are a nuisance.
pub(super) fn warn_if_root() {
    // The owner of a process's own entry is its effective user.
    if std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0) {
        warning("msaccucmp is running as root; an ordinary user is enough.");
    }
}

fn line(level: &str, message: &str) {
    let message = REPLACED
        .iter()
        .fold(message.to_owned(), |text, bad| text.replace(bad, "_"));
    let time = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let text = format!("{time} ({}) - [{level}] {message}\n", std::process::id());
    // Nobody is left to tell if stderr is closed.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
