//! One module for each configuration dialect.

pub mod acl;
mod explanation;
mod findings;
pub mod insert_op;
pub mod mindspore;

use crate::json::{self, JsonValue};

pub use explanation::Explanation;

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigDialect {
    /// AscendCL's `acl.json`.
    Acl,
    /// MindSpore's data dump.
    MindSpore,
}

/// Top-level keys that identify a MindSpore file.
const MINDSPORE_KEYS: [&str; 2] = ["common_dump_settings", "e2e_dump_settings"];

impl ConfigDialect {
    /// The dialect's short name.
    pub fn name(self) -> &'static str {
        match self {
            ConfigDialect::Acl => "acl",
            ConfigDialect::MindSpore => "mindspore",
        }
    }
}

/// Detects the dialect of a file by its top-level keys, or by their names in the text if it is not
/// valid JSON. Without such a key it is [`ConfigDialect::Acl`], which accepts any object.
pub fn detect(text: &str) -> ConfigDialect {
    let is_mindspore = match json::parse(text).map(|root| root.value) {
        Ok(JsonValue::Object(members)) => {
            let mut names = members.iter().map(|member| member.name.as_str());
            names.any(|name| MINDSPORE_KEYS.contains(&name))
        }
        Ok(_) => false,
        // A syntax error is still reported in the words of the file's dialect.
        Err(_) => MINDSPORE_KEYS
            .iter()
            .any(|key| text.contains(&format!("\"{key}\""))),
    };
    if is_mindspore {
        ConfigDialect::MindSpore
    } else {
        ConfigDialect::Acl
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_show_in_top_level_keys() {
        for text in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"dump": {"common_dump_settings": 1}}"#,
            r#"["common_dump_settings"]"#,
        ] {
            assert_eq!(detect(text), ConfigDialect::Acl, "{text}");
        }
        for text in [
            r#"{"common_dump_settings": {}}"#,
            r#"{"x": 1, "e2e_dump_settings": null}"#,
            r#"{"common_dump_settings": {},}"#,
        ] {
            assert_eq!(detect(text), ConfigDialect::MindSpore, "{text}");
        }
    }
}
