//! Two runs beside each other: the golden side is held, and the target is compared while it runs,
//! behind the golden side or at the same time.
//!
//! | module | job |
//! | --- | --- |
//! | [`inputs`] | the same inputs for both models |
//! | `golden` | the slots of the golden side, found by the names that a running operator has |
//! | `running` | a golden side that goes on while its target runs |
//! | [`experiments`] | the target with golden's definition in places |
//! | `search` | the few of many changes that have an effect together |
//! | `sink` | a sink that compares each tensor with its golden partner and holds what differs |
//! | `runs` | runs of a model for all its steps |
//!
//! `opscope_analysis::compare` decides on verdicts, once all values are there: a
//! partner by name is a guess, which may spare a second look at the same pair of tensors and
//! nothing else.

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
