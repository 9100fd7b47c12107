//! Collects issues, and formats their text.

use crate::text_position::TextPosition;
use crate::{ConfigIssue, Severity};

/// Maximum number of characters of a text in a message.
const SHOWN_CHARS_MAX: usize = 60;

/// Stop: the error has already been reported.
#[derive(Debug)]
pub(crate) struct ConfigRefusal;

/// Maximum number of warnings about one file.
const N_WARNINGS_MAX: usize = 1000;

/// Issues so far.
#[derive(Default)]
pub(crate) struct IssueCollector {
    issues: Vec<ConfigIssue>,
    /// Number of warnings dropped.
    n_left_out: usize,
}

impl IssueCollector {
    /// Records an error.
    pub(crate) fn refuse(&mut self, issue: ConfigIssue) -> ConfigRefusal {
        self.push(issue);
        ConfigRefusal
    }

    /// Records a warning, up to the limit: a file full of ineffective keys would take a hundred
    /// times its size in memory.
    pub(crate) fn warn(&mut self, issue: ConfigIssue) {
        // Errors ignore this limit. There are few, as parsing stops at the first.
        if self.issues.len() < N_WARNINGS_MAX {
            self.push(issue);
        } else {
            self.n_left_out += 1;
        }
    }

    /// Records an issue of any severity.
    pub(crate) fn push(&mut self, issue: ConfigIssue) {
        self.issues.push(issue);
    }

    /// All issues: errors in the order in which they were found, because they stopped the checks,
    /// then warnings and notes in the order of the file.
    pub(crate) fn into_issues(mut self) -> Vec<ConfigIssue> {
        // The sort is stable, so errors keep the vendor's order.
        self.issues.sort_by_key(|issue| match issue.severity {
            Severity::Error => (false, 0, 0),
            Severity::Warning | Severity::Note => (true, issue.place.line, issue.place.column),
        });
        if let (n @ 1.., Some(last)) = (self.n_left_out, self.issues.last()) {
            let message = format!("{n} further warnings are omitted");
            let more = ConfigIssue::of_file(Severity::Warning, last.place, message);
            self.issues.push(more);
        }
        self.issues
    }
}

/// A warning about a member of the top level.
pub(crate) fn top_level_warning(name: &str, place: TextPosition, message: String) -> ConfigIssue {
    ConfigIssue {
        pointer: format!("/{}", escape(name)),
        item: name.to_owned(),
        ..ConfigIssue::of_file(Severity::Warning, place, message)
    }
}

/// Escapes `~` and `/` in a name (RFC 6901).
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A text for a message: without control characters, and shortened.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS_MAX)
        // A name from a file must not move the cursor of a terminal.
        .flat_map(|c| c.escape_debug().filter(|c| *c != '\u{0}'))
        .collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// "did you mean", if one of `known` is at most three edits away and not an entirely different
/// word.
pub(crate) fn nearest_hint(word: &str, known: &[&str]) -> Option<String> {
    let n_chars = word.chars().count();
    // The longest key has 16 characters; a much longer word is not a typo.
    if n_chars > 40 {
        return None;
    }
    // Changing half of a short word yields almost any other word.
    let limit = (n_chars / 2).min(3);
    let (n, nearest) = known.iter().map(|key| (edits(word, key), *key)).min()?;
    (n <= limit).then(|| format!("did you mean `{nearest}`?"))
}

/// The number of letters to replace, insert, delete or swap with their neighbour, ignoring case.
fn edits(a: &str, b: &str) -> usize {
    // Keys in the wrong case are typos too.
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words() {
        let known = ["dump_path", "dump_step", "dump_list"];
        for (word, expected) in [
            ("dump_paht", Some("dump_path")),
            ("dumpstep", Some("dump_step")),
            ("DUMP_LIST", Some("dump_list")),
            ("path", None),
            ("x", None),
            ("", None),
        ] {
            let expected = expected.map(|word| format!("did you mean `{word}`?"));
            assert_eq!(nearest_hint(word, &known), expected, "{word}");
        }
        assert_eq!((edits("ab", "ba"), edits("kitten", "sitting")), (1, 3));
    }

    #[test]
    fn long_and_odd_texts_are_shortened() {
        assert_eq!(shown("a\n\u{1b}"), "a\\n\\u{1b}");
        assert_eq!(shown(&"ä".repeat(61)).chars().count(), 61);
    }
}
