//! How much a model's outputs change when results of its operators are rounded, and which operators
//! to leave unrounded to keep the change small.
//!
//! A [`SensitivityStudy`] holds a loaded model, its inputs and its outputs without rounding. It
//! measures the [`OutputDistance`] under any rounding, [ranks](ranking) the operators by their
//! individual effect, and [chooses](choice) the few to leave unrounded. `docs/sensitivity.md`
//! defines each number.

pub mod choice;
mod distance;
pub mod ranking;
mod study;
#[cfg(test)]
mod tests;

pub use distance::{OneOutputDistance, OutputDistance};
pub use study::{BeforeRun, OperatorState, SensitivityStudy, StudiedOperator};
