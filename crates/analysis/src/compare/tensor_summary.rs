//! A tensor as results describe it.

use std::ops::Deref;
use std::sync::Arc;

use opscope_store::SharedText;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A tensor, described.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TensorSummary {
    /// Name of the dtype.
    pub dtype: SharedText,
    /// Name of the layout, if it has a meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<SharedText>,
    /// Shape as stored.
    pub shape: Vec<u64>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<SharedText>,
}

impl TensorSummary {
    /// Number of elements.
    pub fn n_elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// A description that slots have in common: a native dump has all its tensors in few files, and of
/// few shapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedSummary(Arc<TensorSummary>);

impl Deref for SharedSummary {
    type Target = TensorSummary;

    fn deref(&self) -> &TensorSummary {
        &self.0
    }
}

impl From<TensorSummary> for SharedSummary {
    fn from(summary: TensorSummary) -> SharedSummary {
        SharedSummary(Arc::new(summary))
    }
}

impl Serialize for SharedSummary {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for SharedSummary {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SharedSummary, D::Error> {
        TensorSummary::deserialize(from).map(SharedSummary::from)
    }
}
