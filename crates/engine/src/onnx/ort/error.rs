//! Errors of ONNX Runtime, reworded for users who have not built it.

use std::path::Path;

use crate::onnx::proto;
use crate::onnx::schema::{GraphProto, ModelProto};
use crate::{EngineError, guard};

/// The engine's name.
pub(super) const NAME: &str = "ONNX Runtime";
/// How the library begins what an operator's run ended with.
const FAILED_RUN: &str = "Non-zero status code returned while running ";
/// File names of the library's own source.
const SOURCE_ENDINGS: &[&str] = &[".h", ".hpp", ".cc", ".cpp", ".cu", ".cuh", ".inc"];

/// Runs the library's code, turning its errors and panics into text.
pub(super) fn quietly<T>(work: impl FnOnce() -> ort::Result<T>) -> Result<T, String> {
    // The wrapper around the library is foreign code too, and a panic of it must not end the user's
    // program.
    guard::catch(work)?.map_err(|error| readable(&error))
}

/// An error's text on one line, without the places in the library's source.
pub(super) fn readable(error: &ort::Error) -> String {
    without_places(error.message())
}

/// The error of a run.
pub(super) fn at_run(text: &str, graph: &GraphProto) -> EngineError {
    let Some((op_type, name, reason)) = failed_operator(text) else {
        return EngineError::Engine {
            engine: NAME,
            reason: text.to_owned(),
        };
    };
    EngineError::Operator {
        op_type: op_type.to_owned(),
        op_name: known_name(graph, op_type, name),
        reason: reason.to_owned(),
    }
}

/// The error of loading the model that is at `path`.
pub(super) fn at_load(text: &str, path: &Path, model: &ModelProto, version: &str) -> EngineError {
    let empty = GraphProto::default();
    let graph = model.graph.as_ref().unwrap_or(&empty);
    let text = text
        // The path is part of our own error already.
        .strip_prefix("Load model from ")
        .and_then(|text| text.split_once(" failed:"))
        .map_or(text, |(_, reason)| reason.trim());
    let reason = too_new(text, version)
        .or_else(|| unknown_operator(text, graph, version))
        .unwrap_or_else(|| match failing_node(text) {
            Some((op_type, name, reason)) => {
                format!("{}: {reason}", node_text(graph, op_type, name))
            }
            None => text.to_owned(),
        });
    EngineError::invalid(path, reason)
}

/// Whether the reason of an error of [`at_load`] is that this version of the library lacks
/// something: only then is the library named.
pub(crate) fn is_lack(reason: &str) -> bool {
    reason.contains(NAME)
}

/// Says what a model is too new for.
fn too_new(text: &str, version: &str) -> Option<String> {
    if let Some((_, rest)) = text.split_once("Unsupported model IR version: ") {
        let (found, max) = rest.split_once(", max supported IR version: ")?;
        return Some(format!(
            "its format is IR version {found}; {NAME} {version} reads up to {max}"
        ));
    }
    let (_, rest) = text.split_once("released onnx opset versions. Opset ")?;
    let (found, rest) = rest.split_once(' ')?;
    let (_, rest) = rest.split_once("Current official support for domain ")?;
    let (domain, max) = rest.split_once(" is till opset ")?;
    Some(format!(
        "it uses version {found} of the operator set `{domain}`; {NAME} {version} has it up to version {}",
        max.trim_end_matches('.')
    ))
}

/// An operator that the library does not have at all, or not for these types.
fn unknown_operator(text: &str, graph: &GraphProto, version: &str) -> Option<String> {
    if let Some((op_type, name, reason)) = failing_node(text)
        && let Some(rest) = reason.strip_prefix("No Op registered for ")
    {
        let (_, opset) = rest.rsplit_once(" domain_version of ")?;
        let what = format!("no such operator up to version {opset} of its set");
        let node = node_text(graph, op_type, name);
        return Some(format!("{node}: {NAME} {version} has {what}"));
    }
    if let Some(rest) = text.strip_prefix("Could not find an implementation for ") {
        let (op_type, rest) = rest.split_once('(')?;
        let (since, rest) = rest.split_once(')')?;
        let name = rest.split_once('\'')?.1.strip_suffix('\'')?;
        let what = format!("no implementation of it (version {since}) for the types it is given");
        let node = node_text(graph, op_type, name);
        return Some(format!("{node}: {NAME} {version} has {what}"));
    }
    let (_, rest) = text.split_once("Fatal error: ")?;
    let (operator, _) = rest.split_once(" is not a registered function/op")?;
    let (operator, _) = operator.rsplit_once('(')?;
    let (domain, op_type) = operator.rsplit_once(':').unwrap_or(("", operator));
    let what = if domain.is_empty() {
        "no such operator".to_owned()
    } else {
        format!("no such operator in the set `{domain}`")
    };
    // The library does not say which one; the first of them is as good as any.
    let nodes = proto::all_nodes(graph);
    let name = nodes
        .iter()
        .find(|node| node.op_type == op_type && node.domain == domain)
        .map(|node| node.name.as_str());
    let node = node_text(graph, op_type, name.unwrap_or_default());
    Some(format!("{node}: {NAME} {version} has {what}"))
}

/// Type and name of the node that the library refuses, and why.
fn failing_node(text: &str) -> Option<(&str, &str, &str)> {
    if let Some((_, rest)) = text.split_once("In Node, (\"") {
        let (name, rest) = rest.split_once("\", ")?;
        let (op_type, rest) = rest.split_once(", \"")?;
        let (_, reason) = rest.rsplit_once(" , Error ")?;
        return Some((op_type, name, reason));
    }
    if let Some(rest) = text.strip_prefix("Node (") {
        let (name, rest) = rest.split_once(") Op (")?;
        let (op_type, reason) = rest.split_once(") ")?;
        return Some((op_type, name, reason));
    }
    let (before, rest) = text.split_once(" in node (")?;
    let (name, _) = rest.split_once(')')?;
    let (_, op_type) = before
        .split_once("operator (")
        .or_else(|| before.split_once("Optype ("))?;
    let (op_type, _) = op_type.split_once(')')?;
    Some((op_type, name, text))
}

/// Type and name of the innermost operator whose run failed, and why.
pub(super) fn failed_operator(text: &str) -> Option<(&str, &str, &str)> {
    // Errors in bodies come wrapped in those of the operators around them; the last one is the
    // innermost.
    let (_, rest) = text.rsplit_once(FAILED_RUN)?;
    let (op_type, rest) = rest.split_once(" node. Name:'")?;
    let (name, reason) = rest.split_once("' Status Message: ")?;
    Some((op_type, name, reason))
}

fn node_text(graph: &GraphProto, op_type: &str, name: &str) -> String {
    let name = known_name(graph, op_type, name);
    if name.is_empty() {
        format!("an operator of type `{op_type}` without a name")
    } else {
        format!("operator `{name}` of type `{op_type}`")
    }
}

/// The name that we give a node, if the library knows of none and no other node can be meant.
fn known_name(graph: &GraphProto, op_type: &str, name: &str) -> String {
    let nodes = proto::all_nodes(graph);
    let mut meant = nodes
        .into_iter()
        .filter(|node| node.op_type == op_type && node.name == name);
    // Several nodes without a name may be of one type, and then none of them can be singled out.
    match (meant.next(), meant.next()) {
        (Some(node), None) => proto::node_name(node),
        _ => name.to_owned(),
    }
}

/// The text without places in the library's source: a file with a line, and the function there.
fn without_places(text: &str) -> String {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let after = after.trim_start();
        // The library begins its messages with the file, line and function that raised them, which
        // differ from build to build.
        if is_place(word) {
            rest = without_function(after, word.starts_with('/'));
        } else {
            words.push(word);
            rest = after;
        }
    }
    words.join(" ")
}

/// Whether this is a source file and a line in it.
fn is_place(word: &str) -> bool {
    word.rsplit_once(':').is_some_and(|(file, line)| {
        let is_line = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        is_line && SOURCE_ENDINGS.iter().any(|ending| file.ends_with(ending))
    })
}

/// The text after the function that it begins with: a whole signature, or a name only.
fn without_function(text: &str, is_signature: bool) -> &str {
    let end = if is_signature {
        signature_end(text)
    } else {
        text.find(char::is_whitespace)
    };
    let mut rest = end.map_or(text, |end| text[end..].trim_start());
    if is_signature {
        rest = rest.strip_prefix("const ").unwrap_or(rest).trim_start();
        if rest.starts_with("[with ")
            && let Some(end) = rest.find("] ")
        {
            rest = rest[end + 1..].trim_start();
        }
    }
    rest
}

/// Where the list of parameters ends, after which the text goes on.
fn signature_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b'>' | b']' | b'}' => depth = depth.saturating_sub(1),
            b')' => {
                depth = depth.saturating_sub(1);
                let after = text.as_bytes().get(i + 1);
                if depth == 0 && after.is_none_or(u8::is_ascii_whitespace) {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
