//! Issues while they are found, and the texts in them.

use crate::text_position::TextPosition;
use crate::{ConfigIssue, Severity};

/// Longest text that a message repeats, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// An error was found and told; nothing further is looked at.
#[derive(Debug)]
pub(in crate::dialect) struct ConfigRefusal;

/// Most warnings that are told of one file.
const N_WARNINGS_MAX: usize = 1000;

/// Issues so far.
#[derive(Default)]
pub(in crate::dialect) struct IssueCollector {
    issues: Vec<ConfigIssue>,
    /// Warnings that were not kept.
    n_left_out: usize,
}

impl IssueCollector {
    /// Notes an error.
    pub(in crate::dialect) fn refuse(&mut self, issue: ConfigIssue) -> ConfigRefusal {
        self.push(issue);
        ConfigRefusal
    }

    /// Notes a warning, unless there are very many: a file full of what has no effect would take a
    /// hundred times its size in memory.
    pub(in crate::dialect) fn warn(&mut self, issue: ConfigIssue) {
        // Errors go past this limit. There are few of them, for reading stops with the first.
        if self.issues.len() < N_WARNINGS_MAX {
            self.push(issue);
        } else {
            self.n_left_out += 1;
        }
    }

    /// Notes an issue of any severity.
    pub(in crate::dialect) fn push(&mut self, issue: ConfigIssue) {
        self.issues.push(issue);
    }

    /// All of them: errors in the order in which they were found, for they are why the rest was not
    /// looked at, then warnings and notes in the order of the file.
    pub(in crate::dialect) fn into_issues(mut self) -> Vec<ConfigIssue> {
        // The sort is stable, so that errors keep the order in which the vendor would have found
        // them.
        self.issues.sort_by_key(|issue| match issue.severity {
            Severity::Error => (false, 0, 0),
            Severity::Warning | Severity::Note => (true, issue.place.line, issue.place.column),
        });
        if let (n @ 1.., Some(last)) = (self.n_left_out, self.issues.last()) {
            let message = format!("{n} further warnings are left out");
            let more = ConfigIssue::of_file(Severity::Warning, last.place, message);
            self.issues.push(more);
        }
        self.issues
    }
}

/// A warning about a member of the top level.
pub(in crate::dialect) fn top_level_warning(
    name: &str,
    place: TextPosition,
    message: String,
) -> ConfigIssue {
    ConfigIssue {
        pointer: format!("/{}", escape(name)),
        item: name.to_owned(),
        ..ConfigIssue::of_file(Severity::Warning, place, message)
    }
}

/// RFC 6901: `~` and `/` inside a name.
pub(in crate::dialect) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A text for a message: without control characters, and not too long.
pub(in crate::dialect) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS_MAX)
        // A name from a file must not be able to move the cursor of a terminal.
        .flat_map(|c| c.escape_debug().filter(|c| *c != '\u{0}'))
        .collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// "did you mean", if one of `known` is at most three edits away and not a different word
/// altogether.
pub(in crate::dialect) fn nearest_hint(word: &str, known: &[&str]) -> Option<String> {
    let n_chars = word.chars().count();
    // The longest key has 16 characters; what is much longer is no typo.
    if n_chars > 40 {
        return None;
    }
    // Half of a short word may be changed into almost any other word.
    let limit = (n_chars / 2).min(3);
    let (n, nearest) = known.iter().map(|key| (edits(word, key), *key)).min()?;
    (n <= limit).then(|| format!("did you mean `{nearest}`?"))
}

/// The number of letters to replace, insert, delete or swap with their neighbour, letter case
/// apart.
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
