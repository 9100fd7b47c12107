//! A text that shares memory with equal ones.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is cheap to clone: dumps repeat names in every step, and reports repeat them for
/// every slot.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedText(ArcStr);

impl SharedText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A copy that shares nothing.
    pub fn into_string(self) -> String {
        self.as_str().to_owned()
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

// Equal texts have equal hashes, in either type, as `Borrow` promises.
impl Borrow<str> for SharedText {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for SharedText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> SharedText {
        SharedText(text.into())
    }
}

impl From<&String> for SharedText {
    fn from(text: &String) -> SharedText {
        SharedText(text.as_str().into())
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> SharedText {
        SharedText(text.into())
    }
}

impl From<Arc<str>> for SharedText {
    fn from(text: Arc<str>) -> SharedText {
        SharedText::from(&*text)
    }
}

impl From<SharedText> for String {
    fn from(text: SharedText) -> String {
        text.into_string()
    }
}

impl From<SharedText> for Arc<str> {
    fn from(text: SharedText) -> Arc<str> {
        text.as_str().into()
    }
}

impl PartialEq<str> for SharedText {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for SharedText {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl PartialEq<String> for SharedText {
    fn eq(&self, other: &String) -> bool {
        *self.0 == **other
    }
}

impl PartialEq<SharedText> for String {
    fn eq(&self, other: &SharedText) -> bool {
        **self == *other.0
    }
}

impl PartialEq<SharedText> for str {
    fn eq(&self, other: &SharedText) -> bool {
        *self == *other.0
    }
}

impl PartialEq<SharedText> for &str {
    fn eq(&self, other: &SharedText) -> bool {
        **self == *other.0
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SharedText, D::Error> {
        String::deserialize(from).map(SharedText::from)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::SharedText;

    #[test]
    fn texts_are_found_whatever_their_type() {
        let known: HashSet<SharedText> = ["relu".into(), SharedText::default()].into();
        assert!(known.contains("relu") && known.contains("") && !known.contains("Relu"));
        let text = SharedText::from("relu".to_owned());
        assert!(known.contains(&text));
        assert!(text == "relu");
        assert!("relu" == text);
        assert!(text == *"relu");
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"relu\"");
        assert_eq!(
            serde_json::from_str::<SharedText>("\"relu\"").unwrap(),
            text
        );
    }
}
