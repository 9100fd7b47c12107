//! JSON with the place of every value.
//!
//! Syntax is checked by `serde_json`, which is strict; `jsonc-parser` then gives the places.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::load::Place;
use crate::{Issue, Severity};

/// Deepest nesting of objects, and of arrays, that the vendor's reader takes.
const NESTING_MAX: usize = 10;

/// A value with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Node>),
    /// Members in file order. Of members with the same name only the last is kept.
    Object(Vec<Member>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

impl Value {
    /// What kind of value this is, as in "found a number".
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        }
    }
}

/// Parses strict JSON.
pub(crate) fn parse(text: &str) -> Result<Node, Issue> {
    check_nesting(text)?;
    // Into a value, not past it: only so are the escapes inside strings checked.
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        let place = Place {
            line: error.line().max(1),
            column: error.column().max(1),
        };
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message);
        return Err(syntax(place, format!("not valid JSON: {message}")));
    }
    let options = ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        ..ParseOptions::default()
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        syntax(
            Place { line: 1, column: 1 },
            format!("not valid JSON: {error}"),
        )
    })?;
    let value = parsed
        .value
        .ok_or_else(|| syntax(Place { line: 1, column: 1 }, "not valid JSON".into()))?;
    Ok(convert(&value, &Lines::new(text)))
}

/// Counts brackets in the raw text, as the vendor's reader does, so that deep nesting is refused
/// before any recursion.
fn check_nesting(text: &str) -> Result<(), Issue> {
    for (open, close) in [('{', '}'), ('[', ']')] {
        let mut depth = 0_usize;
        for (at, c) in text.char_indices() {
            if c == open {
                depth += 1;
            } else if c == close {
                depth = depth.saturating_sub(1);
            }
            if depth > NESTING_MAX {
                let place = Lines::new(text).place(at);
                return Err(syntax(
                    place,
                    format!("`{open}` is nested deeper than {NESTING_MAX}"),
                ));
            }
        }
    }
    Ok(())
}

fn syntax(place: Place, message: String) -> Issue {
    Issue {
        severity: Severity::Error,
        code: Some("EP0004"),
        pointer: String::new(),
        place,
        message,
    }
}

fn convert(value: &ast::Value<'_>, lines: &Lines<'_>) -> Node {
    let place = lines.place(value.range().start);
    let value = match value {
        ast::Value::StringLit(text) => Value::String(text.value.to_string()),
        ast::Value::NumberLit(number) => Value::Number(number.value.to_owned()),
        ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => Value::Array(
            array
                .elements
                .iter()
                .map(|element| convert(element, lines))
                .collect(),
        ),
        ast::Value::Object(object) => {
            let mut members: Vec<Member> = Vec::with_capacity(object.properties.len());
            for property in &object.properties {
                let name = property.name.as_str().to_owned();
                members.retain(|member| member.name != name);
                let place = lines.place(property.range.start);
                members.push(Member {
                    name,
                    place,
                    node: convert(&property.value, lines),
                });
            }
            Value::Object(members)
        }
    };
    Node { place, value }
}

/// Finds the line and column of a byte offset.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines {
            text,
            starts: std::iter::once(0).chain(after_breaks).collect(),
        }
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |text| text.chars().count())
            + 1;
        Place { line, column }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places() {
        let node = parse("{\n  \"ä\": [1, \"x\"],\n  \"ä\": true\n}").unwrap();
        let Value::Object(members) = &node.value else {
            panic!()
        };
        assert_eq!(members.len(), 1);
        assert_eq!(members[0].place, Place { line: 3, column: 3 });
        assert_eq!(members[0].node.place, Place { line: 3, column: 8 });
        assert_eq!(members[0].node.value, Value::Bool(true));
    }

    #[test]
    fn what_strict_json_refuses() {
        for text in [
            "",
            "{",
            "{'a': 1}",
            "{a: 1}",
            "[1,]",
            "// x\n1",
            "1 2",
            "[01]",
            "\"\\x\"",
            "NaN",
            r#""\udf00""#,
        ] {
            let issue = parse(text).unwrap_err();
            assert!(
                issue.message.starts_with("not valid JSON"),
                "{text}: {issue}"
            );
        }
        let deep = "[".repeat(200_000);
        assert!(parse(&deep).unwrap_err().message.contains("nested deeper"));
    }

    proptest! {
        #[test]
        fn whatever_serde_json_takes_is_taken(text in r#"[\[\]{}",:0-9a-z\\ .\-\n]{0,30}"#) {
            let is_strict = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(parse(&text).is_ok(), is_strict);
        }
    }
}
