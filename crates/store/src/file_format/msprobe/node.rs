//! A JSON value of bounded size, which keeps the order of its keys and the text of its numbers.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

/// Maximum number of values inside one entry. A deeper nesting than 127 is refused by `serde_json`.
pub(super) const N_NODES_MAX: usize = 1 << 20;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    /// A number, as Rust prints it.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let Node::Object(members) = self else {
            return None;
        };
        // Of a key that is there twice the first counts.
        let mut found = members.iter().filter(|(name, _)| name == key);
        found.next().map(|(_, node)| node)
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The kind of value, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "a boolean",
            Node::Number(_) => "a number",
            Node::Text(_) => "text",
            Node::List(_) => "a list",
            Node::Object(_) => "an object",
        }
    }
}

/// Reads a [`Node`] unless the limit is reached.
pub(super) struct NodeSeed<'a> {
    /// How many values there may still be.
    pub(super) n_left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        // A small file may hold very many values, each larger in memory than in the file.
        let Some(n_left) = self.n_left.get().checked_sub(1) else {
            let message = format!("more than {N_NODES_MAX} values in one entry");
            return Err(D::Error::custom(message));
        };
        self.n_left.set(n_left);
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        let n_left = self.n_left;
        while let Some(item) = list.next_element_seed(NodeSeed { n_left })? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        let n_left = self.n_left;
        while let Some(key) = map.next_key()? {
            members.push((key, map.next_value_seed(NodeSeed { n_left })?));
        }
        Ok(Node::Object(members))
    }
}
