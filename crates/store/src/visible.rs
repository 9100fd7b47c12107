//! Text from files, so that a terminal shows it and does nothing else.
//!
//! A name or a message from a file may hold characters that a terminal obeys (controls), that
//! reorder others (bidirectional marks), that are invisible (zero width), or that end a line.
//! Everything that reaches a terminal passes here; such characters are shown as in the sources of
//! programs, as `\u{a}` or `\u{202e}`. Text of ordinary characters stays as it is, a backslash
//! among them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a terminal would not show a character as a visible mark: controls, line separators, and
/// all that Unicode calls formatting, such as bidirectional marks and joiners.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text on one line.
pub fn visible(text: &str) -> Cow<'_, str> {
    EscapeForm::Line.apply(text)
}

/// A text of several lines of our own: line feeds stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    EscapeForm::Lines.apply(text)
}

/// How characters that are not shown are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscapeForm {
    /// On one line.
    Line,
    /// Line feeds stay.
    Lines,
    /// In the strings of JSON, where any character may be an escape; line feeds stay, as they are
    /// between strings.
    Json,
}

impl EscapeForm {
    fn is_kept(self, c: char) -> bool {
        !is_hidden(c) || (c == '\n' && self != EscapeForm::Line)
    }

    fn apply(self, text: &str) -> Cow<'_, str> {
        if text.chars().all(|c| self.is_kept(c)) {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len() + 16);
        for c in text.chars() {
            if self.is_kept(c) {
                shown.push(c);
            } else if self == EscapeForm::Json {
                // An escape in JSON holds 16 bits, so that a character above them takes a pair.
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            } else {
                shown.extend(c.escape_unicode());
            }
        }
        Cow::Owned(shown)
    }
}

/// A writer that passes only visible characters on. Bytes that are not UTF-8 become `\xff`.
#[derive(Debug)]
pub struct VisibleWriter<W> {
    inner: W,
    form: EscapeForm,
    /// Sequences of our own that go through as they are.
    own: &'static [&'static str],
    /// The beginning of a character whose rest is still to come.
    pending: Vec<u8>,
}

impl<W: Write> VisibleWriter<W> {
    /// Writes to `inner`; `own` are the sequences for terminals that go through, such as colours.
    pub fn new(inner: W, form: EscapeForm, own: &'static [&'static str]) -> VisibleWriter<W> {
        VisibleWriter {
            inner,
            form,
            own,
            pending: Vec::new(),
        }
    }

    fn write_text(&mut self, mut text: &str) -> io::Result<()> {
        if self.own.is_empty() {
            return self.inner.write_all(self.form.apply(text).as_bytes());
        }
        while let Some((at, own)) = next_own(text, self.own) {
            let before = self.form.apply(&text[..at]);
            self.inner.write_all(before.as_bytes())?;
            self.inner.write_all(own.as_bytes())?;
            text = &text[at + own.len()..];
        }
        self.inner.write_all(self.form.apply(text).as_bytes())
    }
}

/// The next of our own sequences in a text, and where it begins.
fn next_own(text: &str, own: &'static [&'static str]) -> Option<(usize, &'static str)> {
    let escapes = text.match_indices('\u{1b}');
    escapes.map(|(at, _)| at).find_map(|at| {
        let found = own.iter().find(|own| text[at..].starts_with(**own));
        found.map(|own| (at, *own))
    })
}

impl<W: Write> Write for VisibleWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.write_text(chunk.valid())?;
            // Of the last bytes the rest may be in the next call.
            let invalid = chunk.invalid();
            let is_begun = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            if chunks.peek().is_none() && is_begun {
                self.pending = invalid.to_vec();
                break;
            }
            for byte in invalid {
                write!(self.inner, "\\x{byte:02x}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_seen_is_left() {
        for (text, expected) in [
            ("", ""),
            (r"Conv/größe \n 層 😀", r"Conv/größe \n 層 😀"),
            ("a\nb\t\r", r"a\u{a}b\u{9}\u{d}"),
            ("\u{1b}[2J\u{7f}\u{9b}31m", r"\u{1b}[2J\u{7f}\u{9b}31m"),
            (
                "\u{202e}abc\u{2069}\u{200d}",
                r"\u{202e}abc\u{2069}\u{200d}",
            ),
            (
                "a\u{2028}b\u{feff}\u{e0041}",
                r"a\u{2028}b\u{feff}\u{e0041}",
            ),
        ] {
            assert_eq!(visible(text), expected);
            assert_eq!(visible(&visible(text)), expected);
        }
        assert_eq!(visible_lines("a\nb\r\u{85}"), "a\nb\\u{d}\\u{85}");
        assert_eq!(
            EscapeForm::Json.apply("\u{9b}\n\u{e0041}"),
            "\\u009b\n\\udb40\\udc41"
        );
    }

    #[test]
    fn characters_may_come_in_parts() {
        let text = "a\u{202e}😀\u{1b}[1mb\u{1b}[31m\n".as_bytes();
        let bytes = [text, b"\xff\xc3z"].concat();
        for n in 1..bytes.len() {
            let mut out = Vec::new();
            let mut writer = VisibleWriter::new(&mut out, EscapeForm::Lines, &["\u{1b}[1m"]);
            // Our own sequences are written whole.
            let parts = match n {
                1..8 => bytes.split_at(n),
                _ => bytes.split_at(bytes.len() - 1),
            };
            writer.write_all(parts.0).unwrap();
            writer.write_all(parts.1).unwrap();
            let expected = "a\\u{202e}😀\u{1b}[1mb\\u{1b}[31m\n\\xff\\xc3z";
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{n}");
        }
    }
}
