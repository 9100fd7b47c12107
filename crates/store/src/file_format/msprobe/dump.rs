//! `dump.json` and `debug.json`: the calls of a step with what is known of their tensors.

use std::cell::Cell;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::node::{N_NODES_MAX, Node, NodeSeed};
use super::words::number_text;
use crate::FormatError;
use crate::file_format::byte_order_mark;
use crate::record::SlotSide;
use crate::tree::msprobe::{EntryKind, EntryName};

/// Keys of an entry whose values are read or made: inputs before parameters, so that these do not
/// move inputs.
const SECTIONS: [(&str, SlotSide); 5] = [
    ("input_args", SlotSide::Input),
    ("input_kwargs", SlotSide::Input),
    ("input", SlotSide::Input),
    (PARAMETERS, SlotSide::Input),
    ("output", SlotSide::Output),
];
/// The section with the parameters of a module, by name.
const PARAMETERS: &str = "parameters";
/// Sections whose values have names, in no order that means anything.
const NAMED_SECTIONS: [&str; 2] = ["input_kwargs", PARAMETERS];
/// Statistics, with the titles that other tables have for them.
const TITLES: [(&str, &str); 4] = [
    ("Max", "Max Value"),
    ("Min", "Min Value"),
    ("Mean", "Avg Value"),
    ("Norm", "L2Norm Value"),
];
/// Keys of a tensor other than statistics.
const DESCRIPTION: [&str; 8] = [
    "type",
    "dtype",
    "shape",
    "requires_grad",
    "data_name",
    "hsdp_shard_size",
    "tensor_stat_index",
    "md5_index",
];
/// The key of every digest, whatever its kind.
const DIGEST: &str = "md5";
/// Marks a missing file.
const NO_FILE: &str = "-1";

/// A file as it was read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ProbeDump {
    /// The task, such as `statistics`.
    pub task: String,
    /// The level, such as `L1`.
    pub level: String,
    /// The framework; none in files of old versions.
    #[serde(default)]
    pub framework: Option<String>,
    /// The calls, in order of execution.
    #[serde(rename = "data", deserialize_with = "entries")]
    pub entries: Vec<ProbeEntry>,
}

/// A call, or the gradients of a module's parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeEntry {
    /// The key, such as `Functional.linear.0.forward`.
    pub key: String,
    /// Its tensors, inputs first.
    pub tensors: Vec<ProbeTensor>,
    /// Keys of parts that are not known.
    pub unknown: Vec<String>,
}

/// The description of a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeTensor {
    /// Side and position.
    pub slot: Option<(SlotSide, u32)>,
    /// Name of the dtype.
    pub dtype: String,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Statistics by title; `None` for missing values.
    pub statistics: Vec<(String, Option<String>)>,
    /// Name of the file with its elements.
    pub data_name: Option<String>,
    /// The name of a parameter within its module.
    pub parameter: Option<String>,
}

/// Whether a file that begins like this is a dump.
pub fn is_dump(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let is_object = byte_order_mark::behind(&head).trim_start().starts_with('{');
    let keys = ["\"task\"", "\"level\"", "\"data\""];
    is_object && keys.iter().all(|key| head.contains(key))
}

/// Reads a file.
///
/// # Errors
/// [`FormatError`] if it is not such an object, or is too large.
pub fn parse_dump(bytes: Vec<u8>) -> Result<ProbeDump, FormatError> {
    super::decode(bytes, "a dump of msProbe")
}

/// Entries one by one, so that no more than one is in memory as JSON.
fn entries<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ProbeEntry>, D::Error> {
    struct EntryVisitor;

    impl<'de> Visitor<'de> for EntryVisitor {
        type Value = Vec<ProbeEntry>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of calls")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(key) = map.next_key::<String>()? {
                let n_left = &Cell::new(N_NODES_MAX);
                let node = map.next_value_seed(NodeSeed { n_left })?;
                entries.push(ProbeEntry::from_node(key, &node).map_err(A::Error::custom)?);
            }
            Ok(entries)
        }
    }
    from.deserialize_map(EntryVisitor)
}

impl ProbeEntry {
    fn from_node(key: String, node: &Node) -> Result<ProbeEntry, String> {
        let kind = EntryName::parse(&key).kind;
        let mut entry = ProbeEntry {
            key,
            ..ProbeEntry::default()
        };
        let mut tensors = Vec::new();
        let found = match kind {
            EntryKind::Saved => flatten(node, SlotSide::Output, &mut 0, &mut tensors),
            // They come in the order in which they are computed, which need not be the same twice.
            EntryKind::Gradients => flatten(&sorted(node), SlotSide::Output, &mut 0, &mut tensors),
            EntryKind::Call => entry.add_sections(node, &mut tensors),
        };
        found.map_err(|message| format!("`{}`: {message}", entry.key))?;
        entry.tensors = tensors;
        Ok(entry)
    }

    fn add_sections(&mut self, node: &Node, to: &mut Vec<ProbeTensor>) -> Result<(), String> {
        let Node::Object(members) = node else {
            return Err(format!("expected an object, found {}", node.kind()));
        };
        let [mut n_inputs, mut n_outputs] = [0, 0];
        for (name, side) in SECTIONS {
            let Some(section) = node.get(name) else {
                continue;
            };
            let position = match side {
                SlotSide::Input => &mut n_inputs,
                SlotSide::Output => &mut n_outputs,
            };
            // An empty one at the top has no place, though an empty one inside it has.
            match section {
                Node::List(items) if items.is_empty() => {}
                Node::Object(members) if members.is_empty() => {}
                Node::Null => {}
                Node::Object(members) if name == PARAMETERS => {
                    let mut members: Vec<_> = members.iter().collect();
                    members.sort_by_key(|(parameter, _)| parameter);
                    for (parameter, value) in members {
                        let n_before = to.len();
                        flatten(value, side, position, to)?;
                        for tensor in &mut to[n_before..] {
                            tensor.parameter = Some(parameter.clone());
                        }
                    }
                }
                _ if NAMED_SECTIONS.contains(&name) => {
                    flatten(&sorted(section), side, position, to)?;
                }
                _ => flatten(section, side, position, to)?,
            }
        }
        let unknown = members.iter().map(|(name, _)| name);
        let unknown = unknown.filter(|name| SECTIONS.iter().all(|(known, _)| known != name));
        self.unknown = unknown.cloned().collect();
        Ok(())
    }
}

/// An object with its members by name.
fn sorted(node: &Node) -> Node {
    let mut node = node.clone();
    if let Node::Object(members) = &mut node {
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
    node
}

/// Adds the tensors below a value. Everything except lists and objects of values has a position.
fn flatten(
    node: &Node,
    side: SlotSide,
    position: &mut u32,
    to: &mut Vec<ProbeTensor>,
) -> Result<(), String> {
    match node {
        Node::List(items) if !items.is_empty() => {
            for item in items {
                flatten(item, side, position, to)?;
            }
            return Ok(());
        }
        Node::Object(members) if !members.is_empty() && !is_leaf(node) => {
            for (_, member) in members {
                flatten(member, side, position, to)?;
            }
            return Ok(());
        }
        _ => {}
    }
    // A message between processes holds its tensor under a key.
    let held = node.get("class_type").and_then(|_| node.get("tensor"));
    let leaf = held.unwrap_or(node);
    if leaf.get("dtype").is_some() && leaf.get("shape").is_some() {
        let tensor = ProbeTensor::from_node(leaf)?;
        to.push(ProbeTensor {
            slot: Some((side, *position)),
            ..tensor
        });
    }
    *position = position.saturating_add(1);
    Ok(())
}

/// Whether an object describes one value. One of a program may have a member of that name, which
/// then is no text but another description.
fn is_leaf(node: &Node) -> bool {
    let keys = ["type", "class_type"];
    keys.iter()
        .any(|key| node.get(key).is_some_and(|value| value.text().is_some()))
}

impl ProbeTensor {
    fn from_node(node: &Node) -> Result<ProbeTensor, String> {
        let dtype = node.get("dtype").and_then(Node::text);
        let dtype = dtype.ok_or("expected the name of a `dtype`, found something else")?;
        let shape = match node.get("shape") {
            Some(Node::List(extents)) => extents.iter().map(extent).collect::<Option<Vec<u64>>>(),
            _ => None,
        };
        let shape = shape.ok_or("expected a `shape` of whole numbers, found something else")?;
        let Node::Object(members) = node else {
            return Err(format!("expected a tensor, found {}", node.kind()));
        };
        let data_name = node.get("data_name").and_then(Node::text);
        let data_name = data_name.filter(|name| !name.is_empty() && *name != NO_FILE);
        Ok(ProbeTensor {
            slot: None,
            dtype: dtype.to_owned(),
            shape,
            statistics: members.iter().filter_map(statistic).collect(),
            data_name: data_name.map(str::to_owned),
            parameter: None,
        })
    }
}

fn extent(node: &Node) -> Option<u64> {
    match node {
        Node::Number(text) => text.parse().ok(),
        _ => None,
    }
}

fn statistic((key, value): &(String, Node)) -> Option<(String, Option<String>)> {
    if DESCRIPTION.contains(&key.as_str()) {
        return None;
    }
    let title = TITLES.iter().find(|(known, _)| known == key);
    let title = title.map(|(_, title)| *title);
    let text = match value {
        Node::Null => None,
        // Extremes of booleans are numbers wherever else they are given.
        Node::Bool(value) if title.is_some() => Some(u8::from(*value).to_string()),
        Node::Bool(value) => Some(value.to_string()),
        Node::Number(text) => Some(text.clone()),
        Node::Text(text) => Some(number_text(text)),
        Node::List(_) | Node::Object(_) => return None,
    };
    let title = match title {
        Some(title) => title,
        None if key == DIGEST => digest_title(text.as_deref()),
        None => key,
    };
    Some((title.to_owned(), text))
}

/// The kind of a digest by its form: the tool calls all of them MD5, which none of its newer
/// versions computes.
fn digest_title(text: Option<&str>) -> &'static str {
    let is_hex = |text: &str, n| text.len() == n && text.bytes().all(|b| b.is_ascii_hexdigit());
    match text {
        Some(text) if is_hex(text, 8) => "CRC32",
        Some(text) if text.strip_prefix("0x").is_some_and(|rest| is_hex(rest, 16)) => "XOR64",
        Some(text) if is_hex(text, 32) => "MD5",
        _ => "digest",
    }
}
