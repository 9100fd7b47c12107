//! Notes in a model's file: properties of the model and of its nodes, for viewers such as Netron.
//!
//! Only the notes are added. Every other field, unknown ones included, keeps its bytes, so the
//! model computes the same values, and weights in separate files stay where they are.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use opscope_store::FormatError;
use opscope_store::file_bytes::FileBytes;
use opscope_store::file_format::protobuf::{FieldValue, MessageReader, MessageWriter};

use super::proto::{BODY_DEPTH_MAX, N_MESSAGE_BYTES_MAX};
use crate::EngineError;

/// The prefix of every key. Notes of an earlier export are replaced.
const PREFIX: &str = "opscope.";

/// Field numbers of the messages.
mod field {
    pub(super) const MODEL_GRAPH: u32 = 7;
    pub(super) const MODEL_PROPERTIES: u32 = 14;
    pub(super) const GRAPH_NODE: u32 = 1;
    pub(super) const NODE_OUTPUT: u32 = 2;
    pub(super) const NODE_NAME: u32 = 3;
    pub(super) const NODE_ATTRIBUTE: u32 = 5;
    pub(super) const NODE_PROPERTIES: u32 = 9;
    pub(super) const ATTRIBUTE_GRAPH: u32 = 6;
    pub(super) const ATTRIBUTE_GRAPHS: u32 = 11;
    pub(super) const PROPERTY_KEY: u32 = 1;
    pub(super) const PROPERTY_VALUE: u32 = 2;
}

/// Keys and values, without the prefix of the keys.
pub type Notes = Vec<(&'static str, String)>;

/// A model's file with notes.
pub struct AnnotatedModel {
    file: FileBytes,
    parts: Vec<Part>,
    /// Number of nodes with notes.
    pub n_nodes: usize,
}

/// A piece of the new file.
enum Part {
    /// Bytes of the model's file.
    Kept(Range<usize>),
    /// New bytes.
    New(Vec<u8>),
}

/// The messages that hold notes, or that lead to them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
}

impl AnnotatedModel {
    /// Adds `model` to the model and `nodes`, by the name of the operator, to its nodes, those of
    /// bodies included. Nodes without a name go by their first output, as in dumps.
    ///
    /// # Errors
    /// [`EngineError`] if the file cannot be read, is no model, or becomes too large for one.
    pub fn new(
        path: &Path,
        model: &Notes,
        nodes: &HashMap<String, Notes>,
    ) -> Result<AnnotatedModel, EngineError> {
        let file = FileBytes::open(path).map_err(|source| EngineError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut annotation = Annotation {
            nodes,
            n_nodes: 0,
            has_graph: false,
        };
        let content = annotation
            .rewrite(file.as_ref(), 0, Message::Model, model, 0)
            .map_err(|error| EngineError::invalid(path, error.to_string()))?;
        if !annotation.has_graph {
            return Err(EngineError::invalid(path, "it has no graph"));
        }
        if content.n_bytes > N_MESSAGE_BYTES_MAX {
            let n_bytes = content.n_bytes;
            return Err(EngineError::invalid(
                path,
                format!(
                    "with notes it takes {n_bytes} bytes; expected at most {N_MESSAGE_BYTES_MAX}"
                ),
            ));
        }
        Ok(AnnotatedModel {
            n_nodes: annotation.n_nodes,
            parts: content.parts,
            file,
        })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for part in &self.parts {
            out.write_all(match part {
                Part::Kept(range) => &self.file.as_ref()[range.clone()],
                Part::New(bytes) => bytes,
            })?;
        }
        Ok(())
    }
}

/// The content of a message in pieces.
#[derive(Default)]
struct Content {
    parts: Vec<Part>,
    n_bytes: usize,
}

impl Content {
    fn keep(&mut self, range: Range<usize>) {
        self.n_bytes += range.len();
        // Neighbours become one piece: a model has few notes and many fields.
        match self.parts.last_mut() {
            Some(Part::Kept(last)) if last.end == range.start => last.end = range.end,
            _ => self.parts.push(Part::Kept(range)),
        }
    }

    fn add(&mut self, bytes: Vec<u8>) {
        self.n_bytes += bytes.len();
        self.parts.push(Part::New(bytes));
    }

    fn append(&mut self, other: Content) {
        self.n_bytes += other.n_bytes;
        self.parts.extend(other.parts);
    }
}

struct Annotation<'a> {
    nodes: &'a HashMap<String, Notes>,
    n_nodes: usize,
    has_graph: bool,
}

impl Annotation<'_> {
    /// The message in `bytes`, which begin at byte `base` of the file, with `notes` at its end.
    fn rewrite(
        &mut self,
        bytes: &[u8],
        base: usize,
        message: Message,
        notes: &Notes,
        depth: usize,
    ) -> Result<Content, FormatError> {
        let mut content = Content::default();
        let mut reader = MessageReader::new(bytes, base as u64);
        let properties = match message {
            Message::Model => field::MODEL_PROPERTIES,
            _ => field::NODE_PROPERTIES,
        };
        loop {
            let start = reader.offset() as usize;
            let Some((number, value)) = reader.field()? else {
                break;
            };
            let kept = start..reader.offset() as usize;
            let FieldValue::Bytes(inner, at) = value else {
                content.keep(kept);
                continue;
            };
            if !notes.is_empty() && number == properties && is_own(inner)? {
                continue;
            }
            match inner_message(message, number) {
                Some(inner_message) if depth < BODY_DEPTH_MAX * 3 => {
                    let changed = self.inner(inner, at as usize, inner_message, depth + 1)?;
                    match changed {
                        // The length of a changed message precedes it.
                        Some(changed) => {
                            let mut header = MessageWriter::default();
                            header.header(number, changed.n_bytes as u64);
                            content.add(header.into_bytes());
                            content.append(changed);
                        }
                        None => content.keep(kept),
                    }
                }
                _ => content.keep(kept),
            }
        }
        for (key, value) in notes {
            let mut writer = MessageWriter::default();
            writer.message(properties, |entry| {
                entry.string(field::PROPERTY_KEY, &format!("{PREFIX}{key}"));
                entry.string(field::PROPERTY_VALUE, value);
            });
            content.add(writer.into_bytes());
        }
        Ok(content)
    }

    /// A message inside another one; `None` if nothing in it changes.
    fn inner(
        &mut self,
        bytes: &[u8],
        base: usize,
        message: Message,
        depth: usize,
    ) -> Result<Option<Content>, FormatError> {
        self.has_graph |= message == Message::Graph;
        let nodes = self.nodes;
        let none = Notes::new();
        let notes = match message {
            Message::Node => nodes.get(&name_of(bytes)?).unwrap_or(&none),
            _ => &none,
        };
        self.n_nodes += usize::from(!notes.is_empty());
        let content = self.rewrite(bytes, base, message, notes, depth)?;
        let is_kept = content.n_bytes == bytes.len()
            && content
                .parts
                .iter()
                .all(|part| matches!(part, Part::Kept(_)));
        Ok((!is_kept).then_some(content))
    }
}

/// The message in a field that may hold notes.
fn inner_message(message: Message, number: u32) -> Option<Message> {
    match (message, number) {
        (Message::Model, field::MODEL_GRAPH) => Some(Message::Graph),
        (Message::Graph, field::GRAPH_NODE) => Some(Message::Node),
        (Message::Node, field::NODE_ATTRIBUTE) => Some(Message::Attribute),
        (Message::Attribute, field::ATTRIBUTE_GRAPH | field::ATTRIBUTE_GRAPHS) => {
            Some(Message::Graph)
        }
        _ => None,
    }
}

/// The first field of texts in `numbers`, which are tried in turn, that is not empty.
fn first_text(bytes: &[u8], numbers: &[u32]) -> Result<String, FormatError> {
    for &wanted in numbers {
        let mut reader = MessageReader::new(bytes, 0);
        while let Some((number, value)) = reader.field()? {
            if let (true, FieldValue::Bytes(text, _)) = (number == wanted, value)
                && !text.is_empty()
            {
                return Ok(String::from_utf8_lossy(text).into_owned());
            }
        }
    }
    Ok(String::new())
}

/// The name of a node in dumps.
fn name_of(node: &[u8]) -> Result<String, FormatError> {
    first_text(node, &[field::NODE_NAME, field::NODE_OUTPUT])
}

/// Whether a property is a note.
fn is_own(property: &[u8]) -> Result<bool, FormatError> {
    Ok(first_text(property, &[field::PROPERTY_KEY])?.starts_with(PREFIX))
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::onnx::schema::{GraphProto, ModelProto, NodeProto, StringStringEntryProto};

    fn node(name: &str, output: &str) -> NodeProto {
        NodeProto {
            name: name.into(),
            op_type: "Relu".into(),
            output: vec![output.into()],
            ..NodeProto::default()
        }
    }

    fn annotated(bytes: &[u8], key: &str) -> Result<(Vec<u8>, usize), EngineError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("net.onnx");
        std::fs::write(&path, bytes).unwrap();
        let notes = vec![("level", "fail".to_owned())];
        let nodes = HashMap::from([(key.to_owned(), notes)]);
        let model = AnnotatedModel::new(&path, &vec![("verdict", "FAIL".to_owned())], &nodes)?;
        let mut out = Vec::new();
        model.write(&mut out).unwrap();
        Ok((out, model.n_nodes))
    }

    #[test]
    fn only_notes_are_added_and_replaced() {
        let other = StringStringEntryProto {
            key: "author".into(),
            value: "a person".into(),
        };
        let model = ModelProto {
            ir_version: Some(8),
            graph: Some(GraphProto {
                node: vec![node("a", "x"), node("", "y")],
                ..GraphProto::default()
            }),
            metadata_props: vec![other],
            ..ModelProto::default()
        };
        let mut bytes = model.encode_to_vec();
        // A field of a later version.
        let unknown = [0xfa, 0x07, 3, b'n', b'e', b'w'];
        bytes.extend(unknown);
        for key in ["a", "y"] {
            let (noted, n_nodes) = annotated(&bytes, key).unwrap();
            assert_eq!(n_nodes, 1, "{key}");
            assert!(noted.windows(6).any(|part| part == unknown));
            let decoded = ModelProto::decode(&*noted).unwrap();
            let keys: Vec<&str> = (decoded.metadata_props.iter())
                .map(|entry| entry.key.as_str())
                .collect();
            assert_eq!(keys, ["author", "opscope.verdict"]);
            // A second export replaces the notes of the first.
            assert_eq!(annotated(&noted, key).unwrap().0, noted, "{key}");
            let plain = [
                decoded.graph.unwrap().node,
                model.graph.clone().unwrap().node,
            ];
            assert_eq!(plain[0].len(), plain[1].len());
        }
    }

    #[test]
    fn files_that_are_no_models_are_refused() {
        for bytes in [&b""[..], b"text", &[0x3a, 0x7f]] {
            assert!(annotated(bytes, "a").is_err(), "{bytes:?}");
        }
    }
}
