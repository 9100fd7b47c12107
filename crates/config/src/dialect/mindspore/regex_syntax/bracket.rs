//! The contents of brackets: characters, ranges and named classes.

use super::{RangeEnd, RegexParser};

/// The characters that begin and end a part in a bracket, each with the message for an unknown
/// name.
const BRACKET_PARTS: [(char, &str); 3] = [
    (':', "Invalid character class."),
    ('.', "Invalid collate element."),
    ('=', "Invalid equivalence class."),
];
/// Names of classes of characters.
const CLASSES: [&str; 15] = [
    "d", "w", "s", "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "xdigit",
];

impl RegexParser {
    pub(super) fn bracket(&mut self) -> Result<(), &'static str> {
        self.at += 1;
        // Unlike in POSIX, a `]` right after it ends the bracket.
        self.eat("^");
        let mut last = None;
        loop {
            match self.peek() {
                None => return Err("Unexpected character in bracket expression."),
                Some(']') => {
                    self.at += 1;
                    return Ok(());
                }
                // Between two ends it is a range, elsewhere a character.
                Some('-')
                    if last.is_some() && !matches!(self.chars.get(self.at + 1), Some(']')) =>
                {
                    self.at += 1;
                    let Some(RangeEnd::Char(low)) = last.take() else {
                        return Err("Invalid start of '[x-x]' range in regular expression");
                    };
                    match self.element()? {
                        RangeEnd::Char(high) if low <= high => {}
                        RangeEnd::Char(_) => return Err("Invalid range in bracket expression."),
                        RangeEnd::Class => {
                            return Err("Invalid end of '[x-x]' range in regular expression");
                        }
                    }
                }
                Some(_) => last = Some(self.element()?),
            }
        }
    }

    fn element(&mut self) -> Result<RangeEnd, &'static str> {
        let Some(c) = self.next() else {
            return Err("Unexpected character in bracket expression.");
        };
        match c {
            '\\' => match self.next() {
                None => Err("Invalid escape at end of regular expression"),
                Some('b') => Ok(RangeEnd::Char('\u{8}')),
                Some(c) => self.code(c),
            },
            '[' => self.bracket_part(),
            c => Ok(RangeEnd::Char(c)),
        }
    }

    /// Parses the part after a `[` inside a bracket: a named part, or nothing.
    fn bracket_part(&mut self) -> Result<RangeEnd, &'static str> {
        let part = BRACKET_PARTS
            .iter()
            .find(|(mark, _)| self.peek() == Some(*mark));
        let Some((mark, unknown)) = part else {
            return Ok(RangeEnd::Char('['));
        };
        self.at += 1;
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let end = [*mark, ']'];
        let Some(n) = rest.windows(end.len()).position(|pair| pair == end) else {
            return Err("Unexpected end of character class.");
        };
        self.at += n + end.len();
        let name: String = rest.iter().take(n).collect();
        match mark {
            ':' if CLASSES.contains(&name.as_str()) => Ok(RangeEnd::Class),
            ':' => Err(unknown),
            // C++ knows collating elements by name, and every single character is one.
            _ if n == 1 => Ok(RangeEnd::Class),
            _ => Err(unknown),
        }
    }
}
