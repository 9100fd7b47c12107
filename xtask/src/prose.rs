//! The width of prose in Markdown.

/// Maximum width of a line of prose, as for code.
const COLUMNS_MAX: usize = 100;

/// Line numbers, from 1 on, of lines that are too wide and could be broken. Tables and examples
/// cannot.
pub(crate) fn too_wide(text: &str) -> Vec<usize> {
    let mut is_example = false;
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let content = line.trim_start();
        if content.starts_with("```") {
            is_example = !is_example;
        } else if !is_example && !content.starts_with('|') && is_breakable(line) {
            found.push(i + 1);
        }
    }
    found
}

/// Whether a line is too wide and has a blank, outside of code, where it could be broken.
fn is_breakable(line: &str) -> bool {
    if line.chars().count() <= COLUMNS_MAX {
        return false;
    }
    let content = line.trim_start_matches([' ', '-', '*', '#', '>']);
    let n_before = line.chars().count() - content.chars().count();
    let mut is_code = false;
    let mut characters = content.chars().take(COLUMNS_MAX + 1 - n_before);
    characters.any(|character| {
        is_code ^= character == '`';
        character == ' ' && !is_code
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_lines_of_prose_are_found() {
        let check = |text: &str, expected: &[usize]| assert_eq!(too_wide(text), expected, "{text}");
        let wide = "word ".repeat(21);
        check(&wide, &[1]);
        check(&format!("short\n- {wide}\n"), &[2]);
        check(&"word ".repeat(20), &[]);
        check(&format!("| {wide} |"), &[]);
        check(&format!("```text\n{wide}\n```\n{wide}"), &[4]);
        check(&format!("- `{wide}`"), &[]);
        check(&"x".repeat(200), &[]);
    }
}
