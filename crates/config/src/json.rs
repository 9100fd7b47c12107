//! JSON with the place of every value.
//!
//! `serde_json`, which is strict, checks the syntax; `jsonc-parser` then provides the positions.

use std::cell::Cell;
use std::collections::HashMap;

use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};

use crate::report::ErrorReport;
use crate::text_position::TextPosition;
use crate::{ConfigIssue, Severity};

/// Maximum nesting of objects, and of arrays, in a configuration file.
const NESTING_MAX: usize = 10;

/// A value with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonNode {
    pub(crate) place: TextPosition,
    pub(crate) value: JsonValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonValue {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<JsonNode>),
    /// Members in file order. Of members with the same name only the last remains.
    Object(Vec<JsonMember>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonMember {
    pub(crate) name: String,
    pub(crate) place: TextPosition,
    pub(crate) node: JsonNode,
}

impl JsonValue {
    /// Names the kind of this value, as in "found a number".
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            JsonValue::Null => "null",
            JsonValue::Bool(_) => "a boolean",
            JsonValue::Number(_) => "a number",
            JsonValue::String(_) => "a string",
            JsonValue::Array(_) => "an array",
            JsonValue::Object(_) => "an object",
        }
    }
}

/// Parses strict JSON; a byte order mark at the beginning is skipped.
pub(crate) fn parse(text: &str) -> Result<JsonNode, Box<ConfigIssue>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Into a value rather than skipping it: only that checks the escapes in strings. It also
    // refuses nesting that would exhaust the stack.
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        let place = TextPosition {
            line: error.line().max(1),
            column: error.column().max(1),
        };
        let message = error.to_string();
        // The issue already has the position, counted in the file.
        let message = message.split(" at line ").next().unwrap_or(&message);
        return Err(Box::new(syntax(place, message)));
    }
    let start = TextPosition { line: 1, column: 1 };
    // This parser is more lenient, so it cannot fail on accepted text. If it does, the issue
    // contains the reason.
    let parsed = parse_to_ast(text, &CollectOptions::default(), &strict())
        .map_err(|error| Box::new(syntax(start, &error.to_string())))?;
    let value = parsed
        .value
        .ok_or_else(|| Box::new(syntax(start, "expected a value")))?;
    Ok(convert(&value, &LineFinder::new(text)))
}

/// [`parse`] of the first value of `text`; the second result is the position of further text, if it
/// is not blank.
pub(crate) fn parse_first(
    text: &str,
) -> Result<(JsonNode, Option<TextPosition>), Box<ConfigIssue>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    let end = match values.next() {
        Some(Ok(_)) => values.byte_offset(),
        // [`parse`] reports the error.
        _ => text.len(),
    };
    let root = parse(&text[..end])?;
    let after = text[end..].find(|c: char| !c.is_ascii_whitespace());
    let after = after.map(|at| LineFinder::new(text).place(end + at));
    Ok((root, after))
}

fn strict() -> ParseOptions {
    ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        ..ParseOptions::default()
    }
}

/// Blanks everything in `text` except line breaks and the value of the last member called `name`.
/// Without such a member everything is blank.
///
/// [`parse`] must have accepted `text`, which has no byte order mark.
pub(crate) fn blank_beside(text: &str, name: &str) -> String {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &strict());
    let value = parsed.ok().and_then(|parsed| parsed.value);
    let kept = match &value {
        Some(ast::Value::Object(object)) => {
            let mut properties = object.properties.iter().rev();
            let found = properties.find(|property| property.name.as_str() == name);
            found.map_or(0..0, |property| {
                property.value.start()..property.value.end()
            })
        }
        _ => 0..0,
    };
    text.char_indices()
        .map(|(at, c)| {
            if c == '\n' || kept.contains(&at) {
                c
            } else {
                ' '
            }
        })
        .collect()
}

/// Refuses files whose objects or arrays are nested deeper than 10, as the vendor's library does
/// before it parses one.
///
/// It counts brackets in the raw text, including those inside strings, up to the first NUL.
///
/// # Errors
/// The position of the first bracket that is too deep.
pub fn check_nesting(text: &str) -> Result<(), Box<ConfigIssue>> {
    // The vendor's library reads the text as a C string.
    let text = text.split('\0').next().unwrap_or(text);
    let mut depths = [0_usize; 2];
    for (at, c) in text.char_indices() {
        let (kind, is_open) = match c {
            '{' => (0, true),
            '}' => (0, false),
            '[' => (1, true),
            ']' => (1, false),
            _ => continue,
        };
        // Objects and arrays are counted separately, as in the vendor's check.
        let depth = &mut depths[kind];
        *depth = if is_open {
            *depth + 1
        } else {
            // The parser handles a closing bracket without an opening one.
            depth.saturating_sub(1)
        };
        if *depth > NESTING_MAX {
            let place = LineFinder::new(text).place(at);
            let message = format!("`{c}` is nested deeper than {NESTING_MAX}");
            let hint = "brackets inside strings count too".to_owned();
            return Err(Box::new(ConfigIssue {
                hint: Some(hint),
                ..ConfigIssue::of_file(Severity::Error, place, message)
            }));
        }
    }
    Ok(())
}

pub(crate) fn syntax(place: TextPosition, reason: &str) -> ConfigIssue {
    ConfigIssue {
        report: Some(ErrorReport::Syntax {
            reason: reason.to_owned(),
        }),
        ..ConfigIssue::of_file(Severity::Error, place, format!("not valid JSON: {reason}"))
    }
}

fn convert(value: &ast::Value<'_>, lines: &LineFinder<'_>) -> JsonNode {
    let place = lines.place(value.range().start);
    let value = match value {
        ast::Value::StringLit(text) => JsonValue::String(text.value.to_string()),
        ast::Value::NumberLit(number) => JsonValue::Number(number.value.to_owned()),
        ast::Value::BooleanLit(boolean) => JsonValue::Bool(boolean.value),
        ast::Value::NullKeyword(_) => JsonValue::Null,
        ast::Value::Array(array) => JsonValue::Array(
            array
                .elements
                .iter()
                .map(|element| convert(element, lines))
                .collect(),
        ),
        ast::Value::Object(object) => {
            let properties = || object.properties.iter().enumerate();
            // Of members with the same name the vendor's parser keeps the last, and so does every
            // later stage.
            let last: HashMap<&str, usize> =
                properties().map(|(i, p)| (p.name.as_str(), i)).collect();
            let kept = properties().filter(|(i, p)| last.get(p.name.as_str()) == Some(i));
            let members = kept.map(|(_, property)| JsonMember {
                name: property.name.as_str().to_owned(),
                place: lines.place(property.range.start),
                node: convert(&property.value, lines),
            });
            JsonValue::Object(members.collect())
        }
    };
    JsonNode { place, value }
}

/// Converts byte offsets to lines and columns.
struct LineFinder<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// The last answer. Offsets mostly ascend, and a file may be a single line of millions of
    /// values, so counting continues from there.
    last: Cell<(usize, TextPosition)>,
}

impl<'a> LineFinder<'a> {
    fn new(text: &'a str) -> LineFinder<'a> {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        LineFinder {
            text,
            starts: std::iter::once(0).chain(after_breaks).collect(),
            last: Cell::new((0, TextPosition { line: 1, column: 1 })),
        }
    }

    fn place(&self, offset: usize) -> TextPosition {
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        // Counting from the start of the line each time would take quadratic time in a long line.
        let (from, column) = match self.last.get() {
            (last, place) if place.line == line && last <= offset => (last, place.column),
            _ => (start, 1),
        };
        let between = self.text.get(from..offset).unwrap_or_default();
        let place = TextPosition {
            line,
            column: column + between.chars().count(),
        };
        self.last.set((offset, place));
        place
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places() {
        let node = parse("{\n  \"ä\": [1, \"x\"],\n  \"ä\": true\n}").unwrap();
        let JsonValue::Object(members) = &node.value else {
            panic!()
        };
        assert_eq!(members.len(), 1);
        assert_eq!(members[0].place, TextPosition { line: 3, column: 3 });
        assert_eq!(members[0].node.place, TextPosition { line: 3, column: 8 });
        assert_eq!(members[0].node.value, JsonValue::Bool(true));
    }

    #[test]
    fn places_in_any_order() {
        let text = "äb\n\ncöd";
        let lines = LineFinder::new(text);
        let place = |offset| {
            let place = lines.place(offset);
            (place.line, place.column)
        };
        let expected = [
            (0, (1, 1)),
            (2, (1, 2)),
            (5, (3, 1)),
            (8, (3, 3)),
            (2, (1, 2)),
        ];
        for (offset, expected) in expected {
            assert_eq!(place(offset), expected, "{offset}");
        }
        assert_eq!(place(text.len()), (3, 4));
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
        // Neither parser may overflow the stack.
        for n in [127, 128, 200_000] {
            let deep = format!("{}{}", "[".repeat(n), "]".repeat(n));
            assert_eq!(parse(&deep).is_ok(), n < 128, "{n}");
        }
    }

    #[test]
    fn nesting_is_counted_in_the_raw_text() {
        let nested = |open: &str, n| format!("\n{}", open.repeat(n));
        let cases = [
            (nested("{", 10), true),
            (nested("{", 11), false),
            (nested("[", 10), true),
            (nested("[", 11), false),
            (nested("[{", 10), true),
            (nested("]", 50) + &nested("[", 10), true),
            (format!("{}{}", nested("[", 10), "]["), true),
            (format!("\"{}\"", "{".repeat(11)), false),
            (format!("\0{}", "{".repeat(11)), true),
        ];
        for (text, is_fine) in cases {
            assert_eq!(check_nesting(&text).is_ok(), is_fine, "{text:?}");
        }
        let issue = check_nesting(&nested("[", 11)).unwrap_err();
        let place = TextPosition {
            line: 2,
            column: 11,
        };
        assert_eq!((issue.place, issue.code()), (place, None));
    }

    proptest! {
        #[test]
        fn whatever_serde_json_takes_is_taken(text in r#"[\[\]{}",:0-9a-z\\ .\-\n]{0,30}"#) {
            let is_strict = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(parse(&text).is_ok(), is_strict);
        }
    }
}
