//! Answers of tools: short enough for the context of a language model.

use serde_json::{Map, Value, json};

use crate::exit::{CommandFailure, UNREADABLE, USAGE, chain};

/// Maximum number of bytes of an answer's text within its message.
const N_BYTES_MAX: usize = 1900;
/// The member that always stays as it is.
const NEXT: &str = "next";
/// Letters that a text keeps at least.
const N_LETTERS_MIN: usize = 80;

/// Why a tool has no result: the cause, and what to do.
pub(super) struct ToolFailure {
    error: String,
    hint: String,
}

impl ToolFailure {
    pub(super) fn new(error: impl Into<String>, hint: &str) -> ToolFailure {
        ToolFailure {
            error: error.into(),
            hint: hint.to_owned(),
        }
    }
}

impl From<CommandFailure> for ToolFailure {
    fn from(failure: CommandFailure) -> ToolFailure {
        let error = failure.error.map(|error| chain(error.as_ref()));
        let hint = match failure.code {
            UNREADABLE => "pass the path of a readable model or dump",
            USAGE => "correct the arguments, as `tools/list` describes them",
            _ => "remove the cause, and call the tool again",
        };
        ToolFailure {
            error: error.unwrap_or_else(|| "a signal stopped it, or it was done in part".into()),
            hint: (failure.hint.as_deref().and_then(in_arguments))
                .unwrap_or_else(|| hint.to_owned()),
        }
    }
}

/// Advice for the command line in terms of the tools' arguments; none if it needs other options.
fn in_arguments(hint: &str) -> Option<String> {
    let arguments = [
        "input",
        "inputs",
        "seed",
        "shape",
        "golden-engine",
        "engine",
    ];
    let mut hint = hint.to_owned();
    for name in arguments {
        for end in [" ", "`"] {
            let argument = name.replace('-', "_");
            hint = hint.replace(&format!("`--{name}{end}"), &format!("`{argument}{end}"));
        }
    }
    (!hint.contains("`--")).then_some(hint)
}

/// The answer of a tool.
pub(super) type ToolResult = Result<Value, ToolFailure>;

/// The result of a call, in the protocol's form.
pub(super) fn of_tool(result: ToolResult) -> Value {
    let is_error = result.is_err();
    let value =
        result.unwrap_or_else(|failure| json!({ "error": failure.error, NEXT: failure.hint }));
    json!({ "content": [{ "type": "text", "text": shortened(value) }], "isError": is_error })
}

/// A value as text, with its longest lists and texts cut until it fits.
fn shortened(mut value: Value) -> String {
    loop {
        let text = value.to_string();
        // The message holds it as a text, in which quotes take two bytes.
        if json!(text).to_string().len() <= N_BYTES_MAX {
            return text;
        }
        let Some(members) = value.as_object_mut() else {
            return text;
        };
        if !cut_longest(members) {
            return text;
        }
    }
}

/// Cuts the longest member that can be cut; returns whether there was one.
fn cut_longest(members: &mut Map<String, Value>) -> bool {
    let mut longest: Option<(usize, &mut Value)> = None;
    for (name, member) in members.iter_mut() {
        let can_be_cut = match member {
            Value::Array(list) => list.len() > 1,
            Value::String(text) => text.chars().count() > N_LETTERS_MIN,
            Value::Object(inner) => inner.len() > 1,
            _ => false,
        };
        let n_bytes = member.to_string().len();
        let is_longer = longest.as_ref().is_none_or(|(n, _)| n_bytes > *n);
        if name != NEXT && can_be_cut && is_longer {
            longest = Some((n_bytes, member));
        }
    }
    match longest {
        Some((_, Value::Array(list))) => {
            cut_list(list);
            true
        }
        Some((_, Value::String(text))) => {
            let n_kept = (text.chars().count() * 3 / 4).max(N_LETTERS_MIN);
            *text = text.chars().take(n_kept - 1).chain(['…']).collect();
            true
        }
        Some((_, Value::Object(inner))) => cut_longest(inner) || inner.pop().is_some(),
        _ => false,
    }
}

/// Removes the last element of a list, and says how many are missing.
fn cut_list(list: &mut Vec<Value>) {
    let n_missing = list
        .last()
        .and_then(|value| value.as_str()?.strip_prefix('…')?.parse::<usize>().ok());
    if n_missing.is_some() {
        list.pop();
    }
    list.pop();
    // As a text, such as `…3`, because lists of numbers have no other place for it.
    list.push(json!(format!("…{}", n_missing.unwrap_or(0) + 1)));
}

/// Removes the last member of an object.
trait PopMember {
    fn pop(&mut self) -> Option<Value>;
}

impl PopMember for Map<String, Value> {
    fn pop(&mut self) -> Option<Value> {
        let last = self.keys().next_back()?.clone();
        self.remove(&last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_arguments() {
        let hint = "pass `--input x=FILE.npy`, or `--seed N` for random values";
        let expected = "pass `input x=FILE.npy`, or `seed N` for random values";
        assert_eq!(in_arguments(hint).as_deref(), Some(expected));
        assert_eq!(in_arguments("give `--graph executed`"), None);
    }

    #[test]
    fn long_answers_keep_the_next_step() {
        let next = "n".repeat(200);
        let value = json!({
            "verdict": "v".repeat(5000),
            "evidence": vec!["\"line\" of evidence"; 500],
            "statistics": { "min": 0, "names": vec!["name"; 800] },
            "next": next,
        });
        let text = shortened(value);
        assert!(
            json!(text).to_string().len() <= N_BYTES_MAX,
            "{}",
            text.len()
        );
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["next"], json!(next));
        let evidence = parsed["evidence"].as_array().unwrap();
        let n_missing = evidence.last().unwrap().as_str().unwrap();
        assert_eq!(n_missing, format!("…{}", 500 - (evidence.len() - 1)));
        assert_eq!(shortened(json!({ "a": [1, 2] })), r#"{"a":[1,2]}"#);
    }
}
