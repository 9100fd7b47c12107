//! One module for each configuration dialect.

pub mod acl;
mod explanation;
mod findings;
pub mod mindspore;

use crate::json::{self, Value};

pub use explanation::Explanation;

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// AscendCL's `acl.json`.
    Acl,
    /// MindSpore's data dump.
    MindSpore,
}

/// Top-level keys by which a file of MindSpore is known.
const MINDSPORE_KEYS: [&str; 2] = ["common_dump_settings", "e2e_dump_settings"];

impl Dialect {
    /// The dialect's short name.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Acl => "acl",
            Dialect::MindSpore => "mindspore",
        }
    }
}

/// Tells which dialect a file is in, by its top-level keys, or by their names in the text if it is
/// not valid JSON. A file without any mark is taken for [`Dialect::Acl`], which accepts any object.
pub fn detect(text: &str) -> Dialect {
    let is_mindspore = match json::parse(text).map(|root| root.value) {
        Ok(Value::Object(members)) => {
            let mut names = members.iter().map(|member| member.name.as_str());
            names.any(|name| MINDSPORE_KEYS.contains(&name))
        }
        Ok(_) => false,
        // A file with a syntax error still has to be reported in the words of its own dialect.
        Err(_) => MINDSPORE_KEYS
            .iter()
            .any(|key| text.contains(&format!("\"{key}\""))),
    };
    if is_mindspore {
        Dialect::MindSpore
    } else {
        Dialect::Acl
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
            assert_eq!(detect(text), Dialect::Acl, "{text}");
        }
        for text in [
            r#"{"common_dump_settings": {}}"#,
            r#"{"x": 1, "e2e_dump_settings": null}"#,
            r#"{"common_dump_settings": {},}"#,
        ] {
            assert_eq!(detect(text), Dialect::MindSpore, "{text}");
        }
    }
}
