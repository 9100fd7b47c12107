//! `construct.json` and `stack.json`: the module that a call is in, and the lines of the program.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::node::{N_NODES_MAX, Node, NodeSeed};
use crate::FormatError;

/// Parts of the paths of files that belong to a framework and not to the program.
const FRAMEWORKS: [&str; 4] = [
    "site-packages/torch",
    "package/torch",
    "site-packages/mindspore",
    "package/mindspore",
];

/// The members of an object, each checked separately.
struct Members(Vec<(String, Node)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Members, D::Error> {
        struct MemberVisitor;

        impl<'de> Visitor<'de> for MemberVisitor {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    let n_left = &Cell::new(N_NODES_MAX);
                    let node = map.next_value_seed(NodeSeed { n_left })?;
                    // Numbers count steps of a pipeline, and name nothing.
                    if matches!(node, Node::Bool(_) | Node::Object(_)) {
                        let message = format!("`{key}`: expected names, found {}", node.kind());
                        return Err(A::Error::custom(message));
                    }
                    members.push((key, node));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(MemberVisitor)
    }
}

/// Reads `construct.json`: by the key of a call that of the module that it is made in.
///
/// # Errors
/// [`FormatError`] if it is not such an object, or is too large.
pub fn parse_construct(bytes: Vec<u8>) -> Result<HashMap<String, String>, FormatError> {
    let members: Members = super::decode(bytes, "the modules of calls")?;
    let parents = members.0.into_iter().filter_map(|(key, node)| {
        let parent = match node {
            Node::Text(parent) => parent,
            // A pipeline adds the number of a step.
            Node::List(parts) => parts.first()?.text()?.to_owned(),
            _ => return None,
        };
        Some((key, parent))
    });
    Ok(parents.collect())
}

/// Reads `stack.json`: by the key of a call the innermost line of the program, as file, line and
/// function. Calls that no line of the program is known of are left out.
///
/// # Errors
/// [`FormatError`] if it is not such an object, or is too large.
pub fn parse_stack(bytes: Vec<u8>) -> Result<HashMap<String, String>, FormatError> {
    let members: Members = super::decode(bytes, "the stacks of calls")?;
    let mut sources = HashMap::new();
    for (key, node) in members.0 {
        let Node::List(parts) = node else {
            continue;
        };
        match &parts[..] {
            // The calls that have a stack in common, and the stack.
            [Node::List(calls), Node::List(lines)] => {
                let source = innermost(lines).unwrap_or_default();
                let calls = calls.iter().filter_map(Node::text);
                sources.extend(calls.map(|call| (call.to_owned(), source.clone())));
            }
            lines => {
                sources.insert(key, innermost(lines).unwrap_or_default());
            }
        }
    }
    sources.retain(|_, source| !source.is_empty());
    Ok(sources)
}

/// The first line outside of frameworks, as `{file}:{line} {function}`.
fn innermost(lines: &[Node]) -> Option<String> {
    let lines = lines.iter().filter_map(Node::text);
    let mut own = lines.filter(|line| !FRAMEWORKS.iter().any(|part| line.contains(part)));
    let line = own.next()?.lines().next()?.trim();
    let (file, rest) = line.strip_prefix("File ")?.rsplit_once(", line ")?;
    let (number, function) = rest.split_once(", in ")?;
    let function = function.trim_end_matches([',', ' ']);
    Some(format!("{file}:{number} {function}"))
}
