//! Reading dumps: converting them to other formats and describing what is in them.
//!
//! This crate reads dumps only. It depends on neither `opscope-capture` nor `opscope-engine`, so it
//! works on a machine that has no model and no engine.

pub mod compare;
pub mod convert;
pub mod describe;
mod element;
pub mod elements;
pub mod error_chain;
pub mod events;
pub mod graph;
pub mod job;
pub mod lost;
pub mod mindspore;
pub mod names;
pub mod overflow;
pub mod overview;
mod read;
mod run_names;
pub mod scalars;
mod shard;
mod slot_statistics;
pub mod survey;
pub mod verify;

pub use element::{ElementValue, overflow_words};
pub use job::default_jobs;
pub use read::{read_dump, read_overview, read_whole};
pub use run_names::run_names;
pub use shard::{Shard, ShardError};
pub use slot_statistics::statistics_of;
