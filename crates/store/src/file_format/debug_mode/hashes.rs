//! Hashes of tensors: trees of values in which each tensor has its hash, or one of each function,
//! in its place.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::DebugTensor;

/// The title of a hash that is a float: the sum of absolute values, unless the program sets another
/// function.
pub const NORM_TITLE: &str = "DebugMode norm";
/// The title of a hash that is an integer: `torch.hash_tensor`, an exclusive or.
pub const XOR_TITLE: &str = "DebugMode hash_tensor";
/// The title of a hash that only a function of the program's can give.
pub const HASH_TITLE: &str = "DebugMode hash";

/// A value with others in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HashTree {
    /// Placeholder for a value that is not a tensor.
    None,
    /// A title and a hash.
    Hash(&'static str, String),
    /// Values in their order, with their keys where they have such.
    Branch(Vec<(String, HashTree)>),
}

impl HashTree {
    pub(super) fn of_float(number: f64) -> HashTree {
        // The two forms of a log print numbers differently, and here they are equal.
        HashTree::Hash(NORM_TITLE, format!("{number:?}").to_lowercase())
    }

    pub(super) fn of_integer(digits: String) -> HashTree {
        HashTree::Hash(XOR_TITLE, digits)
    }

    pub(super) fn of_text(text: &str) -> HashTree {
        HashTree::Hash(HASH_TITLE, text.to_owned())
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&HashTree> {
        let HashTree::Branch(items) = self else {
            return None;
        };
        let mut found = items.iter().filter(|(name, _)| name == key);
        found.next().map(|(_, tree)| tree)
    }

    fn collect<'a>(&'a self, hashes: &mut Vec<(&'static str, &'a str)>) {
        match self {
            HashTree::None => {}
            HashTree::Hash(title, text) => hashes.push((title, text)),
            HashTree::Branch(items) => items.iter().for_each(|(_, tree)| tree.collect(hashes)),
        }
    }

    /// [`HashTree::assign`] of results, which a log may not show: then there are as many tensors as
    /// the hashes say.
    pub(super) fn assign_or_add(&self, tensors: &mut Vec<DebugTensor>) -> bool {
        if tensors.is_empty() {
            let mut hashes = Vec::new();
            self.collect(&mut hashes);
            let first = hashes.first().map(|(title, _)| title);
            // Each function's hash comes once for each tensor.
            let titles = hashes.iter().map(|(title, _)| title);
            let n_tensors = titles.filter(|title| Some(*title) == first).count();
            tensors.resize_with(n_tensors, DebugTensor::default);
        }
        self.assign(tensors)
    }

    /// Assigns each tensor its hashes. Returns whether they belong to the tensors one by one.
    pub(super) fn assign(&self, tensors: &mut [DebugTensor]) -> bool {
        let mut hashes = Vec::new();
        self.collect(&mut hashes);
        if hashes.is_empty() {
            return true;
        }
        if tensors.is_empty() || !hashes.len().is_multiple_of(tensors.len()) {
            return false;
        }
        // The mode takes a list of functions, and then each tensor has a tuple.
        let n_each = hashes.len() / tensors.len();
        // Several hashes of one kind are those of tensors that the log does not show.
        let mut of_tensors = hashes.chunks_exact(n_each);
        if !of_tensors.all(|hashes| {
            hashes
                .iter()
                .map(|(title, _)| title)
                .collect::<HashSet<_>>()
                .len()
                == n_each
        }) {
            return false;
        }
        for (tensor, of_tensor) in tensors.iter_mut().zip(hashes.chunks_exact(n_each)) {
            let of_tensor = of_tensor.iter();
            tensor.hashes = of_tensor
                .map(|(title, text)| (*title, (*text).to_owned()))
                .collect();
        }
        true
    }
}

/// A value as `save_logs` writes it: `{"type": "tuple", "items": […]}`,
/// `{"type": "scalar", "value": 3}`.
impl<'de> Deserialize<'de> for HashTree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<HashTree, D::Error> {
        let NamedTree(_, tree) = NamedTree::deserialize(from)?;
        Ok(tree)
    }
}

/// A value, or a pair of a key and a value in a dictionary.
struct NamedTree(String, HashTree);

impl<'de> Deserialize<'de> for NamedTree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<NamedTree, D::Error> {
        struct TreeVisitor;

        impl<'de> Visitor<'de> for TreeVisitor {
            type Value = NamedTree;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value of a log")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<NamedTree, A::Error> {
                let key: Option<String> = pair.next_element()?;
                let value: Option<HashTree> = pair.next_element()?;
                let end: Option<IgnoredAny> = pair.next_element()?;
                match (key, value, end) {
                    (Some(key), Some(value), None) => Ok(NamedTree(key, value)),
                    _ => Err(A::Error::custom("expected a key and a value")),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedTree, A::Error> {
                let mut kind: Option<String> = None;
                let mut scalar = HashTree::None;
                let mut items: Option<Vec<NamedTree>> = None;
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "type" => kind = Some(map.next_value()?),
                        "value" => ScalarTree(scalar) = map.next_value()?,
                        "items" => items = Some(map.next_value()?),
                        _ => {
                            let _: IgnoredAny = map.next_value()?;
                        }
                    }
                }
                // JSON has no words for what is not finite, so that the mode writes texts.
                let tree = match (kind.as_deref(), items, scalar) {
                    (Some("scalar"), None, scalar) => scalar,
                    (Some("nonfinite_float"), None, HashTree::Hash(_, text)) => {
                        let number: f64 = text.parse().map_err(A::Error::custom)?;
                        HashTree::of_float(number)
                    }
                    (Some("tuple" | "list" | "dict"), Some(items), _) => {
                        let items = items.into_iter().map(|NamedTree(key, tree)| (key, tree));
                        HashTree::Branch(items.collect())
                    }
                    (kind, ..) => {
                        let message = format!("expected a value, found one of type {kind:?}");
                        return Err(A::Error::custom(message));
                    }
                };
                Ok(NamedTree(String::new(), tree))
            }
        }
        from.deserialize_any(TreeVisitor)
    }
}

/// A value without others in it.
struct ScalarTree(HashTree);

impl<'de> Deserialize<'de> for ScalarTree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ScalarTree, D::Error> {
        struct ScalarVisitor;

        impl Visitor<'_> for ScalarVisitor {
            type Value = ScalarTree;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("nothing, a truth, a number or a text")
            }

            fn visit_unit<E: Error>(self) -> Result<ScalarTree, E> {
                Ok(ScalarTree(HashTree::None))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<ScalarTree, E> {
                let text = if value { "True" } else { "False" };
                Ok(ScalarTree(HashTree::of_text(text)))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<ScalarTree, E> {
                Ok(ScalarTree(HashTree::of_integer(value.to_string())))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<ScalarTree, E> {
                Ok(ScalarTree(HashTree::of_integer(value.to_string())))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<ScalarTree, E> {
                Ok(ScalarTree(HashTree::of_float(value)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ScalarTree, E> {
                Ok(ScalarTree(HashTree::of_text(text)))
            }
        }
        from.deserialize_any(ScalarVisitor)
    }
}
