//! Values of attributes as text, in both directions.
//!
//! A single one is written with its type, as arguments are: `I64(1)`, `"same"`. Values in a list or
//! a tuple print themselves: `(3, 3)`, `[x, w]`. Texts there that could be taken for something else
//! get quotes, which is an addition of ours.

use opscope_tensor::DType;

use super::DEPTH_MAX;
use super::scan::{inside, split};
use super::values::{parse_literal, quoted_text, unescaped, write_literal};
use crate::file_format::ms_dtype;
use crate::record::graph::{Literal, NONE, decimals};

pub(super) fn write_attribute(out: &mut String, value: &Literal) {
    match value {
        Literal::Tuple(_) | Literal::List(_) => out.push_str(&plain(value)),
        _ => write_literal(out, value),
    }
}

fn plain(value: &Literal) -> String {
    let all = |values: &[Literal]| values.iter().map(plain).collect::<Vec<_>>().join(", ");
    match value {
        Literal::Tuple(values) => format!("({})", all(values)),
        Literal::List(values) => format!("[{}]", all(values)),
        Literal::Bool(value) => value.to_string(),
        Literal::Int(_, value) => value.to_string(),
        // MindSpore prints six decimals; more are printed only where six are ambiguous.
        Literal::Float(_, value) => decimals(*value),
        // Nothing but the text itself is read from it.
        Literal::Text(text) if is_plain(text) => text.clone(),
        Literal::Text(text) => quoted_text(text),
        Literal::Name(name) => name.clone(),
        Literal::Tensor(..) | Literal::Monad(_) => {
            let mut text = String::new();
            write_literal(&mut text, value);
            text
        }
    }
}

pub(super) fn parse_attribute(text: &str) -> Literal {
    // A single value shows its type, and a text its quotes. In a list both are missing, so elements
    // have separate rules.
    let is_list = inside(text, "(", ")").is_some() || inside(text, "[", "]").is_some();
    if is_list {
        element(text, 0)
    } else {
        parse_literal(text)
    }
}

fn elements(text: &str, depth: usize) -> Vec<Literal> {
    let texts = split(text, ", ").into_iter();
    texts.map(|text| element(text, depth)).collect()
}

fn element(text: &str, depth: usize) -> Literal {
    // Deeper values stay text, so that nesting in a file cannot exhaust the stack.
    if depth == DEPTH_MAX {
        return Literal::Name(text.to_owned());
    }
    if let Some(values) = inside(text, "(", ")") {
        return Literal::Tuple(elements(values, depth + 1));
    }
    if let Some(values) = inside(text, "[", "]") {
        return Literal::List(elements(values, depth + 1));
    }
    if let Some(text) = inside(text, "\"", "\"") {
        return Literal::Text(unescaped(text));
    }
    match text {
        "true" => return Literal::Bool(true),
        "false" => return Literal::Bool(false),
        NONE => return Literal::Name(text.to_owned()),
        _ => {}
    }
    if let Ok(value) = text.parse::<i128>() {
        return Literal::Int(None, value);
    }
    // This takes words such as `nan` for numbers as well, and so `is_plain` has such texts quoted.
    if let Ok(value) = text.parse::<f64>() {
        return Literal::Float(DType::F32, value);
    }
    // A word without quotes is a text unless it names a dtype, as `F32` does.
    match (ms_dtype::from_short(text), parse_literal(text)) {
        (Some(_), _) => Literal::Name(text.to_owned()),
        (None, Literal::Name(_)) => Literal::Text(text.to_owned()),
        (None, other) => other,
    }
}

fn is_plain(text: &str) -> bool {
    let is_padded = text.trim() != text;
    !text.is_empty()
        && !is_padded
        && !text.contains(|c| {
            matches!(c, ',' | '"' | '\\' | '(' | ')' | '[' | ']' | '{' | '}') || c.is_control()
        })
        // The reader itself decides what it would take for something else, so that the two agree.
        && matches!(element(text, 0), Literal::Text(_))
}
