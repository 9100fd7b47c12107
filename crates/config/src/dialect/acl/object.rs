//! Walking over the configuration with the path of each value at hand.

use crate::json::{Member, Node, Value};
use crate::load::Place;
use crate::report::{Conflict, Reason, Report};
use crate::{Issue, Severity};

/// Longest text that a message repeats, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// A value with the paths that lead to it.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pointer: String,
    item: String,
    node: &'a Node,
}

/// An error was found and told; nothing further is looked at.
#[derive(Debug)]
pub(super) struct Refused;

/// Most warnings that are told of one file.
const N_WARNINGS_MAX: usize = 1000;

/// Issues so far.
#[derive(Default)]
pub(super) struct Findings {
    issues: Vec<Issue>,
    /// Warnings that were not kept.
    n_left_out: usize,
}

impl Findings {
    /// Notes an error.
    pub(super) fn refuse(&mut self, issue: Issue) -> Refused {
        self.push(issue);
        Refused
    }

    /// Notes a warning, unless there are very many: a file full of what has no effect would take a
    /// hundred times its size in memory.
    pub(super) fn warn(&mut self, issue: Issue) {
        if self.issues.len() < N_WARNINGS_MAX {
            self.push(issue);
        } else {
            self.n_left_out += 1;
        }
    }

    /// Notes an issue.
    pub(super) fn push(&mut self, issue: Issue) {
        self.issues.push(issue);
    }

    /// All of them: errors in the order in which they were found, for they are why the rest was not
    /// looked at, then warnings in the order of the file.
    pub(super) fn into_issues(mut self) -> Vec<Issue> {
        self.issues.sort_by_key(|issue| match issue.severity {
            Severity::Error => (false, 0, 0),
            Severity::Warning => (true, issue.place.line, issue.place.column),
        });
        if let (n @ 1.., Some(last)) = (self.n_left_out, self.issues.last()) {
            let message = format!("{n} further warnings are left out");
            let more = Issue::of_file(Severity::Warning, last.place, message);
            self.issues.push(more);
        }
        self.issues
    }
}

impl<'a> Cursor<'a> {
    /// The `dump` object, or what stands in its place. The paths of items begin below it.
    pub(super) fn dump(node: &'a Node) -> Cursor<'a> {
        Cursor {
            pointer: "/dump".to_owned(),
            item: "dump".to_owned(),
            node,
        }
    }

    pub(super) fn item(&self) -> &str {
        &self.item
    }

    pub(super) fn value(&self) -> &'a Value {
        &self.node.value
    }

    /// The members of an object; nothing for other values.
    pub(super) fn members(&self) -> &'a [Member] {
        match &self.node.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The member called `name`, if this is an object that has one.
    pub(super) fn member(&self, name: &str) -> Option<Cursor<'a>> {
        let member = self.members().iter().find(|member| member.name == name)?;
        let (pointer, item) = self.paths_of(name);
        Some(Cursor {
            pointer,
            item,
            node: &member.node,
        })
    }

    /// The members of an array, if this is one.
    pub(super) fn elements(&self) -> Option<Vec<Cursor<'a>>> {
        let Value::Array(nodes) = &self.node.value else {
            return None;
        };
        let cursor = |(i, node)| Cursor {
            pointer: format!("{}/{i}", self.pointer),
            item: format!("{}[{i}]", self.item),
            node,
        };
        Some(nodes.iter().enumerate().map(cursor).collect())
    }

    /// A warning about this value.
    pub(super) fn warning(&self, message: impl Into<String>) -> Issue {
        self.issue(Severity::Warning, message.into())
    }

    /// A warning about the member called `name`, at its name.
    pub(super) fn member_warning(&self, member: &Member, message: &str) -> Issue {
        let (pointer, item) = self.paths_of(&member.name);
        Issue {
            pointer,
            item,
            ..Issue::of_file(Severity::Warning, member.place, message)
        }
    }

    /// `EP0001`: the member called `name` is missing.
    pub(super) fn missing(&self, name: &str, expected: &str) -> Issue {
        let (pointer, item) = self.paths_of(name);
        Issue {
            pointer,
            expected: Some(expected.to_owned()),
            report: Some(Report::Item {
                item: item.clone(),
                reason: Reason::NotFound,
            }),
            item,
            ..self.issue(
                Severity::Error,
                format!("it is missing, expected {expected}"),
            )
        }
    }

    /// `EP0001`: the value is empty.
    pub(super) fn empty(&self, expected: &str) -> Issue {
        let message = format!("the value is empty, expected {expected}");
        Issue {
            found: Some(String::new()),
            expected: Some(expected.to_owned()),
            report: Some(Report::Item {
                item: self.item.clone(),
                reason: Reason::Empty,
            }),
            ..self.issue(Severity::Error, message)
        }
    }

    /// `EP0001`: the value is of the wrong type.
    pub(super) fn wrong_type(&self, expected: &str, reason: Reason) -> Issue {
        let found = self.node.value.kind();
        Issue {
            found: Some(found.to_owned()),
            expected: Some(expected.to_owned()),
            report: Some(Report::Item {
                item: self.item.clone(),
                reason,
            }),
            ..self.issue(
                Severity::Error,
                format!("found {found}, expected {expected}"),
            )
        }
    }

    /// `EP0002`: `value` is none of the words allowed.
    pub(super) fn unknown_word(&self, value: &str, allowed: &[&str]) -> Issue {
        let mut sorted = allowed.to_vec();
        sorted.sort_unstable();
        let expected = sorted.join("/");
        let message = format!("found `{}`, expected {expected}", shown(value));
        Issue {
            found: Some(value.to_owned()),
            expected: Some(expected.clone()),
            hint: nearest_hint(value, allowed),
            report: Some(Report::Word {
                item: self.item.clone(),
                value: value.to_owned(),
                expected,
            }),
            ..self.issue(Severity::Error, message)
        }
    }

    /// `EP0003`: `value` cannot be used.
    pub(super) fn unusable(
        &self,
        value: &str,
        reason: Reason,
        message: impl Into<String>,
    ) -> Issue {
        Issue {
            found: Some(value.to_owned()),
            report: Some(Report::Value {
                item: self.item.clone(),
                value: value.to_owned(),
                reason,
            }),
            ..self.issue(Severity::Error, message.into())
        }
    }

    /// The same about part `i` of a text with parts, which the vendor writes like a member.
    pub(super) fn unusable_part(
        &self,
        i: usize,
        value: &str,
        reason: Reason,
        message: String,
    ) -> Issue {
        let item = format!("{}[{i}]", self.item);
        Issue {
            pointer: self.pointer.clone(),
            ..Cursor {
                pointer: String::new(),
                item,
                node: self.node,
            }
            .unusable(value, reason, message)
        }
    }

    /// `EP0005`: this item, with this value or with any, goes not together with another one.
    pub(super) fn conflict(
        &self,
        value: Option<&str>,
        is_other_so: bool,
        other: (&str, &str),
    ) -> Issue {
        let conflict = Conflict {
            item: self.item.clone(),
            value: value.map(str::to_owned),
            other: (other.0.to_owned(), other.1.to_owned()),
            is_other_so,
        };
        Issue {
            found: value.map(str::to_owned),
            report: Some(Report::Conflict(conflict.clone())),
            ..self.issue(Severity::Error, conflict.to_string())
        }
    }

    fn issue(&self, severity: Severity, message: String) -> Issue {
        Issue {
            pointer: self.pointer.clone(),
            item: self.item.clone(),
            ..Issue::of_file(severity, self.node.place, message)
        }
    }

    fn paths_of(&self, name: &str) -> (String, String) {
        let pointer = format!("{}/{}", self.pointer, escape(name));
        let item = if self.pointer == "/dump" {
            name.to_owned()
        } else {
            format!("{}.{name}", self.item)
        };
        (pointer, item)
    }
}

/// A warning about a member of the top level.
pub(super) fn top_level_warning(name: &str, place: Place, message: String) -> Issue {
    Issue {
        pointer: format!("/{}", escape(name)),
        item: name.to_owned(),
        ..Issue::of_file(Severity::Warning, place, message)
    }
}

/// RFC 6901: `~` and `/` inside a name.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A text for a message: without control characters, and not too long.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS_MAX)
        .flat_map(|c| c.escape_debug().filter(|c| *c != '\u{0}'))
        .collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// "did you mean", if one of `known` is at most three edits away and not a different word altogether.
pub(super) fn nearest_hint(word: &str, known: &[&str]) -> Option<String> {
    let n_chars = word.chars().count();
    // The longest key has 16 characters; what is much longer is no typo.
    if n_chars > 40 {
        return None;
    }
    let limit = (n_chars / 2).min(3);
    let (n, nearest) = known.iter().map(|key| (edits(word, key), *key)).min()?;
    (n <= limit).then(|| format!("did you mean `{nearest}`?"))
}

/// The number of letters to replace, insert, delete or swap with their neighbour, letter case apart.
fn edits(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.to_lowercase().chars().collect::<Vec<char>>());
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
