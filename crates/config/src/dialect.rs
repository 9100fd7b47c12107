//! One module for each configuration dialect.

pub mod acl;
pub mod mindspore;

use crate::json::{self, Value};
use crate::{Issue, Severity};

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// AscendCL's `acl.json`.
    Acl,
}

/// A top-level key by which a dialect is known that is not read.
const MINDSPORE: &str = "common_dump_settings";

impl Dialect {
    /// The dialect's short name.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Acl => "acl",
        }
    }
}

/// Tells which dialect a file is in. Whatever has no mark of another one, or is no JSON, is taken for
/// [`Dialect::Acl`], which accepts any object.
///
/// # Errors
/// The place at which a dialect shows that is not supported.
pub fn detect(text: &str) -> Result<Dialect, Box<Issue>> {
    let Ok(root) = json::parse(text) else {
        return Ok(Dialect::Acl);
    };
    let Value::Object(members) = &root.value else {
        return Ok(Dialect::Acl);
    };
    match members.iter().find(|member| member.name == MINDSPORE) {
        None => Ok(Dialect::Acl),
        Some(member) => Err(Box::new(Issue {
            pointer: format!("/{MINDSPORE}"),
            item: MINDSPORE.to_owned(),
            expected: Some("`acl.json` with a `dump` object".to_owned()),
            ..Issue::of_file(
                Severity::Error,
                member.place,
                "this is a dump configuration of MindSpore, which is not supported yet",
            )
        })),
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
        ] {
            assert_eq!(detect(text), Ok(Dialect::Acl), "{text}");
        }
        let issue = detect("{\n\"common_dump_settings\": {}}").unwrap_err();
        assert_eq!(issue.place.line, 2);
        assert!(issue.message.contains("MindSpore"));
    }
}
