//! Parses a command line like Python's `argparse`, as far as the reference uses it.
//!
//! Options take one word each, none, or several numbers. Abbreviations, `-oVALUE`,
//! `--option=VALUE`, negative numbers as values and `--` work the same.

use crate::paths::is_safe_text;

/// One option of a command.
pub(super) struct OptionSpec {
    /// All spellings, the short one first.
    pub(super) names: &'static [&'static str],
    /// The kind of its value.
    pub(super) value: ValueKind,
    /// Whether the option is required.
    pub(super) is_required: bool,
    /// At most one option with this flag may be given.
    pub(super) is_exclusive: bool,
}

/// An optional option.
pub(super) const fn option(names: &'static [&'static str], value: ValueKind) -> OptionSpec {
    OptionSpec {
        names,
        value,
        is_required: false,
        is_exclusive: false,
    }
}

/// A required option.
pub(super) const fn required(names: &'static [&'static str]) -> OptionSpec {
    OptionSpec {
        is_required: true,
        ..option(names, ValueKind::SafeText)
    }
}

/// One of several mutually exclusive options.
pub(super) const fn exclusive(names: &'static [&'static str]) -> OptionSpec {
    OptionSpec {
        is_exclusive: true,
        ..option(names, ValueKind::Text)
    }
}

/// The kind of value of an option.
pub(super) enum ValueKind {
    /// Any text.
    Text,
    /// Letters, digits and a few other characters.
    SafeText,
    /// One of these numbers.
    Integer(&'static [i64]),
    /// Any number.
    AnyInteger,
    /// One or more of these numbers, a word for each; their text is comma-separated.
    Integers(&'static [i64]),
    /// No value; the option's text is empty if it is given.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The values given, in the order of the specification; the last one wins.
pub(super) type Values = Vec<Option<String>>;

/// Why there are no values.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParseStop {
    /// Help was requested.
    Help,
    /// The command line is wrong, with the reason.
    Error(String),
}

/// Parses the words after the command's name.
pub(super) fn parse(specs: &[OptionSpec], args: &[String]) -> Result<Values, ParseStop> {
    let words = classify(specs, args)?;
    let mut values: Values = specs.iter().map(|_| None).collect();
    let mut exclusive: Option<usize> = None;
    let mut unknown = Vec::new();
    let mut i = 0;
    while let Some(word) = words.get(i) {
        i += 1;
        let (index, attached) = match word {
            WordRole::Help => return Err(ParseStop::Help),
            // argparse drops the first `--` and treats the rest as values.
            WordRole::Separator => continue,
            WordRole::Value | WordRole::Unknown => {
                unknown.push(args[i - 1].clone());
                continue;
            }
            WordRole::Option { index, attached } => (*index, attached.clone()),
        };
        let spec = &specs[index];
        let value = take_value(spec, attached, &words, args, &mut i)?;
        if spec.is_exclusive {
            // A repeated option does not exclude itself; its last value wins.
            if let Some(other) = exclusive.filter(|&other| other != index) {
                let other = specs[other].names.join("/");
                return Err(wrong(spec, &format!("not allowed with argument {other}")));
            }
            exclusive = Some(index);
        }
        // Checked even if a later word replaces the value, as argparse converts each value on
        // reading.
        check(spec, &value)?;
        values[index] = Some(value);
    }
    let missing: Vec<String> = specs
        .iter()
        .zip(&values)
        .filter(|(spec, value)| spec.is_required && value.is_none())
        .map(|(spec, _)| spec.names.join("/"))
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(ParseStop::Error(format!(
            "the following arguments are required: {missing}"
        )));
    }
    // This follows the required options, which argparse reports first.
    if !unknown.is_empty() {
        return Err(ParseStop::Error(format!(
            "unrecognized arguments: {}",
            unknown.join(" ")
        )));
    }
    Ok(values)
}

/// The value of an option; `i` is the index of the word after it.
fn take_value(
    spec: &OptionSpec,
    attached: Option<String>,
    words: &[WordRole],
    args: &[String],
    i: &mut usize,
) -> Result<String, ParseStop> {
    match (&spec.value, attached) {
        (ValueKind::Flag, None) => return Ok(String::new()),
        (ValueKind::Flag, Some(text)) => {
            return Err(wrong(spec, &format!("ignored explicit argument '{text}'")));
        }
        (_, Some(text)) => return Ok(text),
        (_, None) => {}
    }
    if words.get(*i) == Some(&WordRole::Separator) {
        *i += 1;
    }
    // argparse's `nargs="+"` takes every value up to the next option.
    let n_max = match spec.value {
        ValueKind::Integers(_) => usize::MAX,
        _ => 1,
    };
    let values = words.iter().zip(args).skip(*i).take(n_max);
    let values: Vec<&str> = values
        .take_while(|(word, _)| **word == WordRole::Value)
        .map(|(_, arg)| arg.as_str())
        .collect();
    *i += values.len();
    match (values.len(), n_max) {
        (0, 1) => Err(wrong(spec, "expected one argument")),
        (0, _) => Err(wrong(spec, "expected at least one argument")),
        _ => Ok(values.join(",")),
    }
}

/// The role of one word of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WordRole {
    Help,
    /// The first `--`: everything after it is a value.
    Separator,
    Value,
    Unknown,
    Option {
        index: usize,
        attached: Option<String>,
    },
}

const HELP_NAMES: [&str; 2] = ["-h", "--help"];

fn classify(specs: &[OptionSpec], args: &[String]) -> Result<Vec<WordRole>, ParseStop> {
    let mut words = Vec::with_capacity(args.len());
    let mut is_separated = false;
    for arg in args {
        words.push(if is_separated {
            WordRole::Value
        } else if arg == "--" {
            is_separated = true;
            WordRole::Separator
        } else {
            classify_one(specs, arg)?
        });
    }
    Ok(words)
}

fn classify_one(specs: &[OptionSpec], arg: &str) -> Result<WordRole, ParseStop> {
    // A single dash is a value, commonly for a standard stream.
    if !arg.starts_with('-') || arg.len() == 1 {
        return Ok(WordRole::Value);
    }
    if let Some(word) = exact(specs, arg, None) {
        return Ok(word);
    }
    // Full names precede abbreviations, with and without a value.
    if let Some((name, value)) = arg.split_once('=')
        && let Some(word) = exact(specs, name, Some(value))
    {
        return Ok(word);
    }
    let mut candidates = abbreviations(specs, arg);
    match candidates.len() {
        0 => {}
        1 => return Ok(candidates.remove(0).1),
        _ => {
            let names: Vec<&str> = candidates.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            return Err(ParseStop::Error(format!(
                "ambiguous option: {arg} could match {names}"
            )));
        }
    }
    // No option looks like a number, so argparse treats negative numbers as values. No option's
    // name contains a blank either.
    if is_negative_number(arg) || arg.contains(' ') {
        return Ok(WordRole::Value);
    }
    Ok(WordRole::Unknown)
}

/// Every spelling of every option, the help first.
fn names(specs: &[OptionSpec]) -> impl Iterator<Item = (&'static str, Option<usize>)> {
    let help = HELP_NAMES.into_iter().map(|name| (name, None));
    let own = specs
        .iter()
        .enumerate()
        .flat_map(|(i, spec)| spec.names.iter().map(move |&name| (name, Some(i))));
    help.chain(own)
}

fn word(index: Option<usize>, attached: Option<&str>) -> WordRole {
    match (index, attached) {
        (Some(index), attached) => WordRole::Option {
            index,
            attached: attached.map(str::to_owned),
        },
        (None, None) => WordRole::Help,
        // `--help=x` does not request help.
        (None, Some(_)) => WordRole::Unknown,
    }
}

fn exact(specs: &[OptionSpec], name: &str, attached: Option<&str>) -> Option<WordRole> {
    names(specs)
        .find(|(known, _)| *known == name)
        .map(|(_, index)| word(index, attached))
}

/// The options that `arg` may abbreviate. A single dash also allows `-oVALUE`.
fn abbreviations(specs: &[OptionSpec], arg: &str) -> Vec<(&'static str, WordRole)> {
    if arg.starts_with("--") {
        let (prefix, attached) = match arg.split_once('=') {
            Some((prefix, value)) => (prefix, Some(value)),
            None => (arg, None),
        };
        return names(specs)
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(name, index)| (name, word(index, attached)))
            .collect();
    }
    let Some(second) = arg.chars().nth(1) else {
        return Vec::new();
    };
    let (short, rest) = arg.split_at(1 + second.len_utf8());
    names(specs)
        .filter_map(|(name, index)| {
            // `-oVALUE`: the second letter alone is an option, and the rest is its value.
            if name == short {
                Some((name, word(index, Some(rest))))
            } else if name.starts_with(arg) {
                Some((name, word(index, None)))
            } else {
                None
            }
        })
        .collect()
}

/// `-1`, `-1.5`, `-.5`.
fn is_negative_number(arg: &str) -> bool {
    match arg
        .strip_prefix('-')
        .map(|rest| rest.split_once('.').ok_or(rest))
    {
        Some(Ok((whole, part))) => is_digits(whole) && is_digits(part) && !part.is_empty(),
        Some(Err(whole)) => is_digits(whole) && !whole.is_empty(),
        None => false,
    }
}

/// Whether a text consists of digits; true if it is empty.
fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn check(spec: &OptionSpec, value: &str) -> Result<(), ParseStop> {
    match spec.value {
        ValueKind::Text => Ok(()),
        ValueKind::SafeText if is_safe_text(value) => Ok(()),
        ValueKind::SafeText => Err(wrong(
            spec,
            &format!("invalid safe_path_string value: '{value}'"),
        )),
        ValueKind::Integer(allowed) => check_integer(spec, value, Some(allowed)),
        ValueKind::AnyInteger => check_integer(spec, value, None),
        ValueKind::Integers(allowed) => value
            .split(',')
            .try_for_each(|value| check_integer(spec, value, Some(allowed))),
        ValueKind::Flag => Ok(()),
        ValueKind::Word(allowed) if allowed.contains(&value) => Ok(()),
        ValueKind::Word(allowed) => {
            let allowed = allowed.join("', '");
            Err(wrong(
                spec,
                &format!("invalid choice: '{value}' (choose from '{allowed}')"),
            ))
        }
    }
}

fn check_integer(spec: &OptionSpec, value: &str, allowed: Option<&[i64]>) -> Result<(), ParseStop> {
    match (integer(value), allowed) {
        (Some(_), None) => Ok(()),
        (Some(number), Some(allowed)) if allowed.contains(&number) => Ok(()),
        (Some(number), Some(allowed)) => {
            let allowed: Vec<String> = allowed.iter().map(i64::to_string).collect();
            let allowed = allowed.join(", ");
            Err(wrong(
                spec,
                &format!("invalid choice: {number} (choose from {allowed})"),
            ))
        }
        (None, _) => Err(wrong(spec, &format!("invalid int value: '{value}'"))),
    }
}

/// Parses a number like Python's `int`, saturating.
pub(super) fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = digits
        // Python allows single underscores between digits.
        .split('_')
        .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    if !is_number {
        return None;
    }
    // Python's integers are unbounded, and every valid number is far smaller.
    let limit = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    Some(text.replace('_', "").parse().unwrap_or(limit))
}

fn wrong(spec: &OptionSpec, what: &str) -> ParseStop {
    ParseStop::Error(format!("argument {}: {what}", spec.names.join("/")))
}

#[cfg(test)]
mod tests;
