//! Traverses the configuration, tracking the path of each value.

pub(super) use crate::dialect::findings::{
    ConfigRefusal, IssueCollector, nearest_hint, shown, top_level_warning,
};

use crate::dialect::findings::escape;
use crate::json::{JsonMember, JsonNode, JsonValue};
use crate::report::{ErrorReport, RefusalReason, SettingConflict};
use crate::{ConfigIssue, Severity};

/// A value with its paths.
#[derive(Clone)]
pub(super) struct JsonCursor<'a> {
    pointer: String,
    item: String,
    node: &'a JsonNode,
}

impl<'a> JsonCursor<'a> {
    /// The `dump` object, or the value in its place. The paths of items begin below it.
    pub(super) fn dump(node: &'a JsonNode) -> JsonCursor<'a> {
        JsonCursor {
            pointer: "/dump".to_owned(),
            item: "dump".to_owned(),
            node,
        }
    }

    pub(super) fn item(&self) -> &str {
        &self.item
    }

    pub(super) fn value(&self) -> &'a JsonValue {
        &self.node.value
    }

    /// The members of an object; empty for other values.
    pub(super) fn members(&self) -> &'a [JsonMember] {
        match &self.node.value {
            JsonValue::Object(members) => members,
            _ => &[],
        }
    }

    /// The member called `name`, if this is an object with one.
    pub(super) fn member(&self, name: &str) -> Option<JsonCursor<'a>> {
        let member = self.members().iter().find(|member| member.name == name)?;
        let (pointer, item) = self.paths_of(name);
        Some(JsonCursor {
            pointer,
            item,
            node: &member.node,
        })
    }

    /// The members of an array, if this is one.
    pub(super) fn elements(&self) -> Option<Vec<JsonCursor<'a>>> {
        let JsonValue::Array(nodes) = &self.node.value else {
            return None;
        };
        Some(
            nodes
                .iter()
                .enumerate()
                .map(|(i, node)| JsonCursor {
                    pointer: format!("{}/{i}", self.pointer),
                    item: format!("{}[{i}]", self.item),
                    node,
                })
                .collect(),
        )
    }

    /// A warning about this value.
    pub(super) fn warning(&self, message: impl Into<String>) -> ConfigIssue {
        self.issue(Severity::Warning, message.into())
    }

    /// A harmless note about this value.
    pub(super) fn note(&self, message: impl Into<String>) -> ConfigIssue {
        self.issue(Severity::Note, message.into())
    }

    /// A warning about the member called `name`, placed at its name.
    pub(super) fn member_warning(&self, member: &JsonMember, message: &str) -> ConfigIssue {
        let (pointer, item) = self.paths_of(&member.name);
        ConfigIssue {
            pointer,
            item,
            ..ConfigIssue::of_file(Severity::Warning, member.place, message)
        }
    }

    /// `EP0001`: the member called `name` is missing.
    pub(super) fn missing(&self, name: &str, expected: &str) -> ConfigIssue {
        let (pointer, item) = self.paths_of(name);
        ConfigIssue {
            pointer,
            expected: Some(expected.to_owned()),
            // The vendor reports the path in a special form, while `pointer` is for programs.
            report: Some(ErrorReport::Item {
                item: item.clone(),
                reason: RefusalReason::NotFound,
            }),
            item,
            ..self.issue(
                Severity::Error,
                format!("it is missing, expected {expected}"),
            )
        }
    }

    /// `EP0001`: the value is empty.
    pub(super) fn empty(&self, expected: &str) -> ConfigIssue {
        let message = format!("the value is empty, expected {expected}");
        ConfigIssue {
            found: Some(String::new()),
            expected: Some(expected.to_owned()),
            report: Some(ErrorReport::Item {
                item: self.item.clone(),
                reason: RefusalReason::Empty,
            }),
            ..self.issue(Severity::Error, message)
        }
    }

    /// `EP0001`: the value is of the wrong type.
    pub(super) fn wrong_type(&self, expected: &str, reason: RefusalReason) -> ConfigIssue {
        let found = self.node.value.kind();
        ConfigIssue {
            found: Some(found.to_owned()),
            expected: Some(expected.to_owned()),
            report: Some(ErrorReport::Item {
                item: self.item.clone(),
                reason,
            }),
            ..self.issue(
                Severity::Error,
                format!("found {found}, expected {expected}"),
            )
        }
    }

    /// `EP0002`: `value` is not an allowed word.
    pub(super) fn unknown_word(&self, value: &str, allowed: &[&str]) -> ConfigIssue {
        let mut sorted = allowed.to_vec();
        sorted.sort_unstable();
        let expected = sorted.join("/");
        let message = format!("found `{}`, expected {expected}", shown(value));
        ConfigIssue {
            found: Some(value.to_owned()),
            expected: Some(expected.clone()),
            hint: nearest_hint(value, allowed),
            report: Some(ErrorReport::Word {
                item: self.item.clone(),
                value: value.to_owned(),
                expected,
            }),
            ..self.issue(Severity::Error, message)
        }
    }

    /// `EP0003`: `value` is not usable.
    pub(super) fn unusable(
        &self,
        value: &str,
        reason: RefusalReason,
        message: impl Into<String>,
    ) -> ConfigIssue {
        ConfigIssue {
            found: Some(value.to_owned()),
            report: Some(ErrorReport::Value {
                item: self.item.clone(),
                value: value.to_owned(),
                reason,
            }),
            ..self.issue(Severity::Error, message.into())
        }
    }

    /// The same for part `i` of a text with parts, which the vendor writes like a member.
    pub(super) fn unusable_part(
        &self,
        i: usize,
        value: &str,
        reason: RefusalReason,
        message: String,
    ) -> ConfigIssue {
        let item = format!("{}[{i}]", self.item);
        ConfigIssue {
            pointer: self.pointer.clone(),
            ..JsonCursor {
                pointer: String::new(),
                item,
                node: self.node,
            }
            .unusable(value, reason, message)
        }
    }

    /// `EP0005`: this item, with this value or with any, contradicts another one.
    pub(super) fn conflict(
        &self,
        value: Option<&str>,
        is_other_so: bool,
        other: (&str, &str),
    ) -> ConfigIssue {
        let conflict = SettingConflict {
            item: self.item.clone(),
            value: value.map(str::to_owned),
            other: (other.0.to_owned(), other.1.to_owned()),
            is_other_so,
        };
        ConfigIssue {
            found: value.map(str::to_owned),
            report: Some(ErrorReport::Conflict(conflict.clone())),
            ..self.issue(Severity::Error, conflict.to_string())
        }
    }

    fn issue(&self, severity: Severity, message: String) -> ConfigIssue {
        ConfigIssue {
            pointer: self.pointer.clone(),
            item: self.item.clone(),
            ..ConfigIssue::of_file(severity, self.node.place, message)
        }
    }

    fn paths_of(&self, name: &str) -> (String, String) {
        let pointer = format!("{}/{}", self.pointer, escape(name));
        // The vendor's messages omit the name of the top-level object.
        let item = if self.pointer == "/dump" {
            name.to_owned()
        } else {
            format!("{}.{name}", self.item)
        };
        (pointer, item)
    }
}
