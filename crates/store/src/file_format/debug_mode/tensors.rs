//! Descriptions of tensors among the arguments and results of a call:
//! `t$3: bf16[2, 4]{device=cpu}| S(0)`.

use super::DebugTensor;

/// The words that begin them: of distributed tensors, of those without elements, and of others.
const WORDS: [&str; 3] = ["dt", "ft", "t"];

/// The tensors of a text, in their order. Other text is skipped.
pub(super) fn find(text: &str) -> Vec<DebugTensor> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        // The words are also the ends of others, such as `weight`.
        let begins = before.is_none_or(|c: char| !c.is_alphanumeric() && !"_.$".contains(c));
        if begins && let Some((tensor, behind)) = description(rest) {
            found.push(tensor);
            rest = behind;
            before = Some(']');
            continue;
        }
        before = Some(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    found
}

/// Whether a text has any.
pub(super) fn has_any(text: &str) -> bool {
    !find(text).is_empty()
}

/// The tensor at the beginning of a text, and the rest.
fn description(text: &str) -> Option<(DebugTensor, &str)> {
    let mut rest = WORDS.iter().find_map(|word| {
        let rest = text.strip_prefix(word)?;
        rest.starts_with(['$', ':']).then_some(rest)
    })?;
    let mut number = None;
    if let Some(id) = rest.strip_prefix('$') {
        rest = id.trim_start_matches(|c: char| c.is_ascii_digit());
        number = id[..id.len() - rest.len()].parse().ok();
    }
    let rest = rest.strip_prefix(": ")?;
    let (dtype, rest) = rest.split_once('[')?;
    let mut chars = dtype.chars();
    if dtype.is_empty() || !chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()) {
        return None;
    }
    let (extents, rest) = rest.split_once(']')?;
    // Attributes appear between shape and placement if the program requested any.
    let rest = rest.strip_prefix('{').map_or(Some(rest), behind_brace)?;
    let (placement, rest) = match rest.strip_prefix("| ") {
        Some(rest) => {
            // A placement has no blanks; in a list the description is in quotes.
            let end = rest.find([' ', ',', '\'', '"']).unwrap_or(rest.len());
            let (placement, rest) = rest.split_at(end);
            (Some(placement.to_owned()), rest)
        }
        None => (None, rest),
    };
    let tensor = DebugTensor {
        dtype: dtype.to_owned(),
        shape: shape(extents),
        placement: placement.filter(|placement| !placement.is_empty()),
        number,
        is_unwritten: false,
        hashes: Vec::new(),
    };
    Some((tensor, rest))
}

/// Dimensions separated by `, `; `None` if one is not a number.
fn shape(extents: &str) -> Option<Vec<u64>> {
    if extents.is_empty() {
        return Some(Vec::new());
    }
    extents.split(", ").map(|text| text.parse().ok()).collect()
}

/// Returns the text after the brace that closes an open one. Attributes can contain braces.
fn behind_brace(text: &str) -> Option<&str> {
    let mut n_open = 1_usize;
    for (position, c) in text.char_indices() {
        n_open = match c {
            '{' => n_open + 1,
            '}' => n_open - 1,
            _ => n_open,
        };
        if n_open == 0 {
            return text.get(position + 1..);
        }
    }
    None
}
