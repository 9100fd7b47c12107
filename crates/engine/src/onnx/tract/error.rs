//! tract's name in messages, and its errors and panics as text.

use tract_onnx::prelude::*;

use crate::guard;

/// The engine's name.
pub(super) const NAME: &str = "tract";
/// The engine to suggest where tract does not do.
pub(super) const OTHER_ENGINE: &str = "ONNX Runtime";

/// An error with its causes on one line.
pub(super) fn chain(error: &TractError) -> String {
    let parts: Vec<String> = error.chain().map(ToString::to_string).collect();
    parts.join(": ").replace('\n', " ")
}

/// Runs the engine's own code, turning its errors and panics into text.
pub(super) fn quietly<T>(work: impl FnOnce() -> TractResult<T>) -> Result<T, String> {
    guard::catch(work)?.map_err(|error| chain(&error))
}
