//! Values as Python prints them: `{'hash': (3.5, None), 'input_hash': (([1.0],), {})}`.

use super::hashes::HashTree;
use crate::decimal::is_digits;

/// Maximum nesting of values.
const DEPTH_MAX: usize = 64;

/// The value that a text is; none if it is something else than numbers, texts and containers of
/// them. Keys need no quotes.
pub(super) fn parse(text: &str) -> Option<HashTree> {
    let mut rest = text.trim();
    let tree = value(&mut rest, 0)?;
    rest.is_empty().then_some(tree)
}

fn value(rest: &mut &str, depth: usize) -> Option<HashTree> {
    if depth > DEPTH_MAX {
        return None;
    }
    let first = rest.chars().next()?;
    match first {
        '(' => items(rest, ')', depth),
        '[' => items(rest, ']', depth),
        '{' => items(rest, '}', depth),
        '\'' | '"' => Some(HashTree::of_text(&quoted(rest, first)?)),
        _ => scalar(bare(rest)?),
    }
}

/// Values up to a bracket, with keys in a dictionary.
fn items(rest: &mut &str, end: char, depth: usize) -> Option<HashTree> {
    advance(rest, 1)?;
    let mut items = Vec::new();
    loop {
        if let Some(behind) = rest.strip_prefix(end) {
            *rest = behind;
            skip_blanks(rest);
            return Some(HashTree::Branch(items));
        }
        let key = if end == '}' {
            // Hashes of kernels are printed without quotes around their names.
            let key = match rest.chars().next()? {
                quote @ ('\'' | '"') => quoted(rest, quote)?,
                _ => bare(rest)?.to_owned(),
            };
            *rest = rest.strip_prefix(':')?;
            skip_blanks(rest);
            key
        } else {
            String::new()
        };
        items.push((key, value(rest, depth + 1)?));
        match rest.strip_prefix(',') {
            Some(behind) => {
                *rest = behind;
                skip_blanks(rest);
            }
            None if rest.starts_with(end) => {}
            None => return None,
        }
    }
}

/// A text in quotes. Of an escape only the second character is kept, because texts are compared,
/// not shown as in Python.
fn quoted(rest: &mut &str, quote: char) -> Option<String> {
    advance(rest, 1)?;
    let mut text = String::new();
    let mut is_escaped = false;
    for (position, c) in rest.char_indices() {
        if is_escaped || (c != '\\' && c != quote) {
            text.push(c);
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else {
            advance(rest, position + 1)?;
            skip_blanks(rest);
            return Some(text);
        }
    }
    None
}

/// A word without quotes.
fn bare<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let end = rest
        .find([',', ':', '(', ')', '[', ']', '{', '}', '\'', '"'])
        .unwrap_or(rest.len());
    let word = rest.get(..end)?.trim();
    advance(rest, end)?;
    (!word.is_empty()).then_some(word)
}

fn scalar(word: &str) -> Option<HashTree> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    Some(match word {
        "None" => HashTree::None,
        "True" | "False" => HashTree::of_text(word),
        _ if is_digits(digits) => HashTree::of_integer(word.to_owned()),
        // Rust reads `nan`, `inf` and exponents as Python prints them.
        _ => HashTree::of_float(word.parse().ok()?),
    })
}

fn advance(rest: &mut &str, n_bytes: usize) -> Option<()> {
    *rest = rest.get(n_bytes..)?;
    Some(())
}

fn skip_blanks(rest: &mut &str) {
    *rest = rest.trim_start();
}
