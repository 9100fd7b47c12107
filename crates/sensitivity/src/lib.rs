//! How much a model's outputs move when results of its operators are rounded, and which operators
//! to leave alone so that they move little.
//!
//! A [`SensitivityStudy`] holds a loaded model, its inputs and the outputs that it has without
//! rounding. It measures the [`OutputDistance`] of any rounding from them, [ranks](ranking) the
//! operators by what each does by itself, and [chooses](choice) the few to keep.
//! `docs/sensitivity.md` says how each number is computed.

pub mod choice;
mod distance;
pub mod ranking;
mod study;
#[cfg(test)]
mod tests;

pub use distance::{OneOutputDistance, OutputDistance};
pub use study::{BeforeRun, OperatorState, SensitivityStudy, StudiedOperator};
