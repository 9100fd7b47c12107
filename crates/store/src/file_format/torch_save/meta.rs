//! Plain facts that a file contains about its value: `{"value": …, "meta": {"name": "x", "step":
//! 3}}`.

use super::META_BYTES_MAX;
use super::pickle::{Pickle, PickleValue, ValueId};
use crate::FormatError;

/// The keys of such a file.
const VALUE: &str = "value";
const META: &str = "meta";
/// How the keys end whose values are dictionaries of ranks and sizes.
const PARALLEL_INFO: &str = "_parallel_info";

/// Keys and values in their order; empty for any other file. Only numbers, texts and truths are
/// included.
pub(super) fn of_pickle(pickle: &Pickle<'_>) -> Result<Vec<(String, String)>, FormatError> {
    let root = pickle.root();
    let (Some(_), Some(meta)) = (member(pickle, root, VALUE), member(pickle, root, META)) else {
        return Ok(Vec::new());
    };
    // Any program may use the key `meta`.
    let PickleValue::Dict(pairs) = pickle.value(meta) else {
        return Ok(Vec::new());
    };
    let mut facts = Vec::new();
    let mut n_bytes = 0_usize;
    for &(key, value) in pairs {
        let PickleValue::Text(key) = pickle.value(key) else {
            continue;
        };
        let mut found = Vec::new();
        match pickle.value(value) {
            // The place of the process on the axes of its mesh, which notes about axes refer to.
            PickleValue::Dict(inner) if key.ends_with(PARALLEL_INFO) => {
                for &(inner_key, value) in inner {
                    let PickleValue::Text(inner_key) = pickle.value(inner_key) else {
                        continue;
                    };
                    let text = plain_text(pickle.value(value));
                    found.extend(text.map(|text| (format!("{key}.{inner_key}"), text)));
                }
            }
            value => found.extend(plain_text(value).map(|text| ((*key).to_owned(), text))),
        }
        for (key, text) in found {
            // One text of the pickle may be the value of many keys.
            n_bytes = n_bytes.saturating_add(key.len()).saturating_add(text.len());
            if n_bytes > META_BYTES_MAX {
                let expected = format!("at most {META_BYTES_MAX} bytes under `{META}`");
                return Err(FormatError::new(0, expected, "more"));
            }
            facts.push((key, text));
        }
    }
    Ok(facts)
}

/// The value of a key; the last one, as Python keeps it.
fn member(pickle: &Pickle<'_>, id: ValueId, key: &str) -> Option<ValueId> {
    let PickleValue::Dict(pairs) = pickle.value(id) else {
        return None;
    };
    let mut found = pairs.iter().rev();
    let found = found.find(|(found, _)| *pickle.value(*found) == PickleValue::Text(key));
    found.map(|&(_, value)| value)
}

/// As Python prints it.
fn plain_text(value: &PickleValue<'_>) -> Option<String> {
    Some(match value {
        PickleValue::None => "None".to_owned(),
        PickleValue::Bool(true) => "True".to_owned(),
        PickleValue::Bool(false) => "False".to_owned(),
        PickleValue::Int(number) => number.to_string(),
        PickleValue::Float(number) => format!("{number:?}"),
        PickleValue::Text(text) => (*text).to_owned(),
        _ => return None,
    })
}
