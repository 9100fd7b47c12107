//! The vendor's file for inserted operators (`--insert_op_conf` of its converter), which configures
//! how AIPP preprocesses a model's inputs.
//!
//! It is protobuf's text form: `aipp_op { key: value … }`, once for each input. The keys are
//! members of [`AippOp`].

use opscope_store::file_format::gears_json::AippOp;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::TextPosition;

/// The message for AIPP.
const AIPP_OP: &str = "aipp_op";
/// Maximum number of messages; no model has more inputs.
const N_OPS_MAX: usize = 1024;
/// Minimum similarity of a suggested key; 1 means equal.
const NEAR: f64 = 0.8;

/// A mistake in a file for inserted operators.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {}, column {}: {reason}", place.line, place.column)]
pub struct InsertOpError {
    /// The place of the mistake.
    pub place: TextPosition,
    /// Description of the mistake.
    pub reason: String,
}

/// Reads the text of a file. Ranges of values are checked with the model.
///
/// # Errors
/// The first mistake, with its place: wrong syntax, a message other than `aipp_op`, an unknown or
/// duplicate key, a value of the wrong type.
pub fn parse(text: &str) -> Result<Vec<AippOp>, InsertOpError> {
    let mut tokens = Tokens { text, offset: 0 };
    let mut ops = Vec::new();
    while let Some((start, token)) = tokens.next()? {
        if token != Token::Word(AIPP_OP) {
            return Err(tokens.error(start, format!("expected `{AIPP_OP}`")));
        }
        if ops.len() == N_OPS_MAX {
            let reason = format!("expected at most {N_OPS_MAX} of `{AIPP_OP}`");
            return Err(tokens.error(start, reason));
        }
        ops.push(parse_op(&mut tokens)?);
    }
    if ops.is_empty() {
        return Err(tokens.error(0, format!("expected `{AIPP_OP} {{ … }}`")));
    }
    Ok(ops)
}

fn parse_op(tokens: &mut Tokens<'_>) -> Result<AippOp, InsertOpError> {
    let mut members = Map::new();
    // Protobuf accepts a colon before a message, and angle brackets around it.
    let (mut start, mut token) = tokens.expect("`{`")?;
    if token == Token::Sign(':') {
        (start, token) = tokens.expect("`{`")?;
    }
    let end = match token {
        Token::Sign('{') => '}',
        Token::Sign('<') => '>',
        _ => return Err(tokens.error(start, "expected `{`")),
    };
    loop {
        let (start, token) = tokens.expect("a key, or the end of the message")?;
        let key = match token {
            Token::Sign(sign) if sign == end => break,
            // Separators between members are allowed and mean nothing.
            Token::Sign(',' | ';') if !members.is_empty() => continue,
            Token::Word(key) => key,
            _ => return Err(tokens.error(start, "expected a key")),
        };
        if !AippOp::KEYS.contains(&key) {
            return Err(tokens.error(start, unknown_key(key)));
        }
        let (colon, token) = tokens.expect("`:`")?;
        if token != Token::Sign(':') {
            return Err(tokens.error(colon, format!("expected `:` after `{key}`")));
        }
        let (place, token) = tokens.expect("a value")?;
        let value = match token {
            Token::Word(word) => value_of(word),
            Token::Text(text) => Value::String(text.to_owned()),
            Token::Sign(_) => {
                return Err(tokens.error(place, format!("expected a value of `{key}`")));
            }
        };
        check_type(key, &value).map_err(|reason| tokens.error(place, reason))?;
        // Protobuf would use the last one or, for lists, refuse both.
        if members.insert(key.to_owned(), value).is_some() {
            return Err(tokens.error(start, format!("`{key}` appears twice")));
        }
    }
    // Every member was decoded before, so this can hardly fail.
    let op = serde_json::from_value(Value::Object(members));
    op.map_err(|error| tokens.error(start, error.to_string()))
}

/// Decodes one member alone, so that an error can name its key.
fn check_type(key: &str, value: &Value) -> Result<(), String> {
    let member = Map::from_iter([(key.to_owned(), value.clone())]);
    let decoded = serde_json::from_value::<AippOp>(Value::Object(member));
    decoded
        .map(drop)
        .map_err(|error| format!("`{key}`: {error}"))
}

fn unknown_key(key: &str) -> String {
    let likeness = |known: &&&str| strsim::jaro_winkler(key, known);
    let near = AippOp::KEYS
        .iter()
        .filter(|known| likeness(known) > NEAR)
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match near {
        Some(near) => format!("unknown key `{key}`; did you mean `{near}`?"),
        None => format!("unknown key `{key}`"),
    }
}

/// A truth value, a number, or the name of an enumeration's value.
fn value_of(word: &str) -> Value {
    match word {
        "true" | "True" | "t" => return Value::Bool(true),
        "false" | "False" | "f" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = word.parse::<i64>() {
        return number.into();
    }
    // Only a word that begins like a number is one: `inf` and `nan` are names.
    let is_number = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    // As in C, a float may end in `f`.
    let digits = word.strip_suffix(['f', 'F']).unwrap_or(word);
    match digits.parse::<f64>() {
        Ok(number) if is_number && number.is_finite() => number.into(),
        _ => Value::String(word.to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// A quoted string, without the quotes.
    Text(&'a str),
    Sign(char),
}

/// The tokens of a text, each with its offset.
struct Tokens<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Result<Option<(usize, Token<'a>)>, InsertOpError> {
        self.pass_over_blanks();
        let start = self.offset;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            return Ok(None);
        };
        let token = match first {
            '{' | '}' | '<' | '>' | ':' | ',' | ';' => Token::Sign(first),
            '"' | '\'' => {
                let inner = &rest[1..];
                let n = inner.find([first, '\n']).unwrap_or(inner.len());
                if !inner[n..].starts_with(first) {
                    return Err(self.error(start, "expected the end of the string"));
                }
                self.offset = start + n + 2;
                return Ok(Some((start, Token::Text(&inner[..n]))));
            }
            c if is_word(c) => {
                let n = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                Token::Word(&rest[..n])
            }
            _ => {
                let shown = first.escape_default();
                return Err(self.error(start, format!("unexpected `{shown}`")));
            }
        };
        self.offset = start
            + match token {
                Token::Word(word) => word.len(),
                _ => first.len_utf8(),
            };
        Ok(Some((start, token)))
    }

    /// The next token, which must exist.
    fn expect(&mut self, expected: &str) -> Result<(usize, Token<'a>), InsertOpError> {
        let found = self.next()?;
        found.ok_or_else(|| {
            let reason = format!("expected {expected}, found the end of the file");
            self.error(self.text.len(), reason)
        })
    }

    fn pass_over_blanks(&mut self) {
        loop {
            let rest = &self.text[self.offset..];
            let blank = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            self.offset += rest.len() - blank.len();
            if !blank.starts_with('#') {
                return;
            }
            self.offset += blank.find('\n').unwrap_or(blank.len());
        }
    }

    fn error(&self, offset: usize, reason: impl Into<String>) -> InsertOpError {
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        InsertOpError {
            place: TextPosition {
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
            },
            reason: reason.into(),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.+-".contains(c)
}

#[cfg(test)]
mod tests {
    use opscope_store::file_format::gears_json::{
        AippInputFormat, AippMode, ExtentGear, GearInput, GearKind, Gears, encode, parse as reread,
    };
    use proptest::prelude::*;

    use super::*;

    const WORDS: &[&str] = &[
        "aipp_op",
        "{",
        "}",
        ":",
        " ",
        "\n",
        "#",
        "\"",
        "crop",
        "true",
        "src_image_size_w",
        "8",
        "-1",
        "1e400",
        "0.5f",
        "aipp_mode",
        "static",
        "input_format",
        "RGB888_U8",
        "max_src_image_size",
        "aipp_op { aipp_mode: static input_format: RGB888_U8 ",
        "padding_value: ",
        "mean_chn_0: ",
        "crop_size_h: 4 ",
        "src_image_size_h: 4 ",
        "aipp_mode: dynamic ",
        "<",
        ">",
        ";",
        "ß",
    ];

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            words in proptest::collection::vec(proptest::sample::select(WORDS), 0..24)
        ) {
            let text = words.concat();
            let ops = match parse(&text) {
                Ok(ops) => ops,
                Err(error) => {
                    prop_assert!(error.place.line <= text.matches('\n').count() + 1);
                    return Ok(());
                }
            };
            let input = GearInput { name: "x".to_owned(), dims: vec![2, 3, 4, 8] };
            let gear = ExtentGear { values: vec![], outputs: vec![] };
            let gears = Gears::new(GearKind::Fixed, vec![input], vec![], vec![gear]).unwrap();
            if let Ok(gears) = gears.with_aipp(ops) {
                // An accepted file is written and read back unchanged.
                prop_assert_eq!(reread(encode(&gears).as_bytes()).unwrap(), gears);
            }
        }
    }

    #[test]
    fn files_of_the_vendors_documents_are_read() {
        let text = "# two inputs\naipp_op {\n  aipp_mode: static  # how\n  input_format : \
                    YUV420SP_U8\n csc_switch: true; matrix_r1c1 : -88,\n var_reci_chn_0: \
                    0.00392157f min_chn_1: 1 }\naipp_op: <related_input_rank: 1 aipp_mode:static \
                    input_format:RGB888_U8 related_input_name: \"im\">";
        let ops = parse(text).unwrap();
        assert_eq!(ops.len(), 2);
        assert_eq!(ops[0].aipp_mode, AippMode::Static);
        assert_eq!(ops[0].input_format, AippInputFormat::Yuv420spU8);
        assert_eq!(ops[0].matrix_r1c1, Some(-88));
        assert_eq!(ops[0].matrix_r0c0, None);
        assert_eq!(ops[0].var_reci_chn_0, Some(0.003_921_57));
        assert_eq!(ops[0].minima(), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(ops[0].matrix(), [298, 516, 0, 298, -88, -208, 298, 0, 409]);
        assert_eq!(ops[1].related_input_rank, 1);
        assert_eq!(ops[1].related_input_name, "im");
    }

    #[test]
    fn mistakes_have_a_place() {
        let cases = [
            ("", "line 1, column 1: expected `aipp_op { … }`"),
            ("# nothing\n", "line 1, column 1: expected `aipp_op { … }`"),
            ("multi_shape_op {}", "line 1, column 1: expected `aipp_op`"),
            ("aipp_op\n", "line 2, column 1: expected `{`, found the end"),
            ("aipp_op {\n crop", "line 2, column 6: expected `:`"),
            (
                "aipp_op { crop true }",
                "line 1, column 16: expected `:` after `crop`",
            ),
            (
                "aipp_op { crop: }",
                "line 1, column 17: expected a value of `crop`",
            ),
            (
                "aipp_op { crop: 3 }",
                "line 1, column 17: `crop`: invalid type: integer `3`",
            ),
            (
                "aipp_op { crop: true\n crop: true }",
                "line 2, column 2: `crop` appears twice",
            ),
            (
                "aipp_op { src_image_size: 3 }",
                "unknown key `src_image_size`; did you mean `src_image_size_",
            ),
            ("aipp_op { zzz: 3 }", "line 1, column 11: unknown key `zzz`"),
            (
                "aipp_op { input_format: YUYV_U8 }",
                "unknown variant `YUYV_U8`",
            ),
            (
                "aipp_op { crop: \"x }",
                "line 1, column 17: expected the end of the string",
            ),
            ("aipp_op { ä", "line 1, column 11: unexpected `\\u{e4}`"),
            (
                "aipp_op { mean_chn_0: 1.5 }",
                "`mean_chn_0`: invalid type: floating point",
            ),
        ];
        for (text, part) in cases {
            let told = parse(text).unwrap_err().to_string();
            assert!(told.contains(part), "{text}: {told}");
        }
    }
}
