//! Walking over the two sections, with what MindSpore prints of a wrong value.
//!
//! A section may be any value: what is no object has no keys, as in MindSpore.

use crate::dialect::findings::{Findings, Refused, escape, nearest_hint, shown};
use crate::json::{Member, Node, Value};
use crate::text_position::Place;
use crate::{Issue, Severity};

/// Name of the section that every file has.
pub(super) const COMMON: &str = "common_dump_settings";
/// Name of the section about how tensors are taken.
pub(super) const E2E: &str = "e2e_dump_settings";

/// One of the two sections.
pub(super) struct Section<'a> {
    name: &'static str,
    pub(super) node: &'a Node,
}

/// A value in a section, or an element of one that is an array.
#[derive(Clone)]
pub(super) struct Item<'a> {
    section: &'static str,
    pub(super) name: &'static str,
    index: Option<usize>,
    pub(super) node: &'a Node,
}

impl<'a> Section<'a> {
    /// The section called `name`, if the file has it.
    pub(super) fn find(root: &'a Node, name: &'static str) -> Option<Section<'a>> {
        let member = find(root, name)?;
        Some(Section {
            name,
            node: &member.node,
        })
    }

    /// The item called `name`, if it is there.
    pub(super) fn item(&self, name: &'static str) -> Option<Item<'a>> {
        let member = find(self.node, name)?;
        Some(Item {
            section: self.name,
            name,
            index: None,
            node: &member.node,
        })
    }

    /// An item called `name` that is not there; issues about it are at the place of the section.
    pub(super) fn absent(&self, name: &'static str) -> Item<'a> {
        Item {
            section: self.name,
            name,
            index: None,
            node: self.node,
        }
    }

    /// The item called `name`, which has to be there.
    pub(super) fn required(
        &self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Result<Item<'a>, Refused> {
        self.item(name)
            .ok_or_else(|| findings.refuse(missing(self.node.place, self.name, name)))
    }

    /// Warns about keys that are not in `known`.
    pub(super) fn warn_unknown(&self, known: &[&str], findings: &mut Findings) {
        let Value::Object(members) = &self.node.value else {
            let message = format!("found {}, which has no keys", self.node.value.kind());
            findings.warn(Issue {
                pointer: format!("/{}", self.name),
                item: self.name.to_owned(),
                ..Issue::of_file(Severity::Warning, self.node.place, message)
            });
            return;
        };
        for member in members {
            let name = member.name.as_str();
            if known.contains(&name) {
                continue;
            }
            findings.warn(Issue {
                pointer: format!("/{}/{}", self.name, escape(name)),
                item: format!("{}.{name}", self.name),
                hint: nearest_hint(name, known),
                ..Issue::of_file(
                    Severity::Warning,
                    member.place,
                    "unknown key, it has no effect",
                )
            });
        }
    }
}

impl<'a> Item<'a> {
    /// An error about this item.
    pub(super) fn error(&self, message: impl Into<String>, vendor_text: String) -> Issue {
        let issue = self.issue(Severity::Error, message.into());
        Issue {
            vendor_text: Some(vendor_text),
            ..issue
        }
    }

    /// A warning that MindSpore does not give.
    pub(super) fn warning(&self, message: impl Into<String>) -> Issue {
        self.issue(Severity::Warning, message.into())
    }

    /// A warning that MindSpore gives too.
    pub(super) fn vendor_warning(&self, message: impl Into<String>, vendor_text: String) -> Issue {
        Issue {
            vendor_text: Some(vendor_text),
            ..self.warning(message)
        }
    }

    /// The value is none of those allowed.
    pub(super) fn unexpected(&self, found: &str, expected: &str, vendor_text: String) -> Issue {
        let message = format!("found `{}`, expected {expected}", shown(found));
        Issue {
            found: Some(found.to_owned()),
            expected: Some(expected.to_owned()),
            ..self.error(message, vendor_text)
        }
    }

    /// A number without sign and fraction. MindSpore keeps the low 32 bits of it.
    pub(super) fn unsigned(&self, findings: &mut Findings) -> Result<u32, Refused> {
        self.unsigned_reported_as(self.name, findings)
    }

    /// The same, under the name that MindSpore's message has.
    pub(super) fn unsigned_reported_as(
        &self,
        name: &str,
        findings: &mut Findings,
    ) -> Result<u32, Refused> {
        let whole = match &self.node.value {
            // MindSpore refuses `1.0` and `1e2`, although they are whole numbers.
            Value::Number(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse::<u64>().ok()
            }
            _ => None,
        };
        let Some(whole) = whole else {
            let text = format!("Dump config parse failed, {name} should be unsigned int type");
            return Err(findings.refuse(self.wrong_type("a whole number from 0 on", text)));
        };
        // MindSpore converts to 32 bits without a check.
        let kept = u32::try_from(whole & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        if u64::from(kept) != whole {
            let message = format!("`{whole}` has more than 32 bits and is taken for {kept}");
            findings.warn(self.warning(message));
        }
        Ok(kept)
    }

    /// A text.
    pub(super) fn text(&self, findings: &mut Findings) -> Result<&'a str, Refused> {
        if let Value::String(text) = &self.node.value {
            return Ok(text);
        }
        let name = self.name;
        let text = format!("Dump config parse failed, {name} should be string type");
        Err(findings.refuse(self.wrong_type("a string", text)))
    }

    /// An array.
    pub(super) fn array(&self, findings: &mut Findings) -> Result<&'a [Node], Refused> {
        if let Value::Array(nodes) = &self.node.value {
            return Ok(nodes);
        }
        let name = self.name;
        let text = format!("Dump config parse failed, {name} should be array type");
        Err(findings.refuse(self.wrong_type("an array", text)))
    }

    /// `true` or `false`. MindSpore's message always speaks of `enable`.
    pub(super) fn boolean(&self, findings: &mut Findings) -> Result<bool, Refused> {
        if let Value::Bool(value) = self.node.value {
            return Ok(value);
        }
        let text = "Dump Json Parse Failed. 'enable' should be boolean type".to_owned();
        Err(findings.refuse(self.wrong_type("true or false", text)))
    }

    /// The element `index` of this array.
    pub(super) fn element(&self, index: usize, node: &'a Node) -> Item<'a> {
        Item {
            index: Some(index),
            node,
            ..self.clone()
        }
    }

    /// This element is of the wrong type.
    pub(super) fn wrong_element(&self, expected: &'static str) -> Issue {
        let kind = vendor_kind(&self.node.value);
        let text =
            format!("[json.exception.type_error.302] type must be {expected}, but is {kind}");
        self.wrong_type(&format!("a {expected}"), text)
    }

    fn wrong_type(&self, expected: &str, vendor_text: String) -> Issue {
        let found = match &self.node.value {
            Value::Number(text) => format!("the number {}", shown(text)),
            other => other.kind().to_owned(),
        };
        let message = format!("found {found}, expected {expected}");
        Issue {
            found: Some(found),
            expected: Some(expected.to_owned()),
            ..self.error(message, vendor_text)
        }
    }

    fn issue(&self, severity: Severity, message: String) -> Issue {
        let (section, name) = (self.section, self.name);
        let (end, item_end) = match self.index {
            None => (String::new(), String::new()),
            Some(index) => (format!("/{index}"), format!("[{index}]")),
        };
        Issue {
            pointer: format!("/{section}/{name}{end}"),
            item: format!("{section}.{name}{item_end}"),
            ..Issue::of_file(severity, self.node.place, message)
        }
    }
}

/// The value called `name` is not there.
pub(super) fn missing(place: Place, section: &str, name: &str) -> Issue {
    let (pointer, item) = match section {
        "" => (format!("/{name}"), name.to_owned()),
        _ => (format!("/{section}/{name}"), format!("{section}.{name}")),
    };
    Issue {
        pointer,
        item,
        vendor_text: Some(format!("Check dump json failed, {name} not found")),
        ..Issue::of_file(Severity::Error, place, format!("`{name}` is missing"))
    }
}

/// The member called `name`, if this is an object that has one.
pub(super) fn find<'a>(node: &'a Node, name: &str) -> Option<&'a Member> {
    match &node.value {
        Value::Object(members) => members.iter().find(|member| member.name == name),
        _ => None,
    }
}

/// Names the kind of a value as MindSpore's parser does.
fn vendor_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
