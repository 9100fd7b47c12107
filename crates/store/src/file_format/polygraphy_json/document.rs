//! The JSON objects and lists around the arrays, read in one pass without a tree of values.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The key under which objects name their class.
const CLASS_KEY: &str = "polygraphy_class";
/// How keys begin by which old versions named the class.
const OLD_CLASS_PREFIX: &str = "__polygraphy_encoded_";

/// The content of a file.
pub(super) enum Document<'a> {
    /// For each runner its name, and the outputs of each iteration.
    Results(Vec<(String, Vec<NamedArrays<'a>>)>),
    /// Inputs of each iteration.
    Inputs(Vec<NamedArrays<'a>>),
}

/// Arrays by their names, in their order.
pub(super) struct NamedArrays<'a>(pub(super) Vec<(String, EncodedArray<'a>)>);

/// An array as it is written.
pub(super) enum EncodedArray<'a> {
    /// numpy's file in base64.
    Npy(&'a str),
    /// A tensor that torch wrote.
    Torch,
}

impl EncodedArray<'_> {
    /// The base64 text of numpy's file, or the word for something else.
    pub(super) fn text(&self) -> Result<&str, &'static str> {
        match self {
            EncodedArray::Npy(text) => Ok(text),
            EncodedArray::Torch => Err("a tensor of torch's"),
        }
    }

    /// Where the text begins in the file; 0 if it is not a part of it.
    pub(super) fn offset_in(&self, file: &[u8]) -> u64 {
        let start = self.text().map_or(0, |text| text.as_ptr().addr());
        // A text with escapes is a copy of the parser's, and lies elsewhere.
        let offset = start.checked_sub(file.as_ptr().addr());
        offset.filter(|&n| n < file.len()).unwrap_or(0) as u64
    }
}

/// Whether a key says a class and nothing else.
fn is_class_key(key: &str) -> bool {
    key == CLASS_KEY || key.starts_with(OLD_CLASS_PREFIX)
}

/// Keys of an object, each at most once.
#[derive(Default)]
struct SeenKeys(HashSet<String>);

impl SeenKeys {
    fn add<E: Error>(&mut self, key: &str) -> Result<(), E> {
        if self.0.insert(key.to_owned()) {
            return Ok(());
        }
        Err(E::custom(format!("`{key}` twice")))
    }
}

impl<'de> Deserialize<'de> for Document<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("results of runs, or inputs by name")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut iterations = Vec::new();
        while let Some(inputs) = list.next_element()? {
            iterations.push(inputs);
        }
        Ok(Document::Inputs(iterations))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut seen, mut results, mut inputs) = (SeenKeys::default(), None, Vec::new());
        while let Some(key) = map.next_key::<String>()? {
            seen.add(&key)?;
            if is_class_key(&key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            match map.next_value::<ListOrArray<'de>>()? {
                ListOrArray::List(runners) if key == "lst" => results = Some(runners),
                ListOrArray::Array(array) => inputs.push((key, array)),
                ListOrArray::List(_) => {
                    return Err(A::Error::custom(format!("a list under `{key}`")));
                }
            }
        }
        // An empty object has neither, and counts as an empty set of inputs.
        match (results, inputs.is_empty()) {
            (Some(runners), true) => {
                let pairs = runners.into_iter().map(|(name, iterations)| {
                    let outputs = iterations.into_iter().map(|Iteration(outputs)| outputs);
                    (name, outputs.collect())
                });
                Ok(Document::Results(pairs.collect()))
            }
            (None, _) => Ok(Document::Inputs(vec![NamedArrays(inputs)])),
            (Some(_), false) => Err(A::Error::custom("results and inputs in one object")),
        }
    }
}

/// A value of the outermost object: the results of all runners, or an input.
enum ListOrArray<'a> {
    List(Vec<RunnerResults<'a>>),
    Array(EncodedArray<'a>),
}

impl<'de> Deserialize<'de> for ListOrArray<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListOrArrayVisitor)
    }
}

struct ListOrArrayVisitor;

impl<'de> Visitor<'de> for ListOrArrayVisitor {
    type Value = ListOrArray<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of runners or an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut runners = Vec::new();
        while let Some(results) = list.next_element()? {
            runners.push(results);
        }
        Ok(ListOrArray::List(runners))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        EncodedArrayVisitor.visit_map(map).map(ListOrArray::Array)
    }
}

/// A runner's name and its outputs in each iteration: a list of the two.
type RunnerResults<'a> = (String, Vec<Iteration<'a>>);

/// The outputs of one iteration. The time that it took, and the runner's name once more, are left
/// out.
struct Iteration<'a>(NamedArrays<'a>);

impl<'de> Deserialize<'de> for Iteration<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(IterationVisitor)
    }
}

struct IterationVisitor;

impl<'de> Visitor<'de> for IterationVisitor {
    type Value = Iteration<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the result of an iteration")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut seen, mut outputs) = (SeenKeys::default(), None);
        while let Some(key) = map.next_key::<String>()? {
            seen.add(&key)?;
            match key.as_str() {
                "outputs" => outputs = Some(map.next_value()?),
                "runtime" | "runner_name" => drop(map.next_value::<IgnoredAny>()?),
                key if is_class_key(key) => drop(map.next_value::<IgnoredAny>()?),
                // If skipped, an unknown part of the result could hold values that are missing in
                // the comparison.
                _ => return Err(A::Error::custom(format!("an unknown key `{key}`"))),
            }
        }
        outputs
            .map(Iteration)
            .ok_or_else(|| A::Error::missing_field("outputs"))
    }
}

impl<'de> Deserialize<'de> for NamedArrays<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedArraysVisitor)
    }
}

struct NamedArraysVisitor;

impl<'de> Visitor<'de> for NamedArraysVisitor {
    type Value = NamedArrays<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with arrays by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut seen, mut arrays) = (SeenKeys::default(), Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            seen.add(&name)?;
            arrays.push((name, map.next_value()?));
        }
        Ok(NamedArrays(arrays))
    }
}

impl<'de> Deserialize<'de> for EncodedArray<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EncodedArrayVisitor)
    }
}

struct EncodedArrayVisitor;

impl<'de> Visitor<'de> for EncodedArrayVisitor {
    type Value = EncodedArray<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut seen, mut found) = (SeenKeys::default(), None);
        while let Some(key) = map.next_key::<String>()? {
            seen.add(&key)?;
            if is_class_key(&key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let array = match key.as_str() {
                "array" => EncodedArray::Npy(map.next_value()?),
                // It is a pickle, which only torch reads. The name says what is missing.
                "tensor" => {
                    map.next_value::<IgnoredAny>()?;
                    EncodedArray::Torch
                }
                // Outputs are wrapped, so that large ones may be in separate files.
                "values" => map.next_value()?,
                _ => return Err(A::Error::custom(format!("an unknown key `{key}`"))),
            };
            if found.replace(array).is_some() {
                return Err(A::Error::custom("two arrays in one"));
            }
        }
        found.ok_or_else(|| A::Error::missing_field("array"))
    }
}
