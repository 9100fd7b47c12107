//! Checks regular expressions for MindSpore, which uses those of C++ (ECMAScript).
//!
//! Only the syntax is checked. Oddities that C++ accepts are accepted here: `a**`, a lone `]` or
//! `}`, a backslash before any letter.

mod bracket;

/// Returns MindSpore's message for a text that it refuses.
pub(super) fn check(pattern: &str) -> Result<(), &'static str> {
    let mut parser = RegexParser {
        chars: pattern.chars().collect(),
        at: 0,
        n_open: 0,
        n_groups: 0,
        open_groups: Vec::new(),
    };
    parser.alternatives()?;
    match parser.peek() {
        None => Ok(()),
        // A quantifier without anything before it, or `)` without `(`.
        Some(_) => Err(MISMATCHED),
    }
}

const MISMATCHED: &str = "Mismatched '(' and ')' in regular expression";
/// Maximum nesting of groups, to protect the stack.
const NESTING_MAX: usize = 1000;
struct RegexParser {
    chars: Vec<char>,
    at: usize,
    n_open: usize,
    n_groups: usize,
    open_groups: Vec<usize>,
}

/// One end of a range in a bracket.
enum RangeEnd {
    Char(char),
    Class,
}

impl RegexParser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn eat(&mut self, expected: &str) -> bool {
        let n = expected.chars().count();
        let rest = self.chars.get(self.at..self.at + n);
        let is = rest.is_some_and(|rest| rest.iter().copied().eq(expected.chars()));
        if is {
            self.at += n;
        }
        is
    }

    fn alternatives(&mut self) -> Result<(), &'static str> {
        self.n_open += 1;
        // The parser is recursive, and a configuration may have megabytes of parentheses.
        if self.n_open > NESTING_MAX {
            return Err("the groups are nested too deeply");
        }
        loop {
            while self.term()? {}
            if !self.eat("|") {
                break;
            }
        }
        self.n_open -= 1;
        Ok(())
    }

    /// Parses one assertion, or an atom with its quantifiers; `false` if none begins here.
    fn term(&mut self) -> Result<bool, &'static str> {
        if self.eat("^") || self.eat("$") || self.eat("\\b") || self.eat("\\B") {
            return Ok(true);
        }
        if self.eat("(?=") || self.eat("(?!") {
            self.alternatives()?;
            return if self.eat(")") {
                Ok(true)
            } else {
                Err("Parenthesis is not closed.")
            };
        }
        if !self.atom()? {
            return Ok(false);
        }
        while self.quantifier()? {}
        Ok(true)
    }

    fn atom(&mut self) -> Result<bool, &'static str> {
        match self.peek() {
            None | Some('|' | ')' | '*' | '+' | '?' | '{') => return Ok(false),
            Some('(') => self.group()?,
            Some('[') => self.bracket()?,
            Some('\\') => {
                self.at += 1;
                self.escape()?;
            }
            Some(_) => self.at += 1,
        }
        Ok(true)
    }

    fn group(&mut self) -> Result<(), &'static str> {
        if self.eat("(?:") {
            self.alternatives()?;
        } else if self.eat("(?") {
            return Err(match self.peek() {
                None => "Unexpected end of regex when in an open parenthesis.",
                Some(_) => "Invalid '(?...)' zero-width assertion in regular expression",
            });
        } else {
            self.at += 1;
            self.n_groups += 1;
            self.open_groups.push(self.n_groups);
            self.alternatives()?;
            self.open_groups.pop();
        }
        if self.eat(")") {
            Ok(())
        } else {
            Err(MISMATCHED)
        }
    }

    /// Parses the part after a backslash outside of brackets.
    fn escape(&mut self) -> Result<(), &'static str> {
        let Some(c) = self.next() else {
            return Err("Invalid escape at end of regular expression");
        };
        match c {
            // Outside of brackets `\0` is NUL, and other digits are back-references.
            '1'..='9' => {
                let mut n = c.to_digit(10).map_or(0, |digit| digit as usize);
                while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
                    n = n.saturating_mul(10).saturating_add(digit as usize);
                    self.at += 1;
                }
                match n {
                    n if n > self.n_groups => {
                        Err("Back-reference index exceeds current sub-expression count.")
                    }
                    // A group cannot refer to itself while it is still open.
                    n if self.open_groups.contains(&n) => {
                        Err("Back-reference referred to an opened sub-expression.")
                    }
                    _ => Ok(()),
                }
            }
            _ => self.code(c).map(|_| ()),
        }
    }

    /// The character of an escape, if it is one.
    fn code(&mut self, c: char) -> Result<RangeEnd, &'static str> {
        let n_digits = match c {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => return Ok(RangeEnd::Class),
            'c' => {
                return self
                    .next()
                    .map(RangeEnd::Char)
                    .ok_or("invalid '\\cX' control character in regular expression");
            }
            // The two forms with a fixed number of hexadecimal digits.
            'x' => 2,
            'u' => 4,
            '0' => return Ok(RangeEnd::Char('\0')),
            'f' => return Ok(RangeEnd::Char('\u{c}')),
            'n' => return Ok(RangeEnd::Char('\n')),
            'r' => return Ok(RangeEnd::Char('\r')),
            't' => return Ok(RangeEnd::Char('\t')),
            'v' => return Ok(RangeEnd::Char('\u{b}')),
            other => return Ok(RangeEnd::Char(other)),
        };
        let mut code = 0;
        for _ in 0..n_digits {
            let digit = self.next().and_then(|c| c.to_digit(16));
            let invalid = match n_digits {
                2 => "Invalid '\\xNN' control character in regular expression",
                _ => "Invalid '\\uNNNN' control character in regular expression",
            };
            code = code * 16 + digit.ok_or(invalid)?;
        }
        Ok(RangeEnd::Char(char::from_u32(code).unwrap_or('\u{fffd}')))
    }

    fn quantifier(&mut self) -> Result<bool, &'static str> {
        match self.peek() {
            Some('*' | '+' | '?') => self.at += 1,
            Some('{') => {
                self.at += 1;
                self.braces()?;
            }
            _ => return Ok(false),
        }
        // A question mark after a quantifier makes it lazy, with the same syntax.
        self.eat("?");
        Ok(true)
    }

    fn braces(&mut self) -> Result<(), &'static str> {
        let low = self
            .count()?
            .ok_or("Unexpected token in brace expression.")?;
        let high = if self.eat(",") {
            self.count()?
        } else {
            Some(low)
        };
        if !self.eat("}") {
            return Err("Unexpected end of brace expression.");
        }
        match high {
            Some(high) if high < low => Err("Invalid range in brace expression."),
            _ => Ok(()),
        }
    }

    fn count(&mut self) -> Result<Option<u64>, &'static str> {
        let mut count = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let next = count.unwrap_or(0_u64).saturating_mul(10);
            count = Some(next.saturating_add(u64::from(digit)));
            self.at += 1;
        }
        match self.peek() {
            Some(c) if !matches!(c, ',' | '}') => Err("Unexpected character in brace expression."),
            _ => Ok(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_of_the_cpp_library() {
        let table = include_str!("../../../tests/data/mindspore_regexes.tsv");
        let mut n_accepted = 0;
        for line in table.lines() {
            let (verdict, pattern) = line.split_once('\t').unwrap();
            assert_eq!(check(pattern).is_ok(), verdict == "ok", "{pattern}");
            n_accepted += usize::from(verdict == "ok");
        }
        assert_eq!((table.lines().count(), n_accepted), (872, 400));
    }

    #[test]
    fn syntax() {
        for pattern in [
            "",
            ".*",
            "a**",
            "a|",
            "|",
            "()",
            "(?:a)+?",
            "(?=.*x)a",
            "(?!b).",
            "[a-z_]",
            "[]",
            "[^]a",
            "[-a]",
            "[a-]",
            "[[:digit:]]+",
            "a{2}",
            "a{2,}",
            "a{2,3}?",
            "]",
            "}",
            r"\\d",
            r"\n",
            r"\q",
            r"(a)\1",
            r"\u0041",
            "^$",
            "[.]",
            "[[]",
        ] {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
        }
        for (pattern, expected) in [
            ("[", "Unexpected character in bracket expression."),
            ("a{2,1}", "Invalid range in brace expression."),
            ("*", MISMATCHED),
            ("(", MISMATCHED),
            (")", MISMATCHED),
            ("a|*", MISMATCHED),
            ("(?=a", "Parenthesis is not closed."),
            (
                "(?i)a",
                "Invalid '(?...)' zero-width assertion in regular expression",
            ),
            ("[b-a]", "Invalid range in bracket expression."),
            ("[[:no:]]", "Invalid character class."),
            ("a{,1}", "Unexpected token in brace expression."),
            ("a{x}", "Unexpected character in brace expression."),
            ("a{1", "Unexpected end of brace expression."),
            (r"\", "Invalid escape at end of regular expression"),
            (
                r"\1",
                "Back-reference index exceeds current sub-expression count.",
            ),
            (
                r"(\1)",
                "Back-reference referred to an opened sub-expression.",
            ),
        ] {
            assert_eq!(check(pattern), Err(expected), "{pattern}");
        }
        assert!(check(&"(".repeat(100_000)).is_err());
    }
}
