//! Numbers in JSON, which has neither NaN nor infinities: those are texts.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonNumber {
    Finite(f64),
    Text(String),
}

/// Writes a number, or the text `nan`, `inf` or `-inf`.
pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    match value {
        value if value.is_nan() => to.serialize_str("nan"),
        value if value.is_infinite() && *value > 0.0 => to.serialize_str("inf"),
        value if value.is_infinite() => to.serialize_str("-inf"),
        value => to.serialize_f64(*value),
    }
}

/// Reads a number or one of these texts; other texts are an error.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    match JsonNumber::deserialize(from)? {
        JsonNumber::Finite(value) => Ok(value),
        JsonNumber::Text(text) => match text.as_str() {
            "nan" => Ok(f64::NAN),
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            _ => Err(D::Error::custom(format!("`{text}` is no number"))),
        },
    }
}
