//! Slots, as results name them.

use std::borrow::Cow;
use std::fmt;

use opscope_store::record::SlotSide;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A slot of an operator: `output.1` is the second of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotKey {
    /// Whether it is read or produced.
    pub side: SlotSide,
    /// Position among those of its side, from 0.
    pub index: u32,
}

impl SlotKey {
    /// Reads `input.0` or `output.1`; the number has no sign and no other text around it.
    pub fn parse(text: &str) -> Option<SlotKey> {
        let (side, index) = text.split_once('.')?;
        let side = match side {
            "input" => SlotSide::Input,
            "output" => SlotSide::Output,
            _ => return None,
        };
        // `parse` would take `+1` as well.
        let is_number = !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
        let index = index.parse().ok().filter(|_| is_number)?;
        Some(SlotKey { side, index })
    }
}

/// The first output, which is the only slot that every operator has.
impl Default for SlotKey {
    fn default() -> SlotKey {
        SlotKey {
            side: SlotSide::Output,
            index: 0,
        }
    }
}

impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.side.name(), self.index)
    }
}

impl Serialize for SlotKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SlotKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SlotKey, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        SlotKey::parse(&text).ok_or_else(|| {
            let expected = format!("`{text}` names no slot; `input.0` or `output.1` would");
            serde::de::Error::custom(expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SlotKey;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["input.0", "output.1", "output.4294967295"] {
            let slot = SlotKey::parse(text);
            assert_eq!(slot.map(|slot| slot.to_string()).as_deref(), Some(text));
        }
        for text in [
            "",
            "input",
            "input.",
            "Input.0",
            "output.+1",
            "output.-1",
            "output.4294967296",
        ] {
            assert_eq!(SlotKey::parse(text), None, "{text}");
        }
    }
}
