//! Counts of names, comments and constructs over the whole workspace, each with a limit.
//!
//! A count does not judge a single name. It keeps many small decisions from drifting.

use std::collections::BTreeMap;

use crate::source_text::{SourceText, closing_brace};

/// Maximum share of one-word type names, in percent.
const ONE_WORD_MAX: f64 = 35.0;
/// Maximum share of type definitions that share a name, in percent.
const SHARED_MAX: f64 = 15.0;
/// Maximum share of participles among type names, in percent.
const PARTICIPLES_MAX: f64 = 2.0;
const BOOL_MATCHES_MAX: usize = 10;
/// Maximum number of named closures in 1,000 lines of code. Most of those left are used several
/// times.
const NAMED_CLOSURES_MAX: f64 = 7.0;
/// Minimum number of comment lines other than documentation, in 100 lines of code.
const COMMENTS_MIN: f64 = 3.0;

/// One-word nouns that end like participles.
const NOUNS: &[&str] = &[
    "Backend",
    "Background",
    "Bound",
    "Command",
    "End",
    "Extend",
    "Kind",
    "Mapping",
    "Matching",
    "Padding",
    "Pairing",
    "Ring",
    "Round",
    "Rounding",
    "Script",
    "Setting",
    "String",
    "Thing",
    "Timing",
    "Token",
    "Warning",
];
const PARTICIPLE_ENDINGS: &[&str] = &["ed", "en", "pt", "wn", "nd", "ing"];

/// Sums over the added files.
#[derive(Default)]
pub(crate) struct StyleCounts {
    n_code_lines: usize,
    n_comment_lines: usize,
    n_bool_matches: usize,
    n_named_closures: usize,
    n_functions_of: usize,
    n_what_docs: usize,
    /// Number of definitions of each type name.
    types: BTreeMap<String, usize>,
}

impl StyleCounts {
    /// Adds a file of the program.
    pub(crate) fn add(&mut self, source: &str, text: &SourceText) {
        let lines = source.split('\n').zip(&text.lines);
        for (line, content) in lines.filter(|(_, content)| !content.is_test) {
            self.n_code_lines += usize::from(content.has_code);
            let is_plain = content.has_comment && !content.has_doc && !content.has_code;
            self.n_comment_lines += usize::from(is_plain);
            let words = line.trim_start().trim_start_matches(['/', '!']);
            self.n_what_docs += usize::from(content.has_doc && words.starts_with(" What "));
        }
        let code: String = text
            .program_lines()
            .flat_map(|(_, line)| [line, "\n"])
            .collect();
        for line in code.lines() {
            if let Some(name) = defined_type(line) {
                *self.types.entry(name.to_owned()).or_default() += 1;
            }
            self.n_functions_of += usize::from(names_function_of(line));
            self.n_named_closures += usize::from(binds_closure(line));
        }
        self.n_bool_matches += bool_matches(&code);
    }

    /// The counts that exceed their limits, as text.
    pub(crate) fn problems(&self) -> Vec<String> {
        let counts = [
            (
                "type names of one word, %",
                self.one_word_percent(),
                ONE_WORD_MAX,
            ),
            (
                "type definitions with another's name, %",
                self.shared_percent(),
                SHARED_MAX,
            ),
            (
                "participles as type names, %",
                self.participle_percent(),
                PARTICIPLES_MAX,
            ),
            ("functions called `of`", self.n_functions_of as f64, 0.0),
            (
                "doc lines that begin with `What`",
                self.n_what_docs as f64,
                0.0,
            ),
            (
                "`match` on a bool",
                self.n_bool_matches as f64,
                BOOL_MATCHES_MAX as f64,
            ),
            (
                "named closures in 1,000 lines of code",
                1000.0 * self.n_named_closures as f64 / self.n_code_lines.max(1) as f64,
                NAMED_CLOSURES_MAX,
            ),
        ];
        let mut problems: Vec<String> = counts
            .iter()
            .filter(|(_, count, max)| count > max)
            .map(|(name, count, max)| format!("{name}: {count:.1}, at most {max} expected"))
            .collect();
        let comments = 100.0 * self.n_comment_lines as f64 / self.n_code_lines.max(1) as f64;
        if comments < COMMENTS_MIN {
            problems.push(format!(
                "comment lines in 100 lines of code: {comments:.1}, at least {COMMENTS_MIN} expected"
            ));
        }
        problems
    }

    fn percent(&self, counts: impl Fn(&str, usize) -> bool) -> f64 {
        let n_types: usize = self.types.values().sum();
        let counted = self.types.iter().filter(|(name, n)| counts(name, **n));
        100.0 * counted.map(|(_, n)| n).sum::<usize>() as f64 / n_types.max(1) as f64
    }

    fn one_word_percent(&self) -> f64 {
        self.percent(|name, _| is_one_word(name))
    }

    fn shared_percent(&self) -> f64 {
        self.percent(|_, n| n > 1)
    }

    fn participle_percent(&self) -> f64 {
        self.percent(|name, _| {
            let looks_like_one = PARTICIPLE_ENDINGS.iter().any(|end| name.ends_with(end));
            is_one_word(name) && looks_like_one && !NOUNS.contains(&name)
        })
    }
}

fn is_one_word(name: &str) -> bool {
    !name[1..].contains(|c: char| c.is_ascii_uppercase() || c == '_')
}

/// The name of the type or trait that a line defines.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = without_visibility(line).split_ascii_whitespace();
    let keyword = words.next()?;
    if !matches!(keyword, "struct" | "enum" | "trait" | "union") {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let name = &name[..end.unwrap_or(name.len())];
    name.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(name)
}

fn without_visibility(line: &str) -> &str {
    let line = line.trim_start();
    let Some(rest) = line.strip_prefix("pub") else {
        return line;
    };
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest,
        None => rest,
    }
}

fn names_function_of(line: &str) -> bool {
    let name = line.split("fn of").nth(1);
    name.is_some_and(|rest| rest.starts_with(['(', '<']))
}

fn binds_closure(line: &str) -> bool {
    let Some(binding) = line.trim_start().strip_prefix("let ") else {
        return false;
    };
    let Some((name, value)) = binding.split_once(" = ") else {
        return false;
    };
    let name = name.strip_prefix("mut ").unwrap_or(name);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name
        && value
            .strip_prefix("move ")
            .unwrap_or(value)
            .starts_with('|')
}

/// Number of `match` expressions whose first pattern is `true` or `false`.
fn bool_matches(code: &str) -> usize {
    let on_bool = code.match_indices("match ").filter(|(at, _)| {
        let rest = &code[*at..];
        let Some(open) = rest.find(['{', ';', '}']) else {
            return false;
        };
        let body = rest[open + 1..].trim_start();
        let begins_word = !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_body = rest.as_bytes()[open] == b'{' && closing_brace(rest, open) > open;
        begins_word && is_body && (body.starts_with("true =>") || body.starts_with("false =>"))
    });
    on_bool.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_of(source: &str) -> StyleCounts {
        let mut counts = StyleCounts::default();
        counts.add(source, &SourceText::parse(source));
        counts
    }

    #[test]
    fn types_are_counted() {
        let counts = counts_of(
            "struct Kept;\npub(crate) enum TwoWords { A }\npub trait Sink<T> {}\nmod a { struct Kept(u8); }\n\
             fn f() { let text = \"struct InText\"; }\n#[cfg(test)]\nmod tests {\n    struct Mock;\n}\n",
        );
        let names: Vec<_> = counts
            .types
            .iter()
            .map(|(name, n)| (name.as_str(), *n))
            .collect();
        assert_eq!(names, [("Kept", 1), ("Sink", 1), ("TwoWords", 1)]);
    }

    #[test]
    fn constructs_are_counted() {
        let counts = counts_of(
            "//! Wh\u{61}t it is.\n// why\nfn of(x: u8) {\n    let f = |x| x;\n    let mut g = move || 1;\n\
             match x > 1 {\n true => 1,\n false => 2,\n }\n match y { A => 1 }\n}\nfn offset() {}\n",
        );
        assert_eq!(counts.n_what_docs, 1);
        assert_eq!(counts.n_comment_lines, 1);
        assert_eq!(counts.n_functions_of, 1);
        assert_eq!(counts.n_named_closures, 2);
        assert_eq!(counts.n_bool_matches, 1);
    }

    #[test]
    fn shares_are_of_definitions() {
        let mut counts = counts_of("struct Kept;\nstruct Ring;\nstruct TwoWords;\n");
        counts.add("struct Kept;\n", &SourceText::parse("struct Kept;\n"));
        assert_eq!(counts.one_word_percent(), 75.0);
        assert_eq!(counts.shared_percent(), 50.0);
        assert_eq!(counts.participle_percent(), 50.0);
    }
}
