//! The filter of the table of operators: `type:MatMul status:fail rel_l2>1e-3 name~attn`.

use std::ops::Range;

use opscope_analysis::compare::report::words;

use crate::viewed::OperatorFacts;

/// Maximum number of terms in a filter.
const N_TERMS_MAX: usize = 64;
/// Text columns, compared with `:` and `~`.
const TEXTS: [&str; 3] = ["name", "type", "cause"];
/// Numeric columns.
const NUMBERS: [&str; 9] = [
    "rel_l2", "added", "inputs", "max_abs", "headroom", "n_nan", "n_inf", "step", "rank",
];
/// Columns with a fixed set of words.
const CHOICES: [(&str, &[&str]); 3] = [
    ("status", &["pass", "warn", "fail", "skip"]),
    ("nonfinite", &["any", "nan", "inf", "none"]),
    ("fault", &["yes", "no"]),
];

/// The position and message of a filter's first mistake; `None` if it is valid. For fuzzing.
pub fn mistake_in(text: &str) -> Option<(Range<usize>, String)> {
    let error = OperatorFilter::parse(text).err()?;
    Some((error.place, error.message))
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OperatorFilter {
    terms: Vec<Term>,
}

/// A mistake in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilterError {
    /// The range of the wrong characters.
    pub(crate) place: Range<usize>,
    /// The error message.
    pub(crate) message: String,
    /// The nearest valid word.
    pub(crate) suggestion: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    is_negated: bool,
    condition: Condition,
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    /// The name contains this text (in lower case).
    Word(String),
    /// A text column matches a pattern or contains a text.
    Text {
        column: &'static str,
        pattern: String,
        is_part: bool,
    },
    Number {
        column: &'static str,
        order: Order,
        value: f64,
    },
    Choice {
        column: &'static str,
        value: &'static str,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl OperatorFilter {
    /// Parses a filter.
    ///
    /// # Errors
    ///
    /// [`FilterError`] for the first mistake.
    pub(crate) fn parse(text: &str) -> Result<OperatorFilter, FilterError> {
        let mut terms = Vec::new();
        for Token {
            place,
            text,
            is_quoted,
        } in tokens(text)
        {
            let (is_negated, body) = match text.strip_prefix('-') {
                Some(rest) if !rest.is_empty() && !is_quoted => (true, rest),
                _ => (false, text.as_str()),
            };
            let error = |(message, suggestion): (String, Option<String>)| FilterError {
                place: place.clone(),
                message,
                suggestion,
            };
            let condition = if is_quoted {
                Condition::Word(body.to_lowercase())
            } else {
                condition(body).map_err(error)?
            };
            terms.push(Term {
                is_negated,
                condition,
            });
            if terms.len() > N_TERMS_MAX {
                return Err(error((format!("more than {N_TERMS_MAX} conditions"), None)));
            }
        }
        Ok(OperatorFilter { terms })
    }

    /// Whether the filter is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether an operator meets all conditions.
    pub(crate) fn accepts(&self, facts: &OperatorFacts<'_>) -> bool {
        let mut terms = self.terms.iter();
        terms.all(|term| term.condition.holds(facts) != term.is_negated)
    }
}

/// A token of a filter.
struct Token {
    /// Its range in characters.
    place: Range<usize>,
    /// Its text without quotes.
    text: String,
    /// Whether it begins with a quote, so that its characters have no special meaning.
    is_quoted: bool,
}

/// The tokens of a filter. Quotes keep blanks together.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let (mut is_open, mut is_inside) = (false, false);
    for (at, letter) in text.chars().enumerate() {
        if letter.is_whitespace() && !is_inside {
            is_open = false;
            continue;
        }
        if !is_open {
            tokens.push(Token {
                place: at..at,
                text: String::new(),
                is_quoted: letter == '"',
            });
            is_open = true;
        }
        if letter == '"' {
            is_inside = !is_inside;
        }
        if let Some(token) = tokens.last_mut() {
            token.place.end = at + 1;
            token
                .text
                .extend(Some(letter).filter(|letter| *letter != '"'));
        }
    }
    tokens
}

/// Parses a token; the error has the nearest valid word.
fn condition(token: &str) -> Result<Condition, (String, Option<String>)> {
    // A token without an operator searches names.
    let Some(at) = token.find([':', '~', '<', '>', '=']) else {
        return Ok(Condition::Word(token.to_lowercase()));
    };
    let (column, rest) = token.split_at(at);
    // Value names contain colons too: a token that begins with one has no column.
    if column.is_empty() {
        return Ok(Condition::Word(token.to_lowercase()));
    }
    // `>=` is one operator.
    let sign_end = rest.find(|c| !":~<>=".contains(c)).unwrap_or(rest.len());
    let (sign, value) = rest.split_at(sign_end);
    if let Some((column, words)) = CHOICES.into_iter().find(|(name, _)| *name == column) {
        let known = words.iter().find(|word| **word == value);
        let value = known.filter(|_| sign == ":").ok_or_else(|| {
            let message = format!("`{column}` is one of {}", words.join(", "));
            let nearest = nearest(value, words.iter().copied());
            (message, nearest.map(|word| format!("{column}:{word}")))
        })?;
        return Ok(Condition::Choice { column, value });
    }
    if let Some(column) = TEXTS.into_iter().find(|name| *name == column) {
        if sign != ":" && sign != "~" {
            let suggestion = format!("{column}~{value}");
            let message = format!("`{column}` is text: use `:` for all of it, `~` for a part");
            return Err((message, Some(suggestion)));
        }
        // An unfinished condition while the user types.
        if value.is_empty() {
            return Err((format!("`{column}{sign}` needs a text after it"), None));
        }
        return Ok(Condition::Text {
            column,
            pattern: value.to_lowercase(),
            is_part: sign == "~",
        });
    }
    if let Some(column) = NUMBERS.into_iter().find(|name| *name == column) {
        return number_condition(column, sign, value);
    }
    let columns = TEXTS.into_iter().chain(NUMBERS);
    let columns = columns.chain(CHOICES.into_iter().map(|(name, _)| name));
    let nearest = nearest(column, columns);
    let message = format!("there is no column `{column}`");
    Err((message, nearest.map(|name| format!("{name}{rest}"))))
}

fn number_condition(
    column: &'static str,
    sign: &str,
    value: &str,
) -> Result<Condition, (String, Option<String>)> {
    let order = match sign {
        "<" => Order::Less,
        "<=" => Order::LessOrEqual,
        ":" | "=" => Order::Equal,
        ">=" => Order::GreaterOrEqual,
        ">" => Order::Greater,
        _ => {
            let message = format!("`{column}` is a number: use <, <=, =, >= or >");
            return Err((message, Some(format!("{column}>{value}"))));
        }
    };
    let number = match value.split_once('^') {
        Some((base, power)) => {
            let numbers = base.parse::<f64>().ok().zip(power.parse::<f64>().ok());
            numbers.map(|(base, power)| base.powf(power))
        }
        None => value.parse().ok(),
    };
    let number = number.filter(|number| !number.is_nan());
    let value = number.ok_or_else(|| (format!("`{value}` is not a number"), None))?;
    // The table shows a factor, but the value is a power of two.
    let value = match column {
        "headroom" if value <= 0.0 => {
            return Err((
                format!("headroom must be more than 0, found `{value}`"),
                None,
            ));
        }
        "headroom" => value.log2(),
        _ => value,
    };
    Ok(Condition::Number {
        column,
        order,
        value,
    })
}

fn nearest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = words.map(|known| (strsim::jaro_winkler(word, known), known));
    // A word far from all others is not a misspelling.
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0));
    // The threshold lets through one or two wrong letters in the short words of the columns; the
    // page's own filter has the same.
    best.filter(|(likeness, _)| *likeness > 0.6)
        .map(|(_, known)| known)
}

impl Condition {
    fn holds(&self, facts: &OperatorFacts<'_>) -> bool {
        match self {
            Condition::Word(word) => contains(facts.op_name, word),
            Condition::Text {
                column,
                pattern,
                is_part,
            } => {
                let text = match *column {
                    "name" => facts.op_name,
                    "type" => facts.op_type,
                    _ => facts.cause.map_or("", words::cause_name),
                };
                if *is_part {
                    contains(text, pattern)
                } else {
                    is_like(&text.to_lowercase(), pattern)
                }
            }
            Condition::Number {
                column,
                order,
                value,
            } => number_of(facts, column).is_some_and(|number| order.holds(number, *value)),
            Condition::Choice { column, value } => match *column {
                "status" => words::level(facts.level) == *value,
                "fault" => facts.is_at_fault == (*value == "yes"),
                _ => is_non_finite(facts, value),
            },
        }
    }
}

impl Order {
    fn holds(self, number: f64, value: f64) -> bool {
        match self {
            Order::Less => number < value,
            Order::LessOrEqual => number <= value,
            Order::Equal => number == value,
            Order::GreaterOrEqual => number >= value,
            // An error of NaN exceeds every limit.
            Order::Greater => number > value || number.is_nan(),
        }
    }
}

fn number_of(facts: &OperatorFacts<'_>, column: &str) -> Option<f64> {
    let [error, added, inputs] = facts.errors();
    let [n_nan, n_inf] = facts.non_finite();
    match column {
        "rel_l2" => error,
        "added" => added,
        "inputs" => inputs,
        "max_abs" => facts.max_abs(),
        "headroom" => facts.surveyed?.headroom.map(f64::from),
        "n_nan" => n_nan.map(|n| n as f64),
        "n_inf" => n_inf.map(|n| n as f64),
        "step" => facts.step.map(|step| step as f64),
        _ => facts.rank.map(f64::from),
    }
}

fn is_non_finite(facts: &OperatorFacts<'_>, what: &str) -> bool {
    let [n_nan, n_inf] = facts.non_finite().map(|n| n.is_some_and(|n| n > 0));
    match what {
        "nan" => n_nan,
        "inf" => n_inf,
        "any" => n_nan || n_inf,
        // Unknown values are not finite.
        _ => facts.non_finite() == [Some(0), Some(0)],
    }
}

/// Whether a text contains another, which is in lower case.
fn contains(text: &str, part: &str) -> bool {
    if text.is_ascii() {
        let part = part.as_bytes();
        let mut windows = text.as_bytes().windows(part.len().max(1));
        return part.is_empty() || windows.any(|window| window.eq_ignore_ascii_case(part));
    }
    text.to_lowercase().contains(part)
}

/// Whether a text matches a pattern, where `*` matches anything and `?` one character.
fn is_like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut in_pattern) = (0, 0);
    // The last star, and the position in the text to retry from.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(in_pattern) {
            Some('*') => {
                star = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(&letter) if letter == '?' || letter == text[at] => {
                at += 1;
                in_pattern += 1;
            }
            _ => {
                let Some((star_at, behind)) = star else {
                    return false;
                };
                star = Some((star_at, behind + 1));
                at = behind + 1;
                in_pattern = star_at + 1;
            }
        }
    }
    pattern[in_pattern..].iter().all(|&letter| letter == '*')
}

#[cfg(test)]
mod tests {
    use opscope_analysis::compare::result::{Cause, OperatorResult, OwnError, VerdictLevel};
    use opscope_analysis::survey::SurveyedExecution;
    use serde_json::{Value, json};

    use super::*;

    /// Filters with the operators they accept; also used in the tests of the page's own filter.
    const CASES: &str = include_str!("../../../web/src/embedded/filter-cases.json");

    /// An operator of the cases.
    struct CaseRow {
        row: Value,
        compared: Option<OperatorResult>,
        surveyed: Option<SurveyedExecution>,
    }

    impl CaseRow {
        fn new(row: &Value) -> CaseRow {
            let float = |name: &str| match &row[name] {
                Value::String(text) => text.parse().ok(),
                value => value.as_f64(),
            };
            let compared = float("error").map(|outputs| OperatorResult {
                error: Some(OwnError {
                    inputs: float("inputs").unwrap_or(0.0),
                    outputs,
                    added: float("added").unwrap_or(0.0),
                    has_inputs: float("inputs").is_some(),
                }),
                ..OperatorResult::default()
            });
            let surveyed = SurveyedExecution {
                max_abs: float("max_abs"),
                headroom: row["headroom"].as_i64().map(|n| n as i32),
                n_nan: row["n_nan"].as_u64(),
                n_inf: row["n_inf"].as_u64(),
                ..SurveyedExecution::default()
            };
            let is_compared = compared.is_some();
            CaseRow {
                row: row.clone(),
                compared,
                surveyed: Some(surveyed).filter(|_| !is_compared),
            }
        }

        fn facts(&self) -> OperatorFacts<'_> {
            let levels = [
                VerdictLevel::Pass,
                VerdictLevel::Warn,
                VerdictLevel::Fail,
                VerdictLevel::Skip,
            ];
            let causes = [Cause::Own, Cause::Inherited];
            let row = &self.row;
            OperatorFacts {
                id: row["id"].as_u64().unwrap() as usize,
                op_type: row["op_type"].as_str().unwrap(),
                op_name: row["op_name"].as_str().unwrap(),
                rank: row["rank"].as_u64().map(|rank| rank as u32),
                step: row["step"].as_u64(),
                call: 0,
                level: levels
                    .into_iter()
                    .find(|level| row["status"] == words::level(*level))
                    .unwrap(),
                is_at_fault: row["at_fault"] == true,
                cause: causes
                    .into_iter()
                    .find(|cause| row["cause"] == words::cause_name(*cause)),
                compared: self.compared.as_ref(),
                surveyed: self.surveyed.as_ref(),
                has_overflow: false,
            }
        }
    }

    #[test]
    fn filters_accept_what_they_say() {
        let cases: Value = serde_json::from_str(CASES).unwrap();
        let rows = cases["rows"].as_array().unwrap().iter().map(CaseRow::new);
        let rows: Vec<CaseRow> = rows.collect();
        for case in cases["accepted"].as_array().unwrap() {
            let text = case["filter"].as_str().unwrap();
            let filter = OperatorFilter::parse(text).unwrap();
            let accepted = rows.iter().map(CaseRow::facts);
            let ids = accepted.filter(|facts| filter.accepts(facts));
            let ids: Vec<usize> = ids.map(|facts| facts.id).collect();
            assert_eq!(Value::from(ids), case["ids"], "{text}");
        }
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let cases: Value = serde_json::from_str(CASES).unwrap();
        for case in cases["mistakes"].as_array().unwrap() {
            let text = case["filter"].as_str().unwrap();
            let error = OperatorFilter::parse(text).unwrap_err();
            let found = json!({
                "filter": text,
                "start": error.place.start,
                "end": error.place.end,
                "message": error.message,
                "suggestion": error.suggestion,
            });
            assert_eq!(&found, case);
        }
        let most = "a ".repeat(N_TERMS_MAX);
        assert!(OperatorFilter::parse(&most).is_ok());
        assert!(OperatorFilter::parse(&format!("{most} a")).is_err());
    }
}
