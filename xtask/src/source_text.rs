//! A Rust file as text: its code without comments and strings, and the contents of each line.

/// A Rust file, split into code and comments.
pub(crate) struct SourceText {
    /// The file with every comment, character and string blanked, so that brackets and words are
    /// code.
    pub(crate) code: String,
    /// The contents of each line.
    pub(crate) lines: Vec<LineContent>,
}

/// The contents of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LineContent {
    pub(crate) has_code: bool,
    pub(crate) has_comment: bool,
    pub(crate) has_doc: bool,
    /// Whether the line is inside a module for tests.
    pub(crate) is_test: bool,
}

impl SourceText {
    pub(crate) fn parse(source: &str) -> SourceText {
        let mut lexer = Lexer {
            source: source.as_bytes(),
            position: 0,
            line: 0,
            code: source.as_bytes().to_vec(),
            lines: vec![LineContent::default(); source.split('\n').count()],
        };
        lexer.run();
        // Only whole characters were blanked, each byte by a space, so the result is UTF-8.
        let code = String::from_utf8(lexer.code).expect("blanking keeps characters whole");
        let mut lines = lexer.lines;
        for (first, last) in test_modules(&code) {
            for line in &mut lines[first..=last] {
                line.is_test = true;
            }
        }
        SourceText { code, lines }
    }

    /// The lines of code outside of tests, each with its number from 0 on.
    pub(crate) fn program_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.split('\n').enumerate();
        lines.filter(|(i, _)| !self.lines[*i].is_test)
    }
}

struct Lexer<'a> {
    source: &'a [u8],
    position: usize,
    line: usize,
    code: Vec<u8>,
    lines: Vec<LineContent>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while self.position < self.source.len() {
            let rest = &self.source[self.position..];
            if rest[0] == b'\n' {
                self.line += 1;
                self.position += 1;
            } else if rest[0].is_ascii_whitespace() {
                self.position += 1;
            } else if rest.starts_with(b"//") {
                let n_bytes = rest.iter().position(|byte| *byte == b'\n');
                let is_doc = rest.starts_with(b"///") || rest.starts_with(b"//!");
                self.comment(n_bytes.unwrap_or(rest.len()), is_doc);
            } else if rest.starts_with(b"/*") {
                self.comment(block_comment(rest), false);
            } else if let Some(n_bytes) = self.text_length() {
                self.literal(n_bytes);
            } else {
                self.lines[self.line].has_code = true;
                // Words are consumed whole: an `r` at the end of a word does not begin a raw
                // string.
                let word = rest.iter().take_while(|byte| is_word(**byte)).count();
                self.position += word.max(1);
            }
        }
    }

    fn comment(&mut self, n_bytes: usize, is_doc: bool) {
        self.blank(n_bytes, |line| {
            line.has_comment = true;
            line.has_doc |= is_doc;
        });
    }

    fn literal(&mut self, n_bytes: usize) {
        self.blank(n_bytes, |line| line.has_code = true);
    }

    fn blank(&mut self, n_bytes: usize, mark: impl Fn(&mut LineContent)) {
        for _ in 0..n_bytes {
            mark(&mut self.lines[self.line]);
            if self.source[self.position] == b'\n' {
                self.line += 1;
            } else {
                self.code[self.position] = b' ';
            }
            self.position += 1;
        }
    }

    /// The length in bytes of the string or character that begins here, quotes included.
    fn text_length(&self) -> Option<usize> {
        let rest = &self.source[self.position..];
        let n_prefix = rest
            .iter()
            .take(2)
            .take_while(|c| b"bcr".contains(c))
            .count();
        let quoted = &rest[n_prefix..];
        let is_raw = rest[..n_prefix].ends_with(b"r");
        let n_hashes = quoted.iter().take_while(|byte| **byte == b'#').count();
        if is_raw && quoted.get(n_hashes) == Some(&b'"') {
            let mut end = vec![b'"'];
            end.resize(n_hashes + 1, b'#');
            let body = &quoted[n_hashes + 1..];
            let n_body = body.windows(end.len()).position(|window| window == end);
            return Some(rest.len().min(
                n_prefix + n_hashes + 1 + n_body.map_or(body.len(), |n_body| n_body + end.len()),
            ));
        }
        match quoted.first() {
            Some(b'"') => Some(n_prefix + escaped_length(quoted, b'"')),
            Some(b'\'') if is_character(quoted) => Some(n_prefix + escaped_length(quoted, b'\'')),
            _ => None,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a quote begins a character rather than a lifetime.
fn is_character(quoted: &[u8]) -> bool {
    match quoted.get(1) {
        Some(b'\\') => true,
        // The second quote follows a single character of up to four bytes.
        Some(first) => {
            let n_bytes = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            quoted.get(1 + n_bytes) == Some(&b'\'')
        }
        None => false,
    }
}

fn escaped_length(quoted: &[u8], quote: u8) -> usize {
    let mut i = 1;
    while i < quoted.len() && quoted[i] != quote {
        i += if quoted[i] == b'\\' { 2 } else { 1 };
    }
    quoted.len().min(i + 1)
}

/// The length of a comment between `/*` and `*/`, which may be nested.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut i = 0;
    while i < rest.len() {
        if rest[i..].starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if rest[i..].starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    rest.len()
}

/// First and last line of each module under `#[cfg(test)]` in the file.
fn test_modules(code: &str) -> Vec<(usize, usize)> {
    let mut modules = Vec::new();
    for (at, attribute) in code.match_indices("#[cfg(") {
        let rest = &code[at + attribute.len()..];
        if !(rest.starts_with("test)") || rest.starts_with("all(test")) {
            continue;
        }
        let Some(open) = rest.find(['{', ';']) else {
            continue;
        };
        let between = &rest[..open];
        if rest.as_bytes()[open] == b'{' && between.contains("mod ") {
            let start = at + attribute.len() + open;
            let end = closing_brace(code, start);
            modules.push((line_of(code, at), line_of(code, end)));
        }
    }
    modules
}

/// The position of the brace that closes the one at `open`, or of the last byte.
pub(crate) fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (i, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return i,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len().saturating_sub(1)
}

fn line_of(code: &str, position: usize) -> usize {
    code[..position].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, code: &str) {
        assert_eq!(SourceText::parse(source).code, code);
    }

    #[test]
    fn texts_and_comments_are_blanked() {
        check("a // b\nc", "a     \nc");
        check(r#"f("a\"b") + 1"#, "f(      ) + 1");
        check(r##"r#"a"b"# x"##, "         x");
        check("'a' 'b: &'static str", "    'b: &'static str");
        check("'\\'' x", "     x");
        check("'ä' x", "     x");
        check("/* a /* b */ c */ d", "                  d");
        check("for r in x {}", "for r in x {}");
        check("b\"{\" }", "     }");
    }

    #[test]
    fn lines_are_told_apart() {
        let source = "//! Head.\nfn f() {} // why\n\n#[cfg(test)]\nmod tests {\n    // t\n}\n";
        let lines = SourceText::parse(source).lines;
        assert!(lines[0].has_doc && lines[0].has_comment && !lines[0].has_code);
        assert!(lines[1].has_code && lines[1].has_comment && !lines[1].has_doc);
        assert_eq!(lines[2], LineContent::default());
        let is_test: Vec<bool> = lines.iter().map(|line| line.is_test).collect();
        assert_eq!(
            is_test,
            [false, false, false, true, true, true, true, false]
        );
    }
}
