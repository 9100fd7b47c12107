//! Traverses the two sections, with MindSpore's messages for wrong values.
//!
//! A section may be any value: a value other than an object has no keys, as in MindSpore.

use crate::dialect::findings::{ConfigRefusal, IssueCollector, escape, nearest_hint, shown};
use crate::json::{JsonMember, JsonNode, JsonValue};
use crate::text_position::TextPosition;
use crate::{ConfigIssue, Severity};

/// Name of the required section.
pub(super) const COMMON: &str = "common_dump_settings";
/// Name of the section that configures tensors.
pub(super) const E2E: &str = "e2e_dump_settings";

/// One of the two sections.
pub(super) struct ConfigSection<'a> {
    name: &'static str,
    pub(super) node: &'a JsonNode,
}

/// A value in a section, or an element of one that is an array.
#[derive(Clone)]
pub(super) struct SectionItem<'a> {
    section: &'static str,
    pub(super) name: &'static str,
    index: Option<usize>,
    pub(super) node: &'a JsonNode,
}

impl<'a> ConfigSection<'a> {
    /// The section called `name`, if the file has it.
    pub(super) fn find(root: &'a JsonNode, name: &'static str) -> Option<ConfigSection<'a>> {
        let member = find(root, name)?;
        Some(ConfigSection {
            name,
            node: &member.node,
        })
    }

    /// The item called `name`, if present.
    pub(super) fn item(&self, name: &'static str) -> Option<SectionItem<'a>> {
        let member = find(self.node, name)?;
        Some(SectionItem {
            section: self.name,
            name,
            index: None,
            node: &member.node,
        })
    }

    /// A missing item called `name`; its issues are placed at the section.
    pub(super) fn absent(&self, name: &'static str) -> SectionItem<'a> {
        SectionItem {
            section: self.name,
            name,
            index: None,
            node: self.node,
        }
    }

    /// The required item called `name`.
    pub(super) fn required(
        &self,
        name: &'static str,
        findings: &mut IssueCollector,
    ) -> Result<SectionItem<'a>, ConfigRefusal> {
        self.item(name)
            .ok_or_else(|| findings.refuse(missing(self.node.place, self.name, name)))
    }

    /// Warns about keys that are not in `known`.
    pub(super) fn warn_unknown(&self, known: &[&str], findings: &mut IssueCollector) {
        let JsonValue::Object(members) = &self.node.value else {
            let message = format!("found {}, which has no keys", self.node.value.kind());
            findings.warn(ConfigIssue {
                pointer: format!("/{}", self.name),
                item: self.name.to_owned(),
                ..ConfigIssue::of_file(Severity::Warning, self.node.place, message)
            });
            return;
        };
        for member in members {
            let name = member.name.as_str();
            if known.contains(&name) {
                continue;
            }
            findings.warn(ConfigIssue {
                pointer: format!("/{}/{}", self.name, escape(name)),
                item: format!("{}.{name}", self.name),
                hint: nearest_hint(name, known),
                ..ConfigIssue::of_file(
                    Severity::Warning,
                    member.place,
                    "unknown key, it has no effect",
                )
            });
        }
    }
}

impl<'a> SectionItem<'a> {
    /// An error about this item.
    pub(super) fn error(&self, message: impl Into<String>, vendor_text: String) -> ConfigIssue {
        let issue = self.issue(Severity::Error, message.into());
        ConfigIssue {
            vendor_text: Some(vendor_text),
            ..issue
        }
    }

    /// A warning that MindSpore does not print.
    pub(super) fn warning(&self, message: impl Into<String>) -> ConfigIssue {
        self.issue(Severity::Warning, message.into())
    }

    /// A warning that MindSpore prints too.
    pub(super) fn vendor_warning(
        &self,
        message: impl Into<String>,
        vendor_text: String,
    ) -> ConfigIssue {
        ConfigIssue {
            vendor_text: Some(vendor_text),
            ..self.warning(message)
        }
    }

    /// The value is not allowed.
    pub(super) fn unexpected(
        &self,
        found: &str,
        expected: &str,
        vendor_text: String,
    ) -> ConfigIssue {
        let message = format!("found `{}`, expected {expected}", shown(found));
        ConfigIssue {
            found: Some(found.to_owned()),
            expected: Some(expected.to_owned()),
            ..self.error(message, vendor_text)
        }
    }

    /// A number without sign and fraction. MindSpore keeps its low 32 bits.
    pub(super) fn unsigned(&self, findings: &mut IssueCollector) -> Result<u32, ConfigRefusal> {
        self.unsigned_reported_as(self.name, findings)
    }

    /// The same, with the name in MindSpore's message.
    pub(super) fn unsigned_reported_as(
        &self,
        name: &str,
        findings: &mut IssueCollector,
    ) -> Result<u32, ConfigRefusal> {
        let whole = match &self.node.value {
            // MindSpore refuses `1.0` and `1e2`, although they are integers.
            JsonValue::Number(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse::<u64>().ok()
            }
            _ => None,
        };
        let Some(whole) = whole else {
            let text = format!("Dump config parse failed, {name} should be unsigned int type");
            return Err(findings.refuse(self.wrong_type("a non-negative integer", text)));
        };
        // MindSpore converts to 32 bits without a check.
        let kept = u32::try_from(whole & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        if u64::from(kept) != whole {
            let message = format!("`{whole}` has more than 32 bits and is read as {kept}");
            findings.warn(self.warning(message));
        }
        Ok(kept)
    }

    /// A text.
    pub(super) fn text(&self, findings: &mut IssueCollector) -> Result<&'a str, ConfigRefusal> {
        if let JsonValue::String(text) = &self.node.value {
            return Ok(text);
        }
        let name = self.name;
        let text = format!("Dump config parse failed, {name} should be string type");
        Err(findings.refuse(self.wrong_type("a string", text)))
    }

    /// An array.
    pub(super) fn array(
        &self,
        findings: &mut IssueCollector,
    ) -> Result<&'a [JsonNode], ConfigRefusal> {
        if let JsonValue::Array(nodes) = &self.node.value {
            return Ok(nodes);
        }
        let name = self.name;
        let text = format!("Dump config parse failed, {name} should be array type");
        Err(findings.refuse(self.wrong_type("an array", text)))
    }

    /// `true` or `false`. MindSpore's message always names `enable`.
    pub(super) fn boolean(&self, findings: &mut IssueCollector) -> Result<bool, ConfigRefusal> {
        if let JsonValue::Bool(value) = self.node.value {
            return Ok(value);
        }
        let text = "Dump Json Parse Failed. 'enable' should be boolean type".to_owned();
        Err(findings.refuse(self.wrong_type("true or false", text)))
    }

    /// The element `index` of this array.
    pub(super) fn element(&self, index: usize, node: &'a JsonNode) -> SectionItem<'a> {
        SectionItem {
            index: Some(index),
            node,
            ..self.clone()
        }
    }

    /// This element has the wrong type.
    pub(super) fn wrong_element(&self, expected: &'static str) -> ConfigIssue {
        let kind = vendor_kind(&self.node.value);
        let text =
            format!("[json.exception.type_error.302] type must be {expected}, but is {kind}");
        self.wrong_type(&format!("a {expected}"), text)
    }

    fn wrong_type(&self, expected: &str, vendor_text: String) -> ConfigIssue {
        let found = match &self.node.value {
            JsonValue::Number(text) => format!("the number {}", shown(text)),
            other => other.kind().to_owned(),
        };
        let message = format!("found {found}, expected {expected}");
        ConfigIssue {
            found: Some(found),
            expected: Some(expected.to_owned()),
            ..self.error(message, vendor_text)
        }
    }

    fn issue(&self, severity: Severity, message: String) -> ConfigIssue {
        let (section, name) = (self.section, self.name);
        let (end, item_end) = match self.index {
            None => (String::new(), String::new()),
            Some(index) => (format!("/{index}"), format!("[{index}]")),
        };
        ConfigIssue {
            pointer: format!("/{section}/{name}{end}"),
            item: format!("{section}.{name}{item_end}"),
            ..ConfigIssue::of_file(severity, self.node.place, message)
        }
    }
}

/// The value called `name` is missing.
pub(super) fn missing(place: TextPosition, section: &str, name: &str) -> ConfigIssue {
    let (pointer, item) = match section {
        "" => (format!("/{name}"), name.to_owned()),
        _ => (format!("/{section}/{name}"), format!("{section}.{name}")),
    };
    ConfigIssue {
        pointer,
        item,
        vendor_text: Some(format!("Check dump json failed, {name} not found")),
        ..ConfigIssue::of_file(Severity::Error, place, format!("`{name}` is missing"))
    }
}

/// The member called `name`, if this is an object with one.
pub(super) fn find<'a>(node: &'a JsonNode, name: &str) -> Option<&'a JsonMember> {
    match &node.value {
        JsonValue::Object(members) => members.iter().find(|member| member.name == name),
        _ => None,
    }
}

/// Names the kind of a value as MindSpore's parser does.
fn vendor_kind(value: &JsonValue) -> &'static str {
    match value {
        JsonValue::Null => "null",
        JsonValue::Bool(_) => "boolean",
        JsonValue::Number(_) => "number",
        JsonValue::String(_) => "string",
        JsonValue::Array(_) => "array",
        JsonValue::Object(_) => "object",
    }
}
