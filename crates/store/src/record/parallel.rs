//! Facts about several processes that compute together: the collective that an operator is,
//! and which part of a distributed tensor a rank holds.
//!
//! Both have a text, which the tables of the native form hold.

mod collective;
mod dims;
mod placement;

pub use self::collective::{Collective, CollectiveKind, Reduction};
pub use self::dims::{MeshMark, MeshShare, NamedAxis, TensorDims};
pub use self::placement::{AxisPlacement, MeshAxis, Placement};
use crate::decimal::number;

/// Maximum number of ranks, axes and dimensions in a text.
const N_ENTRIES_MAX: usize = 1 << 20;

/// A text that represents neither a collective nor a placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a {expected}, found `{text}`")]
pub struct ParallelTextError {
    text: String,
    expected: &'static str,
}

impl ParallelTextError {
    fn new(text: &str, expected: &'static str) -> ParallelTextError {
        ParallelTextError {
            // A damaged table may hold a text of megabytes.
            text: text.chars().take(200).collect(),
            expected,
        }
    }

    /// The thing that the text should be.
    pub fn expected(&self) -> &'static str {
        self.expected
    }

    /// The text, cut at 200 characters.
    pub fn found(&self) -> String {
        format!("`{}`", self.text)
    }
}

/// `name(a,b)` in its parts; no arguments without parentheses.
fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let Some((name, rest)) = text.split_once('(') else {
        return Some((text, Vec::new()));
    };
    let arguments = rest.strip_suffix(')')?;
    Some((name, arguments.split(',').collect()))
}
