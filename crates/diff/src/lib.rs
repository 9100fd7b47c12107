//! Two runs side by side: the golden side is held, and the target is compared while it runs, behind
//! the golden side or at the same time.
//!
//! | module | job |
//! | --- | --- |
//! | [`inputs`] | the same inputs for both models |
//! | `golden` | the slots of the golden side, found by the names that a running operator has |
//! | `running` | a golden side that runs together with its target |
//! | [`experiments`] | the target with some of golden's definitions |
//! | `search` | the smallest set of changes that has an effect |
//! | `sink` | a sink that compares each tensor with its golden partner and holds what differs |
//! | `runs` | runs of a model for all its steps |
//!
//! `opscope_analysis::compare` decides on verdicts, once all values are there: a partner by name is
//! only a guess, which may save a second comparison of the same tensors.

pub mod experiments;
mod golden;
pub mod inputs;
mod running;
mod runs;
mod search;
mod sink;

pub use golden::GoldenSlots;
pub use running::{RunEnd, RunningGolden};
pub use runs::{RunError, RunOutcome, run_steps};
pub use sink::{
    ComparingSink, FirstBeyond, StreamedOperator, StreamedSlot, TargetStore, WatchOptions,
};
