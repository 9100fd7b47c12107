//! Walking over the configuration with the path of each value at hand.

pub(super) use crate::dialect::findings::{
    Findings, Refused, nearest_hint, shown, top_level_warning,
};

use crate::dialect::findings::escape;
use crate::json::{Member, Node, Value};
use crate::report::{Conflict, Reason, Report};
use crate::{Issue, Severity};

/// A value with the paths that lead to it.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pointer: String,
    item: String,
    node: &'a Node,
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
        Some(
            nodes
                .iter()
                .enumerate()
                .map(|(i, node)| Cursor {
                    pointer: format!("{}/{i}", self.pointer),
                    item: format!("{}[{i}]", self.item),
                    node,
                })
                .collect(),
        )
    }

    /// A warning about this value.
    pub(super) fn warning(&self, message: impl Into<String>) -> Issue {
        self.issue(Severity::Warning, message.into())
    }

    /// A note about this value, which is no cause for worry.
    pub(super) fn note(&self, message: impl Into<String>) -> Issue {
        self.issue(Severity::Note, message.into())
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
            // The vendor reports the path in its own form, while `pointer` is for programs.
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
        // The vendor's messages leave out the name of the object at the top.
        let item = if self.pointer == "/dump" {
            name.to_owned()
        } else {
            format!("{}.{name}", self.item)
        };
        (pointer, item)
    }
}
