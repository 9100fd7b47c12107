//! The file that controls a running dump: one JSON object with the optional members `enabled` and
//! `config`.
//!
//! Unknown keys are refused: a misspelt key would silently change nothing.

use std::path::PathBuf;

use crate::json::{self, JsonNode, JsonValue};
use crate::text_position::TextPosition;
use crate::{ConfigEnvironment, ConfigIssue, Severity};

const ENABLED: &str = "enabled";
const CONFIG: &str = "config";
const EXPECTED: &str = "expected an object with the keys `enabled` and `config`, or one of them";

/// The requests of a control file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlRequests {
    /// Whether the dump is on; `None` leaves the state unchanged.
    pub enabled: Option<bool>,
    /// A new configuration; `None` leaves the plan unchanged.
    pub config: Option<ControlConfig>,
}

/// The configuration of a control file, in any dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlConfig {
    /// In the control file: its text with everything else blanked out, so that positions are those
    /// of the file.
    Inline(String),
    /// In a separate file, by its absolute path.
    File(PathBuf),
}

impl ControlRequests {
    /// Pointer to the configuration, for issues of [`ControlConfig::Inline`].
    pub const CONFIG_POINTER: &str = "/config";

    /// Reads the text of a control file. Paths are relative to the current directory of `env`; no
    /// file is opened.
    ///
    /// # Errors
    /// All faults of the text, in file order; at least one issue.
    pub fn parse(text: &str, env: &ConfigEnvironment) -> Result<ControlRequests, Vec<ConfigIssue>> {
        // Editors on some systems begin a file with a byte order mark, which is not part of the
        // JSON.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = json::parse(text).map_err(|issue| vec![*issue])?;
        let JsonValue::Object(members) = &root.value else {
            let message = format!("found {}, {EXPECTED}", root.value.kind());
            return Err(vec![error("", root.place, message)]);
        };
        let mut control = ControlRequests::default();
        let mut issues = Vec::new();
        for member in members {
            let read = match member.name.as_str() {
                ENABLED => read_enabled(&member.node).map(|value| control.enabled = Some(value)),
                CONFIG => {
                    read_config(&member.node, text, env).map(|config| control.config = Some(config))
                }
                name => {
                    // The key is arbitrary text, and the message is written to a log.
                    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
                    let message = format!("unknown key `{name}`, {EXPECTED}");
                    Err(Box::new(error("", member.place, message)))
                }
            };
            issues.extend(read.err().map(|issue| *issue));
            // A file of the wrong kind may have any number of keys, and each would be reported.
            if issues.len() == N_ISSUES_MAX {
                break;
            }
        }
        if issues.is_empty() {
            Ok(control)
        } else {
            Err(issues)
        }
    }
}

/// Maximum number of characters of a key in a message.
const NAME_CHARS_MAX: usize = 60;
/// Maximum number of reported issues.
const N_ISSUES_MAX: usize = 100;

fn read_enabled(node: &JsonNode) -> Result<bool, Box<ConfigIssue>> {
    match node.value {
        JsonValue::Bool(is_enabled) => Ok(is_enabled),
        _ => Err(Box::new(wrong_type(ENABLED, node, "`true` or `false`"))),
    }
}

fn read_config(
    node: &JsonNode,
    text: &str,
    env: &ConfigEnvironment,
) -> Result<ControlConfig, Box<ConfigIssue>> {
    match &node.value {
        // The configuration is parsed later, by its dialect. The rest of the file is blanked, so
        // that the lines and columns of its issues are those of this file.
        JsonValue::Object(_) => Ok(ControlConfig::Inline(json::blank_beside(text, CONFIG))),
        JsonValue::String(path) if !path.is_empty() => {
            // The process may change its current directory before the file is read.
            let path = env.expand_home(path).unwrap_or_else(|| path.into());
            Ok(ControlConfig::File(env.absolute(path)))
        }
        _ => {
            let expected = "a configuration as an object, or the path of one as a string";
            Err(Box::new(wrong_type(CONFIG, node, expected)))
        }
    }
}

fn wrong_type(key: &str, node: &JsonNode, expected: &str) -> ConfigIssue {
    let found = match &node.value {
        JsonValue::String(text) if text.is_empty() => "an empty string",
        other => other.kind(),
    };
    let message = format!("found {found}, expected {expected}");
    ConfigIssue {
        item: key.to_owned(),
        found: Some(found.to_owned()),
        expected: Some(expected.to_owned()),
        ..error(&format!("/{key}"), node.place, message)
    }
}

fn error(pointer: &str, place: TextPosition, message: String) -> ConfigIssue {
    ConfigIssue {
        pointer: pointer.to_owned(),
        ..ConfigIssue::of_file(Severity::Error, place, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::acl;

    fn parse(text: &str) -> Result<ControlRequests, Vec<ConfigIssue>> {
        let env = ConfigEnvironment {
            current_dir: "/here".into(),
            home: Some("/home/me".into()),
            ..ConfigEnvironment::default()
        };
        ControlRequests::parse(text, &env)
    }

    #[test]
    fn what_is_accepted() {
        let file = |path: &str| Some(ControlConfig::File(path.into()));
        let inline = |text: &str| Some(ControlConfig::Inline(text.into()));
        for (text, enabled, config) in [
            ("{}", None, None),
            ("\u{feff}{\"enabled\": false}", Some(false), None),
            (r#"{"enabled": false, "enabled": true}"#, Some(true), None),
            (r#"{"config": "a.json"}"#, None, file("/here/a.json")),
            (r#"{"config": "/a.json"}"#, None, file("/a.json")),
            (r#"{"config": "~/a.json"}"#, None, file("/home/me/a.json")),
            (
                "{\"config\":\n {\"x\": \"ä\"}}",
                None,
                inline("          \n {\"x\": \"ä\"} "),
            ),
            (
                r#"{"config": 1, "config": {}}"#,
                None,
                inline(r#"                        {} "#),
            ),
        ] {
            assert_eq!(
                parse(text),
                Ok(ControlRequests { enabled, config }),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_refused_and_where() {
        for (text, line, column, message) in [
            ("", 1, 1, "not valid JSON"),
            ("[]", 1, 1, "found an array, expected an object"),
            ("{\n\"enable\": true}", 2, 1, "unknown key `enable`"),
            (
                r#"{"enabled": "true"}"#,
                1,
                13,
                "found a string, expected `true` or `false`",
            ),
            (r#"{"enabled": null}"#, 1, 13, "found null"),
            (
                r#"{"config": ""}"#,
                1,
                12,
                "found an empty string, expected a configuration",
            ),
            (r#"{"config": []}"#, 1, 12, "found an array"),
        ] {
            let issues = parse(text).unwrap_err();
            assert_eq!(issues[0].place, TextPosition { line, column }, "{text}");
            assert!(issues[0].message.contains(message), "{}", issues[0]);
        }
        let both = parse(r#"{"enabled": 1, "config": 2, "more": 3}"#).unwrap_err();
        let pointers: Vec<&str> = both.iter().map(|issue| &*issue.pointer).collect();
        assert_eq!(pointers, ["/enabled", "/config", ""]);
    }

    #[test]
    fn an_inline_configuration_keeps_its_places() {
        let text = "{\"enabled\": true, \"config\": {\n  \"dump\": {\"dump_list\": 3}\n}}";
        let Ok(ControlRequests {
            config: Some(ControlConfig::Inline(text)),
            ..
        }) = parse(text)
        else {
            panic!()
        };
        let issues = acl::load(&text, &ConfigEnvironment::default()).unwrap_err();
        assert_eq!(issues[0].place.line, 2, "{}", issues[0]);
    }
}
