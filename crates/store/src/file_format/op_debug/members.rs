//! The members of an object in JSON, read by name; an error contains the position at which one is
//! missing.

use serde_json::Value;

use crate::FormatError;

/// An object in the text, and where it is.
pub(super) struct JsonMembers<'a> {
    value: &'a Value,
    place: String,
}

impl<'a> JsonMembers<'a> {
    pub(super) fn root(value: &'a Value) -> JsonMembers<'a> {
        JsonMembers {
            value,
            place: String::new(),
        }
    }

    pub(super) fn object(&self, name: &str) -> Result<JsonMembers<'a>, FormatError> {
        let value = self.member(name)?;
        if !value.is_object() {
            return Err(self.wrong(name, "an object", value));
        }
        Ok(JsonMembers {
            value,
            place: format!("{}/{name}", self.place),
        })
    }

    pub(super) fn member(&self, name: &str) -> Result<&'a Value, FormatError> {
        self.value.get(name).ok_or_else(|| {
            let expected = format!("a member `{}/{name}`", self.place);
            FormatError::new(0, expected, "none")
        })
    }

    /// A number, or the text of one in hexadecimal.
    pub(super) fn number(&self, name: &str) -> Result<u64, FormatError> {
        let value = self.member(name)?;
        number(value).ok_or_else(|| self.wrong(name, "a number", value))
    }

    pub(super) fn number32(&self, name: &str) -> Result<u32, FormatError> {
        let number = self.number(name)?;
        u32::try_from(number).map_err(|_| {
            let found = Value::from(number);
            self.wrong(name, "a number of 32 bits", &found)
        })
    }

    /// The numbers of a member that is a list; `None` if it is not a list, and `Some(None)` if an
    /// item is not a number.
    pub(super) fn list(&self, name: &str) -> Result<Option<Option<Vec<u64>>>, FormatError> {
        Ok(match self.member(name)? {
            Value::Array(items) => Some(items.iter().map(number).collect()),
            _ => None,
        })
    }

    /// The object with another value of one member.
    pub(super) fn with(&self, name: &str, value: Value) -> Value {
        let mut object = self.value.clone();
        object[name] = value;
        object
    }

    /// An object in place of this one.
    pub(super) fn replaced_by<'b>(&self, value: &'b Value) -> JsonMembers<'b> {
        JsonMembers {
            value,
            place: self.place.clone(),
        }
    }

    pub(super) fn wrong(&self, name: &str, expected: &str, found: &Value) -> FormatError {
        let expected = format!("{expected} as `{}/{name}`", self.place);
        let found: String = found.to_string().chars().take(40).collect();
        FormatError::new(0, expected, format!("`{found}`"))
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        // Both writers of such JSON give addresses as hexadecimal text.
        Value::String(text) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        other => other.as_u64(),
    }
}
