//! JSON values for the page.

use opscope_analysis::compare::result::SlotKey;
use opscope_store::record::SlotSide;
use serde_json::Value;

/// A number. NaN and infinities, which JSON lacks, become the texts `nan`, `inf` and `-inf`.
pub(crate) fn number(number: f64) -> Value {
    if number.is_nan() {
        "nan".into()
    } else if number == f64::INFINITY {
        "inf".into()
    } else if number == f64::NEG_INFINITY {
        "-inf".into()
    } else {
        number.into()
    }
}

/// A number that may be unknown.
pub(crate) fn known(value: Option<f64>) -> Value {
    value.map_or(Value::Null, number)
}

/// A slot in the form of addresses: `in0`, `out1`.
pub(crate) fn slot(key: SlotKey) -> String {
    let side = match key.side {
        SlotSide::Input => "in",
        SlotSide::Output => "out",
    };
    format!("{side}{}", key.index)
}

/// Parses the slot of an address.
pub(crate) fn parse_slot(text: &str) -> Option<SlotKey> {
    // Short, because it is in every address.
    // Only these two prefixes exist, so everything that is not an input must be an output.
    let (side, index) = match text.strip_prefix("in") {
        Some(index) => (SlotSide::Input, index),
        None => (SlotSide::Output, text.strip_prefix("out")?),
    };
    // `parse` would take `+1` as well.
    let is_number = index.bytes().all(|byte| byte.is_ascii_digit());
    let index = index.parse().ok().filter(|_| is_number)?;
    Some(SlotKey { side, index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_read_as_they_are_written() {
        for text in ["in0", "out12"] {
            assert_eq!(parse_slot(text).map(slot).as_deref(), Some(text));
        }
        for text in ["", "in", "out", "in+1", "input.0", "0", "in99999999999"] {
            assert_eq!(parse_slot(text), None, "{text}");
        }
    }
}
