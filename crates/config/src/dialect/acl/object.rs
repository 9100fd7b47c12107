//! Walking over the configuration with a pointer at hand.

use crate::json::{Member, Node, Value};
use crate::load::Place;
use crate::{Issue, Severity};

/// A value with the JSON pointer that leads to it.
pub(super) struct Cursor<'a> {
    pointer: String,
    node: &'a Node,
}

/// Issues so far.
#[derive(Default)]
pub(super) struct Findings(Vec<Issue>);

impl Findings {
    pub(super) fn push(
        &mut self,
        severity: Severity,
        code: Option<&'static str>,
        pointer: &str,
        place: Place,
        message: &str,
    ) {
        let (pointer, message) = (pointer.to_owned(), message.to_owned());
        self.0.push(Issue {
            severity,
            code,
            pointer,
            place,
            message,
        });
    }

    pub(super) fn error(&mut self, code: &'static str, pointer: &str, place: Place, message: &str) {
        self.push(Severity::Error, Some(code), pointer, place, message);
    }

    pub(super) fn warn(&mut self, pointer: &str, place: Place, message: &str) {
        self.push(Severity::Warning, None, pointer, place, message);
    }

    pub(super) fn n_errors(&self) -> usize {
        self.0
            .iter()
            .filter(|issue| issue.severity == Severity::Error)
            .count()
    }

    pub(super) fn has_error(&self) -> bool {
        self.n_errors() > 0
    }

    pub(super) fn into_issues(self) -> Vec<Issue> {
        self.0
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(pointer: &str, node: &'a Node) -> Cursor<'a> {
        Cursor {
            pointer: pointer.to_owned(),
            node,
        }
    }

    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    pub(super) fn place(&self) -> Place {
        self.node.place
    }

    /// The members of an object; nothing for other values.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, Place, &'a Node)> {
        let members = match &self.node.value {
            Value::Object(members) => &members[..],
            _ => &[],
        };
        members
            .iter()
            .map(|member| (member.name.as_str(), member.place, &member.node))
    }

    /// The member called `name`, if this is an object that has one.
    pub(super) fn member(&self, name: &str) -> Option<Cursor<'a>> {
        let (_, _, node) = self.members().find(|(key, _, _)| *key == name)?;
        Some(Cursor {
            pointer: format!("{}/{}", self.pointer, escape(name)),
            node,
        })
    }

    pub(super) fn object(&self, findings: &mut Findings) -> Option<&'a [Member]> {
        match &self.node.value {
            Value::Object(members) => Some(members),
            _ => self.wrong_type("an object", findings),
        }
    }

    pub(super) fn array(&self, findings: &mut Findings) -> Option<Vec<Cursor<'a>>> {
        match &self.node.value {
            Value::Array(nodes) => {
                let cursor = |(i, node)| Cursor {
                    pointer: format!("{}/{i}", self.pointer),
                    node,
                };
                Some(nodes.iter().enumerate().map(cursor).collect())
            }
            _ => self.wrong_type("an array", findings),
        }
    }

    pub(super) fn string(&self, findings: &mut Findings) -> Option<&'a str> {
        match &self.node.value {
            Value::String(text) => Some(text),
            _ => self.wrong_type("a string", findings),
        }
    }

    fn wrong_type<T>(&self, expected: &str, findings: &mut Findings) -> Option<T> {
        let message = format!("found {}, expected {expected}", self.node.value.kind());
        findings.error("EP0001", &self.pointer, self.node.place, &message);
        None
    }
}

/// RFC 6901: `~` and `/` inside a name.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
