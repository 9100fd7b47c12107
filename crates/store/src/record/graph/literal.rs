//! Values from the texts of operators, and back to MindSpore's text.

use opscope_tensor::DType;

use super::Literal;
use crate::file_format::ms_dtype;
use crate::file_format::number_text::general;
use crate::record::AttributeKind;

/// Maximum nesting of lists.
const DEPTH_MAX: usize = 32;
/// Marks a truncated list.
const CUT: char = '…';

impl Literal {
    /// The value that the text of an attribute represents. Ambiguous text stays text.
    pub fn from_text(text: &str, r#type: AttributeKind) -> Literal {
        let known = match r#type {
            AttributeKind::Int => int(text),
            AttributeKind::Float => float(text),
            AttributeKind::Ints => list(text, int).map(Literal::Tuple),
            AttributeKind::Floats => list(text, float).map(Literal::Tuple),
            AttributeKind::Text => Some(Literal::Text(unquoted(text))),
            AttributeKind::Python => python(text),
            AttributeKind::Other => guessed(text),
        };
        known.unwrap_or_else(|| Literal::Text(text.to_owned()))
    }

    /// The value as MindSpore's values print themselves: texts without quotes, numbers without
    /// their types.
    pub fn plain_text(&self) -> String {
        let all = |values: &[Literal]| {
            let texts: Vec<String> = values.iter().map(Literal::plain_text).collect();
            texts.join(", ")
        };
        match self {
            Literal::Bool(value) => value.to_string(),
            Literal::Int(_, value) => value.to_string(),
            Literal::Float(_, value) => decimals(*value),
            Literal::Text(text) | Literal::Name(text) | Literal::Monad(text) => text.clone(),
            Literal::Tuple(values) => format!("({})", all(values)),
            Literal::List(values) => format!("[{}]", all(values)),
            Literal::Tensor(_, elements) if elements.is_empty() => "Tensor".to_owned(),
            Literal::Tensor(_, elements) => elements.clone(),
        }
    }
}

/// Six decimals, as C++ prints a float; more where these would lose some of the first six digits.
pub fn decimals(value: f64) -> String {
    let plain = format!("{value:.6}");
    let is_same = plain
        .parse::<f64>()
        .is_ok_and(|read| general(read) == general(value));
    if is_same && value.is_finite() {
        plain
    } else {
        general(value)
    }
}

fn int(text: &str) -> Option<Literal> {
    let value = text.parse::<i64>().ok()?;
    Some(Literal::Int(Some(DType::I64), value.into()))
}

fn float(text: &str) -> Option<Literal> {
    Some(Literal::Float(DType::F32, text.parse().ok()?))
}

/// The elements of a list in brackets.
fn list(text: &str, element: impl Fn(&str) -> Option<Literal>) -> Option<Vec<Literal>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let elements = elements(inner).into_iter();
    let values = elements.map(|text| element(text.trim()));
    values.collect()
}

/// The parts between commas outside quotes.
fn elements(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                all.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        all.push(&text[start..]);
    }
    all
}

/// A value whose type follows from the text alone.
fn guessed(text: &str) -> Option<Literal> {
    // The number of its elements is known, but not the elements.
    if text.contains(CUT) {
        return None;
    }
    if text.starts_with('"') {
        return Some(Literal::Text(unquoted(text)));
    }
    int(text).or_else(|| {
        list(text, |text| {
            if text.starts_with('"') {
                Some(Literal::Text(unquoted(text)))
            } else {
                int(text).or_else(|| float(text))
            }
        })
        .map(Literal::List)
    })
}

/// A text without the quotes around it and the escapes in it.
fn unquoted(text: &str) -> String {
    let Some(inner) = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('0') => out.push('\0'),
            Some('u') => {
                let digits: String = rest
                    .by_ref()
                    .take_while(|c| *c != '}')
                    .filter(char::is_ascii_hexdigit)
                    .collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                out.extend(code.and_then(char::from_u32));
            }
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

/// A value as Python prints it; `None` if the text is truncated or not a value.
fn python(text: &str) -> Option<Literal> {
    let mut scanner = Scanner { rest: text };
    let value = scanner.value(0)?;
    scanner.rest.trim().is_empty().then_some(value)
}

struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    fn value(&mut self, depth: usize) -> Option<Literal> {
        if depth == DEPTH_MAX {
            return None;
        }
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '[' => self.values(']', depth).map(Literal::List),
            '(' => self.values(')', depth).map(Literal::Tuple),
            quote @ ('\'' | '"') => self.quoted(quote),
            _ => Some(self.word()),
        }
    }

    fn values(&mut self, close: char, depth: usize) -> Option<Vec<Literal>> {
        self.rest = &self.rest[1..];
        let mut values = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix(close) {
                self.rest = rest;
                return Some(values);
            }
            values.push(self.value(depth + 1)?);
            self.rest = self.rest.trim_start();
            let is_closed = self.rest.starts_with(close);
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None if is_closed => {}
                None => return None,
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Option<Literal> {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.rest = &self.rest[1 + at + 1..];
                return Some(Literal::Text(text));
            }
            match c {
                '\\' => text.push(match chars.next()?.1 {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                }),
                _ => text.push(c),
            }
        }
        None
    }

    /// Reads to the end of an element, which may contain parentheses, as in `device(type='cpu')`.
    fn word(&mut self) -> Literal {
        let mut depth = 0_usize;
        let end = self.rest.find(|c| match c {
            '(' => {
                depth += 1;
                false
            }
            ')' if depth > 0 => {
                depth -= 1;
                false
            }
            ',' | ')' | ']' => depth == 0,
            _ => false,
        });
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        let word = word.trim();
        let dtype = word.strip_prefix("torch.").and_then(ms_dtype::from_name);
        match word {
            "True" => Literal::Bool(true),
            "False" => Literal::Bool(false),
            "None" => Literal::Name(super::NONE.to_owned()),
            _ => match dtype.and_then(ms_dtype::short) {
                Some(short) => Literal::Name(short.to_owned()),
                None => (int(word).or_else(|| float(word)))
                    .unwrap_or_else(|| Literal::Text(word.to_owned())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, r#type: AttributeKind, expected: &str) {
        let value = Literal::from_text(text, r#type);
        assert_eq!(value.plain_text(), expected, "{text} {value:?}");
    }

    #[test]
    fn values_print_themselves_as_in_mindspore() {
        use AttributeKind::{Float, Floats, Int, Ints, Other, Python, Text};
        for (text, r#type, expected) in [
            ("-3", Int, "-3"),
            ("1", Float, "1.000000"),
            ("0.01", Float, "0.010000"),
            ("0.00000001", Float, "1e-08"),
            ("[3, 3]", Ints, "(3, 3)"),
            ("[]", Ints, "()"),
            ("[0.5, 2]", Floats, "(0.500000, 2.000000)"),
            ("\"same\"", Text, "same"),
            ("\"a, \\\"b\\\"\\u{e9}\"", Text, "a, \"b\"é"),
            ("[\"x\", \"a, b\"]", Other, "[x, a, b]"),
            ("inf", Float, "inf"),
            ("tensor[2, 3]", Other, "tensor[2, 3]"),
            ("[1, 2, … 100 in all]", Other, "[1, 2, … 100 in all]"),
            ("graph `body` of 2 nodes", Other, "graph `body` of 2 nodes"),
            (
                "[1, [2.5, True], (None,), 'a, b']",
                Python,
                "[1, [2.500000, true], (None), a, b]",
            ),
            ("torch.float32", Python, "F32"),
            ("device(type='cpu')", Python, "device(type='cpu')"),
            ("same", Python, "same"),
            ("[1, 2", Python, "[1, 2"),
        ] {
            check(text, r#type, expected);
        }
    }
}
