//! Finding one's way in text with brackets and quotes.

/// Position of the byte that closes the bracket at the beginning of `text`.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let (mut is_quoted, mut is_escaped) = (false, false);
    // Bytes are enough: no byte of a longer UTF-8 character is an ASCII one.
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            // Backslashes outside quotes belong to names: MindSpore allows parameters called `c\d`.
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Position of the first of several texts outside brackets and quotes.
pub(super) fn find_outside(text: &str, wanted: &[&str]) -> Option<usize> {
    let mut depth = 0_usize;
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        let rest = &text.as_bytes()[at..];
        let mut wanted = wanted.iter();
        if depth == 0 && !is_quoted && wanted.any(|wanted| rest.starts_with(wanted.as_bytes())) {
            return Some(at);
        }
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The parts of `text` between separators outside brackets and quotes; none of an empty text.
pub(super) fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = find_outside(rest, &[separator]) {
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    if !text.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Returns the text between `before` and `after`; `None` unless they enclose all of `text`.
pub(super) fn inside<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.strip_suffix(after)
}
