//! `kernels`: entries, matched as in MindSpore.

use std::fmt::Write;

use super::dump::{KernelEntry, REGEX_MARKS, RuleKind};
use super::regex_syntax;
use super::section::SectionItem;
use crate::dialect::findings::{ConfigRefusal, IssueCollector, shown};
use crate::json::{JsonNode, JsonValue};

/// The rules of the entries, sorted by text. MindSpore tries them in that order, regexes first,
/// then names, then types.
pub(super) fn read(
    item: &SectionItem<'_>,
    findings: &mut IssueCollector,
) -> Result<Vec<KernelEntry>, ConfigRefusal> {
    // MindSpore stores the entries in a sorted map too, and tries them in its order.
    let mut rules: std::collections::BTreeMap<String, RuleKind> = Default::default();
    for (i, node) in item.array(findings)?.iter().enumerate() {
        let entry = item.element(i, node);
        let text = prepared(node);
        if text.is_empty() {
            findings.warn(entry.warning("it is empty and ignored"));
            continue;
        }
        let rule = KernelEntry {
            // The text without quotes and blanks determines the kind, as in MindSpore.
            kind: kind(&text),
            text,
        };
        if rule.kind == RuleKind::Regex
            && let Err(reason) = regex_syntax::check(rule.pattern())
        {
            let pattern = shown(rule.pattern());
            let message = format!("`{pattern}` is not a regular expression: {reason}");
            return Err(findings.refuse(entry.error(message, reason.to_owned())));
        }
        warn_about(&entry, &rule, findings);
        if rules.insert(rule.text.clone(), rule.kind).is_some() {
            let text = shown(&rule.text);
            findings.warn(entry.vendor_warning(
                format!("`{text}` appears twice"),
                format!("Duplicate dump kernel name:{}", rule.text),
            ));
        }
    }
    let rules = rules.into_iter();
    Ok(rules
        .map(|(text, kind)| KernelEntry { text, kind })
        .collect())
}

/// How an entry is matched.
fn kind(text: &str) -> RuleKind {
    let (begin, end) = REGEX_MARKS;
    if text.starts_with(begin) && text.ends_with(end) {
        RuleKind::Regex
    } else if text.contains('/') || text.contains("-op") {
        // Full names of MindSpore have scopes and end in `-op` with a number.
        RuleKind::Name
    } else {
        RuleKind::Type
    }
}

/// Warns if the meaning of an entry may surprise its author.
fn warn_about(entry: &SectionItem<'_>, rule: &KernelEntry, findings: &mut IssueCollector) {
    let mut warn = |message: String| findings.warn(entry.warning(message));
    let text = shown(&rule.text);
    let JsonValue::String(written) = &entry.node.value else {
        let kind = entry.node.value.kind();
        return warn(format!(
            "found {kind}, which is compared as the text `{text}`"
        ));
    };
    if written.contains('\\') {
        let instead = "write `[.]` for `\\.` and `[0-9]` for `\\d`";
        warn(format!("it has a backslash, which is doubled: {instead}"));
    }
    if written.contains([' ', '"']) {
        warn("it is compared without its blanks and quotes".to_owned());
    }
    if rule.kind == RuleKind::Name && !rule.text.contains('/') {
        warn(format!(
            "it is compared with whole names, which begin with a scope: `{text}` alone matches none"
        ));
    }
}

/// An entry's JSON text without quotes and blanks.
fn prepared(node: &JsonNode) -> String {
    let mut text = String::new();
    write_json(node, &mut text);
    text.retain(|c| c != '"' && c != ' ');
    text
}

/// Writes a value like MindSpore's parser: on one line, keys sorted.
fn write_json(node: &JsonNode, out: &mut String) {
    match &node.value {
        JsonValue::Null => out.push_str("null"),
        JsonValue::Bool(value) => {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "{value}");
        }
        JsonValue::Number(text) => out.push_str(&number_text(text)),
        JsonValue::String(text) => {
            out.push_str(&serde_json::Value::from(text.as_str()).to_string());
        }
        JsonValue::Array(nodes) => {
            out.push('[');
            for (i, node) in nodes.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(node, out);
            }
            out.push(']');
        }
        JsonValue::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|a, b| a.name.cmp(&b.name));
            out.push('{');
            for (i, member) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::Value::from(member.name.as_str()).to_string());
                out.push(':');
                write_json(&member.node, out);
            }
            out.push('}');
        }
    }
}

/// A number as MindSpore's parser prints it: integers of up to 64 bits in full, others with the
/// fewest digits that identify them, in scientific notation below 1e-4 and from 1e15 on.
fn number_text(text: &str) -> String {
    // MindSpore's parser distinguishes integers from floats and prints them in full.
    if let Ok(whole) = text.parse::<i64>() {
        return whole.to_string();
    }
    if let Ok(whole) = text.parse::<u64>() {
        return whole.to_string();
    }
    let Ok(value) = text.parse::<f64>() else {
        return text.to_owned();
    };
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..15).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn entries_are_compared_as_their_json_text() {
        for (json, expected, kind) in [
            (r#""Default/Conv-op1""#, "Default/Conv-op1", RuleKind::Name),
            (r#"" Re LU ""#, "ReLU", RuleKind::Type),
            (r#""\"conv\"""#, r"\conv\", RuleKind::Type),
            (r#""a\\.b""#, r"a\\.b", RuleKind::Type),
            (r#""a\u0001\n""#, r"a\u0001\n", RuleKind::Type),
            (r#""name-regex(.* x)""#, "name-regex(.*x)", RuleKind::Regex),
            (r#""name-regex(.*)x""#, "name-regex(.*)x", RuleKind::Type),
            (r#""Name-Regex(a)""#, "Name-Regex(a)", RuleKind::Type),
            (r#""-op12""#, "-op12", RuleKind::Name),
            (
                r#"{"b": [1, null], "a": true}"#,
                "{a:true,b:[1,null]}",
                RuleKind::Type,
            ),
            ("5", "5", RuleKind::Type),
            ("-0", "0", RuleKind::Type),
            (
                "18446744073709551615",
                "18446744073709551615",
                RuleKind::Type,
            ),
            ("1.0", "1.0", RuleKind::Type),
            ("1e30", "1e+30", RuleKind::Type),
            ("1.5e-7", "1.5e-07", RuleKind::Type),
            ("0.00001", "1e-05", RuleKind::Type),
            ("0.0001", "0.0001", RuleKind::Type),
            ("1e14", "100000000000000.0", RuleKind::Type),
            ("1e15", "1e+15", RuleKind::Type),
        ] {
            let text = prepared(&parse(json).unwrap());
            assert_eq!(
                (text.as_str(), super::kind(&text)),
                (expected, kind),
                "{json}"
            );
        }
    }
}
