//! Quoting of texts, names and paths in statements.

/// A string literal of any characters, on one line.
pub(super) fn literal(text: &str) -> String {
    let mut quoted = "e'".to_owned();
    for character in text.chars() {
        match character {
            '\\' => quoted += "\\\\",
            '\'' => quoted += "''",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            _ => quoted.push(character),
        }
    }
    quoted.push('\'');
    quoted
}

/// A quoted identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A path with glob characters escaped.
pub(super) fn escaped(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for character in path.chars() {
        if "*?[".contains(character) {
            pattern.extend(['[', character, ']']);
        } else {
            pattern.push(character);
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::{escaped, literal};

    #[test]
    fn texts_stay_one_line_and_cannot_end() {
        assert_eq!(literal("it's"), "e'it''s'");
        assert_eq!(literal("a\\'\n.shell\r"), "e'a\\\\''\\n.shell\\r'");
        assert_eq!(escaped("a [1]*?"), "a [[]1][*][?]");
    }
}
